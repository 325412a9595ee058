/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-progress.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/transfer-digest.h"
#include "cli/transfer.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void sizes_and_times_read_well(void **state)
{
    static const struct {
        double bytes;
        const char *want;
    } sizes[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.0 KiB"},
                 {1536.0 * 1024 * 1024, "1.5 GiB"},
                 {5e18, "4440.9 PiB"}};
    static const struct {
        int64_t seconds;
        const char *want;
    } times[] = {{0, "0:00"}, {7, "0:07"}, {754, "12:34"}, {3723, "1:02:03"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        auto_str out = {0};

        progress_bytes(&out, sizes[i].bytes);
        assert_string_equal(str_text(&out), sizes[i].want);
    }
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        auto_str out = {0};

        progress_time(&out, times[i].seconds);
        assert_string_equal(str_text(&out), times[i].want);
    }
}

static void the_line_tells_rate_and_time_left(void **state)
{
    struct progress progress = {0};
    struct transfer_totals totals = {
        .found_files = 10,
        .found_bytes = 100 << 20,
        .is_all_found = true,
    };
    auto_str first = {0}, line = {0}, narrow = {0};

    (void)state;
    progress_line(&progress, &totals, 0, 80, &first);
    assert_null(strstr(str_text(&first), "/s"));
    totals.files = 5;
    totals.moved_bytes = 50 << 20;
    progress_line(&progress, &totals, 5000, 120, &line);
    assert_string_equal(str_text(&line), "[##########>.........]  50%  5/10 files  50.0 MiB  "
                                         "10.0 MiB/s  0:05 left");
    progress_line(&progress, &totals, 5200, 20, &narrow);
    assert_true(narrow.len < 20);
}

static void no_end_is_promised_before_all_is_found(void **state)
{
    struct progress progress = {0};
    struct transfer_totals totals = {.found_files = 10, .found_bytes = 100};
    auto_str line = {0};

    (void)state;
    progress_line(&progress, &totals, 0, 80, &line);
    assert_string_equal(str_text(&line), "0/10+ files  0 B");
}

static void the_summary_counts_what_is_worth_counting(void **state)
{
    struct transfer_totals totals = {.files = 1, .bytes = 2 << 20};
    auto_str plain = {0}, full = {0};

    (void)state;
    progress_summary(&plain, &totals, 2000);
    assert_string_equal(str_text(&plain), "Copied 1 file, 2.0 MiB in 2.0 s (1.0 MiB/s).");
    totals.before = 2;
    totals.skipped = 3;
    totals.failed = 4;
    totals.removed = 5;
    progress_summary(&full, &totals, 0);
    assert_non_null(
        strstr(str_text(&full), ", 2 of an earlier run, 5 removed, 3 skipped, 4 failed."));
}

static void digests_are_written_as_the_wire_wants_them(void **state)
{
    char md5[DIGEST_MD5_BYTES], crc[DIGEST_CRC64_BYTES], steps[DIGEST_MD5_BYTES];
    autoptr(md5) running = md5_new();

    (void)state;
    assert_string_equal(digest_md5("hello\n", 6, md5), "sZRqySSS0jR8YjW00mERhA==");
    assert_string_equal(digest_crc64("123456789", 9, crc), "iJh5CoYUi64=");
    md5_add(running, "hel", 3);
    md5_add(running, "lo\n", 3);
    assert_string_equal(md5_end(running, steps), md5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_times_read_well),
        cmocka_unit_test(the_line_tells_rate_and_time_left),
        cmocka_unit_test(no_end_is_promised_before_all_is_found),
        cmocka_unit_test(the_summary_counts_what_is_worth_counting),
        cmocka_unit_test(digests_are_written_as_the_wire_wants_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
