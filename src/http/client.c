/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum {
    MOST_BODY_BYTES = 256 * 1024 * 1024,
    MOST_HEAD_BYTES = 256 * 1024,
    LARGE_BYTES = 64 * 1024,   /* a body of this size is worth ... */
    BUFFER_BYTES = 512 * 1024, /* ... buffers of this: far fewer system calls */
};

struct http_client {
    CURL *curl;
    struct http_client_config config;
    char *ca_file, *user_agent;
};

/* One attempt of one call: what the callbacks of libcurl see. */
struct attempt {
    const struct http_call *call;
    struct http_answer *answer;
    CURL *curl;
    bool too_large;
    bool refused; /* the sink wanted no more */
    bool stopped; /* who watches wanted no more */
};

void http_client_config_init(struct http_client_config *config)
{
    *config = (struct http_client_config){
        .connect_timeout_ms = 10 * 1000,
        .silence_timeout_ms = 60 * 1000,
        .most_retries = 4,
        .first_pause_ms = 200,
        .longest_pause_ms = 30 * 1000,
    };
}

int http_client_new(const struct http_client_config *config,
                    struct http_client **ret_client,
                    struct err *e)
{
    autoptr(http_client) client = xcalloc(1, sizeof(*client));

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_INTERNAL, "could not set up the HTTP client");
    client->curl = curl_easy_init();
    if (!client->curl)
        return err_set(e, ERR_INTERNAL, "could not set up the HTTP client");
    client->config = *config;
    if (config->ca_file)
        client->ca_file = xstrdup(config->ca_file);
    client->user_agent =
        xstrdup(config->user_agent ? config->user_agent : "trainyard/" YARD_VERSION);
    *ret_client = take_ptr(&client);
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client->ca_file);
    free(client->user_agent);
    free(client);
}

void http_answer_done(struct http_answer *answer)
{
    str_done(&answer->head);
    str_done(&answer->body);
    answer->status = 0;
}

static int status_of(CURL *curl)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

/* Called when there is a connection, each time before the request is sent. */
static int on_send(void *context, char *to, char *from, int to_port, int from_port)
{
    struct attempt *at = context;

    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    at->answer->sends++;
    return CURL_PREREQFUNC_OK;
}

