/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/json.h"

static char *snapshot(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    autoptr(blob) blob = NULL;

    if (blobs_snapshot(s->blobs, &at, NULL, NULL, &blob, &s->e) < 0)
        fail_msg("%s", s->e.msg);
    return xstrdup(blob->snapshot);
}

static char *text_at(struct scene *s, const char *name, const char *time)
{
    const struct blob_address at = {ACCOUNT, CONTAINER, name, time};
    autoptr(blob) blob = NULL;
    auto_close int fd = -1;

    if (blobs_find(s->blobs, &at, NULL, &blob, &fd, NULL, &s->e) < 0)
        return NULL;
    assert_string_equal(blob->snapshot, time);
    return read_fd(fd, blob->size_bytes);
}

static void a_snapshot_stays_as_the_blob_was(void **state)
{
    struct scene *s = *state;
    auto_free char *first = NULL, *second = NULL, *text = NULL, *names = NULL;

    put_text(s, "a/b", "one");
    first = snapshot(s, "a/b");
    put_text(s, "a/b", "two");
    second = snapshot(s, "a/b");
    put_text(s, "a/b", "three");
    assert_true(strcmp(first, second) < 0);
    assert_int_equal(strlen(first), 28);
    text = text_at(s, "a/b", first);
    assert_string_equal(text, "one");
    scene_reopen(s);
    free(text);
    text = text_at(s, "a/b", second);
    assert_string_equal(text, "two");
    assert_text(s, "a/b", "three");
    put_text(s, "z", "");
    names = list_all(s, "", "", 1, true);
    auto_free char *want = xasprintf("a/b@%s\na/b@%s\na/b\nz\n", first, second);
    assert_string_equal(names, want);
    assert_sound(s);
}

static void a_snapshot_has_the_blobs_facts_or_its_own_metadata(void **state)
{
    struct scene *s = *state;
    auto_json json_t *metadata = json_pack("{ss}", "of", "snapshot");
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"}};
    const struct blob_address at = at_name("a");
    autoptr(upload) upload = upload_of(s, "1");
    autoptr(blob) blob = NULL, *copy = NULL;

    assert_int_equal(blobs_put(s->blobs, &at, upload, &put, NULL, &blob, &s->e), 0);
    assert_int_equal(blobs_snapshot(s->blobs, &at, metadata, NULL, &copy, &s->e), 0);
    assert_string_equal(copy->headers.content_type, "text/plain");
    assert_string_equal(copy->etag, blob->etag);
    assert_int_equal(json_object_size(copy->metadata), 1);
}

static void snapshots_are_deleted_as_chosen(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    auto_free char *first = NULL, *second = NULL, *names = NULL;
    struct blob_address old = at;

    put_text(s, "a", "1");
    first = snapshot(s, "a");
    second = snapshot(s, "a");
    assert_refused(s, delete_name(s, "a"), "SnapshotsPresent");
    old.snapshot = first;
    assert_int_equal(blobs_delete(s->blobs, &old, SNAPSHOTS_REFUSE, NULL, &s->e), 0);
    assert_null(text_at(s, "a", first));
    assert_refused(s, delete_name(s, "a"), "SnapshotsPresent");
    assert_int_equal(blobs_delete(s->blobs, &at, SNAPSHOTS_ONLY, NULL, &s->e), 0);
    assert_null(text_at(s, "a", second));
    assert_text(s, "a", "1");
    free(snapshot(s, "a"));
    assert_int_equal(blobs_delete(s->blobs, &at, SNAPSHOTS_INCLUDE, NULL, &s->e), 0);
    names = list_all(s, "", "", 10, true);
    assert_string_equal(names, "");
    assert_sound(s);
}

static void a_time_that_is_none_finds_nothing(void **state)
{
    static const char *const times[] = {"x",
                                        "../../tree/a",
                                        "2020",
                                        "2020-01-01T00:00:00.0000000Z",
                                        "2020-01-01T00:00:00.0000000Z/../..",
                                        "."};
    struct scene *s = *state;

    put_text(s, "a", "1");
    free(snapshot(s, "a"));
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        assert_null(text_at(s, "a", times[i]));
        assert_string_equal(err_reason_of(&s->e), "BlobNotFound");
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_snapshot_stays_as_the_blob_was),
        TEST(a_snapshot_has_the_blobs_facts_or_its_own_metadata),
        TEST(snapshots_are_deleted_as_chosen),
        TEST(a_time_that_is_none_finds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
