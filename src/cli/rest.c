/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rest.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/place.h"
#include "http/client.h"

#include <string.h>
#include <unistd.h>

enum {
    MOST_PAGES = 100000,   /* a server that never ends its list is not followed for ever */
    MOST_HEADERS = 24,     /* of one call, ours included */
    MOST_POLL_PAUSE_S = 5, /* a person waits: look at least this often */
};

struct rest {
    const struct place *place;
    struct http_client *client;
    char *authorization; /* "Authorization: Bearer ...", NULL without a token */
    void (*trace)(const char *line);
};

static void trace_line(void *context, char direction, const char *line)
{
    struct rest *rest = context;
    auto_str clean = {0};

    str_add_char(&clean, direction);
    str_add_char(&clean, ' ');
    log_redact(&clean, line);
    rest->trace(str_text(&clean));
}

int rest_new(const struct rest_config *config, struct rest **ret_rest, struct err *e)
{
    autoptr(rest) rest = xcalloc(1, sizeof(*rest));
    struct http_client_config http;

    rest->place = config->place;
    rest->trace = config->trace;
    if (rest->place->token)
        rest->authorization = xasprintf("Authorization: Bearer %s", rest->place->token);
    http_client_config_init(&http);
    http.ca_file = rest->place->ca_file;
    http.user_agent = "yard/" YARD_VERSION;
    http.most_retries = config->most_retries;
    if (config->trace) {
        http.trace = trace_line;
        http.context = rest;
    }
    if (http_client_new(&http, &rest->client, e) < 0)
        return -1;
    *ret_rest = take_ptr(&rest);
    return 0;
}

void rest_free(struct rest *rest)
{
    if (!rest)
        return;
    http_client_free(rest->client);
    free(rest->authorization);
    free(rest);
}

/* What a person can do about it, where the yard does not say so itself. */
static const char *remedy(enum err_code code, const char *message)
{
    if (message && strstr(message, "yard "))
        return "";
    if (code == ERR_UNAUTHORIZED)
        return "; come in with: yard login URL";
    if (code == ERR_MISDIRECT)
        return "; use the address that is told by: yard status";
    return "";
}

int rest_failure(const struct http_answer *answer, struct err *e)
{
    auto_json json_t *body = NULL;
    json_t *error = NULL;
    const char *code = NULL, *message = NULL, *target = NULL;
    enum err_code kind = err_code_of_status(answer->status);

    if (json_parse(str_text(&answer->body), answer->body.len, &body, NULL) == 0)
        error = json_object_get(body, "error");
    if (json_is_object(error)) {
        code = json_string_value(json_object_get(error, "code"));
        message = json_string_value(json_object_get(error, "message"));
        target = json_string_value(json_object_get(error, "target"));
    }
    if (!code)
        code = err_info(kind)->reason;
    if (message)
        err_set(e, kind, "(%.64s) %.360s%s", code, message, remedy(kind, message));
    else
        err_set(e, kind, "(%.64s) the yard answered %d%s", code, answer->status,
                remedy(kind, message));
    return target ? err_target(e, target) : -1;
}

static void add_header(const char **headers, size_t *count, const char *header)
{
    if (header && *count + 1 < MOST_HEADERS)
        headers[(*count)++] = header;
}

int rest_raw(struct rest *rest,
             const char *path,
             struct http_call *call,
             struct http_answer *ret_answer,
             struct err *e)
{
    auto_free char *url = xasprintf("%s%s", rest->place->api_url, path);
    const char *headers[MOST_HEADERS] = {0};
    const char *const *theirs = call->headers;
    size_t count = 0;
    int rc;

    add_header(headers, &count, rest->authorization);
    add_header(headers, &count, "Accept: application/json");
    for (size_t i = 0; theirs && theirs[i]; i++)
        add_header(headers, &count, theirs[i]);
    call->headers = headers;
    call->url = url;
    rc = http_client_call(rest->client, call, ret_answer, e);
    call->headers = theirs;
    call->url = NULL;
    if (rc < 0)
        return -1;
    if (ret_answer->status >= 400 && rest->trace)
        trace_line(rest, '<', str_text(&ret_answer->body));
    return 0;
}

static int parse_body(const struct http_answer *answer, json_t **ret_result, struct err *e)
{
    if (!answer->body.len) {
        *ret_result = NULL;
        return 0;
    }
    if (json_parse(str_text(&answer->body), answer->body.len, ret_result, e) < 0)
        return err_wrap(e, "the yard's answer is not understood");
    return 0;
}

/* Send and receive JSON; the answer stays for those who want its headers. */
static int exchange(struct rest *rest,
                    const char *method,
                    const char *path,
                    const json_t *body,
                    struct http_answer *ret_answer,
                    struct err *e)
{
    static const char *const json_type[] = {"Content-Type: application/json", NULL};
    auto_str text = {0};
    struct http_call call = {.method = method};

    if (body) {
        json_write(&text, body);
        call.headers = json_type;
        call.body = str_text(&text);
        call.body_len = text.len;
    }
    if (rest_raw(rest, path, &call, ret_answer, e) < 0)
        return -1;
    /* A redirection, too, is no answer: see client.h. */
    return ret_answer->status >= 300 ? rest_failure(ret_answer, e) : 0;
}

