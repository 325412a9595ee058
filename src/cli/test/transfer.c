/* The pool of threads between two sides that are nothing but memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/transfer-options.h"
#include "cli/transfer-side.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    PIECE = 1000,
    MOST_FILES = 600,
    END_MS = 20 * 1000,
};

/* Files are named by their number; the byte at n of file f is f * 7 + n. */
static struct store {
    pthread_mutex_t lock;
    struct stored {
        char *bytes;
        size_t len;
        int puts, pieces, finishes;
    } files[MOST_FILES];
    atomic_int reads, removes;
    /* What goes wrong. */
    int bad_file;        /* -1 = none */
    enum err_code error; /* of every put; ERR_NONE = none fails */
    bool fails_finish;
    bool has_half; /* begin says that every second piece is there */
    int fetches;   /* 0 = cannot */
    int look_size; /* of what is there already; -1 = nothing */
} store;

static char byte_at(int file, int64_t offset)
{
    return (char)(file * 7 + offset);
}

static int fake_read(struct port *port,
                     const struct item *item,
                     int64_t offset,
                     void *buf,
                     size_t len,
                     struct err *e)
{
    int file = atoi(item->path);

    (void)port;
    atomic_fetch_add(&store.reads, 1);
    if (file == store.bad_file && offset + (int64_t)len == item->facts.size_bytes)
        return err_set(e, ERR_CONFLICT, "it has changed meanwhile");
    for (size_t i = 0; i < len; i++)
        ((char *)buf)[i] = byte_at(file, offset + (int64_t)i);
    return 0;
}

static struct stored *grow(int file, int64_t size)
{
    struct stored *stored = &store.files[file];

    if (!stored->bytes) {
        stored->bytes = xcalloc(1, (size_t)size + 1);
        stored->len = (size_t)size;
    }
    return stored;
}

static int fake_put(struct port *port,
                    const struct item *item,
                    const void *bytes,
                    size_t len,
                    bool is_new,
                    struct err *e)
{
    (void)port;
    (void)is_new;
    if (store.error)
        return err_set(e, store.error, "it does not work");
    pthread_mutex_lock(&store.lock);
    memcpy(grow(atoi(item->target), (int64_t)len)->bytes, bytes, len);
    store.files[atoi(item->target)].puts++;
    pthread_mutex_unlock(&store.lock);
    return 0;
}

static int fake_begin(struct port *port, struct parts *parts, struct err *e)
{
    int file = atoi(parts->item->target);

    (void)port;
    (void)e;
    pthread_mutex_lock(&store.lock);
    grow(file, parts->item->facts.size_bytes);
    for (size_t i = 0; i < parts->count; i++) {
        parts->is_done[i] = store.has_half && i % 2 == 0;
        for (size_t j = 0; parts->is_done[i] && j < parts_len(parts, i); j++)
            store.files[file].bytes[i * PIECE + j] = byte_at(file, (int64_t)(i * PIECE + j));
    }
    pthread_mutex_unlock(&store.lock);
    return 0;
}

static int fake_put_piece(struct port *port,
                          const struct parts *parts,
                          size_t index,
                          const void *bytes,
                          size_t len,
                          struct err *e)
{
    struct stored *stored = &store.files[atoi(parts->item->target)];

    (void)port;
    (void)e;
    pthread_mutex_lock(&store.lock);
    memcpy(stored->bytes + index * PIECE, bytes, len);
    stored->pieces++;
    pthread_mutex_unlock(&store.lock);
    return 0;
}

static int fake_finish(struct port *port, const struct parts *parts, struct err *e)
{
    (void)port;
    if (store.fails_finish)
        return err_set(e, ERR_CONFLICT, "it does not end");
    pthread_mutex_lock(&store.lock);
    store.files[atoi(parts->item->target)].finishes++;
    pthread_mutex_unlock(&store.lock);
    return 0;
}

static int fake_look(struct port *port,
                     const char *path,
                     struct facts *ret_facts,
                     bool *ret_found,
                     struct err *e)
{
    const struct stored *stored = &store.files[atoi(path)];

    (void)port;
    (void)e;
    *ret_facts = (struct facts){.size_bytes = (int64_t)stored->len, .modified_ns = 10};
    *ret_found = store.look_size >= 0 || stored->bytes;
    return 0;
}

static int fake_make_folder(struct port *port, const char *path, struct err *e)
{
    (void)port;
    (void)path;
    (void)e;
    return 0;
}

static int fake_remove(struct port *port, const char *path, bool is_folder, struct err *e)
{
    (void)port;
    (void)path;
    (void)is_folder;
    (void)e;
    atomic_fetch_add(&store.removes, 1);
    return 0;
}

