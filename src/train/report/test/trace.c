/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/trace.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct trace_span spans[] = {
    {.name = "conv1", .kind = "conv", .begin_ns = 5000, .end_ns = 9000, .flops = 8000},
    {.name = "conv1", .kind = "conv", .begin_ns = 3000, .end_ns = 4000, .flops = 2000},
    {.name = "bucket", .kind = "reduce_wait", .track = 2, .begin_ns = 9000, .end_ns = 10000},
};

static void a_trace_is_chromes(void **state)
{
    char path[] = "/tmp/yard-trace-XXXXXX";
    autoptr(arena) arena = arena_new();
    const struct jsonr *json, *event;
    auto_str text = {0};
    int whole = 0;

    (void)state;
    close(mkstemp(path));
    assert_int_equal(trace_write(path, 3, spans, 3, NULL), 0);
    assert_int_equal(fs_read(path, 1 << 20, &text, NULL), 0);
    assert_int_equal(jsonr_parse(arena, text.data, text.len, &json, NULL), 0);
    for (event = jsonr_get(json, "traceEvents")->first; event; event = event->next) {
        assert_float_equal(jsonr_get(event, "pid")->number, 3, 0);
        if (!str_equal(jsonr_get(event, "ph")->text, "X"))
            continue;
        if (whole++ == 0) { /* times count from the earliest span */
            assert_float_equal(jsonr_get(event, "ts")->number, 2, 0);
            assert_float_equal(jsonr_get(event, "dur")->number, 4, 0);
            assert_string_equal(jsonr_get(event, "cat")->text, "conv");
        }
    }
    assert_int_equal(whole, 3);
    unlink(path);
}

static void a_profile_sums_by_op_and_layer(void **state)
{
    struct profile *profile = profile_new();
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    profile_add(profile, spans, 3);
    profile_add(profile, spans, 3);
    profile_print(profile, 2, 4e9, out);
    fclose(out);
    /* 2 calls, 5 us and 10 kFLOP a step: 2 GFLOP/s, half of the peak. */
    assert_non_null(strstr(text, "    2.0     0.005  83.3 %       2.0   50.0 %\n"));
    assert_non_null(strstr(text, "bucket reduce_wait"));
    free(text);
    profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_is_chromes),
        cmocka_unit_test(a_profile_sums_by_op_and_layer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