static size_t on_head(char *bytes, size_t size, size_t count, void *context)
{
    struct attempt *at = context;
    size_t len = size * count;

    /* A new status line starts a new answer: 100 Continue came before. */
    if (len >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        str_truncate(&at->answer->head, 0);
    if (at->answer->head.len + len > MOST_HEAD_BYTES) {
        at->too_large = true;
        return 0;
    }
    str_add_len(&at->answer->head, bytes, len);
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct attempt *at = context;
    size_t len = size * count;
    size_t most = at->call->most_bytes ? at->call->most_bytes : MOST_BODY_BYTES;

    if (at->call->sink && status_of(at->curl) / 100 == 2) {
        if (at->call->sink(at->call->sink_context, bytes, len) == 0)
            return len;
        at->refused = true;
        return 0;
    }
    if (at->answer->body.len + len > most) {
        at->too_large = true;
        return 0;
    }
    str_add_len(&at->answer->body, bytes, len);
    return len;
}

static size_t on_read(char *bytes, size_t size, size_t count, void *context)
{
    struct attempt *at = context;
    size_t got = fread(bytes, 1, size * count, at->call->body_file);

    return ferror(at->call->body_file) ? CURL_READFUNC_ABORT : got;
}

/* libcurl rewinds the body when it has to send it a second time on a fresh connection. */
static int on_seek(void *context, curl_off_t offset, int origin)
{
    struct attempt *at = context;

    return fseeko(at->call->body_file, offset, origin) == 0 ? CURL_SEEKFUNC_OK
                                                            : CURL_SEEKFUNC_FAIL;
}

static int
on_progress(void *context, curl_off_t down, curl_off_t got, curl_off_t up, curl_off_t sent)
{
    struct attempt *at = context;

    (void)down;
    (void)up;
    at->stopped = at->call->watch(at->call->watch_context, sent, got) < 0;
    return at->stopped;
}

static void
trace_lines(const struct http_client *client, char direction, const char *bytes, size_t len)
{
    const char *end = bytes + len;

    for (const char *p = bytes; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t line_len = (size_t)((stop ? stop : end) - p);
        auto_free char *line = NULL;

        if (line_len && p[line_len - 1] == '\r')
            line = xstrndup(p, line_len - 1);
        else
            line = xstrndup(p, line_len);
        client->config.trace(client->config.context, direction, line);
        p = stop ? stop + 1 : end;
    }
}

static int on_debug(CURL *curl, curl_infotype type, char *bytes, size_t len, void *context)
{
    (void)curl;
    if (type == CURLINFO_HEADER_OUT)
        trace_lines(context, '>', bytes, len);
    else if (type == CURLINFO_HEADER_IN)
        trace_lines(context, '<', bytes, len);
    else if (type == CURLINFO_TEXT)
        trace_lines(context, '*', bytes, len);
    return 0;
}

static bool is_loopback_host(const char *host)
{
    unsigned char v4[4];

    /* By number, not by its looks: 127.example.com is a stranger. */
    if (inet_pton(AF_INET, host, v4) == 1)
        return v4[0] == 127;
    return str_equal_nocase(host, "localhost") || str_equal(host, "[::1]");
}

bool http_url_is_loopback(const char *url)
{
    CURLU *parsed = curl_url();
    char *host = NULL;
    bool loopback = false;

    if (parsed && curl_url_set(parsed, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        loopback = is_loopback_host(host);
    curl_free(host);
    curl_url_cleanup(parsed);
    return loopback;
}

static void set_body(struct http_client *client, struct attempt *at, int64_t file_size)
{
    const struct http_call *call = at->call;
    CURL *curl = client->curl;
    bool writes = str_equal(call->method, "PUT") || str_equal(call->method, "POST") ||
                  str_equal(call->method, "PATCH");

    if (call->body_file) {
        curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(curl, CURLOPT_READDATA, at);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, at);
        curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)file_size);
    } else if (call->body || writes) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body ? call->body : "");
    }
    if (str_equal(call->method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
}

static void set_options(struct http_client *client, struct attempt *at, char *error_text)
{
    const struct http_client_config *config = &client->config;
    CURL *curl = client->curl;

    curl_easy_reset(curl); /* keeps the open connections */
    curl_easy_setopt(curl, CURLOPT_URL, at->call->url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, client->user_agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)config->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     (long)((config->silence_timeout_ms + 999) / 1000));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_send);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, at);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, at);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, at);
    if (at->call->sink)
        curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    if (at->call->body_len > LARGE_BYTES || at->call->body_file)
        curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES);
    if (at->call->watch) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, at);
    }
    if (client->ca_file) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    if (http_url_is_loopback(at->call->url))
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (config->trace) {
        curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L);
        curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, on_debug);
        curl_easy_setopt(curl, CURLOPT_DEBUGDATA, client);
    }
}

static int describe(struct err *e,
                    const struct http_client *client,
                    const struct attempt *at,
                    CURLcode rc,
                    const char *detail)
{
    /* A query may hold a signature, and errors are shown around. */
    auto_free char *url = xstrndup(at->call->url, strcspn(at->call->url, "?"));
    const char *text = detail[0] ? detail : curl_easy_strerror(rc);

    if (at->too_large)
        return err_set(e, ERR_TOO_LARGE, "the answer of %s is too large", url);
    if (at->stopped)
        return err_set(e, ERR_BUSY, "the request to %s was broken off", url);
    if (at->refused)
        return err_set(e, ERR_INTERNAL, "could not keep the answer of %s", url);
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, ERR_TIMEOUT, "%s did not answer in time: %s", url, text);
    if (rc == CURLE_PEER_FAILED_VERIFICATION)
        return err_set(e, ERR_FORBIDDEN, "the certificate of %s is not trusted: %s", url, text);
    if (rc == CURLE_SSL_CACERT_BADFILE)
        return err_set(e, ERR_INVALID, "cannot use the CA file \"%s\": %s",
                       client->ca_file ? client->ca_file : "", text);
    if (rc == CURLE_URL_MALFORMAT || rc == CURLE_UNSUPPORTED_PROTOCOL)
        return err_set(e, ERR_INVALID, "\"%.200s\" is not an http or https URL", url);
    if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST)
        return err_set(e, ERR_BUSY, "could not connect to %s: %s", url, text);
    return err_set(e, ERR_BUSY, "the request to %s broke off: %s", url, text);
}

