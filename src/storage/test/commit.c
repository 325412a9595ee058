/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "storage/blocks.h"

static void stage(struct scene *s, const char *name, const char *id, const char *text)
{
    const struct blob_address at = at_name(name);
    autoptr(upload) upload = upload_of(s, text);

    if (blobs_stage_block(s->blobs, &at, id, upload, NULL, &s->e) < 0)
        fail_msg("%s", s->e.msg);
}

/* Commit "L1 C2 U3": source and id of each block. */
static int commit_if(struct scene *s,
                     const char *name,
                     const char *list,
                     const struct conditions *conditions,
                     struct blob **ret_blob)
{
    const struct blob_address at = at_name(name);
    const struct blob_put put = {0};
    struct block_ref refs[16];
    char ids[16][8];
    size_t count = 0;

    for (const char *p = list; *p; p += p[2] ? 3 : 2) {
        snprintf(ids[count], sizeof(ids[count]), "%c%c==", p[1], 'Q');
        refs[count] = (struct block_ref){ids[count], p[0] == 'L'   ? BLOCK_LATEST
                                                     : p[0] == 'C' ? BLOCK_COMMITTED
                                                                   : BLOCK_UNCOMMITTED};
        count++;
    }
    return blobs_commit_blocks(s->blobs, &at, refs, count, &put, conditions, ret_blob, &s->e);
}

static int commit(struct scene *s, const char *name, const char *list)
{
    return commit_if(s, name, list, NULL, NULL);
}

static void blocks_become_the_blob_in_the_order_of_the_list(void **state)
{
    struct scene *s = *state;
    autoptr(blob) blob = NULL;

    stage(s, "a", "AQ==", "one ");
    stage(s, "a", "BQ==", "two ");
    stage(s, "a", "CQ==", "three");
    assert_int_equal(commit(s, "a", "LB LA UB LC"), 0);
    assert_text(s, "a", "two one two three");
    blob = find(s, "a");
    assert_null(blob->headers.content_md5); /* nobody said one */
    scene_reopen(s);
    assert_text(s, "a", "two one two three");
    assert_sound(s);
}

static void one_block_or_none_is_a_blob_too(void **state)
{
    struct scene *s = *state;

    stage(s, "a", "AQ==", "only");
    assert_int_equal(commit(s, "a", "LA"), 0);
    assert_text(s, "a", "only");
    assert_int_equal(commit(s, "b", ""), 0);
    assert_text(s, "b", "");
    assert_sound(s);
}

static void committed_blocks_can_be_used_again_and_changed(void **state)
{
    struct scene *s = *state;

    stage(s, "a", "AQ==", "one ");
    stage(s, "a", "BQ==", "two ");
    assert_int_equal(commit(s, "a", "LA LB"), 0);
    stage(s, "a", "BQ==", "TWO ");
    stage(s, "a", "CQ==", "three ");
    assert_int_equal(commit(s, "a", "CB LB CA LC"), 0);
    assert_text(s, "a", "two TWO one three ");
    assert_int_equal(commit(s, "a", "CA CC"), 0);
    assert_text(s, "a", "one three ");
}

static void a_block_that_is_not_there_fails_the_whole_list(void **state)
{
    struct scene *s = *state;

    put_text(s, "a", "old");
    stage(s, "a", "AQ==", "one");
    assert_refused(s, commit(s, "a", "LA LB"), "InvalidBlockList");
    assert_refused(s, commit(s, "a", "CA"), "InvalidBlockList");
    assert_text(s, "a", "old");
    assert_int_equal(commit(s, "a", "UA"), 0); /* the staged one is still there */
    assert_refused(s, commit(s, "a", "UA"), "InvalidBlockList");
    assert_int_equal(commit(s, "a", "LA"), 0); /* again: now by the committed one */
    assert_text(s, "a", "one");
}

static void blocks_of_a_file_changed_in_place_are_gone(void **state)
{
    struct scene *s = *state;

    stage(s, "a", "AQ==", "one");
    assert_int_equal(commit(s, "a", "LA"), 0);
    plant(s, "tree/a", "by a mount");
    assert_refused(s, commit(s, "a", "CA"), "InvalidBlockList");
}

static void conditions_and_types_are_judged(void **state)
{
    struct scene *s = *state;
    const struct conditions only_new = {.if_none_match = "*"}, other = {.if_match = "\"0x1\""};
    const struct blob_address log = at_name("log");
    const struct blob_put put = {0};

    put_text(s, "a", "old");
    stage(s, "a", "AQ==", "new");
    assert_refused(s, commit_if(s, "a", "LA", &only_new, NULL), "BlobAlreadyExists");
    assert_refused(s, commit_if(s, "a", "LA", &other, NULL), "ConditionNotMet");
    assert_text(s, "a", "old");
    assert_int_equal(blobs_create(s->blobs, &log, BLOB_APPEND, 0, &put, NULL, NULL, &s->e), 0);
    assert_refused(s, commit(s, "log", ""), "InvalidBlobType");
}

static void a_list_too_long_is_refused(void **state)
{
    struct scene *s = *state;
    const struct blob_address at = at_name("a");
    const struct blob_put put = {0};
    struct block_ref *refs = xcalloc(MOST_BLOCKS + 1, sizeof(*refs));

    for (size_t i = 0; i <= MOST_BLOCKS; i++)
        refs[i] = (struct block_ref){"AQ==", BLOCK_LATEST};
    assert_refused(
        s, blobs_commit_blocks(s->blobs, &at, refs, MOST_BLOCKS + 1, &put, NULL, NULL, &s->e),
        "BlockListTooLong");
    free(refs);
}

static void a_list_is_read_as_it_was_written(void **state)
{
    struct block_list list = {0};
    struct block_entry entry;
    size_t at = 0;

    (void)state;
    block_list_add(&list, "AQ==", 5);
    block_list_add(&list, "BBBB", INT64_C(5) << 40);
    assert_true(block_list_next(&list, &at, &entry));
    assert_string_equal(entry.id, "AQ==");
    assert_int_equal(entry.size, 5);
    assert_true(block_list_next(&list, &at, &entry));
    assert_true(entry.size == INT64_C(5) << 40);
    assert_false(block_list_next(&list, &at, &entry));
    list.len -= 1; /* cut off: the rest is no block */
    at = 13;
    assert_false(block_list_next(&list, &at, &entry));
    free(list.bytes);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(blocks_become_the_blob_in_the_order_of_the_list),
        TEST(one_block_or_none_is_a_blob_too),
        TEST(committed_blocks_can_be_used_again_and_changed),
        TEST(a_block_that_is_not_there_fails_the_whole_list),
        TEST(blocks_of_a_file_changed_in_place_are_gone),
        TEST(conditions_and_types_are_judged),
        TEST(a_list_too_long_is_refused),
        cmocka_unit_test(a_list_is_read_as_it_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
