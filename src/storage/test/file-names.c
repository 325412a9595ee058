/* SPDX-License-Identifier: Apache-2.0 */
#include "share-yard.h"
#include "storage/files-internal.h"

static void paths_are_brought_into_one_form(void **state)
{
    static const struct {
        const char *path;
        bool trailing_dots;
        const char *form, *reason;
    } rows[] = {
        {"", false, "", NULL},
        {"/", false, "", NULL},
        {"a", false, "a", NULL},
        {"/a/b/", false, "a/b", NULL},
        {"a b/\xc3\xa4", false, "a b/\xc3\xa4", NULL},
        {"a./b..", false, "a/b", NULL},
        {"a./b..", true, "a./b..", NULL},
        {"...", true, "...", NULL},
        {"...", false, NULL, "InvalidResourceName"},
        {".", true, NULL, "InvalidResourceName"},
        {"..", true, NULL, "InvalidResourceName"},
        {"a/../b", true, NULL, "InvalidResourceName"},
        {"a/./b", false, NULL, "InvalidResourceName"},
        {"a//b", false, NULL, "InvalidResourceName"},
        {"//a", false, NULL, "InvalidResourceName"},
        {"a\\b", false, NULL, "InvalidResourceName"},
        {"a\nb", false, NULL, "InvalidResourceName"},
        {"a\x7f", false, NULL, "InvalidResourceName"},
        {"\xff", false, NULL, "InvalidResourceName"},
        {"\xc0\xae\xc0\xae/x", false, NULL, "InvalidResourceName"}, /* overlong ".." */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *form = NULL;
        struct err e = {0};
        int rc = file_path_normalize(rows[i].path, rows[i].trailing_dots, &form, &e);

        if (rows[i].reason) {
            assert_refused(rc, &e, rows[i].reason);
        } else {
            assert_ok(rc, &e);
            assert_string_equal(form, rows[i].form);
        }
    }
}

static void long_and_deep_paths_are_refused(void **state)
{
    auto_free char *form = NULL;
    auto_str name = {0}, deep = {0}, wide = {0};
    struct err e = {0};

    (void)state;
    for (int i = 0; i < 256; i++)
        str_add_char(&name, 'a');
    assert_refused(file_path_normalize(str_text(&name), false, &form, &e), &e,
                   "InvalidFileOrDirectoryPathName");
    str_truncate(&name, 255);
    assert_ok(file_path_normalize(str_text(&name), false, &form, &e), &e);
    for (int i = 0; i < 252; i++)
        str_add(&deep, "a/");
    assert_refused(file_path_normalize(str_text(&deep), false, &form, &e), &e,
                   "InvalidFileOrDirectoryPathName");
    for (int i = 0; i < 2049; i++)
        str_add(&wide, i % 200 ? "a" : "/");
    assert_refused(file_path_normalize(str_text(&wide), false, &form, &e), &e,
                   "InvalidFileOrDirectoryPathName");
}

static void names_are_equal_but_for_case(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"abc", "ABC", true},
        {"abc", "abd", false},
        {"abc", "abcd", false},
        {"\xc3\xa4", "\xc3\x84", true}, /* a umlaut */
        {"\xd0\xb6", "\xd0\x96", true}, /* Cyrillic zhe */
        {"stra\xc3\x9f"
         "e",
         "STRASSE", false}, /* sharp s is no two letters */
        {"\xff", "\xff", true},
        {"\xff", "\xfe", false},
        {"", "", true},
        {"", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(file_names_equal(rows[i].a, rows[i].b), rows[i].equal);
        assert_int_equal(file_names_equal(rows[i].b, rows[i].a), rows[i].equal);
        assert_int_equal(file_name_hash(rows[i].a) == file_name_hash(rows[i].b), rows[i].equal);
    }
    assert_true(file_name_starts("Readme", "rEAD"));
    assert_false(file_name_starts("Re", "rEAD"));
    assert_true(file_name_starts("x", ""));
}

static void names_keep_their_case_and_are_found_without_it(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *real = yard_path(yard, "Dir/File.TXT"), *text = NULL;
    autoptr(file) file = NULL;
    autoptr(file) again = NULL;
    struct err e = {0};

    make_folder(yard, "Dir");
    make_file(yard, "dIR/File.TXT", "one");
    assert_int_equal(access(real, F_OK), 0);
    file = find(yard, "DIR/fILE.txt");
    assert_string_equal(file->name, "File.TXT");
    /* Replacing keeps the name that is there. */
    assert_ok(try_create(yard, "dir/FILE.txt", 2, NULL, &e), &e);
    again = find(yard, "dir/file.txt");
    assert_string_equal(again->name, "File.TXT");
    assert_refused(try_mkdir(yard, "DIR", &e), &e, "ResourceAlreadyExists");
    text = read_file(yard, "DIR/FILE.TXT");
    assert_memory_equal(text, "\0\0", 2);
}

