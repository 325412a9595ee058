/* jmespath.c - fuzz target: an expression, a newline or NUL, and the document to search.
 *
 * What must hold beyond not crashing: an error has a reason and a message; a result can be
 * written, read back, and is the same then; the document is not changed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jmespath-internal.h"

#include <stdint.h>
#include <string.h>

enum {
    MOST_VALUES = 1 << 16, /* a search that explodes is to end soon */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_error(const struct err *e)
{
    require(e->code == ERR_INVALID && e->reason && e->msg[0] && !strchr(e->msg, '\n'));
}

static void require_writable(const json_t *value)
{
    auto_str text = {0};
    auto_str again = {0};
    auto_json json_t *read = NULL;

    json_write(&text, value);
    read = json_loadb(str_text(&text), text.len, JSON_DECODE_ANY, NULL);
    require(read);
    json_write(&again, read);
    require(str_equal(str_text(&text), str_text(&again)));
}

static void search(const struct jmespath *path, json_t *document)
{
    auto_free char *before = json_canonical(document);
    auto_free char *after = NULL;
    auto_json json_t *value = NULL;
    struct err e = {0};

    if (jmes_search(path, document, MOST_VALUES, &value, &e) < 0)
        require_error(&e);
    else
        require_writable(value);
    after = json_canonical(document);
    require(str_equal(before, after));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    size_t cut = 0;
    auto_free char *expression = NULL;
    auto_json json_t *document = NULL;
    autoptr(jmespath) path = NULL;
    struct err e = {0};

    while (cut < len && text[cut] && text[cut] != '\n')
        cut++;
    expression = xstrndup(text, cut);
    if (jmespath_parse(expression, &path, &e) < 0) {
        require_error(&e);
        return 0;
    }
    if (cut + 1 >= len || json_parse(text + cut + 1, len - cut - 1, &document, NULL) < 0)
        document = json_null();
    search(path, document);
    return 0;
}
