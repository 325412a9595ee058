/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/mem.h"
#include "base/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_code_has_a_meaning_outside(void **state)
{
    static const struct {
        enum err_code code;
        int http_status, exit_status;
        bool retry;
    } table[] = {
        {ERR_NONE, 200, 0, false},         {ERR_INVALID, 400, 1, false},
        {ERR_UNAUTHORIZED, 401, 1, false}, {ERR_FORBIDDEN, 403, 1, false},
        {ERR_NOT_FOUND, 404, 3, false},    {ERR_METHOD, 405, 1, false},
        {ERR_CONFLICT, 409, 1, false},     {ERR_PRECONDITION, 412, 1, false},
        {ERR_TOO_LARGE, 413, 1, false},    {ERR_RANGE, 416, 1, false},
        {ERR_MEDIA, 415, 1, false},        {ERR_MISDIRECT, 421, 1, false},
        {ERR_TIMEOUT, 408, 1, true},       {ERR_BUSY, 503, 1, true},
        {ERR_NO_SPACE, 507, 1, true},      {ERR_INTERNAL, 500, 1, true},
    };

    (void)state;
    assert_int_equal(ARRAY_SIZE(table), ERR_CODES);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        const struct err_info *info = err_info(table[i].code);

        assert_int_equal(info->http_status, table[i].http_status);
        assert_int_equal(info->exit_status, table[i].exit_status);
        assert_int_equal(info->retry, table[i].retry);
        assert_non_null(info->reason);
        if (table[i].code)
            assert_int_equal(err_code_of_status(info->http_status), table[i].code);
    }
    assert_int_equal(err_code_of_status(502), ERR_INTERNAL);
    assert_int_equal(err_code_of_status(418), ERR_INVALID);
}

static void errno_becomes_a_code_and_its_text_is_appended(void **state)
{
    static const struct {
        int errno_value;
        enum err_code code;
        const char *msg;
    } table[] = {
        {ENOENT, ERR_NOT_FOUND, "could not open x: No such file or directory"},
        {ENOTDIR, ERR_NOT_FOUND, "could not open x: Not a directory"},
        {EEXIST, ERR_CONFLICT, "could not open x: File exists"},
        {EACCES, ERR_FORBIDDEN, "could not open x: Permission denied"},
        {ELOOP, ERR_INVALID, "could not open x: Too many levels of symbolic links"},
        {EXDEV, ERR_INVALID, "could not open x: Invalid cross-device link"},
        {ENOSPC, ERR_NO_SPACE, "could not open x: No space left on device"},
        {ETIMEDOUT, ERR_TIMEOUT, "could not open x: Connection timed out"},
        {EMFILE, ERR_BUSY, "could not open x: Too many open files"},
        {EIO, ERR_INTERNAL, "could not open x: Input/output error"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};

        assert_int_equal(err_sys(&e, table[i].errno_value, "could not open %c", 'x'), -1);
        assert_int_equal(e.code, table[i].code);
        assert_string_equal(e.msg, table[i].msg);
    }
}

static void setting_forgets_the_reason_and_target_of_an_earlier_error(void **state)
{
    struct err e = {0};

    (void)state;
    err_set(&e, ERR_NOT_FOUND, "no workspace %s", "w");
    err_reason(&e, "WorkspaceNotFound");
    err_target(&e, "w");
    assert_string_equal(err_reason_of(&e), "WorkspaceNotFound");
    assert_int_equal(err_set(&e, ERR_CONFLICT, "other"), -1);
    assert_string_equal(err_reason_of(&e), "Conflict");
    assert_string_equal(e.target, "");
    assert_string_equal(e.msg, "other");
}

static void wrapping_puts_words_before_and_keeps_the_rest(void **state)
{
    struct err e = {0};

    (void)state;
    err_set(&e, ERR_BUSY, "the spool is held");
    err_reason(&e, "SpoolHeld");
    err_target(&e, "spool");
    assert_int_equal(err_wrap(&e, "starting job %d", 7), -1);
    assert_string_equal(e.msg, "starting job 7: the spool is held");
    assert_int_equal(e.code, ERR_BUSY);
    assert_string_equal(err_reason_of(&e), "SpoolHeld");
    assert_string_equal(e.target, "spool");
}

static void too_long_messages_are_cut_and_stay_terminated(void **state)
{
    char big[2 * sizeof(((struct err *)0)->msg)];
    struct err e = {0};

    (void)state;
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_set(&e, ERR_INVALID, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    err_sys(&e, EIO, "%s", big);
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    err_wrap(&e, "outer");
    assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
    assert_memory_equal(e.msg, "outer: aaa", 10);
    for (size_t outer = sizeof(e.msg) - 5; outer < sizeof(e.msg) + 2; outer++) {
        err_wrap(&e, "%.*s", (int)outer, big);
        assert_true(strlen(e.msg) < sizeof(e.msg));
        assert_memory_equal(e.msg, "aaa", 3);
    }
    err_target(&e, big);
    assert_int_equal(strlen(e.target), sizeof(e.target) - 1);
}

static void messages_are_one_line_of_utf8_whatever_they_quote(void **state)
{
    static const struct {
        const char *quoted, *msg;
    } table[] = {
        {"plain", "plain"},
        {"two\nlines\tand tabs", "two lines and tabs"},
        {"\x1b[31m", "?[31m"},
        {"\x7f", "?"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"cut \xe2\x82", "cut ??"},
        {"\xc3", "?"},
        {"\xff\xfe", "??"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct err e = {0};

        err_set(&e, ERR_INVALID, "%s", table[i].quoted);
        assert_string_equal(e.msg, table[i].msg);
        err_target(&e, table[i].quoted);
        assert_string_equal(e.target, table[i].msg);
    }
}

static void a_cut_never_leaves_half_a_character(void **state)
{
    struct err e = {0};

    (void)state;
    for (int cut = 0; cut < 8; cut++) {
        err_set(&e, ERR_INVALID, "%.*s", cut, "\xe2\x82\xac\xf0\x9f\x98\x80");
        assert_int_equal(strlen(e.msg), cut > 7 ? 7 : cut);
        assert_true(text_is_utf8(e.msg, strlen(e.msg)));
    }
}

static void no_error_wanted_is_fine_everywhere(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_INVALID, "x"), -1);
    assert_int_equal(err_sys(NULL, EIO, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
    assert_int_equal(err_reason(NULL, "x"), -1);
    assert_int_equal(err_target(NULL, "x"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_meaning_outside),
        cmocka_unit_test(errno_becomes_a_code_and_its_text_is_appended),
        cmocka_unit_test(setting_forgets_the_reason_and_target_of_an_earlier_error),
        cmocka_unit_test(wrapping_puts_words_before_and_keeps_the_rest),
        cmocka_unit_test(too_long_messages_are_cut_and_stay_terminated),
        cmocka_unit_test(messages_are_one_line_of_utf8_whatever_they_quote),
        cmocka_unit_test(a_cut_never_leaves_half_a_character),
        cmocka_unit_test(no_error_wanted_is_fine_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
