/* json.c - fuzz target: a body from a stranger, parsed and asked for fields.
 *
 * What must hold beyond not crashing: a refusal says where; what was taken is no deeper than
 * the limit, can be written, read back, and is the same then.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_error(const struct err *e)
{
    require(e->code == ERR_INVALID && e->msg[0] && !strpbrk(e->msg, "\r\n"));
    require(text_is_utf8(e->msg, strlen(e->msg)));
}

static int depth_of(const json_t *value)
{
    int deepest = 0, depth;
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach((json_t *)value, key, member)
    {
        depth = depth_of(member);
        deepest = depth > deepest ? depth : deepest;
    }
    json_array_foreach(value, i, member)
    {
        depth = depth_of(member);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (json_is_object(value) || json_is_array(value));
}

static void require_same_again(json_t *value)
{
    auto_str text = {0}, again = {0};
    auto_json json_t *read = NULL;

    json_write(&text, value);
    require(text_is_utf8(str_text(&text), text.len));
    require(json_parse(str_text(&text), text.len, &read, NULL) == 0);
    require(json_equal(read, value));
    json_write(&again, read);
    require(str_equal(str_text(&text), str_text(&again)));
}

/* The getters of handlers, on whatever the field is. */
static void ask_for(const json_t *object, const char *key)
{
    json_t *member = NULL;
    const char *text = NULL;
    int64_t number = 5;
    bool flag = false;
    struct err e = {0};

    if (json_get_object(object, key, &member, &e) < 0)
        require_error(&e);
    if (json_get_array(object, key, &member, &e) < 0)
        require_error(&e);
    if (json_get_string(object, key, &text, &e) < 0)
        require_error(&e);
    if (json_get_int(object, key, 1, 10, &number, &e) < 0)
        require_error(&e);
    require(number >= 1 && number <= 10);
    if (json_get_bool(object, key, &flag, &e) < 0)
        require_error(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    auto_json json_t *value = NULL;
    struct err e = {0};
    const char *key;
    json_t *member;

    if (json_parse((const char *)bytes, len, &value, &e) < 0) {
        require(!value);
        require_error(&e);
        return 0;
    }
    require(depth_of(value) <= JSON_MOST_DEPTH);
    require_same_again(value);
    json_object_foreach(value, key, member)
    {
        ask_for(value, key);
    }
    ask_for(value, "location");
    return 0;
}
