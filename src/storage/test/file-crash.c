/* A process that dies between any two steps leaves the old file with its facts or the new one
 * with its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"

#include <signal.h>
#include <sys/wait.h>

#ifdef YARD_FAULTS

/* Replace "x" (size 3, kind old) by a file of size 5, kind new. */
static void replace_file(struct share_yard *yard)
{
    auto_json json_t *metadata = json_pack("{s:s}", "kind", "new");
    const struct file_put put = {.metadata = metadata, .content = "fresh", .content_len = 5};
    struct err e = {0};

    try_create(yard, "x", 5, &put, &e);
}

static void make_new_folder(struct share_yard *yard)
{
    struct err e = {0};

    try_mkdir(yard, "d", &e);
}

static void make_new_share(struct share_yard *yard)
{
    const struct share_change facts = {.quota_gib = 3};
    autoptr(share) share = NULL;
    struct err e = {0};

    files_create_share(yard->files, "acct", "more", &facts, &share, &e);
}

static void remove_share(struct share_yard *yard)
{
    struct err e = {0};

    files_delete_share(yard->files, "acct", "data", NULL, &e);
}

static void put_range(struct share_yard *yard)
{
    struct err e = {0};

    try_write(yard, "x", 0, "123", &e);
}

/* Run the deed in a process that dies at the point.  False when it did not pass there. */
static bool
die_at(struct share_yard *yard, const char *point, void (*deed)(struct share_yard *))
{
    int status = 0;
    pid_t child;

    yard_close(yard);
    child = fork();
    if (child == 0) {
        yard_open(yard);
        setenv("YARD_FAULT", point, 1);
        deed(yard);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    yard_open(yard);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static const char *kind_of(const struct file *file)
{
    const char *kind = json_string_value(json_object_get(file->metadata, "kind"));

    return kind ? kind : "";
}

static void a_crash_leaves_the_old_file_or_the_new(void **state)
{
    static const struct {
        const char *point;
        bool is_new;
    } rows[] = {
        {"files.before-fsync:1", false},  {"writer.before-commit:1", false},
        {"writer.after-commit:1", false}, {"files.before-rename:1", false},
        {"files.after-rename:1", true},
    };
    struct share_yard *yard = *state;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_json json_t *metadata = json_pack("{s:s}", "kind", "old");
        const struct file_put put = {.metadata = metadata, .content = "old", .content_len = 3};
        autoptr(file) file = NULL;
        auto_free char *text = NULL;
        struct err e = {0};

        assert_ok(try_create(yard, "x", 3, &put, &e), &e);
        assert_true(die_at(yard, rows[i].point, replace_file));
        file = find(yard, "x");
        text = read_file(yard, "x");
        assert_string_equal(text, rows[i].is_new ? "fresh" : "old");
        assert_string_equal(kind_of(file), rows[i].is_new ? "new" : "old");
    }
}

static void a_directory_is_there_or_not(void **state)
{
    struct share_yard *yard = *state;
    autoptr(file) file = NULL;

    assert_true(die_at(yard, "files.before-rename:1", make_new_folder));
    assert_missing(yard, "d", "ResourceNotFound");
    assert_true(die_at(yard, "files.after-rename:1", make_new_folder));
    file = find(yard, "d");
    assert_true(file->is_directory);
}

static void a_share_is_there_or_not(void **state)
{
    struct share_yard *yard = *state;
    autoptr(share) share = NULL;
    struct err e = {0};

    assert_true(die_at(yard, "shares.before-rename:1", make_new_share));
    assert_refused(files_find_share(yard->files, "acct", "more", &share, &e), &e,
                   "ShareNotFound");
    make_new_share(yard);
    assert_ok(files_find_share(yard->files, "acct", "more", &share, &e), &e);
    assert_int_equal(share->quota_gib, 3);
}

static void a_share_half_removed_is_removed(void **state)
{
    struct share_yard *yard = *state;

    make_file(yard, "x", "1");
    assert_true(die_at(yard, "shares.after-removal:1", remove_share));
    assert_missing(yard, "x", "ShareNotFound");
    yard_add_share(yard, "data");
    assert_missing(yard, "x", "ResourceNotFound");
}

static void an_acknowledged_range_is_there(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *text = NULL;

    make_file(yard, "x", "abc");
    assert_true(die_at(yard, "files.after-datasync:1", put_range));
    text = read_file(yard, "x");
    assert_string_equal(text, "123");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)
        TEST(a_crash_leaves_the_old_file_or_the_new),
        TEST(a_directory_is_there_or_not),
        TEST(a_share_is_there_or_not),
        TEST(a_share_half_removed_is_removed),
        TEST(an_acknowledged_range_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0; /* no fault points in this build */
}

#endif
