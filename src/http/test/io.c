/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/mman.h>

enum { FILE_BYTES = 3 * 1000 * 1000 };

static char folder[] = "/tmp/http-io-XXXXXX";
static struct http_tls *tls;
static char *content;

static void on_collected(struct http_req *req)
{
    size_t len;
    const char *body = http_req_body(req, &len);

    http_reply(req, 200, body, len);
}

static void on_request(struct http_req *req, void *context)
{
    const char *path = http_req_raw_path(req);

    (void)context;
    assert_true(http_req_is_tls(req));
    if (str_equal(path, "/echo")) {
        http_req_collect(req, FILE_BYTES, on_collected);
    } else if (str_equal(path, "/file")) {
        int fd = memfd_create("io", MFD_CLOEXEC);

        assert_int_equal(write(fd, content, FILE_BYTES), FILE_BYTES);
        http_reply_file(req, 200, fd, 0, FILE_BYTES);
    } else if (str_equal(path, "/whole")) {
        http_reply(req, 200, content, FILE_BYTES);
    } else {
        http_reply(req, 200, "hello", 5);
    }
}

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static int group_setup(void **state)
{
    auto_free char *cert = NULL, *key = NULL;

    (void)state;
    content = xmalloc(FILE_BYTES);
    for (size_t i = 0; i < FILE_BYTES; i++)
        content[i] = (char)(i * 31 + (i >> 10));
    if (!mkdtemp(folder) || http_tls_ensure(folder, NULL, 0, NULL) < 0)
        return -1;
    cert = path_of("server.pem");
    key = path_of("server.key");
    return http_tls_open(cert, key, &tls, NULL);
}

static int group_teardown(void **state)
{
    static const char *const names[] = {"ca.pem", "ca.key", "server.pem", "server.key"};

    (void)state;
    http_tls_free(tls);
    free(content);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = path_of(names[i]);

        unlink(path);
    }
    return rmdir(folder);
}

struct tls_client {
    struct client plain;
    SSL_CTX *context;
    SSL *ssl;
};

static struct tls_client dial_tls(const struct harness *h, int version)
{
    struct tls_client c = {.plain = dial(h), .context = SSL_CTX_new(TLS_client_method())};
    auto_free char *ca = path_of("ca.pem");

    SSL_CTX_load_verify_file(c.context, ca);
    SSL_CTX_set_verify(c.context, SSL_VERIFY_PEER, NULL);
    if (version)
        SSL_CTX_set_max_proto_version(c.context, version);
    c.ssl = SSL_new(c.context);
    SSL_set1_host(c.ssl, "localhost");
    SSL_set_fd(c.ssl, c.plain.fd);
    return c;
}

static void hang_up_tls(struct tls_client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    hang_up(&c->plain);
}

static void write_all(struct tls_client *c, const void *bytes, size_t len)
{
    assert_int_equal(SSL_write(c->ssl, bytes, (int)len), (int)len);
}

/* Read head and body of a reply with a Content-Length; the body goes to ret. */
static void read_reply(struct tls_client *c, struct str *ret)
{
    auto_str all = {0};
    char bytes[16384];
    const char *end = NULL, *length;
    size_t wanted = SIZE_MAX;

    while (all.len < wanted) {
        int n = SSL_read(c->ssl, bytes, sizeof(bytes));

        assert_true(n > 0);
        str_add_len(&all, bytes, (size_t)n);
        if (wanted == SIZE_MAX && (end = strstr(all.data, "\r\n\r\n"))) {
            length = strstr(all.data, "Content-Length: ");
            wanted = (size_t)(end + 4 - all.data) + strtoull(length + 16, NULL, 10);
        }
    }
    assert_int_equal(all.len, wanted);
    end = strstr(all.data, "\r\n\r\n");
    str_truncate(ret, 0);
    str_add_len(ret, end + 4, wanted - (size_t)(end + 4 - all.data));
}

