/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output-internal.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static void add_string(struct str *out, const char *text, size_t len)
{
    str_add_char(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *at = c ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", c) : NULL;

        /* The list has pairs: the character, then the letter of its escape. */
        if (at && (c < 0x20 || c == '"' || c == '\\'))
            str_addf(out, "\\%c", at[1]);
        else if (c < 0x20)
            str_addf(out, "\\u%04x", c);
        else
            str_add_char(out, (char)c);
    }
    str_add_char(out, '"');
}

static void add_value(struct str *out, json_t *value, bool colour, int depth);

static void new_line(struct str *out, int depth)
{
    str_addf(out, "\n%*s", depth * 2, "");
}

static void add_array(struct str *out, json_t *array, bool colour, int depth)
{
    json_t *item;
    size_t i;

    if (!json_array_size(array)) {
        str_add(out, "[]");
        return;
    }
    str_add_char(out, '[');
    json_array_foreach(array, i, item)
    {
        if (i)
            str_add_char(out, ',');
        new_line(out, depth + 1);
        add_value(out, item, colour, depth + 1);
    }
    new_line(out, depth);
    str_add_char(out, ']');
}

static void add_object(struct str *out, json_t *object, bool colour, int depth)
{
    const char **keys;

    if (!json_object_size(object)) {
        str_add(out, "{}");
        return;
    }
    keys = output_sorted_keys(object);
    str_add_char(out, '{');
    for (size_t i = 0; keys[i]; i++) {
        if (i)
            str_add_char(out, ',');
        new_line(out, depth + 1);
        output_ink(out, colour, INK_KEY);
        add_string(out, keys[i], strlen(keys[i]));
        output_ink(out, colour, INK_OFF);
        str_add(out, ": ");
        add_value(out, json_object_get(object, keys[i]), colour, depth + 1);
    }
    free(keys);
    new_line(out, depth);
    str_add_char(out, '}');
}

static void add_value(struct str *out, json_t *value, bool colour, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        add_object(out, value, colour, depth);
        return;
    case JSON_ARRAY:
        add_array(out, value, colour, depth);
        return;
    case JSON_STRING:
        output_ink(out, colour, INK_STRING);
        add_string(out, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        output_ink(out, colour, INK_NUMBER);
        output_number(out, value);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        output_ink(out, colour, INK_WORD);
        str_add(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
        break;
    }
    output_ink(out, colour, INK_OFF);
}

void output_json(struct str *out, json_t *value, bool colour)
{
    add_value(out, value, colour, 0);
}
