/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/json.h"

static void stage_and_commit(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    const struct block_ref refs[] = {{"AQ==", BLOCK_LATEST}, {"BQ==", BLOCK_LATEST}};
    auto_json json_t *metadata = json_pack("{ss}", "of", "source");
    const struct blob_put put = {.headers = {.content_type = (char *)"text/plain"},
                                 .metadata = metadata};

    for (int i = 0; i < 2; i++) {
        autoptr(upload) upload = upload_of(s, i ? "two" : "one ");

        assert_int_equal(blobs_stage_block(s->blobs, &at, refs[i].id, upload, NULL, &s->e), 0);
    }
    assert_int_equal(blobs_commit_blocks(s->blobs, &at, refs, 2, &put, NULL, NULL, &s->e), 0);
}

static void count_block(const char *id, int64_t size, bool committed, void *context)
{
    (void)id;
    (void)size;
    *(int *)context += committed;
}

static void a_copy_has_bytes_facts_and_blocks_of_its_source(void **state)
{
    struct scene *s = *state;
    const struct blob_address from = at_name("from"), to = at_name("to//odd");
    autoptr(blob) blob = NULL, *listed = NULL;
    int blocks = 0;

    stage_and_commit(s, "from");
    assert_int_equal(
        blobs_copy(s->blobs, &from, NULL, "http://x/from", &to, NULL, NULL, &blob, &s->e), 0);
    assert_text(s, "to//odd", "one two");
    assert_string_equal(blob->headers.content_type, "text/plain");
    assert_int_equal(json_object_size(blob->metadata), 1);
    assert_string_equal(blob->copy_source, "http://x/from");
    assert_int_equal(strlen(blob->copy_id), 36);
    assert_int_equal(blobs_list_blocks(s->blobs, &to, count_block, &blocks, &listed, &s->e), 0);
    assert_int_equal(blocks, 2);
    assert_sound(s);
}

static void what_the_request_says_wins_over_the_source(void **state)
{
    struct scene *s = *state;
    const struct blob_address from = at_name("from"), to = at_name("to");
    auto_json json_t *metadata = json_object();
    const struct blob_put put = {
        .headers = {.content_type = (char *)"image/png"}, .metadata = metadata, .tier = "Cool"};
    autoptr(blob) blob = NULL;

    stage_and_commit(s, "from");
    assert_int_equal(blobs_copy(s->blobs, &from, NULL, NULL, &to, &put, NULL, &blob, &s->e), 0);
    assert_string_equal(blob->headers.content_type, "image/png");
    assert_int_equal(json_object_size(blob->metadata), 0);
    assert_string_equal(blob->tier, "Cool");
}

static void conditions_of_both_ends_are_judged(void **state)
{
    struct scene *s = *state;
    const struct blob_address from = at_name("from"), to = at_name("to"),
                              none = at_name("none");
    const struct conditions other = {.if_match = "\"0x1\""}, only_new = {.if_none_match = "*"};

    put_text(s, "from", "1");
    put_text(s, "to", "2");
    assert_refused(s, blobs_copy(s->blobs, &none, NULL, NULL, &to, NULL, NULL, NULL, &s->e),
                   "BlobNotFound");
    assert_refused(s, blobs_copy(s->blobs, &from, &other, NULL, &to, NULL, NULL, NULL, &s->e),
                   "SourceConditionNotMet");
    assert_refused(s,
                   blobs_copy(s->blobs, &from, NULL, NULL, &to, NULL, &only_new, NULL, &s->e),
                   "BlobAlreadyExists");
    assert_text(s, "to", "2");
}

static void a_blob_can_be_copied_onto_itself_and_from_a_snapshot(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    struct blob_address old = at;
    autoptr(blob) snapshot = NULL;

    put_text(s, "a", "old");
    assert_int_equal(blobs_copy(s->blobs, &at, NULL, NULL, &at, NULL, NULL, NULL, &s->e), 0);
    assert_text(s, "a", "old");
    assert_int_equal(blobs_snapshot(s->blobs, &at, NULL, NULL, &snapshot, &s->e), 0);
    put_text(s, "a", "new");
    old.snapshot = snapshot->snapshot;
    assert_int_equal(blobs_copy(s->blobs, &old, NULL, NULL, &at, NULL, NULL, NULL, &s->e), 0);
    assert_text(s, "a", "old");
    assert_sound(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_copy_has_bytes_facts_and_blocks_of_its_source),
        TEST(what_the_request_says_wins_over_the_source),
        TEST(conditions_of_both_ends_are_judged),
        TEST(a_blob_can_be_copied_onto_itself_and_from_a_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
