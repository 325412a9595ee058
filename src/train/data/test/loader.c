/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/loader.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    COUNT = 23, /* examples; a prime, so that nothing divides evenly */
    SIDE = 4,
    PIXELS = SIDE * SIDE,
};

static const struct decode_options decode = {
    .height = SIDE, .width = SIDE, .channels = 1, .is_training = true};

static void put(const char *folder, const char *name, const struct str *bytes)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    assert_int_equal(fs_write_durably(path, bytes->data, bytes->len, 0600, NULL), 0);
}

/* MNIST files in which picture i is all i, labels i % 10; `bad` gets a label that is none. */
static void make_files(const char *folder, const char *split, int bad)
{
    auto_str images = {0}, labels = {0};
    auto_free char *images_name = xasprintf("%s-images-idx3-ubyte", split);
    auto_free char *labels_name = xasprintf("%s-labels-idx1-ubyte", split);

    str_add_len(&images, "\0\0\x08\x03\0\0\0\x17\0\0\0\x04\0\0\0\x04", 16);
    str_add_len(&labels, "\0\0\x08\x01\0\0\0\x17", 8);
    for (int i = 0; i < COUNT; i++) {
        for (int p = 0; p < PIXELS; p++)
            str_add_char(&images, (char)i);
        str_add_char(&labels, i == bad ? 99 : (char)(i % 10));
    }
    put(folder, images_name, &images);
    put(folder, labels_name, &labels);
}

struct yard {
    char folder[32];
    struct dataset *dataset;
};

static struct yard open_yard(enum dataset_split split, int bad)
{
    struct yard y = {.folder = "/tmp/yard-loader-XXXXXX"};
    struct dataset_options o = {.folder = y.folder, .split = split, .seed = 5};

    assert_non_null(mkdtemp(y.folder));
    make_files(y.folder, split == DATASET_TRAIN ? "train" : "t10k", bad);
    assert_int_equal(dataset_open(&o, &y.dataset, NULL), 0);
    return y;
}

static void close_yard(struct yard *y)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

    dataset_free(y->dataset);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = xasprintf("%s/%s", y->folder, names[i]);

        unlink(path);
    }
    rmdir(y->folder);
}

/* The first pixels of the next batches: which examples they are. */
static void take(struct loader *loader, int batches, int size, int *ret_examples)
{
    for (int b = 0; b < batches; b++) {
        struct batch batch;

        assert_int_equal(loader_next(loader, &batch, NULL), 0);
        for (int i = 0; i < size; i++) {
            ret_examples[b * size + i] = ((const uint8_t *)batch.images)[i * PIXELS];
            assert_int_equal(batch.labels[i], ret_examples[b * size + i] % 10);
        }
        loader_release(loader, &batch);
    }
}

static struct loader *start(const struct yard *y, struct loader_options o)
{
    struct loader *loader;

    o.decode = decode;
    o.seed = 5;
    o.is_shuffled = true;
    o.most_corrupt = o.most_corrupt ? o.most_corrupt : 3;
    o.ranks = o.ranks ? o.ranks : 1;
    assert_int_equal(loader_new(y->dataset, &o, &loader, NULL), 0);
    return loader;
}

static void an_epoch_has_every_example_once(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, -1);
    struct loader *loader = start(&y, (struct loader_options){.batch = 1, .threads = 3});
    int first[COUNT], second[COUNT], seen[COUNT] = {0};

    (void)state;
    take(loader, COUNT, 1, first);
    take(loader, COUNT, 1, second);
    for (int i = 0; i < COUNT; i++)
        seen[first[i]]++;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(seen[i], 1);
    assert_memory_not_equal(first, second, sizeof(first)); /* another order */
    loader_free(loader);
    close_yard(&y);
}

static void order_does_not_depend_on_threads_or_on_where_it_begins(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, -1);
    struct loader *one = start(&y, (struct loader_options){.batch = 5, .threads = 1});
    struct loader *many =
        start(&y, (struct loader_options){.batch = 5, .threads = 4, .ahead = 6});
    struct loader *later =
        start(&y, (struct loader_options){.batch = 5, .threads = 2, .first_batch = 7});
    int a[100], b[100], c[65];

    (void)state;
    take(one, 20, 5, a);
    take(many, 20, 5, b);
    take(later, 13, 5, c);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_equal(a + 35, c, sizeof(c));
    loader_free(one);
    loader_free(many);
    loader_free(later);
    close_yard(&y);
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void ranks_share_what_one_rank_would_see(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, -1);
    struct loader *whole = start(&y, (struct loader_options){.batch = 6});
    int all[6 * 8], parts[6 * 8];

    (void)state;
    take(whole, 8, 6, all);
    for (int r = 0; r < 3; r++) {
        struct loader *part =
            start(&y, (struct loader_options){.batch = 2, .rank = r, .ranks = 3});
        int mine[2 * 8];

        take(part, 8, 2, mine);
        for (int b = 0; b < 8; b++)
            memcpy(parts + 6 * b + 2 * r, mine + 2 * b, 2 * sizeof(int));
        loader_free(part);
    }
    for (int b = 0; b < 8; b++) {
        qsort(all + 6 * b, 6, sizeof(int), by_value);
        qsort(parts + 6 * b, 6, sizeof(int), by_value);
    }
    assert_memory_equal(all, parts, sizeof(all));
    loader_free(whole);
    close_yard(&y);
}

