/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-stream.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The text in pieces of every size gives the same as in one. */
static void check(const char *text, const char *want)
{
    size_t len = strlen(text);

    for (size_t piece = 1; piece <= len + 1; piece++) {
        struct job_screen screen = {0};
        auto_str out = {0};

        for (size_t at = 0; at < len; at += piece)
            job_screen_add(&screen, text + at, len - at < piece ? len - at : piece, &out);
        job_screen_end(&screen, &out);
        if (!str_equal(str_text(&out), want))
            fail_msg("in pieces of %zu: \"%s\", not \"%s\"", piece, str_text(&out), want);
    }
}

static void text_for_a_terminal_is_cleaned_however_it_comes(void **state)
{
    (void)state;
    check("plain\n", "plain\n");
    check("\xc3\xa9 \xe4\xb8\x96 \xf0\x9f\x98\x80!", "\xc3\xa9 \xe4\xb8\x96 \xf0\x9f\x98\x80!");
    check("a\x1b]0;title\x07z", "a]0;titlez");
    check("10%\r20%\r\nnext\n\r", "10%\n20%\nnext\n\n");
    check("\xe4\xb8", "\xef\xbf\xbd\xef\xbf\xbd");
    check("\xc2\x9b"
          "31m",
          "31m"); /* a C1 control */
    check("bad \xff end", "bad \xef\xbf\xbd end");
    check("", "");
}

static void a_request_goes_on_from_its_byte(void **state)
{
    const struct job_stream stream = {
        .job_id = "/subscriptions/s/jobs/j", .file = "a b.txt", .path = "x/y", .follows = true};
    const struct job_stream plain = {
        .job_id = "/j", .file = "stdout.txt", .directory = "MODEL"};
    auto_str got = {0}, other = {0};

    (void)state;
    job_stream_path(&got, &stream, 123456789012);
    assert_string_equal(str_text(&got),
                        "/subscriptions/s/jobs/j/log?api-version=2018-05-01&file=a%20b.txt&"
                        "outputdirectoryid=stdouterr&directory=x%2Fy&follow=true&offset="
                        "123456789012");
    job_stream_path(&other, &plain, 0);
    assert_string_equal(str_text(&other), "/j/log?api-version=2018-05-01&file=stdout.txt&"
                                          "outputdirectoryid=MODEL&follow=false&offset=0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_for_a_terminal_is_cleaned_however_it_comes),
        cmocka_unit_test(a_request_goes_on_from_its_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
