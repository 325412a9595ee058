/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/reader.h"

#include "mount/tree.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MIB = 1024 * 1024,
};

/* A server whose byte at an offset is known, and who counts what is asked of it. */
struct server {
    pthread_mutex_t lock;
    int64_t bytes, requests, breaks, fails;
    int64_t last_first, last_len;
    struct tree tree;
    struct node *node;
    struct reader *reader;
    int64_t size;
};

static unsigned char byte_at(int64_t offset)
{
    return (unsigned char)(offset * 2654435761u >> 13);
}

static int fetch(void *context,
                 struct node *node,
                 uint64_t version,
                 int64_t first,
                 int64_t len,
                 reader_take *take,
                 void *take_context,
                 struct err *e)
{
    struct server *server = context;
    unsigned char piece[10007];
    bool breaks, fails;

    (void)node;
    (void)version;
    pthread_mutex_lock(&server->lock);
    server->requests++;
    server->bytes += len;
    server->last_first = first;
    server->last_len = len;
    breaks = server->breaks-- > 0;
    fails = server->fails-- > 0;
    pthread_mutex_unlock(&server->lock);
    if (fails)
        return err_set(e, ERR_NOT_FOUND, "it is not there");
    for (int64_t at = 0; at < len;) {
        int64_t some = len - at < (int64_t)sizeof(piece) ? len - at : (int64_t)sizeof(piece);

        for (int64_t i = 0; i < some; i++)
            piece[i] = byte_at(first + at + i);
        if (take(take_context, piece, (size_t)some) < 0)
            return err_set(e, ERR_INTERNAL, "too much");
        at += some;
        if (breaks && at > len / 2)
            return err_set(e, ERR_BUSY, "broke off");
    }
    return 0;
}

static int open_server(void **state)
{
    struct server *server = xcalloc(1, sizeof(*server));
    struct reader_config config = {
        .tree = &server->tree, .most_bytes = 64 * MIB, .threads = 3, .fetch = fetch};

    pthread_mutex_init(&server->lock, NULL);
    tree_init(&server->tree, false);
    server->node = tree_add(&server->tree, server->tree.root, "file", false);
    config.context = server;
    server->reader = reader_new(&config);
    *state = server;
    return 0;
}

static int close_server(void **state)
{
    struct server *server = *state;

    reader_stop(server->reader);
    reader_drop(server->reader, server->node);
    reader_free(server->reader);
    tree_done(&server->tree);
    pthread_mutex_destroy(&server->lock);
    free(server);
    return 0;
}

/* Read and check; returns how many bytes came, or -errno. */
static int64_t read_at(struct server *server, int64_t offset, size_t len)
{
    struct reader_ask ask = {server->node, server->node->version, server->size, offset, len};
    struct reader_parts parts;
    int64_t got = 0;
    int errno_value = 0;

    if (reader_read(server->reader, &ask, &parts, &errno_value) < 0)
        return -errno_value;
    for (int i = 0; i < parts.count; i++) {
        const unsigned char *bytes = parts.iov[i].iov_base;

        for (size_t j = 0; j < parts.iov[i].iov_len; j++, got++)
            assert_int_equal(bytes[j], byte_at(offset + got));
    }
    reader_done(server->reader, &parts);
    return got;
}

static void a_small_file_is_one_request(void **state)
{
    struct server *server = *state;

    server->size = MIB;
    assert_int_equal(read_at(server, 700000, 4096), 4096);
    assert_int_equal(server->requests, 1);
    assert_int_equal(server->bytes, MIB);
    assert_int_equal(read_at(server, 0, MIB), MIB);
    assert_int_equal(read_at(server, MIB - 10, 100), 10);
    assert_int_equal(read_at(server, MIB, 100), 0);
    assert_int_equal(server->requests, 1);
}

static void reads_here_and_there_fetch_little(void **state)
{
    struct server *server = *state;

    server->size = 1024 * (int64_t)MIB;
    for (int64_t i = 0; i < 40; i++)
        assert_int_equal(read_at(server, (i * 37 % 100) * 10 * MIB + 5, 4096), 4096);
    assert_true(server->bytes <= 40 * (BLOCK_BYTES + 2 * BLOCK_BYTES));
}

static void who_reads_on_is_read_ahead_of(void **state)
{
    struct server *server = *state;
    int64_t size = 40 * (int64_t)MIB + 12345;

    server->size = size;
    for (int64_t at = 0; at < size; at += 128 * 1024)
        assert_int_equal(read_at(server, at, 128 * 1024),
                         size - at < 128 * 1024 ? size - at : 128 * 1024);
    /* Everything once, in requests that are far larger than the reads. */
    assert_int_equal(server->bytes, size);
    assert_true(server->requests < 40);
}

static void a_request_that_broke_off_is_gone_on_with(void **state)
{
    struct server *server = *state;

    server->size = MIB;
    server->breaks = 3;
    assert_int_equal(read_at(server, 0, MIB), MIB);
    assert_int_equal(server->requests, 4);
    assert_true(server->last_first > MIB / 2);
}

static void a_failure_is_told_and_not_kept(void **state)
{
    struct server *server = *state;

    server->size = 20000;
    server->fails = 1;
    assert_int_equal(read_at(server, 0, 20000), -ENOENT);
    assert_int_equal(read_at(server, 0, 20000), 20000);
}

static void another_version_is_fetched_anew(void **state)
{
    struct server *server = *state;

    server->size = 20000;
    assert_int_equal(read_at(server, 0, 20000), 20000);
    server->node->version++;
    assert_int_equal(read_at(server, 0, 20000), 20000);
    assert_int_equal(server->requests, 2);
    reader_drop(server->reader, server->node);
    assert_false(reader_has_start(server->reader, server->node, server->node->version));
    assert_int_equal(read_at(server, 0, 20000), 20000);
    assert_int_equal(server->requests, 3);
}

static void *read_all(void *context)
{
    struct server *server = context;

    for (int64_t at = 0; at < server->size; at += MIB)
        if (read_at(server, at, MIB) < 0)
            return server;
    return NULL;
}

static void many_readers_share_what_is_fetched(void **state)
{
    struct server *server = *state;
    pthread_t threads[6];

    server->size = 30 * (int64_t)MIB;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, server), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_true(server->bytes <= 6 * server->size);
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_small_file_is_one_request),
        SERVER_TEST(reads_here_and_there_fetch_little),
        SERVER_TEST(who_reads_on_is_read_ahead_of),
        SERVER_TEST(a_request_that_broke_off_is_gone_on_with),
        SERVER_TEST(a_failure_is_told_and_not_kept),
        SERVER_TEST(another_version_is_fetched_anew),
        SERVER_TEST(many_readers_share_what_is_fetched),
    };

    return cmocka_run_group_tests_name("mount/reader", tests, NULL, NULL);
}