static void an_evaluation_counts_each_example_once(void **state)
{
    struct yard y = open_yard(DATASET_EVAL, 4);
    struct loader_options o = {
        .batch = 10, .ranks = 1, .decode = decode, .most_corrupt = 1, .threads = 2};
    struct loader *loader;
    int counted = 0, batches = 0;

    (void)state;
    o.decode.is_training = false;
    assert_int_equal(loader_new(y.dataset, &o, &loader, NULL), 0);
    for (;; batches++) {
        struct batch batch;

        assert_int_equal(loader_next(loader, &batch, NULL), 0);
        if (!batch.examples)
            break;
        for (int i = 0; i < 10; i++)
            counted += batch.labels[i] >= 0;
        loader_release(loader, &batch);
    }
    assert_int_equal(batches, 3);
    assert_int_equal(counted, COUNT - 1); /* the corrupt one counts nowhere */
    assert_int_equal(loader_corrupt(loader), 1);
    loader_free(loader);
    close_yard(&y);
}

static void a_corrupt_example_is_replaced_and_counted_once(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, 4);
    struct loader *loader = start(&y, (struct loader_options){.batch = 1, .threads = 2});
    int examples[3 * COUNT];

    (void)state;
    take(loader, 3 * COUNT, 1, examples);
    for (int i = 0; i < 3 * COUNT; i++)
        assert_int_not_equal(examples[i], 4);
    assert_int_equal(loader_corrupt(loader), 1);
    loader_free(loader);
    close_yard(&y);
}

static void too_many_corrupt_ones_fail_with_a_name(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, 4);
    struct loader_options o = {.batch = COUNT, .ranks = 1, .decode = decode};
    struct loader *loader;
    struct batch batch;
    struct err e;

    (void)state;
    assert_int_equal(loader_new(y.dataset, &o, &loader, NULL), 0);
    assert_int_equal(loader_next(loader, &batch, &e), -1);
    assert_non_null(strstr(e.msg, "train-labels-idx1-ubyte, offset 12: label 99"));
    loader_free(loader);
    close_yard(&y);
}

static void synthetic_data_are_the_originals_kind(void **state)
{
    struct dataset_options d = {.name = "cifar10"};
    struct loader_options o = {.batch = 8, .ranks = 1, .decode = decode, .seed = 9};
    struct dataset *dataset;
    struct loader *loader;
    struct batch batch, again;
    double sum = 0;

    (void)state;
    assert_int_equal(dataset_open(&d, &dataset, NULL), 0);
    assert_int_equal(loader_new(dataset, &o, &loader, NULL), 0);
    assert_int_equal(loader_next(loader, &batch, NULL), 0);
    assert_true(batch.is_float && !batch.is_same);
    for (int i = 0; i < 8 * PIXELS; i++) {
        float x = ((const float *)batch.images)[i];

        assert_true(x >= 127 - 120 && x <= 127 + 120); /* two standard deviations */
        sum += (double)x;
    }
    assert_true(sum / (8 * PIXELS) > 107 && sum / (8 * PIXELS) < 147);
    for (int i = 0; i < 8; i++)
        assert_true(batch.labels[i] >= 0 && batch.labels[i] < 9);
    assert_int_equal(loader_next(loader, &again, NULL), 0);
    assert_true(again.is_same && again.images == batch.images);
    loader_free(loader);
    dataset_free(dataset);
}

static void one_batch_can_be_repeated(void **state)
{
    struct yard y = open_yard(DATASET_TRAIN, -1);
    struct loader *loader =
        start(&y, (struct loader_options){.batch = 4, .repeats_sample = true});
    struct batch first, second;

    (void)state;
    assert_int_equal(loader_next(loader, &first, NULL), 0);
    loader_release(loader, &first);
    assert_int_equal(loader_next(loader, &second, NULL), 0);
    assert_false(first.is_same);
    assert_true(second.is_same);
    assert_ptr_equal(first.images, second.images);
    loader_free(loader);
    close_yard(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_has_every_example_once),
        cmocka_unit_test(order_does_not_depend_on_threads_or_on_where_it_begins),
        cmocka_unit_test(ranks_share_what_one_rank_would_see),
        cmocka_unit_test(an_evaluation_counts_each_example_once),
        cmocka_unit_test(a_corrupt_example_is_replaced_and_counted_once),
        cmocka_unit_test(too_many_corrupt_ones_fail_with_a_name),
        cmocka_unit_test(synthetic_data_are_the_originals_kind),
        cmocka_unit_test(one_batch_can_be_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
