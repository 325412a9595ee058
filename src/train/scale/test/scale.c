/* SPDX-License-Identifier: Apache-2.0 */
#include "train/scale/scale.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/scale/scale-internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- scale_launch: children are shells -------------------------------------------------------
 */

static int launch(const char *script, int ranks, const char *folder, struct err *e)
{
    char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};

    return scale_launch(argv, ranks, folder, e);
}

static void make_folder(char folder[64])
{
    snprintf(folder, 64, "/tmp/yard-scale-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void check_file(const char *folder, const char *name, const char *want)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    auto_str text = {0};

    assert_int_equal(fs_read(path, 4096, &text, NULL), 0);
    assert_string_equal(str_text(&text), want);
    unlink(path);
}

static void test_every_rank_has_its_seat_and_its_logs(void **state)
{
    char folder[64];
    struct err e = {0};

    (void)state;
    make_folder(folder);
    assert_int_equal(
        launch("echo ${YARDBENCH_LOCAL%:*}; echo e${YARDBENCH_LOCAL%%:*} >&2", 3, folder, &e),
        0);
    check_file(folder, "rank-0.out", "0:3\n");
    check_file(folder, "rank-1.out", "1:3\n");
    check_file(folder, "rank-2.out", "2:3\n");
    check_file(folder, "rank-0.err", "e0\n");
    check_file(folder, "rank-2.err", "e2\n");
    check_file(folder, "rank-1.err", "e1\n");
    assert_int_equal(rmdir(folder), 0);
}

static void test_the_first_that_fails_is_named_and_ends_the_others(void **state)
{
    struct err e = {0};
    int64_t begun = clock_mono_ms();

    (void)state;
    assert_int_equal(
        launch("[ ${YARDBENCH_LOCAL%%:*} = 1 ] && exit 3; exec sleep 60", 3, NULL, &e), -1);
    assert_string_equal(e.msg, "rank 1 ended with status 3");
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(
        launch("[ ${YARDBENCH_LOCAL%%:*} = 2 ] && kill -9 $$; exec sleep 60", 3, NULL, &e), -1);
    assert_string_equal(e.msg, "rank 2 died: signal 9");
    assert_true(clock_mono_ms() - begun < 30000);
}

static void test_what_cannot_be_started_is_an_error(void **state)
{
    char *const argv[] = {(char *)"/no/such/program", NULL};
    char folder[64];
    struct err e = {0};

    (void)state;
    make_folder(folder);
    assert_int_equal(scale_launch(argv, 1, folder, &e), -1);
    check_file(folder, "rank-0.err",
               "could not start \"/no/such/program\": No such file or directory\n");
    check_file(folder, "rank-0.out", "");
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(scale_launch(argv, 0, NULL, &e), -1);
    assert_int_equal(scale_launch(argv, 100000, NULL, &e), -1);
}

/* --- reports ---------------------------------------------------------------------------------
 */

static const char report[] =
    "{\"error\":null,\"model\":\"lenet\",\"batch\":32,\"ranks\":2,\"params\":1000,"
    "\"images_per_second\":{\"mean\":1,\"total\":640},"
    "\"seconds\":{\"exposed_communication\":0.02,\"communication\":0.04},"
    "\"communication\":{\"bytes\":8000,\"calls\":2},"
    "\"buckets\":\"0.09 0.05:3000 0.08:1000\","
    "\"steps\":[{\"step\":1,\"seconds\":0.1},{\"step\":2,\"seconds\":0.1}]}";

static void test_a_report_becomes_figures(void **state)
{
    struct scale_run run;
    struct err e = {0};

    (void)state;
    assert_int_equal(scale_read_report(report, strlen(report), &run, &e), 0);
    assert_int_equal(run.ranks, 2);
    assert_int_equal(run.batch, 32);
    assert_true(run.images_per_s == 640 && run.step_s == 0.1);
    assert_true(run.exposed_s == 0.01 && run.busy_s == 0.02 && run.bytes == 4000);
    assert_int_equal(run.bucket_count, 2);
    assert_true(run.backward_end_s == 0.09);
    assert_true(run.buckets[1].ready_s == 0.08 && run.buckets[1].bytes == 1000);
    scale_run_done(&run);
}

static void test_a_bad_report_is_refused(void **state)
{
    static const char *const bad[] = {"", "{", "{}", "{\"ranks\":2}",
                                      "{\"ranks\":1,\"images_per_second\":{\"total\":1}}"};
    static const char *const paces[] = {"",     "x",      "1",       "1 2",
                                        "1 2:", "1 2:3 ", "1 2:3 4", "1 2:3x"};
    struct scale_run run = {0};
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(scale_read_report(bad[i], strlen(bad[i]), &run, &e), -1);
    for (size_t i = 0; i < ARRAY_SIZE(paces); i++) {
        run = (struct scale_run){0};
        assert_int_equal(scale_read_pace(paces[i], &run, &e), -1);
        assert_null(run.buckets);
    }
}

static void test_the_table(void **state)
{
    static const char want[] =
        "lenet, batch 32 a rank, 1 thread a rank, 2 cores\n\n"
        "ranks  images/sec  efficiency   step ms  compute ms  reduced ms  exposed ms\n"
        "    1      400.00     100.0 %      80.0        80.0        0.00        0.00\n"
        "    2      640.00      80.0 %     100.0        90.0       20.00       10.00\n";
    struct scale_figures figures = {
        .model = "lenet",
        .threads = 1,
        .cores = 2,
        .network = {"a network", 1e-6, 1e9},
        .runs = {{.ranks = 1,
                  .batch = 32,
                  .images_per_s = 400,
                  .step_s = 0.08,
                  .typical_s = 0.08,
                  .params = 1000}},
        .run_count = 2,
    };
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct err e = {0};

    (void)state;
    assert_int_equal(scale_read_report(report, strlen(report), &figures.runs[1], &e), 0);
    scale_print(&figures, out);
    fclose(out);
    assert_true(str_starts(text, want));
    assert_non_null(
        strstr(text, "predicted, a network: latency 1.0 us, 1.0 GB/s a node; 2 ranks"));
    assert_non_null(strstr(text, "\n 4096   8192 "));
    free(text);
    scale_run_done(&figures.runs[1]);
}

static void test_ranks_without_a_core_do_not_count_for_predictions(void **state)
{
    struct predict_bucket buckets[] = {{0.1, 3000}, {0.18, 1000}};
    auto_free struct predict_bucket *room = xcalloc(SCALE_MOST_BUCKETS, sizeof *room);
    struct scale_run runs[] = {
        {.ranks = 1, .step_s = 0.3, .typical_s = 0.1, .params = 1000}, /* one step was slow */
        {.ranks = 2, .step_s = 0.21, .exposed_s = 0.01, .busy_s = 0.02, .bytes = 4000},
        {.ranks = 4, .step_s = 0.5, .exposed_s = 0.3, .busy_s = 0.4, .bytes = 4000}};
    struct scale_figures figures = {.threads = 1, .cores = 2, .run_count = 3};
    struct predict_input input;

    (void)state;
    for (int i = 1; i < 3; i++) {
        runs[i].buckets = buckets;
        runs[i].bucket_count = 2;
        runs[i].backward_end_s = 0.2;
    }
    memcpy(figures.runs, runs, sizeof runs);
    scale_input(&figures, &input, room);
    assert_int_equal(input.ranks_per_node, 2);
    assert_true(fabs(input.node_bytes_per_s - 200000) < 1e-6);
    /* 0.2 s of work a step there, 0.1 s alone: everything comes twice as early. */
    assert_true(fabs(input.step_s - 0.1) < 1e-12 && fabs(input.backward_end_s - 0.1) < 1e-12);
    assert_true(fabs(input.buckets[0].ready_s - 0.05) < 1e-12);
    assert_true(fabs(input.buckets[1].ready_s - 0.09) < 1e-12);
    figures.cores = 1;
    scale_input(&figures, &input, room);
    assert_int_equal(input.ranks_per_node, 1);
    assert_int_equal(input.bucket_count, SCALE_EVEN_BUCKETS);
    assert_true(input.node_bytes_per_s == 0);
}

/* --- the command line ------------------------------------------------------------------------
 */

static void test_a_wrong_command_line_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"--max-ranks", "0"},       {"--max-ranks=x", NULL}, {"--max-ranks", NULL},
        {"--ranks", "2"},           {"lenet", NULL},         {"--network", "tin"},
        {"--max-ranks=99999", NULL}};
    struct err e = {0};
    int status = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        char *const words[] = {(char *)bad[i][0], (char *)bad[i][1]};

        assert_int_equal(scale_main("/bin/false", bad[i][1] ? 2 : 1, words, &status, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void test_under_mpirun_it_is_refused(void **state)
{
    struct err e = {0};
    int status = 0;

    (void)state;
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    assert_int_equal(scale_main("/bin/false", 0, NULL, &status, &e), -1);
    assert_non_null(strstr(e.msg, "without mpirun"));
    unsetenv("OMPI_COMM_WORLD_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_has_its_seat_and_its_logs),
        cmocka_unit_test(test_the_first_that_fails_is_named_and_ends_the_others),
        cmocka_unit_test(test_what_cannot_be_started_is_an_error),
        cmocka_unit_test(test_a_report_becomes_figures),
        cmocka_unit_test(test_a_bad_report_is_refused),
        cmocka_unit_test(test_the_table),
        cmocka_unit_test(test_ranks_without_a_core_do_not_count_for_predictions),
        cmocka_unit_test(test_a_wrong_command_line_is_refused),
        cmocka_unit_test(test_under_mpirun_it_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