static void a_name_that_a_job_made_meanwhile_is_found_without_its_case(void **state)
{
    struct share_yard *yard = *state;

    for (int i = 0; i < 20; i++) {
        auto_free char *ours = xasprintf("ours-%d", i), *lower = xasprintf("job-%d", i);
        auto_free char *upper = xasprintf("JOB-%d", i), *real = yard_path(yard, upper);
        autoptr(file) file = NULL;

        make_file(yard, ours, "");
        assert_missing(yard, lower, "ResourceNotFound");
        usleep(5000); /* older kernels' clocks of files tick every 4 ms */
        write_behind(yard, upper, "x");
        file = find(yard, lower);
        assert_string_equal(file->name, upper);
        usleep(5000);
        unlink(real);
        assert_missing(yard, lower, "ResourceNotFound");
    }
}

static void two_names_of_a_job_that_differ_in_case_are_two_files(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *lower = NULL, *upper = NULL;

    write_behind(yard, "name", "lower");
    write_behind(yard, "NAME", "upper");
    lower = read_file(yard, "name");
    upper = read_file(yard, "NAME");
    assert_string_equal(lower, "lower");
    assert_string_equal(upper, "upper");
}

static void forbidden_names_are_not_made_but_read(void **state)
{
    static const char *const names[] = {"a:b", "a*", "a?", "a\"b", "a<", "a>", "a|b"};
    struct share_yard *yard = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct file_address a = at(names[i]);
        auto_free char *text = NULL;
        struct err e = {0};

        assert_refused(try_create(yard, names[i], 1, NULL, &e), &e, "InvalidResourceName");
        assert_refused(try_mkdir(yard, names[i], &e), &e, "InvalidResourceName");
        assert_missing(yard, names[i], "InvalidResourceName");
        write_behind(yard, names[i], "by a job");
        text = read_file(yard, names[i]);
        assert_string_equal(text, "by a job");
        assert_ok(files_delete(yard->files, &a, false, NULL, &e), &e);
    }
}

static void trailing_dots_count_only_when_allowed(void **state)
{
    struct share_yard *yard = *state;
    struct file_address dotted = at("a.");
    autoptr(file) plain = NULL;
    autoptr(file) made = NULL;
    autoptr(file) found = NULL;
    struct err e = {0};

    make_file(yard, "a.", "1");
    plain = find(yard, "a");
    assert_string_equal(plain->name, "a");
    dotted.trailing_dots = true;
    assert_refused(files_find(yard->files, &dotted, -1, &found, NULL, &e), &e,
                   "ResourceNotFound");
    assert_ok(files_create(yard->files, &dotted, 1, &(struct file_put){0}, NULL, &made, &e),
              &e);
    assert_string_equal(made->name, "a.");
    assert_true(made->file_id != plain->file_id);
}

/* --- renaming --- */

static int try_rename(struct share_yard *yard,
                      const char *from,
                      const char *to,
                      bool is_directory,
                      bool replaces,
                      struct err *e)
{
    const struct file_address a = at(from), b = at(to);
    const struct file_move move = {.is_directory = is_directory, .replaces = replaces};
    autoptr(file) file = NULL;

    return files_rename(yard->files, &a, &b, &move, &file, e);
}

static void a_rename_moves_name_and_facts(void **state)
{
    struct share_yard *yard = *state;
    const struct file_put put = {.headers = {.content_type = (char *)"text/x"}};
    autoptr(file) before = NULL;
    autoptr(file) after = NULL;
    struct err e = {0};

    make_folder(yard, "d");
    assert_ok(try_create(yard, "x", 3, &put, &e), &e);
    before = find(yard, "x");
    assert_ok(try_rename(yard, "x", "d/y", false, false, &e), &e);
    assert_missing(yard, "x", "ResourceNotFound");
    after = find(yard, "d/y");
    assert_int_equal(after->file_id, before->file_id);
    assert_string_equal(after->headers.content_type, "text/x");
}

static void a_rename_of_case_alone_is_one(void **state)
{
    struct share_yard *yard = *state;
    autoptr(file) file = NULL;
    autoptr(file) same = NULL;
    struct err e = {0};

    make_file(yard, "name", "x");
    assert_ok(try_rename(yard, "name", "NAME", false, false, &e), &e);
    file = find(yard, "name");
    assert_string_equal(file->name, "NAME");
    assert_ok(try_rename(yard, "NAME", "NAME", false, false, &e), &e);
    same = find(yard, "name");
    assert_int_equal(same->file_id, file->file_id);
}

