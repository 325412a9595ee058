/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "storage/blocks.h"

static int stage(struct scene *s, const char *name, const char *id, const char *text)
{
    const struct blob_address at = at_name(name);
    autoptr(upload) upload = upload_of(s, text);

    return blobs_stage_block(s->blobs, &at, id, upload, NULL, &s->e);
}

static void note_block(const char *id, int64_t size, bool committed, void *context)
{
    str_addf(context, "%s:%d%s ", id, (int)size, committed ? "c" : "u");
}

static char *blocks_of(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    struct str out = {0};
    struct blob *blob = NULL;

    if (blobs_list_blocks(s->blobs, &at, note_block, &out, &blob, &s->e) < 0)
        return NULL;
    blob_free(blob);
    return str_take(&out);
}

static void staged_blocks_are_listed_but_are_no_blob(void **state)
{
    struct scene *s = *state;
    auto_free char *list = NULL, *names = NULL;

    assert_int_equal(stage(s, "a", "MQ==", "one"), 0);
    assert_int_equal(stage(s, "a", "MA==", "zero0"), 0);
    assert_int_equal(stage(s, "a", "MQ==", "one again"), 0);
    list = blocks_of(s, "a");
    assert_string_equal(list, "MA==:5u MQ==:9u ");
    names = list_all(s, "", "", 10, false);
    assert_string_equal(names, "");
    assert_text(s, "a", NULL);
    scene_reopen(s);
    free(list);
    list = blocks_of(s, "a");
    assert_string_equal(list, "MA==:5u MQ==:9u ");
    assert_sound(s);
}

static void uncommitted_names_are_listed_when_asked_for(void **state)
{
    struct scene *s = *state;
    auto_str out = {0};
    auto_free char *next = NULL;
    const struct blob_listing listing = {
        .prefix = "",
        .delimiter = "",
        .marker = "",
        .most = 10,
        .uncommitted = true,
        .blob = list_blob,
        .context = &out,
    };

    put_text(s, "b", "1");
    assert_int_equal(stage(s, "a", "MQ==", "1"), 0);
    assert_int_equal(stage(s, "b", "MQ==", "1"), 0);
    assert_int_equal(stage(s, "c", "MQ==", "1"), 0);
    assert_int_equal(blobs_list(s->blobs, ACCOUNT, CONTAINER, &listing, &next, &s->e), 0);
    assert_string_equal(str_text(&out), "a\nb\nc\n");
}

static void bad_ids_are_refused(void **state)
{
    static const struct {
        const char *id, *reason;
    } table[] = {
        {"", "InvalidQueryParameterValue"},
        {"!!!!", "InvalidQueryParameterValue"},
        {"MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
         "NDU2Nzg5MA==",
         "InvalidQueryParameterValue"},
        {"MTIzNDU2", "InvalidBlobOrBlock"}, /* not as long as the others */
    };
    struct scene *s = *state;

    assert_int_equal(stage(s, "a", "MQ==", "1"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        assert_refused(s, stage(s, "a", table[i].id, "x"), table[i].reason);
    scene_reopen(s);
    assert_refused(s, stage(s, "a", "MTIzNDU2", "x"), "InvalidBlobOrBlock");
}

static void a_put_or_delete_drops_the_staged_blocks(void **state)
{
    struct scene *s = *state;
    auto_free char *list = NULL;

    assert_int_equal(stage(s, "a", "MQ==", "1"), 0);
    put_text(s, "a", "whole");
    list = blocks_of(s, "a");
    assert_string_equal(list, "");
    assert_int_equal(stage(s, "a", "MTIzNDU2", "2"), 0); /* a new length: nothing is left */
    assert_int_equal(delete_name(s, "a"), 0);
    assert_null(blocks_of(s, "a"));
    assert_string_equal(err_reason_of(&s->e), "BlobNotFound");
    scene_reopen(s);
    assert_null(blocks_of(s, "a"));
    assert_sound(s);
}

static void blocks_are_for_block_blobs_and_their_leaseholders(void **state)
{
    struct scene *s = *state;
    const struct blob_address log = at_name("log"), held = at_name("held");
    const struct blob_put put = {0};
    const struct lease_request acquire = {.action = LEASE_ACQUIRE, .duration_s = -1};

    assert_int_equal(blobs_create(s->blobs, &log, BLOB_APPEND, 0, &put, NULL, NULL, &s->e), 0);
    assert_refused(s, stage(s, "log", "MQ==", "1"), "InvalidBlobType");
    put_text(s, "held", "1");
    assert_int_equal(blobs_lease(s->blobs, &held, &acquire, NULL, NULL, NULL, &s->e), 0);
    assert_refused(s, stage(s, "held", "MQ==", "1"), "LeaseIdMissing");
}

static void old_staged_blocks_are_collected_and_new_ones_kept(void **state)
{
    struct scene *s = *state;
    auto_free char *list = NULL, *staged = scene_path(s, "staged");
    char hash[NAME_HASH_BYTES];
    const struct timespec long_ago[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    assert_int_equal(stage(s, "old", "MQ==", "1"), 0);
    assert_int_equal(stage(s, "new", "MQ==", "1"), 0);
    name_hash("old", hash);
    auto_free char *folder = xasprintf("%s/%s", staged, hash);
    assert_int_equal(utimensat(AT_FDCWD, folder, long_ago, 0), 0);
    assert_int_equal(blobs_collect_staged(s->blobs, 2000000, &s->e), 0);
    assert_null(blocks_of(s, "old"));
    list = blocks_of(s, "new");
    assert_string_equal(list, "MQ==:1u ");
    assert_sound(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        TEST(staged_blocks_are_listed_but_are_no_blob),
        TEST(uncommitted_names_are_listed_when_asked_for),
        TEST(bad_ids_are_refused),
        TEST(a_put_or_delete_drops_the_staged_blocks),
        TEST(blocks_are_for_block_blobs_and_their_leaseholders),
        TEST(old_staged_blocks_are_collected_and_new_ones_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
