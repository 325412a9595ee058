/* storage_xml.c - fuzz target: a document as a storage client may send it.
 *
 * What must hold beyond not crashing: what was read can be written, is read again, and is the
 * same then; an error is one that the protocol has a word for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "storage/xml.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_readable_again(const struct xml_node *root)
{
    autoptr(arena) arena = arena_new();
    auto_str text = {0}, again = {0};
    const struct xml_node *read;

    xml_write(&text, root);
    require(xml_parse(str_text(&text), text.len, arena, &read, NULL) == 0);
    xml_write(&again, read);
    require(strcmp(str_text(&text), str_text(&again)) == 0);
}

/* Any bytes without a NUL are a text that must come out as XML. */
static void require_writable(const char *text)
{
    autoptr(arena) arena = arena_new();
    const struct xml_node *read;
    auto_str out = {0};

    xml_begin(&out);
    xml_open(&out, "a");
    xml_element(&out, "b", text);
    xml_name(&out, "c", text);
    xml_close(&out, "a");
    require(xml_parse(str_text(&out), out.len, arena, &read, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    autoptr(arena) arena = arena_new();
    auto_free char *text = xstrndup((const char *)bytes, len);
    const struct xml_node *root;
    struct err e = {0};

    if (xml_parse((const char *)bytes, len, arena, &root, &e) == 0)
        require_readable_again(root);
    else
        require(e.code == ERR_INVALID && str_equal(e.reason, "InvalidXmlDocument"));
    require_writable(text);
    return 0;
}
