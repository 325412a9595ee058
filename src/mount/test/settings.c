/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/settings.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SOURCE                                                                                 \
    "\"endpoint\": \"http://127.0.0.1:10000/acct\", \"account\": \"acct\", \"container\": "    \
    "\"con\""

static int parse(struct settings *s, const char *const words[], struct err *e)
{
    int count = 0;

    while (words[count])
        count++;
    return settings_parse(s, count, (char *const *)words, e);
}

static void options_are_understood(void **state)
{
    auto_settings s = {0};

    (void)state;
    assert_int_equal(parse(&s,
                           (const char *[]){"--rw", "--cache-mib", "64", "--log=/x", "/tmp",
                                            "--fresh-seconds=0", NULL},
                           NULL),
                     0);
    assert_true(s.is_writable);
    assert_false(s.is_immutable);
    assert_int_equal(s.cache_mib, 64);
    assert_int_equal(s.fresh_seconds, 0);
    assert_int_equal(s.patience_seconds, 60);
    assert_string_equal(s.log_file, "/x");
    assert_string_equal(s.folder, "/tmp");
}

static void wrong_options_are_refused(void **state)
{
    static const struct {
        const char *words[4];
        const char *says;
    } rows[] = {
        {{"--nothing", "/tmp"}, "nothing"},    {{"--cache-mib", "x", "/tmp"}, "cache-mib"},
        {{"--cache-mib=1", "/tmp"}, "number"}, {{"--cache-mib"}, "value"},
        {{"--rw=1", "/tmp"}, "no value"},      {{"/tmp", "/var"}, "one folder"},
        {{"/nowhere/at/all"}, "/nowhere"},     {{"--rw"}, "which folder"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_settings s = {0};
        struct err e = {0};

        assert_int_equal(parse(&s, rows[i].words, &e), -1);
        if (!strstr(e.msg, rows[i].says))
            fail_msg("\"%s\" does not say %s", e.msg, rows[i].says);
    }
}

static void the_source_is_understood(void **state)
{
    static const char text[] =
        "{\"service\": \"file\", \"path\": \"/a/b/\", \"sas\": \"sig=x\", "
        "\"isYard\": true, " SOURCE "}";
    auto_settings s = {0};

    (void)state;
    assert_int_equal(settings_parse_source(&s, text, strlen(text), NULL), 0);
    assert_true(s.is_share);
    assert_true(s.is_yard);
    assert_int_equal(s.auth, REMOTE_SAS);
    assert_string_equal(s.secret, "sig=x");
    assert_string_equal(s.path, "a/b");
    assert_string_equal(s.container, "con");
    assert_null(s.ca_file);
}

static void wrong_sources_are_refused(void **state)
{
    static const char *const rows[][2] = {
        {"{\"service\": \"blob\", " SOURCE "}", "none of"},
        {"{\"service\": \"blob\", \"key\": \"a\", \"sas\": \"b\", " SOURCE "}",
         "more than one"},
        {"{\"service\": \"tape\", \"key\": \"a\", " SOURCE "}", "tape"},
        {"{\"service\": \"blob\", \"key\": \"a\"}", "endpoint"},
        {"{\"service\": 1}", "service"},
        {"{", "source"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_settings s = {0};
        struct err e = {0};

        assert_int_equal(settings_parse_source(&s, rows[i][0], strlen(rows[i][0]), &e), -1);
        if (!strstr(e.msg, rows[i][1]))
            fail_msg("\"%s\" does not say %s", e.msg, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_understood),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(the_source_is_understood),
        cmocka_unit_test(wrong_sources_are_refused),
    };

    return cmocka_run_group_tests_name("mount/settings", tests, NULL, NULL);
}
