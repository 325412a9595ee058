/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-address.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void urls_are_taken_apart(void **state)
{
    static const struct row {
        const char *url, *endpoint, *account, *container, *path, *pattern, *sas;
        enum storage_service service;
        bool ends_in_slash;
    } rows[] = {
        {"http://127.0.0.1:10000/acc/con/a/b.txt", "http://127.0.0.1:10000/acc", "acc", "con",
         "a/b.txt", NULL, NULL, STORAGE_BLOB, false},
        {"http://127.0.0.1:10004/acc/share/", "http://127.0.0.1:10004/acc", "acc", "share", "",
         NULL, NULL, STORAGE_FILE, true},
        {"http://127.0.0.1:39885/acc/con", "http://127.0.0.1:39885/acc", "acc", "con", "", NULL,
         NULL, STORAGE_UNKNOWN, false},
        {"http://localhost:9/acc/con/d/", "http://localhost:9/acc", "acc", "con", "d", NULL,
         NULL, STORAGE_UNKNOWN, true},
        {"https://Acc.blob.core.windows.net/con/?sv=1&sig=x%2F",
         "https://acc.blob.core.windows.net", "acc", "con", "", NULL, "sv=1&sig=x%2F",
         STORAGE_BLOB, true},
        {"https://acc.file.core.windows.net/s/d?sig=x", "https://acc.file.core.windows.net",
         "acc", "s", "d", NULL, "sig=x", STORAGE_FILE, false},
        {"https://yard.example:10000/acc/con", "https://yard.example:10000/acc", "acc", "con",
         "", NULL, NULL, STORAGE_BLOB, false},
        {"https://acc.blob.yard.example:7000/con", "https://acc.blob.yard.example:7000", "acc",
         "con", "", NULL, NULL, STORAGE_BLOB, false},
        {"http://[::1]:10000/acc/con", "http://[::1]:10000/acc", "acc", "con", "", NULL, NULL,
         STORAGE_BLOB, false},
        {"http://127.0.0.1:10000/acc", "http://127.0.0.1:10000/acc", "acc", "", "", NULL, NULL,
         STORAGE_BLOB, false},
        {"http://127.0.0.1:10000/acc/con/d/*", "http://127.0.0.1:10000/acc", "acc", "con", "d",
         "*", NULL, STORAGE_BLOB, false},
        {"http://127.0.0.1:10000/acc/con/*.jp%67?", "http://127.0.0.1:10000/acc", "acc", "con",
         "", "*.jpg", NULL, STORAGE_BLOB, false},
        {"http://127.0.0.1:10000/acc/con/a%2Ab%20%C3%BC%3F", "http://127.0.0.1:10000/acc",
         "acc", "con", "a*b ü?", NULL, NULL, STORAGE_BLOB, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        auto_address a = {0};
        struct err e;

        if (address_parse(r->url, &a, &e) < 0)
            fail_msg("%s: %s", r->url, e.msg);
        if (a.is_local || !str_equal(a.endpoint, r->endpoint) ||
            !str_equal(a.account, r->account) || !str_equal(a.container, r->container) ||
            !str_equal(a.path, r->path) || !str_equal(a.pattern, r->pattern) ||
            !str_equal(a.sas, r->sas) || a.service != r->service ||
            a.ends_in_slash != r->ends_in_slash)
            fail_msg("%s: %s %s %s \"%s\" %s %s %d %d", r->url, a.endpoint, a.account,
                     a.container, a.path, a.pattern ? a.pattern : "-", a.sas ? a.sas : "-",
                     (int)a.service, a.ends_in_slash);
    }
}

static void local_paths_stay_as_typed(void **state)
{
    static const struct row {
        const char *text, *path, *pattern;
        bool ends_in_slash;
    } rows[] = {
        {".", ".", NULL, false},
        {"data", "data", NULL, false},
        {"data/", "data/", NULL, true},
        {"data/*", "data/", "*", false},
        {"*.jpg", ".", "*.jpg", false},
        {"/a%20b", "/a%20b", NULL, false},
        {"ftp://x", "ftp://x", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_address a = {0};

        assert_int_equal(address_parse(rows[i].text, &a, NULL), 0);
        assert_true(a.is_local);
        assert_string_equal(a.path, rows[i].path);
        assert_true(str_equal(a.pattern, rows[i].pattern));
        assert_int_equal(a.ends_in_slash, rows[i].ends_in_slash);
    }
}

static void short_forms_name_an_account(void **state)
{
    auto_address a = {0}, b = {0}, c = {0};

    (void)state;
    assert_int_equal(address_parse_remote("lab/images/a b%20/c", &a, NULL), 0);
    assert_string_equal(a.account, "lab");
    assert_string_equal(a.container, "images");
    assert_string_equal(a.path, "a b%20/c");
    assert_null(a.endpoint);
    assert_int_equal(address_parse_remote("lab", &b, NULL), 0);
    assert_string_equal(b.container, "");
    assert_int_equal(address_parse_remote("/lab", &c, NULL), -1);
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "http://",
        "http://127.0.0.1:10000",
        "http://127.0.0.1:10000/",
        "http://user@host.blob.core.windows.net/c",
        "https://acc.blob.core.windows.net/c?snapshot=1",
        "http://127.0.0.1:10000/acc/con/a*b/c",
        "http://127.0.0.1:10000/acc/con/%zz",
        "dir*/a",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        auto_address a = {0};

        if (address_parse(texts[i], &a, NULL) == 0)
            fail_msg("\"%s\" was taken", texts[i]);
    }
}

static void hosts_compare_by_what_they_reach(void **state)
{
    (void)state;
    assert_true(address_same_host("127.0.0.1:10000", "localhost:10000"));
    assert_true(address_same_host("Yard.example:1", "yard.EXAMPLE:1"));
    assert_false(address_same_host("127.0.0.1:10000", "127.0.0.1:10004"));
    assert_false(address_same_host("127.0.0.1:10000", "127.example.com:10000"));
}

static void the_base_of_a_path_is_its_last_name(void **state)
{
    auto_free char *base = address_base("a/b c//");

    (void)state;
    assert_string_equal(base, "b c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(local_paths_stay_as_typed),
        cmocka_unit_test(short_forms_name_an_account),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(hosts_compare_by_what_they_reach),
        cmocka_unit_test(the_base_of_a_path_is_its_last_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
