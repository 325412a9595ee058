/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/remote.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "core/sharedkey.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SERVICE_VERSION "2021-12-02" /* the newest whose every part is in use here */

enum {
    MOST_HEADERS = 24,
    MOST_IDLE = 32,
    FIRST_PAUSE_MS = 50,
    LONGEST_PAUSE_MS = 2 * 1000,
    CODE_BYTES = 64,
    MESSAGE_BYTES = 300,
};

struct remote {
    char *base; /* endpoint/container */
    char *account;
    bool is_share;
    enum remote_auth auth;
    char *secret;
    struct str key; /* raw bytes of a REMOTE_KEY */
    char *ca_file;
    int64_t patience_ms;
    atomic_bool stop;
    pthread_mutex_t lock;
    struct http_client *idle[MOST_IDLE];
    size_t idle_count;
};

int remote_new(const struct remote_config *config, struct remote **ret_remote, struct err *e)
{
    autoptr(remote) remote = xcalloc(1, sizeof(*remote));

    pthread_mutex_init(&remote->lock, NULL);
    remote->base = xasprintf("%s/%s", config->endpoint, config->container);
    remote->account = xstrdup(config->account);
    remote->is_share = config->is_share;
    remote->auth = config->auth;
    remote->secret = xstrdup(config->secret);
    remote->ca_file = config->ca_file ? xstrdup(config->ca_file) : NULL;
    remote->patience_ms = config->patience_ms;
    if (!strstr(remote->base, "://"))
        return err_set(e, ERR_INVALID, "\"%.200s\" is not a URL", config->endpoint);
    if (config->auth == REMOTE_KEY &&
        text_base64_decode(&remote->key, config->secret, NULL) < 0)
        return err_set(e, ERR_INVALID, "the key of the account \"%s\" is not base64",
                       config->account);
    *ret_remote = take_ptr(&remote);
    return 0;
}

void remote_free(struct remote *remote)
{
    if (!remote)
        return;
    for (size_t i = 0; i < remote->idle_count; i++)
        http_client_free(remote->idle[i]);
    free(remote->base);
    free(remote->account);
    free(remote->secret);
    str_done(&remote->key);
    free(remote->ca_file);
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

void remote_stop(struct remote *remote)
{
    atomic_store(&remote->stop, true);
}

/* --- connections --- */

static int take_client(struct remote *remote, struct http_client **ret_client, struct err *e)
{
    struct http_client_config config;

    pthread_mutex_lock(&remote->lock);
    *ret_client = remote->idle_count ? remote->idle[--remote->idle_count] : NULL;
    pthread_mutex_unlock(&remote->lock);
    if (*ret_client)
        return 0;
    http_client_config_init(&config);
    config.ca_file = remote->ca_file;
    config.user_agent = "yardfs/" YARD_VERSION;
    config.most_retries = 0; /* that is done here */
    return http_client_new(&config, ret_client, e);
}

static void give_client(struct remote *remote, struct http_client *client)
{
    pthread_mutex_lock(&remote->lock);
    if (remote->idle_count < MOST_IDLE) {
        remote->idle[remote->idle_count++] = client;
        client = NULL;
    }
    pthread_mutex_unlock(&remote->lock);
    http_client_free(client);
}

/* --- what is sent --- */

struct outgoing {
    struct str url;
    char *headers[MOST_HEADERS];
    size_t count;
};

static void outgoing_done(struct outgoing *out)
{
    str_done(&out->url);
    for (size_t i = 0; i < out->count; i++)
        free(out->headers[i]);
}
#define auto_outgoing __attribute__((cleanup(outgoing_done))) struct outgoing

static void PRINTF_LIKE(2, 3) add_header(struct outgoing *out, const char *format, ...)
{
    va_list args;

    if (out->count + 1 >= MOST_HEADERS)
        abort(); /* our own requests, and none has so many */
    va_start(args, format);
    out->headers[out->count++] = xvasprintf(format, args);
    va_end(args);
}

static void add_path(struct str *url, const char *path)
{
    if (!path || !*path)
        return;
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, "/");
        auto_free char *segment = xstrndup(p, len);

        str_add_char(url, '/');
        text_percent(url, segment);
        p += len;
        if (!*p)
            return;
    }
}

static void add_query(struct str *url, const char *query)
{
    if (!query || !*query)
        return;
    str_add_char(url, strchr(str_text(url), '?') ? '&' : '?');
    str_add(url, query);
}

