/* A raw, authenticated call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/term.h"
#include "http/client.h"

#include <string.h>

enum {
    MOST_HEADERS = 16,
    MOST_BODY_BYTES = 64 * 1024 * 1024,
};

static const struct option_row method = {
    .names = "--method -m",
    .help = "HTTP method.",
    .choices = "DELETE GET HEAD OPTIONS PATCH POST PUT",
    .default_text = "GET",
};
static const struct option_row url = {
    .names = "--url --uri -u",
    .help = "Path, or whole URL on this yard. {subscriptionId} stands for the subscription.",
    .required = true,
};
static const struct option_row body = {
    .names = "--body -b",
    .help = "Body to send; @FILE takes it from a file, @- from standard input.",
};
static const struct option_row headers = {
    .names = "--headers",
    .help = "Headers as Name=value, separated by spaces.",
    .kind = OPTION_LIST,
};
static const struct option_row parameters = {
    .names = "--url-parameters --uri-parameters",
    .help = "Query parameters as name=value, separated by spaces.",
    .kind = OPTION_LIST,
};

static int add_parameters(const struct args *args, struct str *path, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(args, "url-parameters", &count);

    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(texts[i], '=');
        auto_free char *name = xstrndup(texts[i], strcspn(texts[i], "="));

        if (!equals || !*name)
            return args_fail(e, "--url-parameters",
                             "--url-parameters: \"%.64s\" is not name=value", texts[i]);
        str_add_char(path, strchr(str_text(path), '?') ? '&' : '?');
        text_percent(path, name);
        str_add_char(path, '=');
        text_percent(path, equals + 1);
    }
    return 0;
}

/* The path on the yard: a whole URL must be of this yard, so that the token stays in the house.
 */
static int make_path(struct call *call, struct str *path, struct err *e)
{
    const char *text = args_get(call->args, "url");
    const char *marker = "{subscriptionId}";
    const char *at;
    struct place *place;
    const char *id;

    if (call_place(call, &place, e) < 0)
        return -1;
    if (str_starts_nocase(text, place->api_url) && text[strlen(place->api_url)] == '/')
        text += strlen(place->api_url);
    if (text[0] != '/')
        return args_fail(e, "--url",
                         "--url: \"%.200s\" is neither a path (/...) nor on this yard, %s",
                         text, place->api_url);
    if (strpbrk(text, " \t\r\n"))
        return args_fail(e, "--url", "--url: a URL has no spaces or line breaks");
    for (; (at = strstr(text, marker)); text = at + strlen(marker)) {
        if (call_subscription(call, &id, e) < 0)
            return -1;
        str_add_len(path, text, (size_t)(at - text));
        str_add(path, id);
    }
    str_add(path, text);
    return add_parameters(call->args, path, e);
}

struct header_list {
    const char *rows[MOST_HEADERS + 2];
    char *made[MOST_HEADERS];
    size_t count;
};

static void header_list_done(struct header_list *list)
{
    for (size_t i = 0; i < ARRAY_SIZE(list->made); i++)
        free(list->made[i]);
}

static int make_headers(const struct args *args, struct header_list *list, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(args, "headers", &count);
    bool typed = false;

    if (count > MOST_HEADERS)
        return args_fail(e, "--headers", "--headers: more than %d headers", MOST_HEADERS);
    for (size_t i = 0; i < count; i++) {
        size_t name_len = strcspn(texts[i], "=");

        if (!name_len || !texts[i][name_len] || strpbrk(texts[i], "\r\n"))
            return args_fail(e, "--headers", "--headers: \"%.64s\" is not Name=value",
                             texts[i]);
        list->made[i] = xasprintf("%.*s: %s", (int)name_len, texts[i], texts[i] + name_len + 1);
        list->rows[list->count++] = list->made[i];
        typed = typed || str_starts_nocase(list->made[i], "Content-Type:");
    }
    if (!typed && args_has(args, "body"))
        list->rows[list->count++] = "Content-Type: application/json";
    return 0;
}

static int make_body(const struct args *args, struct str *text, struct err *e)
{
    const char *given = args_get(args, "body");

    if (!given)
        return 0;
    if (given[0] != '@') {
        str_add(text, given);
        return 0;
    }
    return fs_read(str_equal(given, "@-") ? "/dev/stdin" : given + 1, MOST_BODY_BYTES, text, e);
}

static int rest_run(struct call *call, json_t **ret_result, struct err *e)
{
    __attribute__((cleanup(header_list_done))) struct header_list list = {0};
    auto_str path = {0}, text = {0};
    auto_answer answer = {0};
    struct http_call http = {.method = args_get(call->args, "method")};
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || make_path(call, &path, e) < 0 ||
        make_headers(call->args, &list, e) < 0 || make_body(call->args, &text, e) < 0)
        return -1;
    http.headers = list.rows;
    if (args_has(call->args, "body")) {
        http.body = str_text(&text);
        http.body_len = text.len;
    }
    if (rest_raw(rest, str_text(&path), &http, &answer, e) < 0)
        return -1;
    if (answer.status >= 400)
        return rest_failure(&answer, e);
    if (!answer.body.len)
        return 0;
    if (json_parse(str_text(&answer.body), answer.body.len, ret_result, NULL) == 0)
        return 0;
    call_info(call, "the answer is not JSON");
    term_write(stdout, str_text(&answer.body), answer.body.len);
    return 0;
}

const struct command rest_commands[] = {
    {
        .path = "rest",
        .summary = "Make an authenticated call to the yard's REST interface.",
        .options = OPTIONS(&method, &url, &body, &headers, &parameters),
        .examples = {{"Get something.", "yard rest -u /subscriptions?api-version=2021-01-01"},
                     {"Send a body from a file.",
                      "yard rest -m put -u "
                      "'/subscriptions/{subscriptionId}/resourcegroups/"
                      "recipes?api-version=2021-04-01' -b @group.json"}},
        .run = rest_run,
    },
    {0},
};
