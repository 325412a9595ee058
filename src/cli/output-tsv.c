/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output-internal.h"

#include "base/str.h"

/* A list shows its length and an object nothing, so that every row has the same number of
 * columns. */
static void add_cell(struct str *out, json_t *value)
{
    if (json_is_array(value))
        str_addf(out, "%zu", json_array_size(value));
    else if (!json_is_object(value))
        output_scalar(out, value);
}

static void add_row(struct str *out, json_t *row)
{
    const char *key;
    json_t *value;
    size_t i;
    const char *between = "";

    if (json_is_object(row)) {
        json_object_foreach(row, key, value)
        {
            str_add(out, between);
            add_cell(out, value);
            between = "\t";
        }
    } else if (json_is_array(row)) {
        json_array_foreach(row, i, value)
        {
            str_add(out, between);
            add_cell(out, value);
            between = "\t";
        }
    } else if (json_is_boolean(row)) {
        str_add(out,
                json_is_true(row) ? "true" : "false"); /* small here, capital in a row: az */
    } else {
        output_scalar(out, row);
    }
    str_add_char(out, '\n');
}

void output_tsv(struct str *out, json_t *value)
{
    json_t *row;
    size_t i;

    if (!json_is_array(value)) {
        add_row(out, value);
        return;
    }
    json_array_foreach(value, i, row) add_row(out, row);
}