static struct curl_slist *make_headers(const struct http_call *call)
{
    struct curl_slist *list = NULL;
    /* An empty "Content-Type:" keeps libcurl from claiming a web form; the caller's own comes
     * after. "Expect:" spares a round trip for small bodies. */
    bool typed = false;

    for (size_t i = 0; call->headers && call->headers[i]; i++) {
        list = curl_slist_append(list, call->headers[i]);
        typed = typed || str_starts_nocase(call->headers[i], "Content-Type:");
    }
    if (!typed)
        list = curl_slist_append(list, "Content-Type:");
    return curl_slist_append(list, "Expect:");
}

static int measure(const struct http_call *call, int64_t *ret_size, struct err *e)
{
    *ret_size = 0;
    if (!call->body_file)
        return 0;
    if (fseeko(call->body_file, 0, SEEK_END) < 0 || (*ret_size = ftello(call->body_file)) < 0 ||
        fseeko(call->body_file, 0, SEEK_SET) < 0)
        return err_sys(e, errno, "could not read the file to send");
    return 0;
}

/* Returns 0 with an answer; -1 with *ret_rc telling whether trying again is harmless. */
static int
attempt_call(struct http_client *client, struct attempt *at, CURLcode *ret_rc, struct err *e)
{
    char error_text[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers;
    int64_t file_size;

    if (measure(at->call, &file_size, e) < 0)
        return -1;
    str_truncate(&at->answer->head, 0);
    str_truncate(&at->answer->body, 0);
    headers = make_headers(at->call);
    set_options(client, at, error_text);
    set_body(client, at, file_size);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, headers);
    *ret_rc = curl_easy_perform(client->curl);
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    at->answer->status = status_of(client->curl);
    return *ret_rc == CURLE_OK ? 0 : describe(e, client, at, *ret_rc, error_text);
}

/* Seconds of Retry-After as milliseconds, or -1 when there are none.  Its date form is not used
 * here. */
static int64_t asked_pause(const struct http_answer *answer)
{
    auto_free char *value = http_answer_header(answer, "Retry-After");
    char *end;
    long seconds;

    if (!value || !isdigit((unsigned char)value[0]))
        return -1;
    seconds = strtol(value, &end, 10);
    return *end || seconds > 86400 ? -1 : seconds * 1000;
}

static void pause_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

int http_client_call(struct http_client *client,
                     const struct http_call *call,
                     struct http_answer *ret_answer,
                     struct err *e)
{
    const struct http_client_config *config = &client->config;
    int64_t backoff_ms = config->first_pause_ms;

    ret_answer->sends = 0;
    for (int tries = 0;; tries++, backoff_ms *= 2) {
        struct attempt at = {.call = call, .answer = ret_answer, .curl = client->curl};
        CURLcode code = CURLE_OK;
        int rc = attempt_call(client, &at, &code, e);
        int64_t wait_ms = -1;

        if (rc < 0 && (code != CURLE_COULDNT_CONNECT || tries >= config->most_retries))
            return -1;
        if (rc == 0 && ret_answer->status != 429 && ret_answer->status != 503)
            return 0;
        if (rc == 0 && tries >= config->most_retries)
            return 0;
        if (rc == 0)
            wait_ms = asked_pause(ret_answer);
        if (wait_ms < 0)
            wait_ms = backoff_ms;
        pause_ms(wait_ms < config->longest_pause_ms ? wait_ms : config->longest_pause_ms);
    }
}

char *http_answer_header(const struct http_answer *answer, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *p = str_text(&answer->head); *p;) {
        size_t len = strcspn(p, "\r\n");

        if (len > name_len && p[name_len] == ':' && str_starts_nocase(p, name)) {
            const char *value = p + name_len + 1;
            size_t value_len = len - name_len - 1;

            while (value_len && (*value == ' ' || *value == '\t')) {
                value++;
                value_len--;
            }
            while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
                value_len--;
            return xstrndup(value, value_len);
        }
        p += len;
        p += strspn(p, "\r\n");
    }
    return NULL;
}
