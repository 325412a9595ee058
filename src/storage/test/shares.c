/* SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"

static void a_share_is_made_found_changed_and_removed(void **state)
{
    struct share_yard *yard = *state;
    const struct share_change facts = {.quota_gib = 7, .tier = "Hot"};
    struct share_change change = {.quota_gib = 9};
    autoptr(share) share = NULL;
    autoptr(share) found = NULL;
    autoptr(share) changed = NULL;
    struct err e = {0};

    assert_ok(files_create_share(yard->files, "acct", "one", &facts, &share, &e), &e);
    assert_refused(files_create_share(yard->files, "acct", "one", &facts, &found, &e), &e,
                   "ShareAlreadyExists");
    assert_ok(files_find_share(yard->files, "acct", "one", &found, &e), &e);
    assert_int_equal(found->quota_gib, 7);
    assert_string_equal(found->tier, "Hot");
    change.metadata = json_pack("{s:s}", "a", "b");
    assert_ok(files_update_share(yard->files, "acct", "one", &change, NULL, &changed, &e), &e);
    json_decref((json_t *)change.metadata);
    assert_int_equal(changed->quota_gib, 9);
    assert_string_equal(changed->tier, "Hot");
    assert_string_equal(json_string_value(json_object_get(changed->metadata, "a")), "b");
    assert_string_not_equal(changed->etag, found->etag);
    assert_ok(files_delete_share(yard->files, "acct", "one", NULL, &e), &e);
    share_free(found);
    found = NULL;
    assert_refused(files_find_share(yard->files, "acct", "one", &found, &e), &e,
                   "ShareNotFound");
    assert_refused(files_delete_share(yard->files, "acct", "one", NULL, &e), &e,
                   "ShareNotFound");
}

static void bad_share_names_are_refused(void **state)
{
    static const char *const names[] = {"",    "ab", "UPPER", "a--b",  "-ab",  "ab-",  "a_b",
                                        "a.b", "..", "a/b",   "$root", "a\nb", "tree/"};
    struct share_yard *yard = *state;
    const struct share_change facts = {.quota_gib = -1};
    autoptr(share) share = NULL;
    struct err e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_refused(files_create_share(yard->files, "acct", names[i], &facts, &share, &e),
                       &e, "InvalidResourceName");
        assert_refused(files_find_share(yard->files, "acct", names[i], &share, &e), &e,
                       "ShareNotFound");
    }
    assert_refused(files_create_share(yard->files, "../x", "good", &facts, &share, &e), &e,
                   "InvalidResourceName");
}

static void a_share_made_again_is_empty(void **state)
{
    struct share_yard *yard = *state;
    const json_t *metadata = NULL;
    struct file_put put = {0};
    autoptr(file) file = NULL;
    struct err e = {0};

    put.metadata = metadata = json_pack("{s:s}", "old", "fact");
    assert_ok(try_create(yard, "x", 1, &put, &e), &e);
    json_decref((json_t *)metadata);
    assert_ok(files_delete_share(yard->files, "acct", "data", NULL, &e), &e);
    yard_add_share(yard, "data");
    assert_missing(yard, "x", "ResourceNotFound");
    make_file(yard, "x", "new");
    file = find(yard, "x");
    assert_int_equal(json_object_size(file->metadata), 0);
}

static void add_name(const struct share *share, void *context)
{
    struct str *names = context;

    str_addf(names, "%s ", share->name);
}

static void shares_are_listed_in_order_by_prefix_and_page(void **state)
{
    struct share_yard *yard = *state;
    static const struct {
        const char *prefix, *marker;
        size_t most;
        const char *names, *next;
    } rows[] = {
        {"", "", 10, "aa-1 aa-2 bbb data ", ""}, {"aa", "", 10, "aa-1 aa-2 ", ""},
        {"", "", 2, "aa-1 aa-2 ", "aa-2"},       {"", "aa-2", 2, "bbb data ", ""},
        {"aa", "aa-1", 1, "aa-2 ", ""},          {"zz", "", 5, "", ""},
    };

    yard_add_share(yard, "bbb");
    yard_add_share(yard, "aa-2");
    yard_add_share(yard, "aa-1");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *next = NULL;
        auto_str names = {0};
        struct err e = {0};

        assert_ok(files_list_shares(yard->files, "acct", rows[i].prefix, rows[i].marker,
                                    rows[i].most, add_name, &names, &next, &e),
                  &e);
        assert_string_equal(str_text(&names), rows[i].names);
        assert_string_equal(next, rows[i].next);
    }
}

static void a_leased_share_is_not_removed_without_its_lease(void **state)
{
    static const char id[] = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    struct share_yard *yard = *state;
    const struct lease_request request = {
        .action = LEASE_ACQUIRE, .id = id, .duration_s = -1, .break_s = -1};
    autoptr(share) share = NULL;
    struct err e = {0};
    int left_s;

    assert_ok(files_lease_share(yard->files, "acct", "data", &request, &share, &left_s, &e),
              &e);
    assert_refused(files_delete_share(yard->files, "acct", "data", NULL, &e), &e,
                   "LeaseIdMissing");
    assert_ok(files_delete_share(yard->files, "acct", "data", id, &e), &e);
}

static void an_account_goes_with_all_its_shares(void **state)
{
    struct share_yard *yard = *state;
    const struct share_change facts = {.quota_gib = -1};
    autoptr(share) other = NULL;
    autoptr(share) found = NULL;
    struct err e = {0};

    assert_ok(files_create_share(yard->files, "other", "data", &facts, &other, &e), &e);
    make_file(yard, "x", "y");
    assert_ok(files_remove_account(yard->files, "acct", &e), &e);
    assert_ok(files_remove_account(yard->files, "never", &e), &e);
    assert_missing(yard, "x", "ShareNotFound");
    assert_ok(files_find_share(yard->files, "other", "data", &found, &e), &e);
}

static void a_lost_database_costs_facts_and_no_bytes(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *db = xasprintf("%s/storage.db", yard->folder);
    auto_free char *wal = xasprintf("%s-wal", db), *shm = xasprintf("%s-shm", db);
    auto_free char *text = NULL;

    make_file(yard, "x", "bytes");
    yard_close(yard);
    unlink(db);
    unlink(wal);
    unlink(shm);
    yard_open(yard);
    text = read_file(yard, "x");
    assert_string_equal(text, "bytes");
}

static void what_was_under_way_is_cleared_at_start(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *tmp = xasprintf("%s/storage/acct/file/data/tmp/half", yard->folder);
    auto_free char *new = xasprintf("%s/storage/acct/file/.new-1", yard->folder);
    FILE *out = fopen(tmp, "w");

    assert_non_null(out);
    fclose(out);
    assert_int_equal(mkdir(new, 0700), 0);
    yard_close(yard);
    yard_open(yard);
    assert_int_equal(access(tmp, F_OK), -1);
    assert_int_equal(access(new, F_OK), -1);
}

static void a_quota_is_kept_for_what_is_made_grown_and_copied(void **state)
{
    struct share_yard *yard = *state;
    const int64_t gib = (int64_t)1 << 30;
    const struct share_change small = {.quota_gib = 1};
    struct file_change grow = FILE_CHANGE_NONE;
    const struct file_address a = at("a"), c = at("c");
    autoptr(share) share = NULL;
    autoptr(file) file = NULL;
    autoptr(file) from = NULL;
    auto_close int fd = -1;
    struct file_copy copy = {.source_url = "x"};
    struct err e = {0};

    assert_ok(files_update_share(yard->files, "acct", "data", &small, NULL, &share, &e), &e);
    assert_ok(try_create(yard, "a", gib - 100, NULL, &e), &e);
    assert_refused(try_create(yard, "b", 101, NULL, &e), &e, "ShareSizeLimitReached");
    assert_missing(yard, "b", "ResourceNotFound");
    grow.size = gib + 1;
    assert_refused(files_change(yard->files, &a, false, &grow, NULL, &file, &e), &e,
                   "ShareSizeLimitReached");
    assert_ok(files_find(yard->files, &a, 0, &from, &fd, &e), &e);
    assert_int_equal(from->size_bytes, gib - 100);
    copy.fd = fd;
    assert_refused(files_copy(yard->files, &copy, &c, &(struct file_put){0}, &file, &e), &e,
                   "ShareSizeLimitReached");
    /* Replacing and removing make room, though nobody counted again. */
    assert_ok(try_create(yard, "a", 10, NULL, &e), &e);
    assert_ok(try_create(yard, "b", gib - 10, NULL, &e), &e);
    assert_refused(try_create(yard, "d", 1, NULL, &e), &e, "ShareSizeLimitReached");
}

