/* Shards: written, read again, damaged in every byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data-internal.h"
#include "train/record/tfrecord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct bert_shape shape = {8, 3, 50};

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/yard-bert-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"a.bert", "b.bert", "c.bert", "text"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = xasprintf("%s/%s", folder, names[i]);

        unlink(path);
    }
    return rmdir(folder);
}

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

/* Record i of a shard that begins with `first`. */
static struct bert_record record_of(int32_t i, int32_t ids[8], int32_t at[3], int32_t id[3])
{
    for (int32_t j = 0; j < 8; j++)
        ids[j] = (i * 7 + j) % 50;
    for (int32_t j = 0; j < 3; j++) {
        at[j] = 1 + j;
        id[j] = (i + j) % 50;
    }
    return (struct bert_record){.length = 4 + i % 5,
                                .second = 2 + i % 3,
                                .next = i % 2,
                                .masked = i % 4,
                                .ids = ids,
                                .masked_at = at,
                                .masked_id = id};
}

static void write_shard(const char *name, const struct bert_shape *of, int32_t first, int count)
{
    auto_free char *path = path_of(name);
    struct bert_writer *writer;
    int32_t ids[8], at[3], id[3];

    assert_int_equal(bert_writer_new(path, of, &writer, NULL), 0);
    for (int32_t i = first; i < first + count; i++) {
        struct bert_record r = record_of(i, ids, at, id);

        assert_int_equal(bert_writer_add(writer, &r, NULL), 0);
    }
    assert_int_equal(bert_writer_close(writer, NULL), 0);
    bert_writer_free(writer);
}

static void check_record(const struct bert_data *data, int32_t number, int32_t i)
{
    int32_t ids[8], at[3], id[3];
    struct bert_record want = record_of(i, ids, at, id), got;

    assert_int_equal(bert_data_at(data, number, &got, NULL), 0);
    assert_int_equal(got.length, want.length);
    assert_int_equal(got.second, want.second);
    assert_int_equal(got.next, want.next);
    assert_int_equal(got.masked, want.masked);
    assert_memory_equal(got.ids, ids, (size_t)want.length * 4);
    for (int64_t j = want.length; j < shape.sequence; j++)
        assert_int_equal(got.ids[j], 0);
    assert_memory_equal(got.masked_at, at, (size_t)want.masked * 4);
    assert_memory_equal(got.masked_id, id, (size_t)want.masked * 4);
}

static void what_was_written_is_read(void **state)
{
    struct bert_data_facts facts;
    struct bert_data *data;
    struct bert_record r;

    (void)state;
    write_shard("b.bert", &shape, 5, 4);
    write_shard("a.bert", &shape, 0, 5);
    write_shard("c.bert", &shape, 9, 0); /* an empty one is sound */
    assert_int_equal(bert_data_open(folder, &data, NULL), 0);
    bert_data_facts(data, &facts);
    assert_int_equal(facts.records, 9);
    assert_int_equal(facts.shards, 3);
    assert_int_equal(facts.shape.vocabulary, 50);
    for (int32_t i = 0; i < 9; i++)
        check_record(data, i, i); /* in order of names */
    assert_int_equal(bert_data_at(data, 9, &r, NULL), -1);
    assert_int_equal(bert_data_at(data, -1, &r, NULL), -1);
    bert_data_free(data);
}

/* The bytes of the table in bert-data.h, written by hand. */
static void the_form_is_the_one_of_the_table(void **state)
{
    auto_free char *path = path_of("a.bert");
    auto_str file = {0};
    int32_t words[20];

    (void)state;
    write_shard("a.bert", &shape, 6, 1);
    assert_int_equal(fs_read(path, 1 << 20, &file, NULL), 0);
    assert_int_equal(file.len, 64 + 4 * (5 + 8 + 6));
    assert_memory_equal(file.data, "yardbert\1\0\0\0\10\0\0\0\3\0\0\0\62\0\0\0\1\0\0\0\0\0\0\0",
                        32);
    memcpy(words, file.data + 64, 4 * 19);
    assert_int_equal(words[0], 5);      /* length: 4 + 6 % 5 */
    assert_int_equal(words[1], 2);      /* second */
    assert_int_equal(words[2], 0);      /* next */
    assert_int_equal(words[3], 2);      /* masked */
    assert_int_equal(words[4], 42);     /* ids */
    assert_int_equal(words[9], 0);      /* padding */
    assert_int_equal(words[4 + 8], 1);  /* masked_at */
    assert_int_equal(words[4 + 10], 0); /* of those there are two */
    assert_int_equal(words[4 + 11], 6); /* masked_id */
    assert_int_equal((uint32_t)words[18], crc32c(0, words, 72));
}

