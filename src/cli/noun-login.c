/* A yard on another machine: remember it, forget it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/config.h"
#include "cli/place.h"
#include "cli/rest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const struct option_row url = {
    .names = "URL",
    .help = "Address of the yard: https://host:7443.",
    .required = true,
};
static const struct option_row token = {
    .names = "--token",
    .help = "The token. Others on this machine can see it in the list of processes: better use "
            "--token-file, YARD_TOKEN, or the question asked without either.",
};
static const struct option_row token_file = {
    .names = "--token-file",
    .help = "File with the token; - is standard input.",
};
static const struct option_row ca_file = {
    .names = "--ca-file",
    .help = "Certificate of the yard's own authority (caFile in: yard status -o json).",
};

static int ask_token(char **ret_token, struct err *e)
{
    struct termios was, quiet;
    char line[4096] = "";

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &was) < 0)
        return args_fail(e, "--token-file", "give the token with --token-file or YARD_TOKEN");
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    fputs("Token: ", stderr);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    if (!fgets(line, sizeof(line), stdin))
        line[0] = '\0';
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
    fputc('\n', stderr);
    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0])
        return args_fail(e, "--token", "no token was given");
    *ret_token = xstrdup(line);
    return 0;
}

static int get_token(const struct args *args, char **ret_token, struct err *e)
{
    const char *file = args_get(args, "token-file");
    const char *text = args_get(args, "token");

    if (file && text)
        return args_fail(e, "--token", "give --token or --token-file, not both");
    if (file)
        return place_read_token(str_equal(file, "-") ? "/dev/stdin" : file, ret_token, e);
    if (!text)
        text = getenv("YARD_TOKEN");
    if (text && *text) {
        *ret_token = xstrdup(text);
        return 0;
    }
    return ask_token(ret_token, e);
}

/* The path of a file as it is from everywhere, so that it can be remembered. */
static int absolute(const char *path, char **ret_path, struct err *e)
{
    if (!path)
        return 0;
    *ret_path = realpath(path, NULL);
    if (!*ret_path)
        return err_sys(e, errno, "could not find the CA file \"%.200s\"", path);
    return 0;
}

static int remember(struct call *call, const struct place *place, struct err *e)
{
    config_clear(call->config, "remote");
    config_clear(call->config, "account");
    if (config_set(call->config, "remote", "url", place->api_url, e) < 0 ||
        config_set(call->config, "remote", "token", place->token, e) < 0 ||
        config_set(call->config, "remote", "ca_file", place->ca_file, e) < 0 ||
        config_set(call->config, "remote", "subscription", place->subscription_id, e) < 0 ||
        config_set(call->config, "remote", "tenant", place->tenant_id, e) < 0)
        return -1;
    return config_save(call->config, e);
}

static int login(struct call *call, json_t **ret_result, struct err *e)
{
    autoptr(place) place = xcalloc(1, sizeof(*place));
    auto_json json_t *all = NULL;
    struct rest *rest;
    json_t *first;
    const char *id, *tenant;

    if (place_check_url(args_get(call->args, "URL"), &place->api_url, e) < 0 ||
        absolute(args_get(call->args, "ca-file"), &place->ca_file, e) < 0 ||
        get_token(call->args, &place->token, e) < 0)
        return -1;
    place_free(call->place);
    call->place = take_ptr(&place);
    /* The first question shows whether address, certificate and token are right. */
    if (call_rest(call, &rest, e) < 0 ||
        rest_list(rest, "/subscriptions?api-version=2021-01-01", &all, e) < 0) {
        if (e && e->code == ERR_FORBIDDEN && !call->place->ca_file)
            err_wrap(e, "use --ca-file with the certificate of the yard's authority");
        return -1;
    }
    first = json_array_get(all, 0);
    id = json_string_value(json_object_get(first, "subscriptionId"));
    tenant = json_string_value(json_object_get(first, "tenantId"));
    call->place->subscription_id = id ? xstrdup(id) : NULL;
    call->place->tenant_id = tenant ? xstrdup(tenant) : NULL;
    if (remember(call, call->place, e) < 0)
        return -1;
    call_say(call, "Logged in to %s; go back with: yard logout", call->place->api_url);
    *ret_result = json_pack("{s:s, s:s?, s:s?}", "apiUrl", call->place->api_url,
                            "subscriptionId", id, "tenantId", tenant);
    return 0;
}

static int logout(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    config_clear(call->config, "remote");
    config_clear(call->config, "account");
    return config_save(call->config, e);
}

const struct command login_commands[] = {
    {
        .path = "login",
        .summary = "Use a yard on another machine.",
        .options = OPTIONS(&url, &token, &token_file, &ca_file),
        .examples = {{"Log in with files copied from there.",
                      "yard login https://gpu1:7443 --token-file token --ca-file ca.pem"},
                     {"Be asked for the token.",
                      "yard login https://gpu1:7443 --ca-file ca.pem"}},
        .run = login,
    },
    {
        .path = "logout",
        .summary = "Forget the yard on the other machine and its token.",
        .examples = {{"Use the local yard again.", "yard logout"}},
        .run = logout,
    },
    {0},
};
