/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/remote.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define GONE "HTTP/1.1 404 x\r\nx-ms-error-code: BlobNotFound\r\nContent-Length: 0\r\n\r\n"

/* A server that answers from a script, on as few connections as it can; "" closes one without a
 * word. */
struct server {
    const char *answers[4];
    int fd, port, seen;
    pthread_t thread;
};

/* Requests without bodies only. */
static bool read_request(int fd)
{
    char buf[4096] = "";

    for (size_t len = 0; !strstr(buf, "\r\n\r\n");) {
        ssize_t got = read(fd, buf + len, sizeof(buf) - 1 - len);

        if (got <= 0)
            return false;
        len += (size_t)got;
        buf[len] = '\0';
    }
    return true;
}

static void *serve(void *context)
{
    struct server *s = context;
    int fd = -1;

    for (size_t i = 0; i < ARRAY_SIZE(s->answers) && s->answers[i]; i++) {
        if (fd < 0)
            fd = accept(s->fd, NULL, NULL);
        if (fd < 0 || !read_request(fd))
            break;
        s->seen++;
        if (*s->answers[i]) {
            if (write(fd, s->answers[i], strlen(s->answers[i])) < 0)
                break;
        } else {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static struct remote *server_start(struct server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    auto_free char *endpoint = NULL;
    struct remote_config config = {
        .account = "acct",
        .container = "con",
        .auth = REMOTE_KEY,
        .secret = "AAECAw==",
        .patience_ms = 5000,
    };
    struct remote *remote = NULL;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    endpoint = xasprintf("http://127.0.0.1:%d/acct", ntohs(address.sin_port));
    config.endpoint = endpoint;
    assert_int_equal(remote_new(&config, &remote, NULL), 0);
    return remote;
}

static void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static void a_removal_whose_answer_was_lost_is_done(void **state)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    /* Lost on a connection of its own, and on a kept one, where libcurl sends a request again
     * without a word to us. */
    static const struct {
        const char *answers[4];
        int before; /* calls that go well */
    } rows[] = {{{"", GONE}, 0}, {{ok, "", GONE}, 1}};
    const struct remote_call get = {.method = "GET", .path = "x"};
    const struct remote_call call = {.method = "DELETE", .path = "x", .done_errno = ENOENT};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct server s = {0};
        auto_answer answer = {0};
        autoptr(remote) remote = NULL;
        struct err e = {0};

        memcpy(s.answers, rows[i].answers, sizeof(s.answers));
        remote = server_start(&s);
        for (int j = 0; j < rows[i].before; j++)
            assert_int_equal(remote_call(remote, &get, NULL, NULL), 0);
        if (remote_call(remote, &call, &answer, &e) < 0)
            fail_msg("row %zu: %s", i, e.msg);
        assert_int_equal(answer.status, 404);
        server_stop(&s);
        assert_int_equal(s.seen, rows[i].before + 2);
    }
}

static void a_removal_of_what_was_never_there_fails(void **state)
{
    struct server s = {.answers = {GONE}};
    const struct remote_call call = {.method = "DELETE", .path = "x", .done_errno = ENOENT};
    autoptr(remote) remote = server_start(&s);
    struct err e = {0};

    (void)state;
    assert_int_equal(remote_call(remote, &call, NULL, &e), -1);
    assert_int_equal(remote_errno(&e), ENOENT);
    server_stop(&s);
}

static void a_failure_means_what_programs_expect(void **state)
{
    static const struct {
        const char *reason;
        enum err_code code;
        int errno_value;
    } rows[] = {
        {NULL, ERR_NOT_FOUND, ENOENT},
        {"ParentNotFound", ERR_NOT_FOUND, ENOENT},
        {NULL, ERR_FORBIDDEN, EACCES},
        {"ShareSizeLimitReached", ERR_FORBIDDEN, ENOSPC},
        {"ResourceAlreadyExists", ERR_CONFLICT, EEXIST},
        {"DirectoryNotEmpty", ERR_CONFLICT, ENOTEMPTY},
        {NULL, ERR_CONFLICT, EBUSY},
        {"ConditionNotMet", ERR_PRECONDITION, ESTALE},
        {"InvalidBlockList", ERR_INVALID, ESTALE},
        {NULL, ERR_NO_SPACE, ENOSPC},
        {NULL, ERR_BUSY, EIO},
        {NULL, ERR_TIMEOUT, EIO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct err e = {.code = rows[i].code, .reason = rows[i].reason};

        assert_int_equal(remote_errno(&e), rows[i].errno_value);
    }
}

static void urls_are_encoded_by_segment_and_carry_the_signature(void **state)
{
    const struct remote_config config = {
        .endpoint = "http://127.0.0.1:1/acct",
        .account = "acct",
        .container = "con",
        .auth = REMOTE_SAS,
        .secret = "sig=a%2Fb",
    };
    autoptr(remote) remote = NULL;
    auto_free char *url = NULL;

    (void)state;
    assert_int_equal(remote_new(&config, &remote, NULL), 0);
    url = remote_url(remote, "a b/c?/100%/\xc3\xbc");
    assert_string_equal(url, "http://127.0.0.1:1/acct/con/a%20b/c%3F/100%25/%C3%BC?sig=a%2Fb");
}

static void a_server_that_is_away_is_given_up_on_in_time(void **state)
{
    struct remote_config config = {
        .endpoint = "http://127.0.0.1:1/acct", /* nobody listens there */
        .account = "acct",
        .container = "con",
        .auth = REMOTE_KEY,
        .secret = "AAECAw==",
        .patience_ms = 200,
    };
    const struct remote_call call = {.method = "GET", .path = "x"};
    autoptr(remote) remote = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(remote_new(&config, &remote, NULL), 0);
    assert_int_equal(remote_call(remote, &call, NULL, &e), -1);
    assert_int_equal(remote_errno(&e), EIO);
    remote_stop(remote);
    assert_int_equal(remote_call(remote, &call, NULL, &e), -1);
    config.secret = "no base64!";
    assert_int_equal(remote_new(&config, &remote, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_means_what_programs_expect),
        cmocka_unit_test(urls_are_encoded_by_segment_and_carry_the_signature),
        cmocka_unit_test(a_server_that_is_away_is_given_up_on_in_time),
        cmocka_unit_test(a_removal_whose_answer_was_lost_is_done),
        cmocka_unit_test(a_removal_of_what_was_never_there_fails),
    };

    return cmocka_run_group_tests_name("mount/remote", tests, NULL, NULL);
}