static void a_record_that_does_not_fit_is_not_written(void **state)
{
    int32_t ids[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, bad_ids[9] = {1, 50}, at[4] = {1, 2, 3, 4};
    int32_t same[3] = {1, 1, 2}, beyond[3] = {1, 2, 8}, id[4] = {0};
    const struct bert_record bad[] = {
        {1, 1, 0, 0, ids, at, id},      {9, 1, 0, 0, ids, at, id},
        {4, 0, 0, 0, ids, at, id},      {4, 5, 0, 0, ids, at, id},
        {4, 2, 2, 0, ids, at, id},      {4, 2, 0, 4, ids, at, id},
        {4, 2, 0, 0, bad_ids, at, id},  {8, 2, 0, 3, ids, same, id},
        {8, 2, 0, 3, ids, beyond, id},  {8, 2, 0, -1, ids, at, id},
        {4, 2, 0, 3, ids, at, bad_ids},
    };
    auto_free char *path = path_of("a.bert");
    struct bert_writer *writer;
    struct stat st;

    (void)state;
    unlink(path);
    assert_int_equal(bert_writer_new(path, &shape, &writer, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};

        assert_int_equal(bert_writer_add(writer, &bad[i], &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
    bert_writer_free(writer); /* without a close */
    assert_int_equal(stat(path, &st), -1);
}

static void put_byte(const char *path, size_t at, char byte)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc(byte, file), (unsigned char)byte);
    assert_int_equal(fclose(file), 0);
}

/* Whatever byte is another: the shard is refused, or the record. */
static void every_changed_byte_is_seen(void **state)
{
    auto_free char *path = path_of("a.bert");
    auto_str file = {0};

    (void)state;
    write_shard("a.bert", &shape, 0, 2);
    assert_int_equal(fs_read(path, 1 << 20, &file, NULL), 0);
    for (size_t i = 0; i < file.len; i++) {
        struct bert_data *data;
        struct bert_record r;
        struct err e = {0};

        put_byte(path, i, (char)(file.data[i] ^ 0x20));
        if (bert_data_open(path, &data, &e) < 0) {
            assert_true(i < 64);
        } else {
            int64_t in = (int64_t)((i - 64) / (4 * 19));

            assert_true(i >= 64);
            assert_int_equal(bert_data_at(data, 1 - in, &r, &e), 0);
            assert_int_equal(bert_data_at(data, in, &r, &e), -1);
            bert_data_free(data);
        }
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, "a.bert"));
        put_byte(path, i, file.data[i]);
    }
}

static void what_is_no_shard_is_told_apart(void **state)
{
    const struct bert_shape other = {8, 3, 51};
    auto_free char *path = path_of("a.bert"), *text = path_of("text");
    struct bert_data *data;
    struct err e = {0};

    (void)state;
    assert_int_equal(bert_data_open("/nowhere/at/all", &data, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    remove_folder(NULL);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(bert_data_open(folder, &data, &e), -1);
    assert_non_null(strstr(e.msg, "there are no shards"));
    assert_int_equal(fs_write_durably(text, "hello", 5, 0600, NULL), 0);
    assert_int_equal(bert_data_open(text, &data, &e), -1);
    assert_non_null(strstr(e.msg, "it has 5 bytes"));
    write_shard("a.bert", &shape, 0, 2);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(bert_data_open(folder, &data, &e), -1);
    assert_non_null(strstr(e.msg, "not the 2 records"));
    write_shard("a.bert", &shape, 0, 2);
    write_shard("b.bert", &other, 0, 2);
    assert_int_equal(bert_data_open(folder, &data, &e), -1);
    assert_non_null(strstr(e.msg, "a.bert"));
    assert_non_null(strstr(e.msg, "b.bert"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(the_form_is_the_one_of_the_table),
        cmocka_unit_test(a_record_that_does_not_fit_is_not_written),
        cmocka_unit_test(every_changed_byte_is_seen),
        cmocka_unit_test(what_is_no_shard_is_told_apart),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
