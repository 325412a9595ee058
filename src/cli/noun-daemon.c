/* The yard itself: up, down, status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/config.h"
#include "cli/daemon.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/term.h"

#include <stdio.h>

static const char *member(const json_t *status, const char *key)
{
    const char *text = json_string_value(json_object_get(status, key));

    return text ? text : "-";
}

static void print_text(const char *format, ...) PRINTF_LIKE(1, 2);
static void print_text(const char *format, ...)
{
    auto_str text = {0};
    va_list args;

    va_start(args, format);
    str_vaddf(&text, format, args);
    va_end(args);
    term_write(stdout, str_text(&text), text.len);
}

static void print_places(const json_t *status)
{
    print_text("  Page:   %s\n  API:    %s\n  Token:  %s\n  CA:     %s\n",
               member(status, "httpUrl"), member(status, "apiUrl"), member(status, "tokenFile"),
               member(status, "caFile"));
}

static void format_span(json_int_t seconds, char *buf, size_t size)
{
    if (seconds < 60)
        snprintf(buf, size, "%d s", (int)seconds);
    else if (seconds < 3600)
        snprintf(buf, size, "%d min", (int)(seconds / 60));
    else if (seconds < 2 * 86400)
        snprintf(buf, size, "%d h %d min", (int)(seconds / 3600), (int)(seconds / 60 % 60));
    else
        snprintf(buf, size, "%lld days", (long long)(seconds / 86400));
}

static int up(struct call *call, json_t **ret_result, struct err *e)
{
    bool was_running = place_holder(call->home) > 0;
    auto_json json_t *status = NULL;

    if (was_running) {
        /* It may be starting at this moment, by another hand. */
        if (daemon_wait(call->home, NULL, 10 * 1000, e) < 0)
            return -1;
    } else if (daemon_start(call->home, e) < 0) {
        return -1;
    }
    if (config_get(call->config, "remote", "url"))
        call_say(call, "WARNING: commands go to %s, not here; change that with: yard logout",
                 config_get(call->config, "remote", "url"));
    status = daemon_status(call->home);
    if (!call_wants_text(call)) {
        *ret_result = take_ptr(&status);
        return 0;
    }
    print_text("%s\n", was_running ? "The yard is running already." : "The yard is up.");
    print_places(status);
    return 0;
}

static int down(struct call *call, json_t **ret_result, struct err *e)
{
    bool was_running;

    (void)ret_result;
    if (daemon_stop(call->home, &was_running, e) < 0)
        return -1;
    call_say(call, was_running ? "The yard is down." : "No yard was running.");
    return 0;
}

/* A yard on another machine: what we know of it, and whether it answers. */
static int remote_status(struct call *call, json_t **ret_status, struct err *e)
{
    auto_json json_t *health = NULL;
    struct place *place;
    struct rest *rest;
    bool running;

    if (call_place(call, &place, e) < 0 || call_rest(call, &rest, e) < 0)
        return -1;
    running = rest_call(rest, "GET", "/healthz", NULL, &health, e) == 0;
    if (!running && e->code != ERR_BUSY && e->code != ERR_TIMEOUT)
        return -1;
    *ret_status =
        json_pack("{s:b, s:s, s:n, s:s?, s:n, s:n, s:O?, s:n}", "running", running, "apiUrl",
                  place->api_url, "httpUrl", "caFile", place->ca_file, "tokenFile", "pid",
                  "version", json_object_get(health, "version"), "uptime");
    return 0;
}

static int status(struct call *call, json_t **ret_result, struct err *e)
{
    const char *variable = getenv("YARD_URL");
    bool remote = (variable && *variable) || config_get(call->config, "remote", "url");
    auto_json json_t *found = NULL;
    char span[32];
    bool running;

    if (!remote)
        found = daemon_status(call->home);
    else if (remote_status(call, &found, e) < 0)
        return -1;
    running = json_is_true(json_object_get(found, "running"));
    call->exit_status = running ? 0 : 3;
    if (!call_wants_text(call)) {
        *ret_result = take_ptr(&found);
        return 0;
    }
    if (!running) {
        print_text(remote ? "The yard at %s does not answer.\n"
                          : "No yard is running on %s; start one with: yard up\n",
                   remote ? member(found, "apiUrl") : call->home);
        return 0;
    }
    format_span(json_integer_value(json_object_get(found, "uptime")), span, sizeof(span));
    if (remote)
        print_text("The yard at %s is running.\n", member(found, "apiUrl"));
    else
        print_text("The yard on %s is running (version %s, process %d, for %s).\n", call->home,
                   member(found, "version"),
                   (int)json_integer_value(json_object_get(found, "pid")), span);
    if (!remote)
        print_places(found);
    return 0;
}

const struct command daemon_commands[] = {
    {
        .path = "up",
        .summary = "Start a yard on this machine, unless one is running.",
        .examples = {{"Start it and see where it is.", "yard up"},
                     {"Start one on another folder.", "YARD_HOME=/data/yard yard up"}},
        .run = up,
    },
    {
        .path = "down",
        .summary = "Stop the yard on this machine.",
        .examples = {{"Stop it.", "yard down"}},
        .run = down,
    },
    {
        .path = "status",
        .summary = "Say whether the yard is running, and where.",
        .examples = {{"For people.", "yard status"},
                     {"For programs.", "yard status --query apiUrl -o tsv"}},
        .run = status,
    },
    {0},
};
