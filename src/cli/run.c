/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/command.h"
#include "cli/config.h"
#include "cli/help.h"
#include "cli/jmespath.h"
#include "cli/output.h"
#include "cli/shape.h"
#include "cli/term.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
};

static int fail(const struct args *args, const struct err *e)
{
    bool colour = term_has_colour(stderr);
    const char *path = args ? args_path(args) : "";

    if (colour)
        fputs("\x1b[91m", stderr);
    term_say("ERROR: %s", e->msg);
    if (colour)
        fputs("\x1b[0m", stderr);
    if (!args_failed(e))
        return err_info(e->code)->exit_status;
    term_say("See: yard%s%s --help", *path ? " " : "", path);
    return EXIT_USAGE;
}

static int show_help(const struct args *args, FILE *stream)
{
    auto_str text = {0};

    if (args_command(args))
        help_command(&text, args_command(args));
    else
        help_group(&text, args_path(args));
    fwrite(str_text(&text), 1, text.len, stream);
    return 0;
}

/* A default: YARD_DEFAULTS_GROUP in the environment, else the configuration. */
static const char *look_up_default(void *context, const char *key)
{
    const struct call *call = context;
    auto_free char *variable = xasprintf("YARD_DEFAULTS_%s", key);
    const char *value;

    for (char *p = variable; *p; p++) {
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
    value = getenv(variable);
    return value && *value ? value : config_get(call->config, "defaults", key);
}

/* Run the command once, or once for each of --ids; then there is a list of results if there
 * were several ids, as with az. */
static int run_command(struct call *call, json_t **ret_result, struct err *e)
{
    const struct command *command = args_command(call->args);
    auto_json json_t *all = json_array();
    const char *const *ids;
    size_t count;

    if (!command->ids || !args_has(call->args, "ids"))
        return command->run(call, ret_result, e);
    ids = args_list(call->args, "ids", &count);
    for (size_t i = 0; i < count; i++) {
        auto_json json_t *one = NULL;

        free(take_ptr(&call->subscription));
        if (arm_use_id(call->args, ids[i], command->ids, e) < 0 ||
            command->run(call, &one, e) < 0)
            return -1;
        if (one)
            json_array_append(all, one);
    }
    if (json_array_size(all))
        *ret_result = json_incref(count == 1 ? json_array_get(all, 0) : all);
    return 0;
}

static int print_result(const struct call *call,
                        const struct jmespath *query,
                        json_t *result,
                        struct err *e)
{
    const struct command *command = args_command(call->args);
    const char *format = args_get(call->args, "output");
    struct output how = {
        .format = format ? format : "json",
        .colour = term_has_colour(stdout),
        .clean = isatty(STDOUT_FILENO),
        .queried = query || str_equal(command->path, "query"),
        .table = command->table,
    };
    auto_json json_t *shaped =
        command->shape ? shape_apply(command->shape, result) : json_incref(result);
    /* What `query` made has its own order of keys, which tables keep. */
    auto_json json_t *shown =
        how.queried && !query ? json_incref(shaped) : shape_sorted(shaped);
    auto_str text = {0};

    if (query) {
        auto_json json_t *picked = NULL;

        if (jmespath_search(query, shown, &picked, e) < 0)
            return err_wrap(e, "--query");
        json_decref(shown);
        shown = take_ptr(&picked);
    }
    if (output_format(&text, &how, shown, e) < 0)
        return -1;
    fwrite(str_text(&text), 1, text.len, stdout);
    return 0;
}

static int parse_query(const struct args *args, struct jmespath **ret_query, struct err *e)
{
    const char *text = args_get(args, "query");

    if (!text || jmespath_parse(text, ret_query, e) == 0)
        return 0;
    err_wrap(e, "--query");
    err_target(e, "--query");
    return err_reason(e, CLI_USAGE);
}

static int perform(struct call *call, struct args *args, struct err *e)
{
    const struct command *command = args_command(args);
    autoptr(jmespath) query = NULL;
    auto_json json_t *result = NULL;

    if (call_open(call, args, e) < 0)
        return -1;
    args_defaults(args, look_up_default, call);
    if (args_check(args, e) < 0 || parse_query(args, &query, e) < 0)
        return -1;
    if (command->confirms &&
        call_confirm(call, "Are you sure you want to perform this operation?", e) < 0)
        return -1;
    if (run_command(call, &result, e) < 0)
        return -1;
    return result ? print_result(call, query, result, e) : 0;
}

static int run_words(int count, char *const words[])
{
    __attribute__((cleanup(call_done))) struct call call = {0};
    autoptr(args) args = NULL;
    struct err e = {0};

    if (args_parse(count, words, &args, &e) < 0)
        return fail(args, &e);
    if (args_flag(args, "help") || count == 0)
        return show_help(args, stdout);
    if (!args_command(args)) {
        show_help(args, stderr);
        args_fail(&e, NULL, "a command is missing after \"yard %s\"", args_path(args));
        return fail(args, &e);
    }
    log_set_level(args_flag(args, "debug") ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING);
    if (perform(&call, args, &e) < 0)
        return fail(args, &e);
    return call.exit_status;
}

int run_main(int argc, char *argv[])
{
    struct err e;
    int status;

    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write, not a death */
    if (argc == 2 && (str_equal(argv[1], "--version") || str_equal(argv[1], "-v")))
        status = printf("yard %s\n", YARD_VERSION) < 0;
    else
        status = run_words(argc - 1, argv + 1);
    if (term_flush(&e) < 0)
        return fail(NULL, &e);
    return status;
}
