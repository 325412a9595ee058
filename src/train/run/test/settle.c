/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/run/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_WORDS = 16,
};

static const struct comm_facts one = {.ranks = 1, .local_ranks = 1, .hosts = 1};
static const struct comm_facts eight = {.ranks = 8, .local_ranks = 8, .hosts = 1};
static const struct dataset_facts imagenet = {
    .name = "imagenet", .is_synthetic = true, .count = 1281167, .classes = 1001, .channels = 3};
static const struct dataset_facts digits = {
    .name = "mnist", .count = 60000, .classes = 10, .height = 28, .width = 28, .channels = 1};

/* Settle what the words (blanks between them) ask for. */
static int settle(const char *text,
                  const struct comm_facts *ranks,
                  const struct dataset_facts *data,
                  struct run_spec *spec,
                  struct err *e)
{
    char copy[512], *words[MOST_WORDS], *rest = copy, *word;
    auto_str notes = {0};
    auto_flags flags;
    int count = 0;

    snprintf(copy, sizeof(copy), "--backend=ref %s", text);
    while ((word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    assert_int_equal(flags_parse(&flags, count, words, &notes, NULL), 0);
    return run_settle(&flags, ranks, data, spec, &notes, e);
}

static void the_recipes_line(void **state)
{
    struct run_spec s;

    (void)state;
    assert_int_equal(settle("--model resnet101 --batch_size 64 --variable_update horovod",
                            &eight, &imagenet, &s, NULL),
                     0);
    assert_string_equal(s.model->name, "resnet101");
    assert_int_equal(s.batch, 64);
    assert_int_equal(s.steps, 100);
    assert_int_equal(s.warmup, 10);
    assert_int_equal(s.update, RUN_SUM);
    assert_float_equal(s.epochs, 100.0 * 512 / 1281167, 1e-12);
    /* Summed over eight ranks, each of which has the decay in its gradient. */
    assert_float_equal(s.optim.weight_decay, 8 * 0.00004F, 1e-9);
    assert_int_equal(s.model_options.classes, 1001);
    assert_int_equal(s.model_options.image_type, DTYPE_F32);
    assert_float_equal(s.model_options.image_scale[0], 1 / 127.5F, 0);
    assert_float_equal(s.model_options.image_shift[0], -1, 0);
    /* ResNet's own schedule: 0.128 at batch 256, five epochs of warm-up */
    assert_float_equal(s.schedule.rate, 0.128 * 512 / 256, 1e-12);
    assert_float_equal(s.schedule.warmup_epochs, 5, 0);
    assert_float_equal(schedule_rate(&s.schedule, 0), 0, 0);
    assert_float_equal(schedule_rate(&s.schedule, (int64_t)(31 * s.schedule.steps_per_epoch)),
                       0.1 * 0.128 * 2, 1e-9);
}

static void epochs_are_rounded_up_to_steps(void **state)
{
    struct run_spec s;

    (void)state;
    assert_int_equal(
        settle("--model=lenet --num_epochs=1.5 --batch_size=7", &eight, &digits, &s, NULL), 0);
    assert_int_equal(s.steps, (90000 + 55) / 56);
    assert_int_equal(settle("--model=lenet --gradient_accumulation_steps=4 --num_epochs=1 "
                            "--batch_size=100",
                            &one, &digits, &s, NULL),
                     0);
    assert_int_equal(s.steps, 150);
    assert_int_equal(s.passes, 4);
}

static void warm_up_grows_with_the_autotune_threshold(void **state)
{
    struct run_spec s;

    (void)state;
    assert_int_equal(settle("--model=lenet --autotune_threshold=3", &one, &digits, &s, NULL),
                     0);
    assert_int_equal(s.warmup, 45);
    assert_int_equal(settle("--model=lenet --autotune_threshold=1", &one, &digits, &s, NULL),
                     0);
    assert_int_equal(s.warmup, 10);
    assert_int_equal(settle("--model=lenet --num_warmup_batches=0", &one, &digits, &s, NULL),
                     0);
    assert_int_equal(s.warmup, 0);
}

static void real_pictures_go_from_minus_one_to_one(void **state)
{
    struct run_spec s;

    (void)state;
    assert_int_equal(settle("--model=lenet", &one, &digits, &s, NULL), 0);
    assert_int_equal(s.model_options.image_type, DTYPE_U8);
    assert_float_equal(255 * s.model_options.image_scale[0] + s.model_options.image_shift[0], 1,
                       1e-6);
    assert_float_equal(s.model_options.image_shift[0], -1, 0);
    assert_int_equal(s.decode.height, 28);
    assert_int_equal(s.decode.channels, 1);
}

static void ways_to_update(void **state)
{
    static const struct {
        const char *word;
        enum run_update update;
        float decay;
    } cases[] = {
        {"horovod", RUN_SUM, 8},
        {"replicated", RUN_MEAN, 1},
        {"parameter_server", RUN_MEAN, 1},
        {"collective_all_reduce", RUN_MEAN, 1},
        {"independent", RUN_INDEPENDENT, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        auto_free char *words =
            xasprintf("--model=lenet --weight_decay=1 --variable_update=%s", cases[i].word);
        struct run_spec s;

        assert_int_equal(settle(words, &eight, &digits, &s, NULL), 0);
        assert_int_equal(s.update, cases[i].update);
        assert_float_equal(s.optim.weight_decay, cases[i].decay, 0);
    }
}

static void optimisers_get_their_own_numbers(void **state)
{
    struct run_spec s;

    (void)state;
    assert_int_equal(settle("--model=lenet --optimizer=rmsprop --momentum=0.1 "
                            "--rmsprop_momentum=0.2 --rmsprop_epsilon=0.3 --gradient_clip=4",
                            &one, &digits, &s, NULL),
                     0);
    assert_float_equal(s.optim.momentum, 0.2F, 0);
    assert_float_equal(s.optim.epsilon, 0.3F, 0);
    assert_float_equal(s.optim.clip_value, 4, 0);
    assert_float_equal(s.optim.loss_scale, 1, 0);
    assert_int_equal(
        settle("--model=lenet --optimizer=momentum --use_fp16", &one, &digits, &s, NULL), 0);
    assert_true(s.optim.with_nesterov);
    assert_float_equal(s.optim.loss_scale, 128, 0);
    assert_int_equal(s.precision, PRECISION_FP16);
}

static void what_is_not_there_is_told(void **state)
{
    struct run_spec s;
    struct err e;

    (void)state;
    assert_int_equal(settle("--model=resnet51", &one, &imagenet, &s, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "resnet50"));
    assert_int_equal(settle("--model=resnet50", &one, &digits, &s, &e), -1);
    assert_non_null(strstr(e.msg, "imagenet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recipes_line),
        cmocka_unit_test(epochs_are_rounded_up_to_steps),
        cmocka_unit_test(warm_up_grows_with_the_autotune_threshold),
        cmocka_unit_test(real_pictures_go_from_minus_one_to_one),
        cmocka_unit_test(ways_to_update),
        cmocka_unit_test(optimisers_get_their_own_numbers),
        cmocka_unit_test(what_is_not_there_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
