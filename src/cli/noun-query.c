/* JMESPath over any JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/jmespath.h"

enum {
    MOST_BYTES = 1024 * 1024 * 1024,
};

static const struct option_row expression = {
    .names = "EXPRESSION",
    .help = "JMESPath expression.",
    .required = true,
};

static int query(struct call *call, json_t **ret_result, struct err *e)
{
    autoptr(jmespath) path = NULL;
    auto_str text = {0};
    auto_json json_t *document = NULL;

    if (jmespath_parse(args_get(call->args, "EXPRESSION"), &path, e) < 0) {
        err_target(e, "EXPRESSION");
        return err_reason(e, CLI_USAGE);
    }
    if (fs_read("/dev/stdin", MOST_BYTES, &text, e) < 0 ||
        json_parse(str_text(&text), text.len, &document, e) < 0)
        return -1;
    return jmespath_search(path, document, ret_result, e);
}

const struct command query_commands[] = {
    {
        .path = "query",
        .summary = "Pick from any JSON on standard input with JMESPath.",
        .options = OPTIONS(&expression),
        .examples = {{"Names of the big ones.",
                      "yard query 'items[?size > `10`].name' < file.json"},
                     {"Reshape into a table.",
                      "yard query 'items[].{Name: name, Size: size}' -o table < file.json"}},
        .run = query,
    },
    {0},
};
