/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row-cache.h"

#include "scene.h"
#include "store/blob.h"

static const struct blob_key key = {7, "a/b", "", 42, 1000};
static const struct facts facts = {
    .inode = 42, .born_ns = 1000, .mtime_ns = 5, .size_bytes = 6};

static struct blob_row row = {
    .name = (char[]){"a/b"},
    .snapshot = (char[]){""},
    .inode = 42,
    .born_ns = 1000,
    .etag = "0x1",
    .content_type = (char[]){"text/plain"},
};

static struct row_cache *full(uint64_t generation)
{
    struct row_cache *cache = row_cache_new();

    row_cache_keep(cache, &key, &facts, generation, &row);
    return cache;
}

static void a_row_is_known_at_its_generation_only(void **state)
{
    struct row_cache *cache = full(6);
    struct blob_row *found = NULL;

    (void)state;
    assert_false(row_cache_find(cache, &key, &facts, 4, &found));
    assert_false(row_cache_find(cache, &key, &facts, 8, &found));
    assert_true(row_cache_find(cache, &key, &facts, 6, &found));
    assert_string_equal(found->content_type, "text/plain");
    assert_string_equal(found->etag, "0x1");
    assert_ptr_not_equal(found->name, row.name);
    blob_row_free(found);
    row_cache_free(cache);
}

static void nothing_is_kept_while_a_commit_is_under_way(void **state)
{
    struct row_cache *cache = full(7);
    struct blob_row *found = NULL;

    (void)state;
    assert_false(row_cache_find(cache, &key, &facts, 7, &found));
    assert_null(found);
    row_cache_free(cache);
}

static void a_row_is_found_under_its_whole_key_only(void **state)
{
    static const struct {
        struct blob_key key;
        struct facts facts;
    } others[] = {
        {{8, "a/b", "", 42, 1000}, {42, 1000, 5, 6}},
        {{7, "a/c", "", 42, 1000}, {42, 1000, 5, 6}},
        {{7, "a/b", "2020", 42, 1000}, {42, 1000, 5, 6}},
        {{7, "a/b", "", 43, 1000}, {43, 1000, 5, 6}},
        {{7, "a/b", "", 42, 1001}, {42, 1001, 5, 6}},
        {{7, "a/b", "", 42, 1000}, {42, 1000, 4, 6}},
        {{7, "a/b", "", 42, 1000}, {42, 1000, 5, 7}},
    };
    struct row_cache *cache = full(0);
    struct blob_row *found = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_false(row_cache_find(cache, &others[i].key, &others[i].facts, 0, &found));
    row_cache_free(cache);
}

static void that_there_is_no_row_is_known_too(void **state)
{
    struct row_cache *cache = full(6);
    struct blob_row *found = &row;

    (void)state;
    row_cache_keep(cache, &key, &facts, 6, NULL);
    assert_true(row_cache_find(cache, &key, &facts, 6, &found));
    assert_null(found);
    row_cache_free(cache);
}

static void a_long_row_is_not_kept(void **state)
{
    struct row_cache *cache = row_cache_new();
    struct blob_row large = row, *found = NULL;
    char metadata[1000];

    (void)state;
    memset(metadata, 'x', sizeof(metadata) - 1);
    metadata[sizeof(metadata) - 1] = '\0';
    large.metadata = metadata;
    row_cache_keep(cache, &key, &facts, 6, &large);
    assert_false(row_cache_find(cache, &key, &facts, 6, &found));
    row_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_known_at_its_generation_only),
        cmocka_unit_test(nothing_is_kept_while_a_commit_is_under_way),
        cmocka_unit_test(a_row_is_found_under_its_whole_key_only),
        cmocka_unit_test(that_there_is_no_row_is_known_too),
        cmocka_unit_test(a_long_row_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