static const struct side_ops fake_ops = {
    .look = fake_look,
    .read = fake_read,
    .put = fake_put,
    .begin = fake_begin,
    .put_piece = fake_put_piece,
    .finish = fake_finish,
    .make_folder = fake_make_folder,
    .remove = fake_remove,
    .most_piece_bytes = PIECE,
};

struct bench {
    struct side *from, *to;
    struct transfer_options options;
    struct transfer *transfer;
};

static int set_up(void **state)
{
    struct bench *b = xcalloc(1, sizeof(*b));

    memset(&store, 0, sizeof(store));
    pthread_mutex_init(&store.lock, NULL);
    store.bad_file = store.look_size = -1;
    assert_int_equal(side_new_local("/from", &b->from, NULL), 0);
    assert_int_equal(side_new_local("/to", &b->to, NULL), 0);
    b->from->ops = b->to->ops = &fake_ops;
    transfer_options_init(&b->options);
    b->options.parallel = 4;
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    transfer_free(b->transfer);
    side_free(b->from);
    side_free(b->to);
    for (int i = 0; i < MOST_FILES; i++)
        free(store.files[i].bytes);
    pthread_mutex_destroy(&store.lock);
    free(b);
    return 0;
}

static void start(struct bench *b)
{
    struct transfer_config config = {
        .source = b->from, .destination = b->to, .options = &b->options};

    assert_int_equal(transfer_new(&config, &b->transfer, NULL), 0);
}

static bool add(struct bench *b, enum item_what what, int file, int64_t size)
{
    struct facts facts = {.size_bytes = size, .modified_ns = 5};
    char name[16];

    snprintf(name, sizeof(name), "%d", file);
    return transfer_add(b->transfer, item_new(what, name, name, &facts));
}

static struct transfer_totals finish(struct bench *b)
{
    struct pollfd over = {.fd = transfer_fd(b->transfer), .events = POLLIN};
    struct transfer_totals totals;

    transfer_no_more(b->transfer);
    assert_int_equal(poll(&over, 1, END_MS), 1);
    assert_true(transfer_is_over(b->transfer));
    transfer_totals(b->transfer, &totals);
    return totals;
}

static void expect_whole(int file, int64_t size)
{
    const struct stored *stored = &store.files[file];

    assert_int_equal(stored->len, size);
    for (int64_t i = 0; i < size; i++)
        assert_int_equal(stored->bytes[i], byte_at(file, i));
}

static void small_and_large_files_arrive_whole(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    start(b);
    for (int i = 0; i < MOST_FILES; i++)
        assert_true(add(b, ITEM_COPY, i, i * 37));
    totals = finish(b);
    assert_int_equal(totals.files, MOST_FILES);
    assert_int_equal(totals.bytes, 37 * MOST_FILES * (MOST_FILES - 1) / 2);
    assert_int_equal(totals.failed, 0);
    for (int i = 0; i < MOST_FILES; i++) {
        const struct stored *stored = &store.files[i];
        bool is_small = i * 37 <= PIECE;

        expect_whole(i, i * 37);
        assert_int_equal(stored->puts, is_small);
        assert_int_equal(stored->finishes, !is_small);
        assert_int_equal(stored->pieces, is_small ? 0 : (i * 37 + PIECE - 1) / PIECE);
    }
}

static void pieces_that_are_there_are_not_sent_again(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    store.has_half = true;
    start(b);
    assert_true(add(b, ITEM_COPY, 1, 10 * PIECE + 1));
    assert_true(add(b, ITEM_COPY, 2, PIECE + 1));
    totals = finish(b);
    assert_int_equal(totals.files, 2);
    assert_int_equal(store.files[1].pieces, 5);
    assert_int_equal(totals.moved_bytes, 6 * PIECE - PIECE + 1 + PIECE);
    expect_whole(1, 10 * PIECE + 1);
    expect_whole(2, PIECE + 1);
}

static void a_bad_piece_fails_its_file_alone(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;
    const struct err *why;
    const char *target;

    store.bad_file = 3;
    start(b);
    for (int i = 0; i < 8; i++)
        assert_true(add(b, ITEM_COPY, i, 20 * PIECE));
    totals = finish(b);
    assert_int_equal(totals.files, 7);
    assert_int_equal(totals.failed, 1);
    assert_int_equal(store.files[3].finishes, 0);
    assert_true(transfer_failure(b->transfer, 0, &target, &why));
    assert_string_equal(target, "3");
    assert_string_equal(why->msg, "it has changed meanwhile");
    assert_false(transfer_failure(b->transfer, 1, &target, &why));
    assert_null(transfer_gave_up(b->transfer));
}

static void an_end_that_fails_is_a_failure(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    store.fails_finish = true;
    start(b);
    assert_true(add(b, ITEM_COPY, 0, 3 * PIECE));
    totals = finish(b);
    assert_int_equal(totals.files, 0);
    assert_int_equal(totals.failed, 1);
}

