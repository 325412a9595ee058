/* A table as az has it: a header, dashes, left-aligned columns two spaces apart, each at least
 * two wider than its title.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/output-internal.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jmespath.h"
#include "cli/output.h"
#include "cli/term.h"

#include <ctype.h>
#include <string.h>

static bool is_shown(const json_t *value)
{
    return value && !json_is_null(value) && !json_is_array(value) && !json_is_object(value);
}

static char *title_of(const char *key)
{
    char *title = xstrdup(key);

    title[0] = (char)toupper((unsigned char)title[0]);
    return title;
}

static bool is_tiresome(const char *key)
{
    return str_equal(key, "id") || str_equal(key, "type") || str_equal(key, "etag");
}

static json_t *row_of_object(json_t *item, bool everything)
{
    json_t *row = json_object(), *value;
    const char *key;

    json_object_foreach(item, key, value)
    {
        auto_free char *title = title_of(key);

        if (is_shown(value) && (everything || !is_tiresome(key)))
            json_object_set(row, title, value);
    }
    if (!json_object_size(row) && !everything) {
        json_decref(row);
        return row_of_object(item, true);
    }
    return row;
}

static json_t *row_of_array(json_t *item)
{
    json_t *row = json_object(), *value;
    size_t i;

    json_array_foreach(item, i, value)
    {
        auto_free char *title = xasprintf("Column%zu", i + 1);

        json_object_set(row, title, value);
    }
    return row;
}

static json_t *row_of(json_t *item)
{
    if (json_is_object(item))
        return row_of_object(item, false);
    if (json_is_array(item))
        return row_of_array(item);
    return json_pack("{s:O}", "Result", item);
}

/* "/subscriptions/s/resourceGroups/g/..." as {"subscriptions": "s", "resourceGroups": "g",
 * ...}. */
static json_t *id_parts(const char *id)
{
    json_t *parts = json_object();

    for (const char *p = id; *p == '/';) {
        size_t name_len = strcspn(p + 1, "/");
        const char *value = p + 1 + name_len;
        size_t value_len = *value ? strcspn(value + 1, "/") : 0;
        auto_free char *name = xstrndup(p + 1, name_len);

        if (!*value)
            break;
        json_object_set_new(parts, name, json_stringn(value + 1, value_len));
        p = value + 1 + value_len;
    }
    return parts;
}

static void add_id_parts(json_t *object)
{
    const char *id = json_string_value(json_object_get(object, "id"));

    if (id)
        json_object_set_new(object, "idParts", id_parts(id));
}

/* Of the item itself and of what it refers to: a job's cluster. */
static json_t *with_id_parts(json_t *item)
{
    json_t *more = json_copy(item), *member;
    const char *key;

    json_object_foreach(item, key, member)
    {
        json_t *copy = json_object_get(member, "id") ? json_copy(member) : NULL;

        if (!copy)
            continue;
        add_id_parts(copy);
        json_object_set_new(more, key, copy);
    }
    add_id_parts(more);
    return more;
}

/* An array of objects: one per row, titles as keys. */
static int make_rows(const struct output *how, json_t *value, json_t **ret_rows, struct err *e)
{
    auto_json json_t *rows = json_array();
    auto_json json_t *items =
        json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
    autoptr(jmespath) columns = NULL;
    json_t *item;
    size_t i;

    if (how->table && !how->queried && jmespath_parse(how->table, &columns, e) < 0)
        return -1;
    json_array_foreach(items, i, item)
    {
        auto_json json_t *more = columns ? with_id_parts(item) : NULL;
        json_t *row = NULL;

        if (!columns)
            row = row_of(item);
        else if (jmespath_search(columns, more, &row, e) < 0)
            return -1;
        json_array_append_new(rows, row);
    }
    *ret_rows = json_incref(rows);
    return 0;
}

static void cell_text(struct str *out, const json_t *value)
{
    str_truncate(out, 0);
    if (!is_shown(value))
        return;
    output_scalar(out, value);
    for (size_t i = 0; i < out->len; i++) {
        if (isspace((unsigned char)out->data[i]))
            out->data[i] = ' '; /* a row is one line */
    }
}

/* Titles in order of appearance, with the width of their columns. */
static json_t *measure(json_t *rows)
{
    json_t *widths = json_object(), *row, *value;
    const char *title;
    auto_str text = {0};
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_object_foreach(row, title, value)
        {
            json_int_t width = json_integer_value(json_object_get(widths, title));

            if (!width)
                width = (json_int_t)term_width(title) + 2;
            cell_text(&text, value);
            if ((json_int_t)term_width(str_text(&text)) > width)
                width = (json_int_t)term_width(str_text(&text));
            json_object_set_new(widths, title, json_integer(width));
        }
    }
    return widths;
}

static void pad(struct str *line, const char *text, json_int_t width)
{
    size_t have = term_width(text);

    str_add(line, text);
    for (; have < (size_t)width + 2; have++)
        str_add_char(line, ' ');
}

static void end_line(struct str *out, struct str *line)
{
    while (line->len && line->data[line->len - 1] == ' ')
        str_truncate(line, line->len - 1);
    str_add(out, str_text(line));
    str_add_char(out, '\n');
    str_truncate(line, 0);
}

static void add_head(struct str *out, json_t *widths)
{
    auto_str titles = {0}, dashes = {0};
    const char *title;
    json_t *width;

    json_object_foreach(widths, title, width)
    {
        pad(&titles, title, json_integer_value(width));
        for (json_int_t i = 0; i < json_integer_value(width); i++)
            str_add_char(&dashes, '-');
        str_add(&dashes, "  ");
    }
    end_line(out, &titles);
    end_line(out, &dashes);
}

int output_table(struct str *out, const struct output *how, json_t *value, struct err *e)
{
    auto_json json_t *rows = NULL, *widths = NULL;
    auto_str line = {0}, text = {0};
    const char *title;
    json_t *row, *width;
    size_t i;

    if (make_rows(how, value, &rows, e) < 0)
        return -1;
    widths = measure(rows);
    if (!json_array_size(rows))
        return 0;
    if (!json_object_size(widths))
        return err_set(e, ERR_INVALID,
                       "table output unavailable; use --query to pick what to show");
    add_head(out, widths);
    json_array_foreach(rows, i, row)
    {
        json_object_foreach(widths, title, width)
        {
            cell_text(&text, json_object_get(row, title));
            pad(&line, str_text(&text), json_integer_value(width));
        }
        end_line(out, &line);
    }
    return 0;
}
