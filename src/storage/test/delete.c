/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

static void a_deleted_blob_is_gone_and_stays_gone(void **state)
{
    struct scene *s = *state;

    put_text(s, "a/b", "1");
    put_text(s, "x//y", "2");
    assert_int_equal(delete_name(s, "a/b"), 0);
    assert_int_equal(delete_name(s, "x//y"), 0);
    assert_refused(s, delete_name(s, "a/b"), "BlobNotFound");
    scene_reopen(s);
    assert_text(s, "a/b", NULL);
    assert_text(s, "x//y", NULL);
    assert_sound(s);
}

static void a_file_without_a_row_is_deleted_too(void **state)
{
    struct scene *s = *state;

    plant(s, "tree/by-mount", "1");
    assert_int_equal(delete_name(s, "by-mount"), 0);
    assert_false(is_there(s, "tree/by-mount"));
}

static void a_folder_is_no_blob_to_delete(void **state)
{
    struct scene *s = *state;

    put_text(s, "a/b", "1");
    assert_refused(s, delete_name(s, "a"), "BlobNotFound");
    assert_text(s, "a/b", "1");
}

static void conditions_are_judged(void **state)
{
    struct scene *s = *state;
    const struct conditions other = {.if_match = "\"0x1\""};
    const struct blob_address at = at_name("a");

    put_text(s, "a", "1");
    assert_refused(s, blobs_delete(s->blobs, &at, SNAPSHOTS_REFUSE, &other, &s->e),
                   "ConditionNotMet");
    assert_text(s, "a", "1");
}

static void a_new_blob_of_the_name_has_nothing_of_the_old(void **state)
{
    struct scene *s = *state;
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"}};
    const struct blob_address at = at_name("a");
    autoptr(upload) upload = upload_of(s, "old");
    autoptr(blob) blob = NULL;

    assert_int_equal(blobs_put(s->blobs, &at, upload, &put, NULL, NULL, &s->e), 0);
    assert_int_equal(delete_name(s, "a"), 0);
    put_text(s, "a", "new");
    blob = find(s, "a");
    assert_null(blob->headers.content_type);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_deleted_blob_is_gone_and_stays_gone),
        TEST(a_file_without_a_row_is_deleted_too),
        TEST(a_folder_is_no_blob_to_delete),
        TEST(conditions_are_judged),
        TEST(a_new_blob_of_the_name_has_nothing_of_the_old),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
