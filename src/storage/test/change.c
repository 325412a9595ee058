/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/json.h"

static struct blob *change(struct scene *s, const char *name, const struct blob_change *change)
{
    const struct blob_address at = at_name(name);
    struct blob *blob = NULL;

    if (blobs_change(s->blobs, &at, change, NULL, &blob, &s->e) < 0)
        return NULL;
    return blob;
}

static void metadata_and_headers_make_a_new_etag_tags_and_tier_do_not(void **state)
{
    struct scene *s = *state;
    auto_json json_t *words = json_pack("{ss}", "a", "b");
    const struct blob_headers headers = {.content_type = (char *)"text/plain"};
    const struct blob_address at = at_name("a");
    const struct {
        struct blob_change change;
        bool is_new;
    } table[] = {
        {{.metadata = words, .size = -1}, true},
        {{.headers = &headers, .size = -1}, true},
        {{.tags = words, .size = -1}, false},
        {{.tier = "Cool", .size = -1}, false},
    };

    put_text(s, "a", "1");
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        autoptr(blob) before = find(s, "a");
        autoptr(blob) told = NULL;
        autoptr(blob) after = NULL;

        assert_int_equal(blobs_change(s->blobs, &at, &table[i].change, NULL, &told, &s->e), 0);
        after = find(s, "a");
        assert_string_equal(told->etag, after->etag);
        assert_int_equal(strcmp(before->etag, after->etag) != 0, table[i].is_new);
    }
    autoptr(blob) all = find(s, "a");
    assert_int_equal(json_object_size(all->metadata), 1);
    assert_int_equal(json_object_size(all->tags), 1);
    assert_string_equal(all->tier, "Cool");
    assert_string_equal(all->headers.content_type, "text/plain");
    assert_null(all->headers.content_md5); /* all six are replaced */
    assert_text(s, "a", "1");
}

static void a_file_without_a_row_can_be_given_facts(void **state)
{
    struct scene *s = *state;
    auto_json json_t *words = json_pack("{ss}", "a", "b");
    const struct blob_change metadata = {.metadata = words, .size = -1};

    plant(s, "tree/a", "by hand");
    blob_free(change(s, "a", &metadata));
    scene_reopen(s);
    autoptr(blob) blob = find(s, "a");
    assert_int_equal(json_object_size(blob->metadata), 1);
    assert_text(s, "a", "by hand");
}

static void only_page_blobs_are_resized(void **state)
{
    struct scene *s = *state;
    const struct blob_address disk = at_name("disk");
    const struct blob_put put = {0};
    const struct blob_change larger = {.size = 2048}, crooked = {.size = 1000};
    autoptr(blob) blob = NULL;

    put_text(s, "a", "1");
    assert_null(change(s, "a", &larger));
    assert_string_equal(err_reason_of(&s->e), "InvalidBlobType");
    assert_int_equal(blobs_create(s->blobs, &disk, BLOB_PAGE, 512, &put, NULL, NULL, &s->e), 0);
    assert_null(change(s, "disk", &crooked));
    blob = change(s, "disk", &larger);
    assert_int_equal(blob->size_bytes, 2048);
    assert_null(change(s, "none", &larger));
    assert_string_equal(err_reason_of(&s->e), "BlobNotFound");
}

static void two_changes_with_one_etag_are_one_success(void **state)
{
    struct scene *s = *state;
    auto_json json_t *words = json_pack("{ss}", "a", "b");
    const struct blob_change metadata = {.metadata = words, .size = -1};
    const struct blob_address at = at_name("a");
    autoptr(blob) before = NULL;
    struct conditions same = {0};

    put_text(s, "a", "1");
    before = find(s, "a");
    same.if_match = before->etag;
    assert_int_equal(blobs_change(s->blobs, &at, &metadata, &same, NULL, &s->e), 0);
    assert_refused(s, blobs_change(s->blobs, &at, &metadata, &same, NULL, &s->e),
                   "ConditionNotMet");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(metadata_and_headers_make_a_new_etag_tags_and_tier_do_not),
        TEST(a_file_without_a_row_can_be_given_facts),
        TEST(only_page_blobs_are_resized),
        TEST(two_changes_with_one_etag_are_one_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