static struct harness start(void)
{
    struct harness h;

    harness_init(&h, on_request);
    h.config.threads = 2;
    h.config.head_timeout_ms = 300;
    harness_start(&h, tls);
    return h;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void requests_go_through_tls(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct harness h = start();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
        struct tls_client c = dial_tls(&h, versions[i]);
        auto_str body = {0};

        assert_int_equal(SSL_connect(c.ssl), 1);
        assert_int_equal(SSL_version(c.ssl), versions[i]);
        for (int n = 0; n < 3; n++) {
            write_all(&c, GET("/"), strlen(GET("/")));
            read_reply(&c, &body);
            assert_string_equal(str_text(&body), "hello");
        }
        write_all(&c, GET("/") GET("/"), strlen(GET("/") GET("/")));
        hang_up_tls(&c);
    }
    harness_done(&h);
}

static void large_bodies_go_through_tls_in_both_directions(void **state)
{
    static const char *const requests[] = {GET("/file"), GET("/whole")};
    struct harness h = start();
    struct tls_client c = dial_tls(&h, 0);
    auto_str body = {0};
    auto_free char *head = xasprintf("POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                                     "Content-Length: %d\r\n\r\n",
                                     FILE_BYTES);

    (void)state;
    assert_int_equal(SSL_connect(c.ssl), 1);
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        write_all(&c, requests[i], strlen(requests[i]));
        pause_ms(50); /* the server runs into a full socket */
        read_reply(&c, &body);
        assert_int_equal(body.len, FILE_BYTES);
        assert_memory_equal(body.data, content, FILE_BYTES);
    }
    write_all(&c, head, strlen(head));
    write_all(&c, content, FILE_BYTES);
    read_reply(&c, &body);
    assert_int_equal(body.len, FILE_BYTES);
    assert_memory_equal(body.data, content, FILE_BYTES);
    hang_up_tls(&c);
    harness_done(&h);
}

static void the_end_is_announced(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct harness h = start();
    struct tls_client c = dial_tls(&h, 0);
    auto_str body = {0};
    char byte;
    int n;

    (void)state;
    assert_int_equal(SSL_connect(c.ssl), 1);
    write_all(&c, text, sizeof(text) - 1);
    read_reply(&c, &body);
    n = SSL_read(c.ssl, &byte, 1);
    assert_int_equal(SSL_get_error(c.ssl, n), SSL_ERROR_ZERO_RETURN);
    hang_up_tls(&c);
    harness_done(&h);
}

static void old_protocols_and_plain_text_are_refused(void **state)
{
    struct harness h = start();
    struct tls_client old = dial_tls(&h, 0);
    struct client plain = dial(&h);
    char byte;

    (void)state;
    SSL_set_security_level(old.ssl, 0);
    SSL_set_min_proto_version(old.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(old.ssl, TLS1_1_VERSION);
    assert_int_not_equal(SSL_connect(old.ssl), 1);
    hang_up_tls(&old);
    ERR_clear_error();

    say(&plain, GET("/"));
    while (recv(plain.fd, &byte, 1, 0) > 0) /* perhaps an alert, never a reply */
        assert_int_not_equal(byte, 'H');
    hang_up(&plain);
    harness_done(&h);
}

static void a_handshake_that_never_comes_is_given_up(void **state)
{
    struct harness h = start();
    struct client silent = dial(&h);
    int64_t start_ms = clock_mono_ms();

    (void)state;
    expect_closed(&silent);
    assert_true(clock_mono_ms() - start_ms >= 300);
    hang_up(&silent);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_go_through_tls),
        cmocka_unit_test(large_bodies_go_through_tls_in_both_directions),
        cmocka_unit_test(the_end_is_announced),
        cmocka_unit_test(old_protocols_and_plain_text_are_refused),
        cmocka_unit_test(a_handshake_that_never_comes_is_given_up),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
