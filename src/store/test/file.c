/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file.h"

#include "yard.h"

static int setup(void **state)
{
    struct yard *yard = xcalloc(1, sizeof(*yard));
    auto_free char *path = NULL;
    struct err e = {0};

    yard_init(yard);
    db_free(yard->db);
    yard->db = NULL;
    path = yard_path(yard, "storage.db");
    assert_ok(store_open_storage(path, &yard->db, &e), &e);
    *state = yard;
    return 0;
}

static int teardown(void **state)
{
    struct yard *yard = *state;

    yard_done(yard);
    free(yard);
    return 0;
}

static int64_t add_share(struct db *db, const char *account, const char *name)
{
    struct share_row row = {.account = (char *)account, .name = (char *)name, .quota_gib = 5};
    struct err e = {0};

    assert_ok(store_put_share(db, &row, &e), &e);
    return row.id;
}

static void a_share_comes_back_as_it_was_put(void **state)
{
    struct yard *yard = *state;
    struct share_row row = {
        .account = (char *)"acct",
        .name = (char *)"data",
        .etag = "0x8D",
        .created_ms = 1,
        .modified_ms = 2,
        .quota_gib = 3,
        .tier = (char *)"Hot",
        .metadata = (char *)"{\"a\":\"b\"}",
        .lease = {.id = "lease", .expires_ms = 4, .breaks_ms = 5, .duration_s = -1},
    };
    autoptr(share_row) found = NULL;
    autoptr(share_row) none = NULL;
    struct err e = {0};

    assert_ok(store_put_share(yard->db, &row, &e), &e);
    row.quota_gib = 7;
    assert_ok(store_put_share(yard->db, &row, &e), &e);
    assert_ok(store_find_share(yard->db, "acct", "data", &found, &e), &e);
    assert_int_equal(found->id, row.id);
    assert_int_equal(found->quota_gib, 7);
    assert_string_equal(found->metadata, "{\"a\":\"b\"}");
    assert_null(found->protocols);
    assert_string_equal(found->lease.id, "lease");
    assert_int_equal(found->lease.duration_s, -1);
    assert_ok(store_find_share(yard->db, "acct", "other", &none, &e), &e);
    assert_null(none);
}

static bool add_name(const struct share_row *row, void *context)
{
    str_addf(context, "%s/%s ", row->account, row->name);
    return true;
}

static void shares_are_walked_by_account_and_name(void **state)
{
    struct yard *yard = *state;
    auto_str one = {0}, all = {0};
    struct err e = {0};

    add_share(yard->db, "b", "y");
    add_share(yard->db, "b", "x");
    add_share(yard->db, "a", "z");
    assert_ok(store_each_share(yard->db, "b", add_name, &one, &e), &e);
    assert_string_equal(str_text(&one), "b/x b/y ");
    assert_ok(store_each_share(yard->db, NULL, add_name, &all, &e), &e);
    assert_string_equal(str_text(&all), "a/z b/x b/y ");
}

static void a_file_is_known_by_inode_and_birth(void **state)
{
    struct yard *yard = *state;
    const struct file_row row = {
        .inode = UINT64_MAX,
        .born_ns = 11,
        .size_bytes = 12,
        .etag = "0x1",
        .created_ns = FILE_WHEN_BORN,
        .content_type = (char *)"text/x",
        .attributes = (char *)"Hidden",
    };
    struct file_row later = {.inode = UINT64_MAX, .born_ns = 22, .etag = "0x2"};
    int64_t share = add_share(yard->db, "acct", "data");
    autoptr(file_row) found = NULL;
    autoptr(file_row) none = NULL;
    autoptr(file_row) gone = NULL;
    struct err e = {0};

    assert_ok(store_put_file(yard->db, share, &row, &e), &e);
    assert_ok(store_find_file(yard->db, share, UINT64_MAX, 11, &found, &e), &e);
    assert_string_equal(found->content_type, "text/x");
    assert_string_equal(found->attributes, "Hidden");
    assert_int_equal(found->created_ns, FILE_WHEN_BORN);
    assert_ok(store_find_file(yard->db, share, UINT64_MAX, 12, &none, &e), &e);
    assert_null(none);
    assert_ok(store_find_file(yard->db, share + 1, UINT64_MAX, 11, &none, &e), &e);
    assert_null(none);
    /* The number is given to another file: what was known is of the one that is gone. */
    assert_ok(store_put_file(yard->db, share, &later, &e), &e);
    assert_ok(store_find_file(yard->db, share, UINT64_MAX, 11, &none, &e), &e);
    assert_null(none);
    assert_ok(store_remove_file(yard->db, share, UINT64_MAX, 11, &e), &e);
    assert_ok(store_find_file(yard->db, share, UINT64_MAX, 22, &gone, &e), &e);
    assert_non_null(gone);
}

static void the_rows_of_a_doomed_share_are_purged_in_steps(void **state)
{
    struct yard *yard = *state;
    int64_t share = add_share(yard->db, "acct", "data");
    int64_t kept = add_share(yard->db, "other", "data");
    struct err e = {0};
    bool more = true;
    int steps = 0;

    assert_ok(db_script(yard->db, "BEGIN", &e), &e);
    for (uint64_t i = 1; i <= 5000; i++) {
        const struct file_row row = {.inode = i, .etag = "0x1"};

        assert_ok(store_put_file(yard->db, share, &row, &e), &e);
    }
    assert_ok(store_put_file(yard->db, kept, &(struct file_row){.inode = 1, .etag = "0x1"}, &e),
              &e);
    assert_ok(store_put_permission(yard->db, share, "k", "text", &e), &e);
    assert_ok(db_script(yard->db, "COMMIT", &e), &e);
    assert_ok(store_doom_shares_of(yard->db, "acct", &e), &e);
    for (; more; steps++)
        assert_ok(store_purge_doomed_shares(yard->db, &more, &e), &e);
    assert_true(steps > 2);
    assert_int_equal(yard_scalar(yard->db, "SELECT count(*) FROM file"), 1);
    assert_int_equal(yard_scalar(yard->db, "SELECT count(*) FROM file_permission"), 0);
    assert_int_equal(yard_scalar(yard->db, "SELECT count(*) FROM share"), 1);
    /* Its id is not given again. */
    assert_true(add_share(yard->db, "acct", "data") > kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_share_comes_back_as_it_was_put),
        TEST(shares_are_walked_by_account_and_name),
        TEST(a_file_is_known_by_inode_and_birth),
        TEST(the_rows_of_a_doomed_share_are_purged_in_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
