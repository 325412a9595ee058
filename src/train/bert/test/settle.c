/* SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static const struct comm_facts alone = {.ranks = 1, .local_ranks = 1, .hosts = 1};

struct settled {
    struct bert_flags flags;
    struct bert_spec spec;
    struct str notes;
    char copy[512];
};

static void settle(struct settled *s, const char *line)
{
    char *words[32], *rest = NULL;
    int count = 0;
    struct err e;

    snprintf(s->copy, sizeof(s->copy), "%s", line);
    for (char *word = strtok_r(s->copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    s->notes = (struct str){0};
    if (bert_flags_parse(&s->flags, count, words, &s->notes, &e) < 0 ||
        bert_settle(&s->flags, &alone, &s->spec, &s->notes, &e) < 0)
        fail_msg("%s: %s", line, e.msg);
    str_done(&s->notes);
}

static void the_seeds_lines(void **state)
{
    struct settled s;

    (void)state;
    settle(&s, "--model_name /model/bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm "
               "--train_batch_size 4 --mode perf --num_of_perf_samples 400");
    assert_int_equal(s.spec.mode, BERT_PERF);
    assert_int_equal(s.spec.phases[0].steps, 100);
    assert_int_equal(s.spec.phases[0].batch, 4);
    assert_null(s.spec.phases[0].train_dir);
    assert_int_equal(s.spec.warmup, 10);
    assert_string_equal(s.spec.leaf, "bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm");
    assert_string_equal(s.spec.model, "bert_L-24_H-1024_A-16_V_30528_S_512");
    assert_int_equal(s.spec.optim.kind, OPTIM_ADAMW);
    assert_true(s.spec.optim.is_uncorrected);
    assert_float_equal(s.spec.optim.clip_norm, 1, 0);

    settle(&s, "--model_name bert-large --train_batch_size=4 --mode=perf "
               "--num_of_perf_samples=6400 --gradient_accumulation_steps=16");
    assert_int_equal(s.spec.phases[0].steps, 1600);
    assert_int_equal(s.spec.phases[0].passes, 16);
    assert_int_equal(s.spec.warmup, 16); /* whole updates */
}

static void lamb_has_its_bounds(void **state)
{
    struct settled s;

    (void)state;
    settle(&s, "--model_name bert-tiny --train_batch_size 4 --optimizer Lamb --lambda 0 "
               "--learning_rate 3e-3 --warmup_ratio 0.2843 --warmup_mode Poly "
               "--num_train_steps 640 --train_data_dir d --enable_grad_norm_clip=false");
    assert_int_equal(s.spec.optim.kind, OPTIM_LAMB);
    assert_float_equal(s.spec.optim.trust_least, 0.05, 1e-7);
    assert_float_equal(s.spec.optim.trust_most, 5, 0);
    assert_float_equal(s.spec.optim.weight_decay, 0, 0);
    assert_float_equal(s.spec.optim.clip_norm, 0, 0);
    assert_string_equal(s.spec.phases[0].train_dir, "d");
    assert_int_equal(s.spec.phases[0].rate.mode, BERT_RATE_POLY);
    assert_int_equal(s.spec.phases[0].rate.steps, 640);
    assert_int_equal(s.spec.warmup, 0);
}

static void a_second_phase_has_its_own_numbers(void **state)
{
    struct settled s;
    int64_t step;
    int round;

    (void)state;
    settle(&s, "--model_name bert-tiny --train_batch_size 4 --num_train_steps 10 "
               "--gradient_accumulation_steps 2 --train_data_dir a --train_data_dir_phase2 b "
               "--train_batch_size_phase2 2 --num_train_steps_phase2 9 "
               "--gradient_accumulation_steps_phase2 3");
    assert_int_equal(s.spec.phase_count, 2);
    assert_string_equal(s.spec.phases[1].train_dir, "b");
    assert_int_equal(s.spec.phases[1].batch, 2);
    assert_float_equal(s.spec.phases[1].rate.most, 4e-3, 0);

    bert_place(&s.spec, 0, &round, &step);
    assert_int_equal(round, 0);
    assert_int_equal(step, 0);
    bert_place(&s.spec, 4, &round, &step);
    assert_int_equal(round, 0);
    assert_int_equal(step, 8);
    bert_place(&s.spec, 5, &round, &step);
    assert_int_equal(round, 1);
    assert_int_equal(step, 0);
    bert_place(&s.spec, 7, &round, &step);
    assert_int_equal(round, 1);
    assert_int_equal(step, 6);
}

