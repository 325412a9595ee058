/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Stderr led into a pipe while a line is written. */
struct capture {
    int saved, read_end;
};

static void capture_begin(struct capture *c)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    c->saved = dup(STDERR_FILENO);
    c->read_end = ends[0];
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
}

static void capture_end(struct capture *c, struct str *out)
{
    char bytes[4096];
    ssize_t got;

    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    while ((got = read(c->read_end, bytes, sizeof(bytes))) > 0)
        str_add_len(out, bytes, (size_t)got);
    close(c->read_end);
}

static void secrets_are_taken_out(void **state)
{
    static const struct {
        const char *text, *redacted;
    } table[] = {
        {"", ""},
        {"nothing here", "nothing here"},
        {"GET /c/b?sv=2019&sig=abc%2Bd&se=x", "GET /c/b?sv=2019&sig=***&se=x"},
        {"Authorization: Bearer eyJ0.x-y_z next", "Authorization: Bearer *** next"},
        {"bearer tok", "bearer ***"},
        {"BEARER tok", "BEARER ***"},
        {"Bearer  two-spaces", "Bearer  ***"},
        {"SharedKey acct:c2ln=", "SharedKey ***"},
        {"SharedKeyLite acct:c2ln=", "SharedKeyLite ***"},
        {"Basic dXNlcjpwYXNz", "Basic ***"},
        {"AccountName=a;AccountKey=k/+==;End=x", "AccountName=a;AccountKey=***;End=x"},
        {"grant=x&client_secret=s3&scope=y", "grant=x&client_secret=***&scope=y"},
        {"password=hunter2 user=x", "password=*** user=x"},
        {"password=\"hunter two\" user=x", "password=*** user=x"},
        {"password='hunter two' user=x", "password=*** user=x"},
        {"password=\"no end", "password=***"},
        {"token=t1&token=t2", "token=***&token=***"},
        {"{\"password\":\"p w\",\"user\":\"u\"}", "{\"password\":***,\"user\":\"u\"}"},
        {"{\"access_token\": \"t\"}", "{\"access_token\": ***}"},
        {"{\"accountKey\" : \"k\"}", "{\"accountKey\" : ***}"},
        {"url=%3Fsig%3Dabc", "url=%3Fsig%3D***"},
        {"client_assertion=jwt", "client_assertion=***"},
        {"sig=", "sig=***"},
        {"Bearer ", "Bearer ***"},
        {"tokenFile=/run/token", "tokenFile=/run/token"},
        {"the token: expired", "the token: expired"},
        {"design=x", "design=x"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0};

        log_redact(&out, table[i].text);
        assert_string_equal(str_text(&out), table[i].redacted);
    }
}

static void a_line_is_one_line_of_harmless_text(void **state)
{
    static const struct {
        const char *text, *tail;
    } table[] = {
        {"event=start port=1", "event=start port=1\n"},
        {"a\nlevel=error forged", "a\\x0alevel=error forged\n"},
        {"\r\t\x1b[2J\x7f", "\\x0d\\x09\\x1b[2J\\x7f\n"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac\n"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m\n"}, /* CSI in one character */
        {"\xc2\xa0", "\xc2\xa0\n"},
        {"\x9b"
         "31m",
         "\\x9b31m\n"},
        {"\xff\xe2\x82", "\\xff\\xe2\\x82\n"},
        {"sig=abc", "sig=***\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_str out = {0};
        struct capture c;
        const char *tail;

        capture_begin(&c);
        log_info("%s", table[i].text);
        capture_end(&c, &out);
        tail = strstr(str_text(&out), " level=info ");
        assert_non_null(tail);
        assert_string_equal(tail + strlen(" level=info "), table[i].tail);
    }
}

static void a_line_starts_with_its_time(void **state)
{
    int64_t before = clock_wall_ms(), written = 0;
    auto_str out = {0};
    auto_free char *time = NULL;
    struct capture c;

    (void)state;
    capture_begin(&c);
    log_error("x=%d", 1);
    capture_end(&c, &out);
    assert_true(str_starts(str_text(&out), "time="));
    assert_true(str_ends(str_text(&out), " level=error x=1\n"));
    time = xstrndup(out.data + 5, strcspn(out.data + 5, " "));
    assert_int_equal(clock_parse_iso(time, &written, NULL), 0);
    assert_true(written >= before && written <= clock_wall_ms());
}

static void lines_below_the_level_are_not_written(void **state)
{
    static const enum log_level levels[] = {LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING,
                                            LOG_LEVEL_ERROR};

    (void)state;
    for (size_t at = 0; at < ARRAY_SIZE(levels); at++) {
        for (size_t of = 0; of < ARRAY_SIZE(levels); of++) {
            auto_str out = {0};
            struct capture c;

            log_set_level(levels[at]);
            capture_begin(&c);
            log_line(levels[of], "x");
            capture_end(&c, &out);
            assert_int_equal(out.len > 0, of >= at);
        }
    }
    log_set_level(LOG_LEVEL_INFO);
}

static void levels_have_names(void **state)
{
    static const struct {
        const char *name;
        enum log_level level;
    } table[] = {
        {"debug", LOG_LEVEL_DEBUG},
        {"info", LOG_LEVEL_INFO},
        {"warning", LOG_LEVEL_WARNING},
        {"error", LOG_LEVEL_ERROR},
    };
    static const char *const wrong[] = {"", "Debug", "warn", "3"};
    enum log_level level = LOG_LEVEL_DEBUG;
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(log_parse_level(table[i].name, &level, NULL), 0);
        assert_int_equal(level, table[i].level);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_int_equal(log_parse_level(wrong[i], &level, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_int_equal(level, LOG_LEVEL_ERROR);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_taken_out),
        cmocka_unit_test(a_line_is_one_line_of_harmless_text),
        cmocka_unit_test(a_line_starts_with_its_time),
        cmocka_unit_test(lines_below_the_level_are_not_written),
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