static void usage_counts_what_jobs_wrote_too(void **state)
{
    struct share_yard *yard = *state;
    struct err e = {0};
    int64_t bytes;

    make_folder(yard, "d");
    make_file(yard, "d/a", "12345");
    write_behind(yard, "d/b", "123");
    assert_ok(files_share_usage(yard->files, "acct", "data", &bytes, &e), &e);
    assert_int_equal(bytes, 8);
}

static void permissions_are_kept_by_key(void **state)
{
    static const char sddl[] = "O:SYG:SYD:(A;;FA;;;SY)";
    struct share_yard *yard = *state;
    auto_free char *key = NULL, *again = NULL, *text = NULL, *own = NULL;
    autoptr(file) file = NULL;
    struct err e = {0};

    assert_ok(files_put_permission(yard->files, "acct", "data", sddl, &key, &e), &e);
    assert_ok(files_put_permission(yard->files, "acct", "data", sddl, &again, &e), &e);
    assert_string_equal(key, again);
    assert_ok(files_find_permission(yard->files, "acct", "data", key, &text, &e), &e);
    assert_string_equal(text, sddl);
    assert_refused(files_find_permission(yard->files, "acct", "data", "1*2", &own, &e), &e,
                   "FileInvalidPermissionKey");
    /* A file's own key can be asked for, as copying clients do. */
    make_file(yard, "x", "");
    file = find(yard, "x");
    assert_ok(
        files_find_permission(yard->files, "acct", "data", file->permission_key, &own, &e), &e);
}