char *remote_url(const struct remote *remote, const char *path)
{
    auto_str url = {0};

    str_add(&url, remote->base);
    add_path(&url, path);
    if (remote->auth == REMOTE_SAS)
        add_query(&url, remote->secret);
    return str_take(&url);
}

static void
sign(const struct remote *remote, const struct remote_call *call, struct outgoing *out)
{
    struct sharedkey_header headers[MOST_HEADERS];
    char names[MOST_HEADERS][64];
    char length[24];
    const char *path = strchr(strstr(str_text(&out->url), "://") + 3, '/');
    auto_free char *raw_path = xstrndup(path, strcspn(path, "?"));
    const char *query = strchr(path, '?');
    struct sharedkey_request request = {
        .verb = call->method,
        .headers = headers,
        .raw_path = raw_path,
        .raw_query = query ? query + 1 : "",
        .account = remote->account,
    };
    auto_str text = {0};

    for (size_t i = 0; i < out->count; i++) {
        const char *line = out->headers[i];
        size_t len = strcspn(line, ":");

        snprintf(names[i], sizeof(names[i]), "%.*s", (int)len, line);
        headers[i] =
            (struct sharedkey_header){names[i], line + len + 1 + strspn(line + len + 1, " ")};
    }
    snprintf(length, sizeof(length), "%zu", call->body_len);
    headers[out->count] = (struct sharedkey_header){"Content-Length", length};
    request.header_count = out->count + (call->body_len > 0);
    sharedkey_sign(&request, str_text(&remote->key), remote->key.len, &text);
    add_header(out, "Authorization: %s", str_text(&text));
}

static void
make_outgoing(const struct remote *remote, const struct remote_call *call, struct outgoing *out)
{
    char date[CLOCK_HTTP_BYTES];

    str_add(&out->url, remote->base);
    add_path(&out->url, call->path);
    add_query(&out->url, call->query);
    for (size_t i = 0; call->headers && call->headers[i]; i++)
        add_header(out, "%s", call->headers[i]);
    add_header(out, "x-ms-version: %s", SERVICE_VERSION);
    if (remote->is_share) {
        /* Otherwise "a." is taken for "a". */
        add_header(out, "x-ms-allow-trailing-dot: true");
        add_header(out, "x-ms-source-allow-trailing-dot: true");
    }
    switch (remote->auth) {
    case REMOTE_KEY:
        add_header(out, "x-ms-date: %s", clock_format_http(clock_wall_ms(), date));
        sign(remote, call, out);
        break;
    case REMOTE_SAS:
        add_query(&out->url, remote->secret);
        break;
    case REMOTE_TOKEN:
        add_header(out, "Authorization: Bearer %s", remote->secret);
        break;
    }
}

/* --- failures --- */

/* The service's words that say more than their status. */
static const struct word {
    const char *code;
    int errno_value;
} words[] = {
    {"BlobNotFound", ENOENT},          {"ContainerNotFound", ENOENT},
    {"ShareNotFound", ENOENT},         {"ResourceNotFound", ENOENT},
    {"ParentNotFound", ENOENT},        {"BlobAlreadyExists", EEXIST},
    {"ResourceAlreadyExists", EEXIST}, {"DirectoryNotEmpty", ENOTEMPTY},
    {"ResourceTypeMismatch", ENOTDIR}, {"ConditionNotMet", ESTALE},
    {"InvalidRange", ESTALE}, /* the file became shorter */
    {"ReadOnlyAttribute", EACCES},     {"ShareSizeLimitReached", ENOSPC},
    {"InsufficientStorage", ENOSPC},   {"InsufficientAccountPermissions", EACCES},
    {"LeaseIdMissing", EBUSY},         {"SharingViolation", EBUSY},
    {"DeletePending", EBUSY},          {"InvalidResourceName", EINVAL},
};

static const struct word *find_word(const char *code)
{
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(words[i].code, code) == 0)
            return &words[i];
    }
    return NULL;
}

int remote_errno(const struct err *e)
{
    const struct word *word = e->reason ? find_word(e->reason) : NULL;

    if (word)
        return word->errno_value;
    switch ((int)e->code) {
    case ERR_NOT_FOUND:
        return ENOENT;
    case ERR_UNAUTHORIZED:
    case ERR_FORBIDDEN:
        return EACCES;
    case ERR_CONFLICT:
        return EBUSY;
    case ERR_PRECONDITION:
        return ESTALE;
    case ERR_TOO_LARGE:
        return EFBIG;
    case ERR_NO_SPACE:
        return ENOSPC;
    case ERR_INVALID:
        return EINVAL;
    default:
        return EIO;
    }
}

