/* odata.c - fuzz target: a $filter from a query string.
 *
 * What must hold beyond not crashing: a refusal names the parameter and leaves the result
 * alone; what was understood is understood the same when it is written anew.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void add(struct str *out, const char *field, const char *value)
{
    if (!value)
        return;
    str_addf(out, "%s%s eq '", out->len ? " and " : "", field);
    for (; *value; value++) {
        if (*value == '\'')
            str_add_char(out, '\'');
        str_add_char(out, *value);
    }
    str_add_char(out, '\'');
}

static void require_same_again(struct arena *arena, const struct odata_filter *f)
{
    struct odata_filter again = {0};
    auto_str text = {0};

    add(&text, "tagName", f->tag);
    add(&text, "tagValue", f->tag_value);
    add(&text, "resourceType", f->type);
    add(&text, "name", f->name);
    require(odata_parse(arena, str_text(&text), &again, NULL) == 0);
    require(str_equal(again.tag, f->tag) && str_equal(again.tag_value, f->tag_value));
    require(str_equal(again.type, f->type) && str_equal(again.name, f->name));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    autoptr(arena) arena = arena_new();
    auto_free char *text = xstrndup((const char *)bytes, len);
    struct odata_filter f = {.name = "untouched"};
    struct err e = {0};

    if (odata_parse(arena, text, &f, &e) < 0) {
        require(e.code == ERR_INVALID && str_equal(e.target, "$filter"));
        require(str_equal(f.name, "untouched"));
        return 0;
    }
    require(f.tag || f.type || f.name);
    require_same_again(arena, &f);
    return 0;
}
