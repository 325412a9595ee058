/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/call.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/config.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int call_open(struct call *call, struct args *args, struct err *e)
{
    *call = (struct call){.args = args};
    if (place_home(&call->home, e) < 0)
        return -1;
    return config_open(call->home, &call->config, e);
}

void call_done(struct call *call)
{
    rest_free(call->rest);
    place_free(call->place);
    config_free(call->config);
    free(call->home);
    free(call->subscription);
}

int call_place(struct call *call, struct place **ret_place, struct err *e)
{
    if (!call->place && place_find(call->home, call->config, &call->place, e) < 0)
        return -1;
    *ret_place = call->place;
    return 0;
}

int call_rest(struct call *call, struct rest **ret_rest, struct err *e)
{
    struct rest_config config = {.most_retries = 4};
    struct place *place;

    if (!call->rest) {
        if (call_place(call, &place, e) < 0)
            return -1;
        config.place = place;
        config.trace = args_flag(call->args, "debug") ? term_debug : NULL;
        if (rest_new(&config, &call->rest, e) < 0)
            return -1;
    }
    *ret_rest = call->rest;
    return 0;
}

/* The id of the subscription called so, or of the first when name is NULL. */
static int ask_subscription(struct call *call, const char *name, char **ret_id, struct err *e)
{
    auto_json json_t *all = NULL;
    struct rest *rest;
    json_t *one;
    size_t i;

    if (call_rest(call, &rest, e) < 0 ||
        rest_list(rest, "/subscriptions?api-version=2021-01-01", &all, e) < 0)
        return -1;
    json_array_foreach(all, i, one)
    {
        const char *id = json_string_value(json_object_get(one, "subscriptionId"));
        const char *shown = json_string_value(json_object_get(one, "displayName"));

        if (id &&
            (!name || str_equal_nocase(name, id) || (shown && str_equal_nocase(name, shown)))) {
            *ret_id = xstrdup(id);
            return 0;
        }
    }
    if (!name)
        return err_set(e, ERR_NOT_FOUND, "the yard shows you no subscription");
    return err_set(e, ERR_NOT_FOUND,
                   "there is no subscription \"%.100s\"; see them with: yard account list",
                   name);
}

int call_subscription(struct call *call, const char **ret_id, struct err *e)
{
    const char *wanted = args_get(call->args, "subscription");
    struct place *place;

    if (!call->subscription) {
        if (!wanted)
            wanted = config_get(call->config, "account", "subscription");
        if (call_place(call, &place, e) < 0)
            return -1;
        if (!wanted)
            wanted = place->subscription_id;
        if (wanted && crypt_is_uuid(wanted))
            call->subscription = xstrdup(wanted);
        else if (ask_subscription(call, wanted, &call->subscription, e) < 0)
            return -1;
    }
    *ret_id = call->subscription;
    return 0;
}

void call_say(const struct call *call, const char *format, ...)
{
    auto_free char *text = NULL;
    va_list args;

    if (args_flag(call->args, "only-show-errors"))
        return;
    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    term_say("%s", text);
}

void call_info(const struct call *call, const char *format, ...)
{
    auto_free char *text = NULL;
    va_list args;

    if (args_flag(call->args, "only-show-errors") ||
        (!args_flag(call->args, "verbose") && !args_flag(call->args, "debug")))
        return;
    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    term_say("INFO: %s", text);
}

int call_confirm(const struct call *call, const char *question, struct err *e)
{
    char answer[16] = "";

    if (args_flag(call->args, "yes"))
        return 0;
    if (!isatty(STDIN_FILENO))
        return err_set(e, ERR_INVALID,
                       "cannot ask for confirmation, since there is no terminal; use --yes");
    for (;;) {
        fprintf(stderr, "%s (y/n): ", question);
        if (!fgets(answer, sizeof(answer), stdin))
            return err_set(e, ERR_INVALID, "nothing was done");
        if (answer[0] == 'y' || answer[0] == 'Y')
            return 0;
        if (answer[0] == 'n' || answer[0] == 'N')
            return err_set(e, ERR_INVALID, "nothing was done");
    }
}

bool call_wants_text(const struct call *call)
{
    return !args_has(call->args, "output") && !args_has(call->args, "query");
}
