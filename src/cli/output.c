/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/output-internal.h"
#include "cli/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **output_sorted_keys(json_t *object)
{
    size_t count = json_object_size(object), i = 0;
    const char **keys = xcalloc(count + 1, sizeof(*keys));
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) keys[i++] = key;
    qsort(keys, count, sizeof(*keys), compare_names);
    return keys;
}

static void add_real(struct str *out, double value)
{
    char text[40];
    int digits = 1, power;

    /* The fewest digits that read back as the same number; 17 always do. */
    for (; digits < 17; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value)
            break;
    }
    snprintf(text, sizeof(text), "%.*e", digits - 1, value);
    power = atoi(strchr(text, 'e') + 1);
    if (power < -4 || power >= 16)
        str_add(out, text);
    else
        str_addf(out, "%.*f", digits - 1 - power > 1 ? digits - 1 - power : 1, value);
}

void output_number(struct str *out, const json_t *number)
{
    if (json_is_integer(number))
        str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
    else
        add_real(out, json_real_value(number));
}

void output_scalar(struct str *out, const json_t *value)
{
    if (json_is_string(value))
        str_add_len(out, json_string_value(value), json_string_length(value));
    else if (json_is_number(value))
        output_number(out, value);
    else if (json_is_boolean(value))
        str_add(out, json_is_true(value) ? "True" : "False");
    else
        str_add(out, "None");
}

void output_ink(struct str *out, bool colour, enum output_ink ink)
{
    static const char *const sequences[] = {
        [INK_KEY] = "\x1b[94m",    [INK_STRING] = "\x1b[33m", [INK_NUMBER] = "\x1b[36m",
        [INK_WORD] = "\x1b[36;1m", [INK_OFF] = "\x1b[0m",
    };

    if (colour)
        str_add(out, sequences[ink]);
}

/* A deep copy whose strings hold nothing that a terminal would obey. */
static json_t *cleaned(json_t *value)
{
    auto_str text = {0};
    json_t *copy, *member;
    const char *key;
    size_t i;

    if (json_is_string(value)) {
        term_clean(&text, json_string_value(value), json_string_length(value));
        return json_stringn(str_text(&text), text.len);
    }
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, i, member) json_array_append_new(copy, cleaned(member));
        return copy;
    }
    if (!json_is_object(value))
        return json_incref(value);
    copy = json_object();
    json_object_foreach(value, key, member)
    {
        str_truncate(&text, 0);
        term_clean(&text, key, strlen(key));
        json_object_set_new(copy, str_text(&text), cleaned(member));
    }
    return copy;
}

int output_format(struct str *out, const struct output *how, json_t *value, struct err *e)
{
    auto_json json_t *shown = how->clean && value ? cleaned(value) : json_incref(value);

    if (!shown || json_is_null(shown) || str_equal(how->format, "none"))
        return 0;
    if (str_equal(how->format, "table"))
        return output_table(out, how, shown, e);
    if (str_equal(how->format, "tsv")) {
        output_tsv(out, shown);
        return 0;
    }
    if (str_starts(how->format, "yaml"))
        return output_yaml(out, shown, how->colour && str_equal(how->format, "yamlc"), e);
    output_json(out, shown, how->colour && str_equal(how->format, "jsonc"));
    str_add_char(out, '\n');
    return 0;
}
