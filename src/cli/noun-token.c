/* Tokens: who may come in, and as what.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/shape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct option_row name = {
    .names = "NAME",
    .help = "Name of the token.",
    .required = true,
};
static const struct option_row role = {
    .names = "--role",
    .help = "What its holder may do.",
    .choices = "contributor owner reader",
    .required = true,
};
static const struct option_row group = {
    .names = "--resource-group -g",
    .help = "Only in this resource group; everywhere when not given.",
};
static const struct option_row expires_in = {
    .names = "--expires-in",
    .help = "How long it is valid: a number and s, m, h, d or w; for ever when not given.",
};

static const struct shape token_shape = {
    .times = "createdOn expiresOn lastUsedOn creationTime",
};
static const char token_table[] = "{Name: name, Role: role, Scope: scope, Expires: expiresOn}";

static int token_path(const struct args *args, char **ret_path, struct err *e)
{
    const char *text = args_get(args, "NAME");
    auto_str path = {0};

    if (!*text || str_equal(text, ".") || str_equal(text, ".."))
        return args_fail(e, "NAME", "NAME: \"%s\" is not a name", text);
    str_add(&path, "/yard/tokens/");
    text_percent(&path, text);
    *ret_path = str_take(&path);
    return 0;
}

/* "30d" in seconds. */
static int parse_span(const char *text, json_int_t *ret_seconds, struct err *e)
{
    static const struct unit {
        char letter;
        json_int_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    char *end = NULL;
    long long number = isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : 0;

    for (size_t i = 0; end && i < ARRAY_SIZE(units); i++) {
        /* A thousand years is beyond any wish and far below overflow. */
        if (end[0] == units[i].letter && !end[1] && number > 0 && number <= 366000) {
            *ret_seconds = number * units[i].seconds;
            return 0;
        }
    }
    return args_fail(e, "--expires-in",
                     "--expires-in: \"%.32s\" is not a span of time; write it like 30d or 12h",
                     text);
}

static int token_create(struct call *call, json_t **ret_result, struct err *e)
{
    const struct args *args = call->args;
    auto_free char *path = NULL;
    auto_json json_t *body = json_pack("{s:s, s:s*}", "role", args_get(args, "role"),
                                       "resourceGroup", args_get(args, "resource-group"));
    struct rest *rest;
    json_int_t seconds = 0;

    if (token_path(args, &path, e) < 0)
        return -1;
    if (args_has(args, "expires-in")) {
        if (parse_span(args_get(args, "expires-in"), &seconds, e) < 0)
            return -1;
        json_object_set_new(body, "expiresInSeconds", json_integer(seconds));
    }
    if (call_rest(call, &rest, e) < 0 || rest_call(rest, "PUT", path, body, ret_result, e) < 0)
        return -1;
    call_say(call, "WARNING: the token is shown this once; keep it safe.");
    return 0;
}

static int token_list(struct call *call, json_t **ret_result, struct err *e)
{
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    return rest_list(rest, "/yard/tokens", ret_result, e);
}

static int token_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    (void)ret_result;
    if (token_path(call->args, &path, e) < 0 || call_rest(call, &rest, e) < 0)
        return -1;
    return rest_call(rest, "DELETE", path, NULL, NULL, e);
}

const struct command token_commands[] = {
    {
        .path = "token create",
        .summary = "Create a token.",
        .options = OPTIONS(&name, &role, &group, &expires_in),
        .examples = {{"Let somebody look, for a month.",
                      "yard token create anna --role reader --expires-in 30d"},
                     {"Let a program work in one group.",
                      "yard token create ci --role contributor -g recipes --query token -o "
                      "tsv"}},
        .run = token_create,
        .shape = &token_shape,
        .table = "{Name: name, Role: role, Scope: scope, Expires: expiresOn, Token: token}",
    },
    {
        .path = "token list",
        .summary = "List the tokens, without their secrets.",
        .examples = {{"As a table.", "yard token list -o table"}},
        .run = token_list,
        .shape = &token_shape,
        .table = token_table,
    },
    {
        .path = "token delete",
        .summary = "Delete a token: its holder is locked out at once.",
        .options = OPTIONS(&name),
        .examples = {{"Delete without being asked.", "yard token delete anna -y"}},
        .run = token_delete,
        .confirms = true,
    },
    {0},
};