static void a_rename_replaces_files_only_and_only_when_told(void **state)
{
    struct share_yard *yard = *state;
    auto_free char *text = NULL;
    struct err e = {0};

    make_file(yard, "a", "a");
    make_file(yard, "b", "b");
    make_folder(yard, "d");
    make_folder(yard, "e");
    assert_refused(try_rename(yard, "a", "b", false, false, &e), &e, "ResourceAlreadyExists");
    assert_refused(try_rename(yard, "a", "d", false, true, &e), &e, "ResourceAlreadyExists");
    assert_refused(try_rename(yard, "d", "e", true, true, &e), &e, "ResourceAlreadyExists");
    assert_refused(try_rename(yard, "d", "x", false, false, &e), &e, "ResourceTypeMismatch");
    assert_refused(try_rename(yard, "none", "x", false, false, &e), &e, "ResourceNotFound");
    assert_refused(try_rename(yard, "a", "none/x", false, false, &e), &e, "ParentNotFound");
    assert_ok(try_rename(yard, "a", "B", false, true, &e), &e);
    text = read_file(yard, "b");
    assert_string_equal(text, "a");
    assert_ok(try_rename(yard, "d", "e/below", true, false, &e), &e);
    assert_int_equal(try_rename(yard, "e", "e/below/itself", true, false, &e), -1);
}

/* --- listing --- */

static void add_name(const struct file *file, void *context)
{
    str_addf(context, "%s%s ", file->name, file->is_directory ? "/" : "");
}

static void a_directory_is_listed_in_byte_order_by_prefix_and_page(void **state)
{
    static const struct {
        const char *prefix, *marker;
        size_t most;
        const char *names, *next;
    } rows[] = {
        {"", "", 10, "C a b/ b0 bb ", ""}, {"", "", 2, "C a ", "a"},
        {"", "a", 2, "b/ b0 ", "b0"},      {"", "b0", 2, "bb ", ""},
        {"b", "", 10, "b/ b0 bb ", ""},    {"BB", "", 10, "bb ", ""},
        {"", "", 5, "C a b/ b0 bb ", ""},  {"q", "", 1, "", ""},
    };
    struct share_yard *yard = *state;
    auto_free char *fifo = yard_path(yard, "a-fifo"), *link = yard_path(yard, "a-link");
    const struct file_address root = at("");
    auto_free char *end = NULL;
    auto_str all = {0};
    struct err e = {0};

    make_file(yard, "C", "");
    make_folder(yard, "b");
    write_behind(yard, "b\xff", "");
    make_file(yard, "a", "");
    make_file(yard, "bb", "");
    make_file(yard, "b0", "");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(file) directory = NULL;
        auto_free char *next = NULL;
        auto_str names = {0};

        assert_ok(files_list(yard->files, &root, rows[i].prefix, rows[i].marker, rows[i].most,
                             add_name, &names, &directory, &next, &e),
                  &e);
        assert_string_equal(str_text(&names), rows[i].names);
        assert_string_equal(next, rows[i].next);
        assert_true(directory->is_directory);
    }
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("/etc", link), 0);
    assert_ok(files_list(yard->files, &root, "", "", 10, add_name, &all, NULL, &end, &e), &e);
    assert_string_equal(str_text(&all), "C a b/ b0 bb ");
}

static void a_large_directory_is_listed_page_by_page_without_loss(void **state)
{
    struct share_yard *yard = *state;
    const struct file_address root = at("");
    auto_free char *marker = xstrdup("");
    auto_str all = {0}, expected = {0};

    for (int i = 0; i < 500; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%03d", (i * 37) % 500);
        write_behind(yard, name, "");
        str_addf(&expected, "n%03d ", i);
    }
    do {
        char *next = NULL;
        struct err e = {0};

        assert_ok(
            files_list(yard->files, &root, "", marker, 7, add_name, &all, NULL, &next, &e), &e);
        free(marker);
        marker = next;
    } while (*marker);
    assert_string_equal(str_text(&all), str_text(&expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, yard_setup, yard_teardown)
        cmocka_unit_test(paths_are_brought_into_one_form),
        cmocka_unit_test(long_and_deep_paths_are_refused),
        cmocka_unit_test(names_are_equal_but_for_case),
        TEST(names_keep_their_case_and_are_found_without_it),
        TEST(a_name_that_a_job_made_meanwhile_is_found_without_its_case),
        TEST(two_names_of_a_job_that_differ_in_case_are_two_files),
        TEST(forbidden_names_are_not_made_but_read),
        TEST(trailing_dots_count_only_when_allowed),
        TEST(a_rename_moves_name_and_facts),
        TEST(a_rename_of_case_alone_is_one),
        TEST(a_rename_replaces_files_only_and_only_when_told),
        TEST(a_directory_is_listed_in_byte_order_by_prefix_and_page),
        TEST(a_large_directory_is_listed_page_by_page_without_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