int rest_call(struct rest *rest,
              const char *method,
              const char *path,
              const json_t *body,
              json_t **ret_result,
              struct err *e)
{
    auto_answer answer = {0};

    if (exchange(rest, method, path, body, &answer, e) < 0)
        return -1;
    return ret_result ? parse_body(&answer, ret_result, e) : 0;
}

/* The path and query of a link, whatever host it names. */
static const char *path_of_link(const char *link)
{
    const char *host = strstr(link, "://");
    const char *path = host ? strchr(host + 3, '/') : link;

    return path && path[0] == '/' ? path : NULL;
}

int rest_list(struct rest *rest, const char *path, json_t **ret_items, struct err *e)
{
    auto_json json_t *items = json_array();
    auto_free char *next = xstrdup(path);

    for (int pages = 0; next; pages++) {
        auto_json json_t *page = NULL;
        json_t *values = NULL;
        const char *link = NULL;

        if (pages >= MOST_PAGES)
            return err_set(e, ERR_INTERNAL, "the list has more than %d pages", MOST_PAGES);
        if (rest_call(rest, "GET", next, NULL, &page, e) < 0 ||
            json_get_array(page, "value", &values, e) < 0 ||
            json_get_string(page, "nextLink", &link, e) < 0)
            return -1;
        if (values)
            json_array_extend(items, values);
        if (link && *link && !path_of_link(link))
            return err_set(e, ERR_INTERNAL, "the yard sent a link without a path");
        free(next);
        next = link && *link ? xstrdup(path_of_link(link)) : NULL;
    }
    *ret_items = json_incref(items);
    return 0;
}

/* ---- operations that go on ---- */

static unsigned poll_pause_s(const struct http_answer *answer)
{
    auto_free char *value = http_answer_header(answer, "Retry-After");
    long seconds = value ? strtol(value, NULL, 10) : 1;

    if (seconds < 1)
        seconds = 1;
    return seconds > MOST_POLL_PAUSE_S ? MOST_POLL_PAUSE_S : (unsigned)seconds;
}

static int operation_failed(json_t *operation, const char *status, struct err *e)
{
    json_t *error = json_object_get(operation, "error");
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));

    return err_set(e, ERR_INTERNAL, "(%.64s) %.400s", code ? code : "OperationFailed",
                   message ? message : status);
}

/* Returns 1 when it has ended well, 0 when it goes on, -1 when it failed. */
static int
look_at(struct rest *rest, const char *path, struct http_answer *answer, struct err *e)
{
    auto_json json_t *operation = NULL;
    const char *status = NULL;

    if (exchange(rest, "GET", path, NULL, answer, e) < 0)
        return -1;
    /* A Location answers 202 as long as it goes on; an Azure-AsyncOperation tells it in the
     * body. */
    if (answer->status == 202)
        return 0;
    if (parse_body(answer, &operation, e) < 0)
        return -1;
    status = json_string_value(json_object_get(operation, "status"));
    if (!status || str_equal_nocase(status, "Succeeded"))
        return 1;
    if (str_equal_nocase(status, "Failed") || str_equal_nocase(status, "Canceled"))
        return operation_failed(operation, status, e);
    return 0;
}

static int wait_for_end(struct rest *rest, const struct http_answer *first, struct err *e)
{
    auto_free char *link = http_answer_header(first, "Azure-AsyncOperation");
    auto_answer answer = {0};
    const char *path;
    int pauses = 0, rc;

    if (!link)
        link = http_answer_header(first, "Location");
    if (!link)
        return 0;
    path = path_of_link(link);
    if (!path)
        return err_set(e, ERR_INTERNAL, "the yard sent a link without a path");
    while ((rc = look_at(rest, path, &answer, e)) == 0) {
        /* Most operations end within a fraction of the server's whole seconds: look early,
         * twice. */
        if (pauses++ < 2)
            usleep(100 * 1000);
        else
            sleep(poll_pause_s(&answer));
    }
    return rc < 0 ? -1 : 0;
}

int rest_long(struct rest *rest,
              const char *method,
              const char *path,
              const json_t *body,
              bool wait,
              json_t **ret_result,
              struct err *e)
{
    auto_answer answer = {0};
    auto_json json_t *result = NULL;
    bool goes_on;

    if (exchange(rest, method, path, body, &answer, e) < 0 ||
        parse_body(&answer, &result, e) < 0)
        return -1;
    goes_on = answer.status == 201 || answer.status == 202;
    if (wait && goes_on && wait_for_end(rest, &answer, e) < 0)
        return -1;
    if (!ret_result)
        return 0;
    /* What a PUT or PATCH made is there only now. */
    if (wait && goes_on && method[0] == 'P' && !str_equal(method, "POST"))
        return rest_call(rest, "GET", path, NULL, ret_result, e);
    *ret_result = json_incref(result);
    return 0;
}

int rest_exists(struct rest *rest, const char *path, bool *ret_exists, struct err *e)
{
    auto_answer answer = {0};
    struct http_call call = {.method = "HEAD"};

    if (rest_raw(rest, path, &call, &answer, e) < 0)
        return -1;
    if (answer.status >= 400 && answer.status != 404)
        return rest_failure(&answer, e);
    *ret_exists = answer.status != 404;
    return 0;
}
