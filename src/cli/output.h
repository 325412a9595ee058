/* output.h - results as text: json, jsonc, yaml, yamlc, table, tsv, none, as az writes them.
 *
 * json and yaml sort their keys.  table and tsv keep the order of a --query's own {Name: ...,
 * ...} and sort otherwise.  A null result writes nothing in any format.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/err.h"

#include <jansson.h>

struct str;

struct output {
    const char *format; /* "json", "jsonc", "none", "table", "tsv", "yaml", "yamlc" */
    bool colour;        /* for jsonc and yamlc */
    bool clean;         /* for a terminal: take control characters out of values */
    bool queried;       /* the value came out of --query */
    /* JMESPath of the columns, over one item; NULL = its scalars.  An item with an "id" has its
     * parts in "idParts" for this, and so has a member with one: idParts.workspaces is "w" for
     * ".../workspaces/w/experiments/e". */
    const char *table;
};

/* Append the value in the format.  Fails when a table cannot show it. */
int output_format(struct str *out, const struct output *how, json_t *value, struct err *e);

#endif
