/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-wire.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/storage-account.h"
#include "core/exchange.h"
#include "core/sas.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    FIRST_PAUSE_MS = 200,
    LONGEST_PAUSE_MS = 5 * 1000,
    READABLE_MS = 7 * 24 * 3600 * 1000,
    SILENCE_MS = 3 * 60 * 1000, /* a large blob is put together, or copied, without a word */
};

struct wire {
    const struct storage_account *account;
    enum storage_service service;
    int64_t patience_ms;
    void (*trace)(const char *line);
    const atomic_bool *stop;
    void (*moved)(void *context, int64_t bytes);
    void *context;
    struct http_client *client;
    struct str key; /* raw bytes */
    int status;
    char code[EXCHANGE_CODE_BYTES];
};

static void trace_line(void *context, char direction, const char *line)
{
    struct wire *wire = context;
    auto_str clean = {0};

    str_add_char(&clean, direction);
    str_add_char(&clean, ' ');
    log_redact(&clean, line);
    wire->trace(str_text(&clean));
}

int wire_new(const struct wire_config *config, struct wire **ret_wire, struct err *e)
{
    autoptr(wire) wire = xcalloc(1, sizeof(*wire));
    const struct storage_account *account = config->account;
    struct http_client_config http;

    wire->account = account;
    wire->service = config->service;
    wire->patience_ms = config->patience_ms;
    wire->trace = config->trace;
    wire->stop = config->stop;
    wire->moved = config->moved;
    wire->context = config->context;
    if (!account->endpoints[config->service])
        return err_set(e, ERR_INVALID,
                       "the account \"%s\" does not tell where its %s service is",
                       account->name, storage_service_name(config->service));
    if (account->auth == STORAGE_AUTH_KEY &&
        text_base64_decode(&wire->key, account->secret, NULL) < 0)
        return err_set(e, ERR_INVALID, "the key of the account \"%s\" is not base64",
                       account->name);
    http_client_config_init(&http);
    http.ca_file = account->ca_file;
    http.user_agent = "yard/" YARD_VERSION;
    http.most_retries = 0; /* we do */
    http.silence_timeout_ms = SILENCE_MS;
    if (config->trace) {
        http.trace = trace_line;
        http.context = wire;
    }
    if (http_client_new(&http, &wire->client, e) < 0)
        return -1;
    *ret_wire = take_ptr(&wire);
    return 0;
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    http_client_free(wire->client);
    str_done(&wire->key);
    free(wire);
}

int wire_status(const struct wire *wire)
{
    return wire->status;
}

const char *wire_code(const struct wire *wire)
{
    return wire->code;
}

bool wire_is_missing(const struct wire *wire)
{
    return wire->status == 404;
}

const struct storage_account *wire_account(const struct wire *wire)
{
    return wire->account;
}

enum storage_service wire_service(const struct wire *wire)
{
    return wire->service;
}

/* --- URLs --- */

char *wire_url(const struct wire *wire, const char *container, const char *path)
{
    auto_str url = {0};

    str_add(&url, wire->account->endpoints[wire->service]);
    str_add_char(&url, '/');
    if (container)
        text_percent_path(&url, container);
    if (path && *path) {
        str_add_char(&url, '/');
        text_percent_path(&url, path);
    }
    return str_take(&url);
}

int wire_readable_url(const struct wire *wire,
                      const char *container,
                      const char *path,
                      char **ret_url,
                      struct err *e)
{
    const struct storage_account *account = wire->account;
    bool is_blob = wire->service == STORAGE_BLOB;
    auto_free char *plain = wire_url(wire, container, path);
    auto_free char *resource =
        xasprintf("/%s/%s/%s%s%s", storage_service_name(wire->service), account->name,
                  container, is_blob ? "" : "/", is_blob ? "" : path);
    auto_str url = {0}, token = {0};
    char expiry[CLOCK_ISO_BYTES];
    int64_t end_ms = clock_wall_ms() + READABLE_MS;
    struct sas_service sas = {
        .resource = resource,
        .kind = is_blob ? "c" : "f",
        .permissions = "r",
        .expiry = clock_format_iso(end_ms - end_ms % 1000, expiry),
        .version = EXCHANGE_VERSION,
    };

    str_add(&url, plain);
    if (account->auth == STORAGE_AUTH_SAS)
        url_add_query(&url, account->secret);
    if (account->auth == STORAGE_AUTH_KEY) {
        if (sas_service_token(&sas, account->secret, &token, e) < 0)
            return -1;
        url_add_query(&url, str_text(&token));
    }
    *ret_url = str_take(&url);
    return 0;
}

/* --- one request --- */

static void
make_outgoing(const struct wire *wire, const struct wire_request *request, struct outgoing *out)
{
    const struct storage_account *account = wire->account;
    const struct entry_pass pass = {
        .account = account->name,
        .key = account->auth == STORAGE_AUTH_KEY ? &wire->key : NULL,
        .sas = account->auth == STORAGE_AUTH_SAS ? account->secret : NULL,
        .token = account->auth == STORAGE_AUTH_TOKEN ? account->secret : NULL,
    };
    auto_free char *url = wire_url(wire, request->container, request->path);

    str_add(&out->url, url);
    url_add_query(&out->url, request->query);
    for (size_t i = 0; request->headers && request->headers[i]; i++) {
        if (*request->headers[i])
            outgoing_add(out, "%s", request->headers[i]);
    }
    outgoing_seal(out, &pass, request->method, request->body_len, clock_wall_ms());
}

