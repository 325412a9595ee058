/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/report.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct report_facts facts = {
    .model = "resnet101",
    .dataset = "imagenet (synthetic)",
    .mode = "training",
    .global_batch = 128,
    .device_batch = 64,
    .batches = 20,
    .epochs = 0.002,
    .device_kind = "cpu",
    .data_format = "NCHW",
    .optimizer = "sgd",
    .variables = "horovod",
    .loss_name = "total_loss",
    .ranks = 2,
    .backend = "ref",
    .device = "a machine",
    .library = "none",
    .precision = "fp32",
};

static const char block[] = "TensorFlow:  1.8\n"
                            "Model:       resnet101\n"
                            "Dataset:     imagenet (synthetic)\n"
                            "Mode:        training\n"
                            "SingleSess:  False\n"
                            "Batch size:  128 global\n"
                            "             64 per device\n"
                            "Num batches: 20\n"
                            "Num epochs:  0.00\n"
                            "Devices:     ['horovod/cpu:0', 'horovod/cpu:1']\n"
                            "NUMA bind:   False\n"
                            "Data format: NCHW\n"
                            "Optimizer:   sgd\n"
                            "Variables:   horovod\n"
                            "==========\n";

struct printed {
    char *text;
    size_t len;
    FILE *out;
};

static void open_report(struct printed *p, const char *json, struct report **ret_report)
{
    struct report_options options = {.json_file = json, .ewma = NAN};

    p->out = open_memstream(&p->text, &p->len);
    options.out = p->out;
    assert_int_equal(report_new(&options, ret_report, NULL), 0);
}

static void close_report(struct printed *p, struct report *report)
{
    report_free(report);
    fclose(p->out);
    free(p->text);
}

static void prints_to_the_letter(void **state)
{
    struct report_step first = {.step = 1, .seconds = 2, .loss = 10.05, .is_shown = true};
    struct report_step second = {.step = 2, .seconds = 4, .loss = 9, .is_shown = false};
    struct report_step third = {.step = 3, .seconds = 2, .loss = 8.1234, .is_shown = true};
    auto_str expected = {0};
    struct report *report;
    struct printed p;

    (void)state;
    open_report(&p, NULL, &report);
    report_header(report, &facts);
    report_phase(report, "Done warm up");
    report_columns(report);
    report_step(report, &first);
    report_step(report, &second);
    report_step(report, &third);
    report_total(report, 10, true);
    str_addf(&expected,
             "%sDone warm up\n"
             "Step\tImg/sec\ttotal_loss\n"
             "1\timages/sec: 32.0 +/- 0.0 (jitter = 0.0)\t10.050\n"
             "3\timages/sec: 24.0 +/- 4.4 (jitter = 0.0)\t8.123\n"
             "----------------------------------------------------------------\n"
             "total images/sec: 38.40\n"
             "----------------------------------------------------------------\n",
             block);
    assert_string_equal(p.text, str_text(&expected));
    close_report(&p, report);
}

static void accuracies_are_two_more_columns(void **state)
{
    struct report_step step = {
        .step = 1, .seconds = 2, .loss = 1, .top1 = 0.25, .top5 = 0.75, .is_shown = true};
    struct report_facts with = facts;
    struct report *report;
    struct printed p;

    (void)state;
    with.shows_accuracy = true;
    open_report(&p, NULL, &report);
    report_header(report, &with);
    report_columns(report);
    report_step(report, &step);
    report_eval(report, 1000, 2, 0.5, 0.75, 10, false);
    assert_non_null(strstr(p.text, "Step\tImg/sec\ttotal_loss\ttop_1_accuracy\ttop_5_accuracy\n"
                                   "1\timages/sec: 32.0 +/- 0.0 (jitter = 0.0)\t1.000\t0.250\t"
                                   "0.750\n"
                                   "Accuracy @ 1 = 0.5000 Accuracy @ 5 = 0.7500 [1000 "
                                   "examples]\n"));
    close_report(&p, report);
}

static void replicated_says_all_reduce(void **state)
{
    struct report_facts one = facts;
    struct report *report;
    struct printed p;

    (void)state;
    one.ranks = 1;
    one.variables = "replicated";
    open_report(&p, NULL, &report);
    report_header(report, &one);
    assert_non_null(strstr(p.text, "Devices:     ['/cpu:0']\n"));
    assert_non_null(strstr(p.text, "Variables:   replicated\nAllReduce:   None\n==========\n"));
    close_report(&p, report);
}

static const struct jsonr *read_json(struct arena *arena, const char *path)
{
    struct str text = {0};
    const struct jsonr *value = NULL;

    assert_int_equal(fs_read(path, 1 << 20, &text, NULL), 0);
    assert_int_equal(jsonr_parse(arena, text.data, text.len, &value, NULL), 0);
    str_done(&text);
    return value;
}

static void json_has_every_figure(void **state)
{
    char path[] = "/tmp/yard-report-XXXXXX";
    struct report_step step = {.step = 1, .seconds = 2, .loss = 10.05, .top1 = NAN};
    struct err why = {.code = ERR_RANGE, .msg = "the loss is not a number"};
    autoptr(arena) arena = arena_new();
    const struct jsonr *json, *steps;
    struct report *report;
    struct printed p;

    (void)state;
    close(mkstemp(path));
    open_report(&p, path, &report);
    report_header(report, &facts);
    report_step(report, &step);
    report_total(report, 4, false);
    report_number(report, "seconds.plan", 1.5);
    report_number(report, "corrupt_examples", 0);
    report_number(report, "seconds.steps", 4);
    report_number(report, "seconds.plan", 1.25); /* the last one counts */
    report_text(report, "test_id", "x");
    assert_int_equal(report_end(report, &why, NULL), 0);
    json = read_json(arena, path);
    assert_string_equal(jsonr_get(json, "error")->text, "the loss is not a number");
    assert_string_equal(jsonr_get(json, "model")->text, "resnet101");
    assert_float_equal(jsonr_get(jsonr_get(json, "seconds"), "plan")->number, 1.25, 0);
    assert_float_equal(jsonr_get(jsonr_get(json, "seconds"), "steps")->number, 4, 0);
    assert_float_equal(jsonr_get(jsonr_get(json, "images_per_second"), "total")->number, 32, 0);
    steps = jsonr_get(json, "steps")->first;
    assert_float_equal(jsonr_get(steps, "loss")->number, 10.05, 0);
    assert_int_equal(jsonr_get(steps, "top1")->type, JSONR_NULL);
    assert_true(jsonr_get(jsonr_get(json, "memory"), "resident")->number > 0);
    close_report(&p, report);
    unlink(path);
}

static void a_report_that_cannot_be_written_is_said_at_the_start(void **state)
{
    struct report_options options = {.json_file = "/nowhere/at/all.json"};
    struct report *report;
    struct err e;

    (void)state;
    assert_int_equal(report_new(&options, &report, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_to_the_letter),
        cmocka_unit_test(accuracies_are_two_more_columns),
        cmocka_unit_test(replicated_says_all_reduce),
        cmocka_unit_test(json_has_every_figure),
        cmocka_unit_test(a_report_that_cannot_be_written_is_said_at_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
