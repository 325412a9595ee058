/* Defaults for options that are typed again and again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/config.h"
#include "cli/suggest.h"

#include <string.h>

static const struct option_row defaults = {
    .names = "--defaults -d",
    .help = "Defaults as key=value, separated by spaces: group, location, workspace. An empty "
            "value takes the default away.",
    .kind = OPTION_LIST,
};
static const struct option_row list_defaults = {
    .names = "--list-defaults -l",
    .help = "List the defaults.",
    .kind = OPTION_FLAG,
};

/* Is it the default_key of some option of some command? */
static bool is_known(const char *key, struct suggest *near)
{
    const struct command *command;
    const struct option_row *row;
    bool known = false;

    for (size_t i = 0; (command = command_at(i)); i++) {
        for (size_t j = 0; (row = command_option_at(command, j)); j++) {
            if (!row->default_key)
                continue;
            suggest_see(near, row->default_key);
            known = known || str_equal(row->default_key, key);
        }
    }
    return known;
}

static int set_default(struct call *call, const char *text, struct err *e)
{
    const char *equals = strchr(text, '=');
    auto_free char *key = xstrndup(text, strcspn(text, "="));
    struct suggest near;

    if (!equals)
        return args_fail(e, "--defaults", "--defaults: \"%.64s\" is not key=value", text);
    suggest_init(&near, key);
    if (!is_known(key, &near))
        return args_fail(e, "--defaults",
                         "--defaults: there is no default \"%.64s\"; take group, location or "
                         "workspace%s%s%s",
                         key, near.best[0] ? "; did you mean " : "", near.best,
                         near.best[0] ? "?" : "");
    return config_set(call->config, "defaults", key, equals + 1, e);
}

static int configure(struct call *call, json_t **ret_result, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(call->args, "defaults", &count);
    const char *key, *value;

    if (!args_has(call->args, "defaults") && !args_flag(call->args, "list-defaults"))
        return args_fail(e, NULL,
                         "nothing to configure: use --defaults key=value or --list-defaults");
    for (size_t i = 0; i < count; i++) {
        if (set_default(call, texts[i], e) < 0)
            return -1;
    }
    if (count && config_save(call->config, e) < 0)
        return -1;
    if (!args_flag(call->args, "list-defaults"))
        return 0;
    *ret_result = json_array();
    for (size_t i = 0; config_at(call->config, "defaults", i, &key, &value); i++)
        json_array_append_new(*ret_result,
                              json_pack("{s:s, s:s, s:s}", "name", key, "source",
                                        config_path(call->config), "value", value));
    return 0;
}

const struct command configure_commands[] = {
    {
        .path = "configure",
        .summary = "Set or list defaults for options.",
        .options = OPTIONS(&defaults, &list_defaults),
        .examples = {{"Never type -g and -w again.",
                      "yard configure --defaults group=recipes workspace=vision"},
                     {"Take a default away.", "yard configure --defaults group="},
                     {"List the defaults.", "yard configure --list-defaults -o table"}},
        .run = configure,
    },
    {0},
};
