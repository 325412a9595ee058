/* SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"
#include "http/test/harness.h"

#include <fcntl.h>
#include <sys/resource.h>

static void on_request(struct http_req *req, void *context)
{
    (void)context;
    http_reply(req, 200, "hello", 5);
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static void beyond_the_most_connections_there_is_503(void **state)
{
    struct harness h;
    struct client in[3], out;
    struct reply reply;
    struct http_counts counts;

    (void)state;
    harness_init(&h, on_request);
    h.config.max_connections = 3;
    harness_start(&h, NULL);
    for (int i = 0; i < 3; i++) {
        in[i] = dial(&h);
        say(&in[i], GET);
        expect(&in[i], 200, "hello");
    }
    out = dial(&h);
    say(&out, GET);
    reply = hear(&out, false);
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.head.data, "\r\nRetry-After: "));
    expect_closed(&out);
    reply_done(&reply);
    hang_up(&out);

    hang_up(&in[0]); /* a place is free again */
    do {
        pause_ms(1);
        http_server_counts(h.server, &counts);
    } while (counts.connections_open > 2);
    out = dial(&h);
    say(&out, GET);
    expect(&out, 200, "hello");
    say(&in[1], GET);
    expect(&in[1], 200, "hello");
    hang_up(&out);
    hang_up(&in[1]);
    hang_up(&in[2]);
    harness_done(&h);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Take every descriptor there is, have one client in the accept queue and look at how the
 * server takes it. */
static void out_of_descriptors_it_sheds_and_does_not_spin(void **state)
{
    struct harness h;
    struct rlimit before, low;
    int taken[256];
    size_t count = 0;
    struct client waiting, c;
    struct http_counts counts;
    double cpu;

    (void)state;
    harness_init(&h, on_request);
    harness_start(&h, NULL);
    waiting = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    getrlimit(RLIMIT_NOFILE, &before);
    low = (struct rlimit){64, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    while (count < ARRAY_SIZE(taken) && (taken[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    assert_true(count < 64);

    close(waiting.fd); /* its number goes to the dial */
    waiting = dial(&h);
    cpu = cpu_seconds();
    expect_closed(&waiting);
    pause_ms(200);
    assert_true(cpu_seconds() - cpu < 0.1);
    http_server_counts(h.server, &counts);
    assert_int_equal(counts.rejected_total, 1);

    for (size_t i = 0; i < count; i++)
        close(taken[i]);
    setrlimit(RLIMIT_NOFILE, &before);
    hang_up(&waiting);
    c = dial(&h);
    say(&c, GET);
    expect(&c, 200, "hello");
    hang_up(&c);
    harness_done(&h);
}

static void connections_are_spread_evenly(void **state)
{
    enum { CLIENTS = 40 };
    struct harness h;
    struct client clients[CLIENTS];

    (void)state;
    harness_init(&h, on_request);
    h.config.threads = 4;
    harness_start(&h, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial(&h);
        say(&clients[i], GET);
        expect(&clients[i], 200, "hello");
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&h.server->workers[i].open), CLIENTS / 4);
    for (int i = 0; i < CLIENTS; i++)
        hang_up(&clients[i]);
    harness_done(&h);
}

static void request_ids_are_uuids_and_differ(void **state)
{
    struct http_worker worker = {.random = {1, 2, 3, 4}};
    char last[CRYPT_UUID_BYTES] = "", id[CRYPT_UUID_BYTES];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        http_worker_uuid(&worker, id);
        assert_true(crypt_is_uuid(id));
        assert_int_equal(id[14], '4');
        assert_non_null(strchr("89ab", id[19]));
        assert_string_not_equal(id, last);
        memcpy(last, id, sizeof(id));
    }
}

/* What an idle connection costs us; OpenSSL's and the kernel's share come on top. */
static void an_idle_connection_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct http_conn) <= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_the_most_connections_there_is_503),
        cmocka_unit_test(out_of_descriptors_it_sheds_and_does_not_spin),
        cmocka_unit_test(connections_are_spread_evenly),
        cmocka_unit_test(request_ids_are_uuids_and_differ),
        cmocka_unit_test(an_idle_connection_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
