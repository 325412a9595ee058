/* Batches: every record once an epoch, whoever asks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/bert-data/bert-data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    T = 6,
    P = 2,
    RECORDS = 23,
};

static char path[64];

/* Record i has id i + 1 in its second place. */
static int write_records(void **state)
{
    const struct bert_shape shape = {T, P, 100};
    struct bert_writer *writer;
    int fd;

    (void)state;
    snprintf(path, sizeof path, "/tmp/yard-loader-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0 || close(fd) < 0 || bert_writer_new(path, &shape, &writer, NULL) < 0)
        return -1;
    for (int32_t i = 0; i < RECORDS; i++) {
        int32_t ids[T] = {90, i + 1, 91, 40, 91}, at[P] = {1}, id[P] = {i + 31};
        struct bert_record r = {5, 3, i % 2, 1, ids, at, id};

        if (bert_writer_add(writer, &r, NULL) < 0)
            return -1;
    }
    if (bert_writer_close(writer, NULL) < 0)
        return -1;
    bert_writer_free(writer);
    return 0;
}

static int remove_records(void **state)
{
    (void)state;
    return unlink(path);
}

static struct bert_loader *loader_of(const struct bert_data *data, struct bert_loader_options o)
{
    struct bert_loader *loader;
    struct err e = {0};

    o.sequence = o.sequence ? o.sequence : T;
    o.predictions = o.predictions ? o.predictions : P;
    o.ranks = o.ranks ? o.ranks : 1;
    if (bert_loader_new(data, &o, &loader, &e) < 0)
        fail_msg("%s", e.msg);
    return loader;
}

static struct bert_data *open_data(void)
{
    struct bert_data *data;

    assert_int_equal(bert_data_open(path, &data, NULL), 0);
    return data;
}

/* A network that takes longer sequences than the shards have. */
static void a_batch_is_what_the_network_takes(void **state)
{
    struct bert_data *data = open_data();
    struct bert_loader *loader = loader_of(
        data, (struct bert_loader_options){.batch = 2, .sequence = 8, .predictions = 3});
    struct bert_batch b;
    const int32_t ids[] = {90, 1, 91, 40, 91, 0, 0, 0, 90, 2, 91, 40, 91, 0, 0, 0};
    const int32_t types[] = {0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0};
    const int32_t mask[] = {1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0};
    const int32_t rows[] = {1, 0, 0, 9, 8, 8}, labels[] = {31, -1, -1, 32, -1, -1};
    const int32_t next[] = {0, 1};

    (void)state;
    assert_int_equal(bert_loader_next(loader, &b, NULL), 0);
    assert_memory_equal(b.ids, ids, sizeof ids);
    assert_memory_equal(b.types, types, sizeof types);
    assert_memory_equal(b.mask, mask, sizeof mask);
    assert_memory_equal(b.rows, rows, sizeof rows);
    assert_memory_equal(b.labels, labels, sizeof labels);
    assert_memory_equal(b.next, next, sizeof next);
    assert_int_equal(b.examples, 2);
    assert_int_equal(b.masked, 2);
    bert_loader_free(loader);
    bert_data_free(data);
}

/* Three ranks, batches of 4, two epochs: each record twice in positions 0..45. */
static void ranks_share_an_epoch(void **state)
{
    struct bert_data *data = open_data();
    int seen[2][RECORDS + 1] = {{0}};
    bool is_in_order = true;

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        struct bert_loader *loader =
            loader_of(data, (struct bert_loader_options){
                                .batch = 4, .rank = rank, .ranks = 3, .is_shuffled = true});
        struct bert_batch b;

        for (int64_t n = 0; n < 4; n++) {
            assert_int_equal(bert_loader_next(loader, &b, NULL), 0);
            for (int64_t i = 0; i < 4; i++) {
                int64_t position = (n * 4 + i) * 3 + rank;

                if (position < 2 * RECORDS)
                    seen[position / RECORDS][b.ids[i * T + 1]]++;
                is_in_order = is_in_order && b.ids[i * T + 1] == position % RECORDS + 1;
            }
        }
        bert_loader_free(loader);
    }
    for (int i = 1; i <= RECORDS; i++) {
        assert_int_equal(seen[0][i], 1);
        assert_int_equal(seen[1][i], 1);
    }
    assert_false(is_in_order);
    bert_data_free(data);
}

