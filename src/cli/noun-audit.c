/* The audit log: who changed what, when, with what outcome.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/shape.h"

#include <stdlib.h>

static const struct option_row top = {
    .names = "--top --max-results",
    .help = "How many of the newest entries to show, at most.",
    .default_text = "100",
};

static const struct shape audit_shape = {
    .times = "time",
};

static int audit(struct call *call, json_t **ret_result, struct err *e)
{
    const char *text = args_get(call->args, "top");
    auto_free char *path = NULL;
    auto_json json_t *page = NULL;
    json_t *entries = NULL;
    struct rest *rest;
    char *end;
    long count = strtol(text, &end, 10);

    if (*end || count < 1 || count > 1000)
        return args_fail(e, "--top", "--top: \"%.32s\" is not a number from 1 to 1000", text);
    path = xasprintf("/yard/audit?maxresults=%ld", count);
    /* One page is what was asked for: its nextLink leads to older entries. */
    if (call_rest(call, &rest, e) < 0 || rest_call(rest, "GET", path, NULL, &page, e) < 0 ||
        json_get_array(page, "value", &entries, e) < 0)
        return -1;
    *ret_result = entries ? json_incref(entries) : json_array();
    return 0;
}

const struct command audit_commands[] = {
    {
        .path = "audit",
        .summary = "Show who changed what, when, and with what outcome.",
        .options = OPTIONS(&top),
        .examples = {{"The last changes.", "yard audit --top 20 -o table"},
                     {"What failed.", "yard audit --query \"[?outcome!='Succeeded']\""}},
        .run = audit,
        .shape = &audit_shape,
        .table =
            "{Time: time, Who: principal, What: operation, Target: target, Outcome: outcome}",
    },
    {0},
};