static void cut_element(const char *body, const char *name, char *buf, size_t room)
{
    auto_free char *open = xasprintf("<%s>", name);
    const char *start = strstr(body, open);

    buf[0] = '\0';
    if (start) {
        start += strlen(open);
        snprintf(buf, room, "%.*s", (int)strcspn(start, "<\r\n"), start);
    }
}

static enum err_code code_of_status(int status)
{
    for (int code = ERR_INVALID; code < ERR_CODES; code++) {
        if (err_info((enum err_code)code)->http_status == status)
            return (enum err_code)code;
    }
    return status >= 500 ? ERR_INTERNAL : ERR_INVALID;
}

static int answer_failed(const struct http_answer *answer, struct err *e)
{
    auto_free char *header = http_answer_header(answer, "x-ms-error-code");
    enum err_code code = code_of_status(answer->status);
    char text[CODE_BYTES], message[MESSAGE_BYTES];
    const struct word *word;

    if (header)
        snprintf(text, sizeof(text), "%s", header);
    else
        cut_element(str_text(&answer->body), "Code", text, sizeof(text));
    cut_element(str_text(&answer->body), "Message", message, sizeof(message));
    word = find_word(text);
    err_set(e, code, "(%s) %s", text[0] ? text : err_info(code)->reason,
            message[0] ? message : "the storage service refused it");
    return err_reason(e, word ? word->code : NULL);
}

/* --- trying --- */

struct flow {
    struct remote *remote;
    const struct remote_call *call;
    bool sank; /* some bytes went to the caller */
};

static int take_bytes(void *context, const void *bytes, size_t len)
{
    struct flow *flow = context;

    flow->sank = true;
    return flow->call->sink(flow->call->sink_context, bytes, len);
}

static int watch(void *context, int64_t sent, int64_t received)
{
    struct flow *flow = context;

    (void)sent;
    (void)received;
    return atomic_load(&flow->remote->stop) ? -1 : 0;
}

static int attempt(struct flow *flow, struct http_answer *answer, struct err *e)
{
    struct remote *remote = flow->remote;
    const struct remote_call *call = flow->call;
    auto_outgoing out = {0};
    struct http_client *client;
    struct http_call http = {
        .method = call->method,
        .headers = (const char *const *)out.headers,
        .body = call->body_len ? call->body : NULL,
        .body_len = call->body_len,
        .sink = call->sink ? take_bytes : NULL,
        .sink_context = flow,
        .watch = watch,
        .watch_context = flow,
    };
    int rc;

    make_outgoing(remote, call, &out);
    http.url = str_text(&out.url);
    answer->status = 0;
    if (take_client(remote, &client, e) < 0)
        return -1;
    rc = http_client_call(client, &http, answer, e);
    give_client(remote, client);
    if (rc == 0 && answer->status / 100 != 2)
        rc = answer_failed(answer, e);
    return rc;
}

static bool may_work_later(int status, const struct err *e)
{
    if (status == 0 || status / 100 == 2)
        return e->code == ERR_BUSY || e->code == ERR_TIMEOUT;
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

static void pause_ms(const struct remote *remote, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;

    while (!atomic_load(&remote->stop) && clock_mono_ms() < until) {
        struct timespec step = {.tv_nsec = 10 * 1000 * 1000};

        nanosleep(&step, NULL);
    }
}

int remote_call(struct remote *remote,
                const struct remote_call *call,
                struct http_answer *ret_answer,
                struct err *e)
{
    int64_t give_up_ms = clock_mono_ms() + remote->patience_ms;
    int64_t wait_ms = FIRST_PAUSE_MS;
    auto_answer mine = {0};
    struct http_answer *answer = ret_answer ? ret_answer : &mine;

    for (int tries = 1;; tries++) {
        struct flow flow = {.remote = remote, .call = call};
        struct err why = {0};

        if (atomic_load(&remote->stop))
            return err_set(e, ERR_BUSY, "the mount is being taken down");
        if (attempt(&flow, answer, &why) == 0 ||
            (tries > 1 && call->done_errno && remote_errno(&why) == call->done_errno))
            return 0;
        if (!may_work_later(answer->status, &why) || flow.sank ||
            clock_mono_ms() + wait_ms > give_up_ms) {
            if (e)
                *e = why;
            return -1;
        }
        log_debug("event=retry tries=%d error=\"%s\"", tries, why.msg);
        pause_ms(remote, wait_ms);
        wait_ms = wait_ms * 2 < LONGEST_PAUSE_MS ? wait_ms * 2 : LONGEST_PAUSE_MS;
    }
}