/* What the callbacks of one attempt see. */
struct flow {
    struct wire *wire;
    const struct wire_request *request;
    size_t filled; /* of into */
    int64_t moved; /* told to the watcher */
    bool sank;     /* some bytes went to the caller's sink */
};

static int take_bytes(void *context, const void *bytes, size_t len)
{
    struct flow *flow = context;
    const struct wire_request *request = flow->request;

    if (request->sink) {
        flow->sank = true;
        return request->sink(request->sink_context, bytes, len);
    }
    if (len > request->into_len - flow->filled)
        return -1;
    memcpy((char *)request->into + flow->filled, bytes, len);
    flow->filled += len;
    return 0;
}

static void tell_moved(struct flow *flow, int64_t total)
{
    if (flow->wire->moved && total != flow->moved)
        flow->wire->moved(flow->wire->context, total - flow->moved);
    flow->moved = total;
}

static int watch(void *context, int64_t sent, int64_t received)
{
    struct flow *flow = context;
    const struct wire_request *request = flow->request;

    if (flow->wire->stop && atomic_load(flow->wire->stop))
        return -1;
    if (request->body_len)
        tell_moved(flow, sent < (int64_t)request->body_len ? sent : (int64_t)request->body_len);
    else if (request->into || request->sink)
        tell_moved(flow, received);
    return 0;
}

static int answer_failed(struct wire *wire, const struct http_answer *answer, struct err *e)
{
    auto_free char *header = http_answer_header(answer, "x-ms-error-code");
    struct refusal refusal;

    refusal_read(answer->status, header, str_text(&answer->body), &refusal, e);
    memcpy(wire->code, refusal.code, sizeof(wire->code));
    return -1;
}

/* --- trying again --- */

static bool is_stopped(const struct wire *wire)
{
    return wire->stop && atomic_load(wire->stop);
}

static int
attempt(struct wire *wire, struct flow *flow, struct http_answer *answer, struct err *e)
{
    const struct wire_request *request = flow->request;
    auto_outgoing out = {0};
    struct http_call call = {
        .method = request->method,
        .headers = (const char *const *)out.headers,
        .body = request->body_len ? request->body : NULL,
        .body_len = request->body_len,
        .sink = request->into || request->sink ? take_bytes : NULL,
        .sink_context = flow,
        .watch = wire->moved || wire->stop ? watch : NULL,
        .watch_context = flow,
    };
    int rc;

    make_outgoing(wire, request, &out);
    call.url = str_text(&out.url);
    wire->status = 0;
    wire->code[0] = '\0';
    rc = http_client_call(wire->client, &call, answer, e);
    if (rc == 0) {
        wire->status = answer->status;
        if (answer->status / 100 != 2)
            rc = answer_failed(wire, answer, e);
        else if (request->into && flow->filled != request->into_len)
            rc = err_set(e, ERR_BUSY, "the answer was cut: %zu bytes instead of %zu",
                         flow->filled, request->into_len);
    }
    if (rc == 0 && request->body_len)
        tell_moved(flow, (int64_t)request->body_len);
    else if (rc == 0 && request->into)
        tell_moved(flow, (int64_t)request->into_len);
    else if (rc < 0)
        tell_moved(flow, 0);
    return rc;
}

static bool may_work_later(const struct wire *wire, const struct err *e)
{
    int status = wire->status;

    if (status / 100 == 2 || status == 0)
        return e->code == ERR_BUSY || e->code == ERR_TIMEOUT;
    return refusal_may_pass(status, wire->code);
}

static void pause_ms(const struct wire *wire, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (!is_stopped(wire) && clock_mono_ms() < until) {
        struct timespec step = {.tv_nsec = 20 * 1000 * 1000};

        nanosleep(&step, NULL);
    }
}

int wire_call(struct wire *wire,
              const struct wire_request *request,
              struct http_answer *ret_answer,
              struct err *e)
{
    int64_t give_up_ms = clock_mono_ms() + (request->once ? 0 : wire->patience_ms);
    int64_t wait_ms = FIRST_PAUSE_MS;

    for (;;) {
        struct flow flow = {.wire = wire, .request = request};
        auto_answer mine = {0};
        struct http_answer *answer = ret_answer ? ret_answer : &mine;
        struct err why = {0};

        if (is_stopped(wire))
            return err_set(e, ERR_BUSY, "interrupted");
        if (attempt(wire, &flow, answer, &why) == 0)
            return 0;
        if (!may_work_later(wire, &why) || flow.sank ||
            clock_mono_ms() + wait_ms > give_up_ms) {
            if (e)
                *e = why;
            return -1;
        }
        pause_ms(wire, wait_ms);
        wait_ms = wait_ms * 2 < LONGEST_PAUSE_MS ? wait_ms * 2 : LONGEST_PAUSE_MS;
    }
}
