/* The command line about itself: help, version, completion, manual pages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/complete.h"
#include "cli/daemon.h"
#include "cli/help.h"
#include "cli/man.h"

#include <stdio.h>

static const struct option_row shell = {
    .names = "SHELL",
    .help = "The shell to write a script for.",
    .required = true,
    .choices = "bash fish zsh",
};
static const struct option_row folder = {
    .names = "DIR",
    .help = "Folder to write the pages into.",
    .required = true,
};
static const struct option_row words = {
    .names = "COMMAND",
    .help = "The group or command to explain.",
    .kind = OPTION_LIST,
};

static int version(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *status = daemon_status(call->home);

    (void)e;
    *ret_result = json_pack("{s:s, s:O?}", "yard", YARD_VERSION, "yardd",
                            json_object_get(status, "version"));
    return 0;
}

static int completion(struct call *call, json_t **ret_result, struct err *e)
{
    const char *name = args_get(call->args, "SHELL");
    auto_str out = {0};

    (void)ret_result;
    (void)e;
    if (str_equal(name, "bash"))
        complete_bash(&out);
    else if (str_equal(name, "zsh"))
        complete_zsh(&out);
    else
        complete_fish(&out);
    fwrite(str_text(&out), 1, out.len, stdout);
    return 0;
}

static int man(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return man_write(args_get(call->args, "DIR"), e);
}

static int help(struct call *call, json_t **ret_result, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(call->args, "COMMAND", &count);
    autoptr(args) args = NULL;
    auto_str out = {0};

    (void)ret_result;
    if (args_parse((int)count, (char *const *)(void *)texts, &args, e) < 0)
        return -1;
    if (args_command(args))
        help_command(&out, args_command(args));
    else
        help_group(&out, args_path(args));
    fwrite(str_text(&out), 1, out.len, stdout);
    return 0;
}

const struct command meta_commands[] = {
    {
        .path = "version",
        .summary = "Show the versions of yard and of the running daemon.",
        .examples = {{"Show them.", "yard version"}},
        .run = version,
    },
    {
        .path = "completion",
        .summary = "Write a completion script for a shell.",
        .options = OPTIONS(&shell),
        .examples = {{"Use it in this bash.", "source <(yard completion bash)"},
                     {"Use it in every fish.",
                      "yard completion fish > ~/.config/fish/completions/yard.fish"}},
        .run = completion,
    },
    {
        .path = "help",
        .summary = "Explain a group or a command.",
        .options = OPTIONS(&words),
        .examples = {{"Explain a command.", "yard help storage account create"}},
        .run = help,
    },
    {
        .path = "man",
        .summary = "Write the manual pages into a folder.",
        .options = OPTIONS(&folder),
        .examples = {{"Write them.", "yard man /usr/share/man/man1"}},
        .run = man,
        .hidden = true,
    },
    {0},
};
