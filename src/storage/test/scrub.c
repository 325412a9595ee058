/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

static char *findings(struct scene *s)
{
    struct str out = {0};

    if (blobs_scrub(s->blobs, note_finding, &out, &s->e) < 0)
        fail_msg("%s", s->e.msg);
    return str_take(&out);
}

static void a_sound_store_has_no_findings(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");

    put_text(s, "a", "1");
    put_text(s, "a", "2");
    put_text(s, "x//y", "3");
    plant(s, "tree/by-mount", "4");
    assert_int_equal(blobs_snapshot(s->blobs, &at, NULL, NULL, NULL, &s->e), 0);
    assert_sound(s);
}

static void each_fault_is_found(void **state)
{
    struct scene *s = *state;
    auto_free char *gone = scene_path(s, "tree/gone"), *got = NULL;

    put_text(s, "gone", "1");
    put_text(s, "changed", "1");
    assert_int_equal(unlink(gone), 0);
    plant(s, "tree/changed", "longer");
    plant(s, "odd/stray", "1");
    plant(s, "snap/stray", "1");
    got = findings(s);
    assert_string_equal(got, "size differs from the row: acct/con/changed\n"
                             "row without a file: acct/con/gone\n"
                             "file without a row: acct/con:odd/stray\n"
                             "file without a row: acct/con:snap/stray\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_sound_store_has_no_findings),
        TEST(each_fault_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