static void it_gives_up_when_nothing_works_any_more(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    store.error = ERR_FORBIDDEN;
    start(b);
    for (int i = 0; i < MOST_FILES && add(b, ITEM_COPY, i, 1); i++)
        ;
    totals = finish(b);
    assert_string_equal(transfer_gave_up(b->transfer), "it does not work");
    assert_in_range(totals.failed, 32, 40);
}

static void single_refusals_do_not_make_it_give_up(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    store.error = ERR_INVALID; /* bad names, say */
    start(b);
    for (int i = 0; i < 100; i++)
        assert_true(add(b, ITEM_COPY, i, 1));
    totals = finish(b);
    assert_null(transfer_gave_up(b->transfer));
    assert_int_equal(totals.failed, 100);
}

static void stopping_ends_it_with_a_full_queue(void **state)
{
    struct bench *b = *state;
    int i;

    b->options.cap_mbps = 0.001;
    start(b);
    for (i = 0; i < 100; i++)
        assert_true(add(b, ITEM_COPY, i, 1000));
    transfer_stop(b->transfer);
    assert_false(add(b, ITEM_COPY, i, 1000));
    assert_in_range(finish(b).files, 0, 10);
}

static void what_is_there_is_kept_when_asked(void **state)
{
    struct bench *b = *state;
    struct transfer_totals totals;

    store.look_size = 0;
    b->options.overwrite = OVERWRITE_FALSE;
    start(b);
    assert_true(add(b, ITEM_COPY, 1, 10));
    assert_true(add(b, ITEM_COPY, 2, 10 * PIECE));
    totals = finish(b);
    assert_int_equal(totals.skipped, 2);
    assert_int_equal(atomic_load(&store.reads), 0);
}

static void newer_sources_alone_replace(void **state)
{
    struct bench *b = *state;
    struct facts newer = {.size_bytes = 1, .modified_ns = 11};
    struct transfer_totals totals;

    store.look_size = 0; /* of time 10 */
    b->options.overwrite = OVERWRITE_NEWER;
    start(b);
    assert_true(add(b, ITEM_COPY, 1, 1)); /* of time 5 */
    assert_true(transfer_add(b->transfer, item_new(ITEM_COPY, "2", "2", &newer)));
    totals = finish(b);
    assert_int_equal(totals.skipped, 1);
    assert_int_equal(store.files[2].puts, 1);
}

static bool say_no(void *context, const char *target)
{
    (void)context;
    return str_equal(target, "2");
}

static void the_person_is_asked(void **state)
{
    struct bench *b = *state;
    struct transfer_config config = {
        .source = b->from, .destination = b->to, .options = &b->options, .may_replace = say_no};

    store.look_size = 0;
    b->options.overwrite = OVERWRITE_PROMPT;
    assert_int_equal(transfer_new(&config, &b->transfer, NULL), 0);
    assert_true(add(b, ITEM_COPY, 1, 1));
    assert_true(add(b, ITEM_COPY, 2, 1));
    assert_int_equal(finish(b).skipped, 1);
    assert_int_equal(store.files[1].puts, 0);
    assert_int_equal(store.files[2].puts, 1);
}

static void removing_counts_files(void **state)
{
    struct bench *b = *state;

    start(b);
    for (int i = 0; i < 10; i++)
        assert_true(add(b, ITEM_REMOVE, i, 1));
    assert_int_equal(finish(b).removed, 10);
    assert_int_equal(atomic_load(&store.removes), 10);
}

static void a_cap_slows_it_down(void **state)
{
    struct bench *b = *state;
    struct timespec before, after;

    b->options.cap_mbps = 0.8; /* 100 bytes in a millisecond */
    start(b);
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < 21; i++)
        assert_true(add(b, ITEM_COPY, i, PIECE));
    assert_int_equal(finish(b).files, 21);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000 +
                    (after.tv_nsec - before.tv_nsec) / 1000000 >=
                190);
}

int main(void)
{
#define ON_BENCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_BENCH(small_and_large_files_arrive_whole),
        ON_BENCH(pieces_that_are_there_are_not_sent_again),
        ON_BENCH(a_bad_piece_fails_its_file_alone),
        ON_BENCH(an_end_that_fails_is_a_failure),
        ON_BENCH(it_gives_up_when_nothing_works_any_more),
        ON_BENCH(single_refusals_do_not_make_it_give_up),
        ON_BENCH(stopping_ends_it_with_a_full_queue),
        ON_BENCH(what_is_there_is_kept_when_asked),
        ON_BENCH(newer_sources_alone_replace),
        ON_BENCH(the_person_is_asked),
        ON_BENCH(removing_counts_files),
        ON_BENCH(a_cap_slows_it_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