static void count_finding(const char *what, const char *where, void *context)
{
    struct str *out = context;

    str_addf(out, "%s [%s]\n", what, where);
}

static void the_scrubber_tells_what_no_client_sees(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *link = yard_path(yard, "link"), *gone = yard_path(yard, "gone");
    auto_str found = {0};
    struct err e = {0};

    make_file(yard, "fine", "x");
    assert_ok(files_scrub(yard->files, count_finding, &found, &e), &e);
    assert_string_equal(str_text(&found), "");
    make_file(yard, "gone", "x");
    unlink(gone);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    write_behind(yard, "bad\xff", "x");
    assert_ok(files_scrub(yard->files, count_finding, &found, &e), &e);
    assert_non_null(strstr(str_text(&found), "neither file nor directory"));
    assert_non_null(strstr(str_text(&found), "cannot say"));
    assert_non_null(strstr(str_text(&found), "acct/data: 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)
        TEST(a_share_is_made_found_changed_and_removed),
        TEST(bad_share_names_are_refused),
        TEST(a_share_made_again_is_empty),
        TEST(shares_are_listed_in_order_by_prefix_and_page),
        TEST(a_leased_share_is_not_removed_without_its_lease),
        TEST(an_account_goes_with_all_its_shares),
        TEST(a_lost_database_costs_facts_and_no_bytes),
        TEST(what_was_under_way_is_cleared_at_start),
        TEST(a_quota_is_kept_for_what_is_made_grown_and_copied),
        TEST(usage_counts_what_jobs_wrote_too),
        TEST(permissions_are_kept_by_key),
        TEST(the_scrubber_tells_what_no_client_sees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
