/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

static void checksums_are_those_of_what_came(void **state)
{
    struct scene *s = *state;

    for (int expected = 0; expected < 4; expected++) {
        autoptr(upload) upload = NULL;

        assert_int_equal(upload_begin(s->blobs, ACCOUNT, CONTAINER, &upload, &s->e), 0);
        upload_expect(upload, expected & 1, expected & 2);
        assert_int_equal(upload_write(upload, "12345", 5, &s->e), 0);
        assert_int_equal(upload_write(upload, "6789", 4, &s->e), 0);
        assert_int_equal(upload_size(upload), 9);
        assert_string_equal(upload_crc64(upload), "iJh5CoYUi64=");
        assert_string_equal(upload_md5(upload), "JfnnlDI7RTiF9RgfG2JNCw==");
        assert_string_equal(upload_md5(upload), "JfnnlDI7RTiF9RgfG2JNCw==");
    }
}

static void a_wrong_checksum_is_refused_by_its_kind(void **state)
{
    static const struct {
        const char *md5, *crc, *reason; /* NULL = taken */
    } table[] = {
        {NULL, NULL, NULL},
        {"JfnnlDI7RTiF9RgfG2JNCw==", NULL, NULL},
        {NULL, "iJh5CoYUi64=", NULL},
        {"JfnnlDI7RTiF9RgfG2JNCA==", NULL, "Md5Mismatch"},
        {"too short", NULL, "InvalidMd5"},
        {"JfnnlDI7", NULL, "InvalidMd5"},
        {NULL, "iJh5CoYUi60=", "Crc64Mismatch"},
        {NULL, "!", "InvalidHeaderValue"},
    };
    struct scene *s = *state;
    autoptr(upload) upload = upload_of(s, "123456789");

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        int rc = upload_check(upload, table[i].md5, table[i].crc, &s->e);

        assert_int_equal(rc, table[i].reason ? -1 : 0);
        if (table[i].reason)
            assert_string_equal(err_reason_of(&s->e), table[i].reason);
    }
}

static void copying_takes_any_span_to_any_place(void **state)
{
    struct scene *s = *state;
    autoptr(upload) from = upload_of(s, "0123456789");
    autoptr(upload) to = upload_of(s, "..........");
    auto_free char *text = NULL;

    assert_int_equal(copy_range(upload_fd(from), 3, upload_fd(to), 5, 4, &s->e), 0);
    text = read_fd(upload_fd(to), 10);
    assert_string_equal(text, ".....3456.");
    /* More than there is: the source became shorter. */
    assert_int_equal(copy_range(upload_fd(from), 8, upload_fd(to), 0, 4, &s->e), -1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(checksums_are_those_of_what_came),
        TEST(a_wrong_checksum_is_refused_by_its_kind),
        TEST(copying_takes_any_span_to_any_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
