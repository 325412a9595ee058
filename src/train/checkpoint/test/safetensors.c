/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/safetensors.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/checkpoint/safetensors-internal.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int fill(void *arg, int index, void *data, size_t bytes, struct err *e)
{
    const float *const *values = arg;

    (void)e;
    memcpy(data, values[index], bytes);
    return 0;
}

static int fail_second(void *arg, int index, void *data, size_t bytes, struct err *e)
{
    return index ? err_set(e, ERR_NO_SPACE, "no") : fill(arg, index, data, bytes, e);
}

static const float a_values[] = {1, 2, 3, 4, 5, 6}, b_values[] = {7};
static const struct safetensor described[] = {
    {.name = "a.weight", .dtype = "F32", .dims = 2, .dim = {2, 3}, .bytes = 24},
    {.name = "b", .dtype = "F32", .dims = 0, .bytes = 4},
};
static const struct safetensors_pair pairs[] = {{"model", "le\"net"}};

struct folder {
    char path[40];
    char file[64];
};

static struct folder make_folder(void)
{
    struct folder f = {.path = "/tmp/yard-safetensors-XXXXXX"};

    assert_non_null(mkdtemp(f.path));
    snprintf(f.file, sizeof(f.file), "%s/x", f.path);
    return f;
}

static void what_is_written_reads_back(void **state)
{
    const float *values[] = {a_values, b_values};
    struct folder f = make_folder();
    autoptr(safetensors) file = NULL;
    const struct safetensor *t;

    (void)state;
    assert_int_equal(safetensors_write(f.file, described, 2, pairs, 1, fill, values, NULL), 0);
    assert_int_equal(safetensors_open(f.file, &file, NULL), 0);
    assert_int_equal(safetensors_count(file), 2);
    t = safetensors_find(file, "a.weight");
    assert_int_equal(t->dims, 2);
    assert_int_equal(t->dim[1], 3);
    assert_memory_equal(t->data, a_values, sizeof(a_values));
    assert_memory_equal(safetensors_find(file, "b")->data, b_values, sizeof(b_values));
    assert_string_equal(safetensors_meta(file, "model"), "le\"net");
    assert_null(safetensors_meta(file, "other"));
    assert_null(safetensors_find(file, "c"));
    unlink(f.file);
    rmdir(f.path);
}

static void a_failed_write_leaves_the_old_file_alone(void **state)
{
    const float *values[] = {a_values, b_values};
    struct folder f = make_folder();
    autoptr(safetensors) file = NULL;
    struct err e;

    (void)state;
    assert_int_equal(safetensors_write(f.file, described, 2, pairs, 1, fill, values, NULL), 0);
    assert_int_equal(safetensors_write(f.file, described, 2, pairs, 1, fail_second, values, &e),
                     -1);
    assert_int_equal(e.code, ERR_NO_SPACE);
    assert_int_equal(safetensors_open(f.file, &file, NULL), 0);
    unlink(f.file);
    assert_int_equal(rmdir(f.path), 0); /* and no temporary one */
}

/* A file with this header and so many bytes of data. */
static int parse(const char *header, size_t data_bytes, struct err *e)
{
    auto_str bytes = {0};
    uint64_t length = htole64(strlen(header));
    autoptr(safetensors) file = NULL;

    str_add_len(&bytes, &length, sizeof(length));
    str_add(&bytes, header);
    for (size_t i = 0; i < data_bytes; i++)
        str_add_char(&bytes, 'x');
    return safetensors_parse(bytes.data, bytes.len, &file, e);
}

static void headers_are_checked(void **state)
{
    static const struct {
        const char *header;
        size_t data;
        int rc;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, 0},
        {"{}", 0, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[0,0]}}", 0, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, -1},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}",
         0, -1}, /* the product overflows to 0 */
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         2, -1}, /* an overlap and a hole */
        {"{\"__metadata__\":{\"a\":1}}", 0, -1},
        {"[]", 0, -1},
        {"{\"a\":7}", 0, -1},
        {"{", 0, -1},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (parse(cases[i].header, cases[i].data, &e) != cases[i].rc)
            fail_msg("%s with %zu bytes", cases[i].header, cases[i].data);
}

static void files_that_are_none_are_refused(void **state)
{
    uint8_t bytes[16] = {255, 255, 255, 255, 255, 255, 255, 255};
    struct safetensors *file;
    struct err e;

    (void)state;
    assert_int_equal(safetensors_parse(bytes, 0, &file, &e), -1);
    assert_int_equal(safetensors_parse(bytes, 7, &file, &e), -1);
    assert_int_equal(safetensors_parse(bytes, 16, &file, &e), -1);
    assert_int_equal(safetensors_open("/nowhere/x", &file, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_failed_write_leaves_the_old_file_alone),
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(files_that_are_none_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
