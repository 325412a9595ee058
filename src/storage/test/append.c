/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <sys/xattr.h>

static void create(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    const struct blob_put put = {0};

    assert_int_equal(blobs_create(s->blobs, &at, BLOB_APPEND, 0, &put, NULL, NULL, &s->e), 0);
}

static int
append_if(struct scene *s, const char *name, const char *text, int64_t most, int64_t at)
{
    const struct blob_address address = at_name(name);
    autoptr(upload) upload = upload_of(s, text);
    int64_t offset = -1;

    return blobs_append(s->blobs, &address, upload, most, at, NULL, NULL, &offset, &s->e) < 0
               ? -1
               : (int)offset;
}

static void blocks_are_added_at_the_end(void **state)
{
    struct scene *s = *state;
    autoptr(blob) blob = NULL;

    create(s, "log");
    assert_int_equal(append_if(s, "log", "one ", -1, -1), 0);
    assert_int_equal(append_if(s, "log", "two ", -1, 4), 4);
    assert_int_equal(append_if(s, "log", "three", 13, -1), 8);
    assert_text(s, "log", "one two three");
    blob = find(s, "log");
    assert_int_equal(blob->block_count, 3);
    scene_reopen(s);
    assert_text(s, "log", "one two three");
    assert_sound(s);
}

static void conditions_of_place_and_size_are_judged(void **state)
{
    struct scene *s = *state;

    create(s, "log");
    assert_int_equal(append_if(s, "log", "12345", -1, -1), 0);
    assert_refused(s, append_if(s, "log", "x", -1, 4), "AppendPositionConditionNotMet");
    assert_refused(s, append_if(s, "log", "x", 5, -1), "MaxBlobSizeConditionNotMet");
    assert_refused(s, append_if(s, "none", "x", -1, -1), "BlobNotFound");
    put_text(s, "block", "1");
    assert_refused(s, append_if(s, "block", "x", -1, -1), "InvalidBlobType");
    assert_text(s, "log", "12345");
}

static void each_append_has_its_own_etag_which_holds(void **state)
{
    struct scene *s = *state;
    autoptr(blob) first = NULL, *second = NULL, *again = NULL;

    create(s, "log");
    append_if(s, "log", "1", -1, -1);
    first = find(s, "log");
    append_if(s, "log", "2", -1, -1);
    second = find(s, "log");
    again = find(s, "log");
    assert_string_not_equal(first->etag, second->etag);
    assert_string_equal(second->etag, again->etag);
}

/* What a crash between the bytes and the row leaves. */
static void tear(struct scene *s, const char *from_to, const char *tail)
{
    auto_free char *path = scene_path(s, "tree/log");
    int fd = open(path, O_WRONLY | O_APPEND);

    assert_true(fd >= 0);
    if (from_to)
        assert_int_equal(fsetxattr(fd, "user.yard.append", from_to, strlen(from_to), 0), 0);
    assert_int_equal(write(fd, tail, strlen(tail)), strlen(tail));
    close(fd);
}

static void a_torn_append_is_not_shown_and_cut_off_by_the_next(void **state)
{
    struct scene *s = *state;
    autoptr(blob) before = NULL, *after = NULL;

    create(s, "log");
    append_if(s, "log", "12345", -1, -1);
    before = find(s, "log");
    tear(s, "5 10", "67");
    assert_text(s, "log", "12345");
    after = find(s, "log");
    assert_string_equal(before->etag, after->etag);
    assert_sound(s);
    auto_free char *names = list_all(s, "", "", 10, false);
    assert_string_equal(names, "log\n");
    assert_int_equal(append_if(s, "log", "abc", -1, 5), 5);
    assert_text(s, "log", "12345abc");
}

/* What dying between the time and the first byte leaves; began_s: before now. */
static void touch_after_mark(struct scene *s, int began_s)
{
    auto_free char *path = scene_path(s, "tree/log");
    struct timespec now;
    auto_free char *text = NULL;
    int fd = open(path, O_WRONLY);

    clock_gettime(CLOCK_REALTIME, &now);
    text = xasprintf("5 10 %lld", (long long)(now.tv_sec - began_s) * 1000000000 + now.tv_nsec);
    assert_true(fd >= 0);
    assert_int_equal(fsetxattr(fd, APPEND_ATTRIBUTE, text, strlen(text), 0), 0);
    assert_int_equal(futimens(fd, NULL), 0);
    close(fd);
}

static void an_append_that_died_before_its_first_byte_leaves_the_etag(void **state)
{
    struct scene *s = *state;
    autoptr(blob) before = NULL, *torn = NULL, *touched = NULL;

    create(s, "log");
    append_if(s, "log", "12345", -1, -1);
    before = find(s, "log");
    touch_after_mark(s, 0);
    torn = find(s, "log");
    assert_string_equal(before->etag, torn->etag);
    touch_after_mark(s, 3600); /* that was somebody else */
    touched = find(s, "log");
    assert_string_not_equal(before->etag, touched->etag);
}

static void what_a_mount_added_is_shown_and_kept(void **state)
{
    struct scene *s = *state;

    create(s, "log");
    append_if(s, "log", "12345", -1, -1);
    tear(s, NULL, " by mount"); /* the attribute says 0 5: that one came through */
    assert_text(s, "log", "12345 by mount");
    assert_int_equal(append_if(s, "log", "!", -1, -1), 14);
    assert_text(s, "log", "12345 by mount!");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(blocks_are_added_at_the_end),
        TEST(conditions_of_place_and_size_are_judged),
        TEST(each_append_has_its_own_etag_which_holds),
        TEST(a_torn_append_is_not_shown_and_cut_off_by_the_next),
        TEST(an_append_that_died_before_its_first_byte_leaves_the_etag),
        TEST(what_a_mount_added_is_shown_and_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