static void mixed_precision_is_what_the_device_has(void **state)
{
    static const struct {
        const char *line;
        unsigned has;
        enum precision precision;
        float scale;
        bool is_dynamic, has_note;
    } rows[] = {
        {"", 0x1, PRECISION_FP32, 1, false, false},
        {"--use_mixed_precision", 0xf, PRECISION_FP16, 65536, true, false},
        {"--use_mixed_precision --loss_scale 1024", 0xf, PRECISION_FP16, 1024, false, false},
        {"--use_mixed_precision", 0x7, PRECISION_BF16, 1, false, true},
        {"--use_mixed_precision", 0x1, PRECISION_FP32, 1, false, true},
        {"--precision bf16", 0x7, PRECISION_BF16, 1, false, false},
        {"--use_mixed_precision --precision bf16", 0xf, PRECISION_BF16, 1, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *line =
            xasprintf("--model_name bert-tiny --train_batch_size 4 %s", rows[i].line);
        auto_str notes = {0};
        enum precision precision;
        struct settled s;

        settle(&s, line);
        assert_int_equal(bert_settle_precision(&s.flags, rows[i].has, &s.spec.optim, &precision,
                                               &notes, NULL),
                         0);
        assert_int_equal(precision, rows[i].precision);
        assert_float_equal(s.spec.optim.loss_scale, rows[i].scale, 0);
        assert_int_equal(s.spec.optim.has_dynamic_scale, rows[i].is_dynamic);
        assert_int_equal(notes.len > 0, rows[i].has_note);
    }
}

static void a_precision_the_device_lacks_is_refused(void **state)
{
    auto_str notes = {0};
    enum precision precision;
    struct settled s;
    struct err e;

    (void)state;
    settle(&s, "--model_name bert-tiny --train_batch_size 4 --precision fp16");
    assert_int_equal(
        bert_settle_precision(&s.flags, 0x1, &s.spec.optim, &precision, &notes, &e), -1);
    assert_non_null(strstr(e.msg, "fp16"));
}

/* By hand from the formulas of rate.h. */
static void rates_are_the_originals(void **state)
{
    static const struct {
        const char *mode;
        double warmup;
        int64_t step;
        double factor;
    } rows[] = {
        {"None", 0.5, 0, 1},
        {"None", 0.5, 99, 1},
        {"Constant", 0.2, 9, 0.5},
        {"Constant", 0.2, 19, 1},
        {"Constant", 0.2, 99, 1},
        {"Linear", 0.2, 9, 0.5},
        {"Linear", 0.2, 19, 1},
        {"Linear", 0.2, 59, 0.5},
        {"Linear", 0.2, 99, 0},
        {"Linear", 0.2, 120, 0},
        {"Poly", 0.2843, 13, 0.14 / 0.2843},
        {"Poly", 0.2843, 35, 0.8},
        {"Poly", 0.2843, 99, 0},
        {"Cosine", 0, 49, 0.5},
        {"Cosine", 0.6, 29, 0.5},
        {"Cosine", 0, 99, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct bert_rate rate = {bert_rate_mode_of(rows[i].mode), 2e-3, rows[i].warmup, 100};

        if (fabs(bert_rate_at(&rate, rows[i].step) - 2e-3 * rows[i].factor) > 1e-9)
            fail_msg("%s step %lld: %g", rows[i].mode, (long long)rows[i].step,
                     bert_rate_at(&rate, rows[i].step));
    }
}

static void random_batches_are_whole_and_fed_once(void **state)
{
    struct bert_loader_options o = {
        .batch = 3, .sequence = 16, .predictions = 5, .seed = 7, .ranks = 1};
    struct step first = {0}, second = {0};
    struct bert_source *source;
    struct bert_batch b;

    (void)state;
    assert_int_equal(bert_source_open(NULL, &source, NULL), 0);
    assert_null(bert_source_facts(source));
    assert_int_equal(bert_source_begin(source, &o, 100, NULL), 0);
    assert_int_equal(bert_source_next(source, &b, &first, NULL), 0);
    assert_int_equal(bert_source_next(source, &b, &second, NULL), 0);
    for (int i = 0; i < BERT_INPUTS; i++) {
        assert_non_null(first.feed[i]);
        assert_null(second.feed[i]);
    }
    for (int n = 0; n < 3; n++)
        for (int i = 0; i < 5; i++) {
            int at = b.rows[n * 5 + i] - n * 16;

            assert_in_range(at, 0, 15);
            assert_true(i == 0 || b.rows[n * 5 + i] > b.rows[n * 5 + i - 1]);
            assert_in_range(b.labels[n * 5 + i], 0, 99);
        }
    assert_int_equal(((const int32_t *)first.feed[BERT_FIRST])[2], 32);
    bert_source_free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seeds_lines),
        cmocka_unit_test(lamb_has_its_bounds),
        cmocka_unit_test(a_second_phase_has_its_own_numbers),
        cmocka_unit_test(mixed_precision_is_what_the_device_has),
        cmocka_unit_test(a_precision_the_device_lacks_is_refused),
        cmocka_unit_test(rates_are_the_originals),
        cmocka_unit_test(random_batches_are_whole_and_fed_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
