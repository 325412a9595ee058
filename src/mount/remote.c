/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/remote.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "core/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
    MOST_IDLE = 32,
    FIRST_PAUSE_MS = 50,
    LONGEST_PAUSE_MS = 2 * 1000,
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

static void add_path(struct str *url, const char *path)
{
    if (!path || !*path)
        return;
    str_add_char(url, '/');
    text_percent_path(url, path);
}

char *remote_url(const struct remote *remote, const char *path)
{
    auto_str url = {0};

    str_add(&url, remote->base);
    add_path(&url, path);
    if (remote->auth == REMOTE_SAS)
        url_add_query(&url, remote->secret);
    return str_take(&url);
}

static void
make_outgoing(const struct remote *remote, const struct remote_call *call, struct outgoing *out)
{
    const struct entry_pass pass = {
        .account = remote->account,
        .key = remote->auth == REMOTE_KEY ? &remote->key : NULL,
        .sas = remote->auth == REMOTE_SAS ? remote->secret : NULL,
        .token = remote->auth == REMOTE_TOKEN ? remote->secret : NULL,
    };

    str_add(&out->url, remote->base);
    add_path(&out->url, call->path);
    url_add_query(&out->url, call->query);
    for (size_t i = 0; call->headers && call->headers[i]; i++)
        outgoing_add(out, "%s", call->headers[i]);
    if (remote->is_share) {
        /* Otherwise "a." is taken for "a". */
        outgoing_add(out, "x-ms-allow-trailing-dot: true");
        outgoing_add(out, "x-ms-source-allow-trailing-dot: true");
    }
    outgoing_seal(out, &pass, call->method, call->body_len, clock_wall_ms());
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
    {"InvalidBlockList", ESTALE}, /* somebody else stored the blob: our blocks went with it */
    {"FeatureNotSupported", ENOTSUP},
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

static int answer_failed(const struct http_answer *answer, struct err *e)
{
    auto_free char *header = http_answer_header(answer, "x-ms-error-code");
    struct refusal refusal;
    const struct word *word;

    refusal_read(answer->status, header, str_text(&answer->body), &refusal, e);
    word = find_word(refusal.code);
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
    answer->status = answer->sends = 0;
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
    return refusal_may_pass(status, e->reason);
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
    int sends = 0;

    for (int tries = 1;; tries++) {
        struct flow flow = {.remote = remote, .call = call};
        struct err why = {0};

        if (atomic_load(&remote->stop))
            return err_set(e, ERR_BUSY, "the mount is being taken down");
        if (attempt(&flow, answer, &why) == 0)
            return 0;
        sends += answer->sends;
        if (sends > 1 && call->done_errno && remote_errno(&why) == call->done_errno)
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