static void a_run_that_resumes_sees_the_same(void **state)
{
    struct bert_data *data = open_data();
    struct bert_loader_options o = {.batch = 5, .seed = 3, .is_shuffled = true};
    struct bert_loader *whole = loader_of(data, o), *rest;
    struct bert_batch a, b;

    (void)state;
    for (int i = 0; i < 7; i++)
        assert_int_equal(bert_loader_next(whole, &a, NULL), 0);
    o.first_batch = 7;
    rest = loader_of(data, o);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bert_loader_next(whole, &a, NULL), 0);
        assert_int_equal(bert_loader_next(rest, &b, NULL), 0);
        assert_memory_equal(a.ids, b.ids, sizeof(int32_t) * 5 * T);
        assert_int_equal(a.number, b.number);
        assert_int_equal(a.epoch, b.epoch);
    }
    bert_loader_free(whole);
    bert_loader_free(rest);
    bert_data_free(data);
}

static void one_epoch_ends_with_padding(void **state)
{
    struct bert_data *data = open_data();
    struct bert_loader *loader =
        loader_of(data, (struct bert_loader_options){.batch = 10, .is_once = true});
    const int64_t examples[] = {10, 10, 3, 0, 0};
    struct bert_batch b;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
        assert_int_equal(bert_loader_next(loader, &b, NULL), 0);
        assert_int_equal(b.examples, examples[i]);
        assert_int_equal(b.masked, examples[i]);
        for (int64_t n = b.examples; n < 10; n++) {
            assert_int_equal(b.next[n], -1);
            assert_int_equal(b.labels[n * P], -1);
            assert_int_equal(b.rows[n * P], n * T);
        }
    }
    bert_loader_free(loader);
    bert_data_free(data);
}

static void batches_stay_for_two_more(void **state)
{
    struct bert_data *data = open_data();
    struct bert_loader *loader =
        loader_of(data, (struct bert_loader_options){.batch = 1, .is_shuffled = true});
    struct bert_batch a, b, c;
    int32_t id;

    (void)state;
    assert_int_equal(bert_loader_next(loader, &a, NULL), 0);
    id = a.ids[1];
    assert_int_equal(bert_loader_next(loader, &b, NULL), 0);
    assert_int_equal(bert_loader_next(loader, &c, NULL), 0);
    assert_int_equal(a.ids[1], id);
    bert_loader_free(loader);
    bert_data_free(data);
}

static void a_network_that_is_too_small_is_told(void **state)
{
    struct bert_data *data = open_data();
    struct bert_loader_options o = {
        .batch = 1, .sequence = T - 1, .predictions = P, .ranks = 1};
    struct bert_loader *loader;
    struct err e = {0};

    (void)state;
    assert_int_equal(bert_loader_new(data, &o, &loader, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.msg, "6 tokens, the network takes 5"));
    o.sequence = T;
    o.predictions = 1;
    assert_int_equal(bert_loader_new(data, &o, &loader, &e), -1);
    assert_non_null(strstr(e.msg, "2 masked tokens"));
    bert_data_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_what_the_network_takes),
        cmocka_unit_test(ranks_share_an_epoch),
        cmocka_unit_test(a_run_that_resumes_sees_the_same),
        cmocka_unit_test(one_epoch_ends_with_padding),
        cmocka_unit_test(batches_stay_for_two_more),
        cmocka_unit_test(a_network_that_is_too_small_is_told),
    };

    return cmocka_run_group_tests(tests, write_records, remove_records);
}
