/* SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-flags.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_WORDS = 32,
};

/* A line cut at spaces; the copy lives as long as the flags are looked at. */
static int
parse(struct bert_flags *f, const char *line, char *copy, struct str *notes, struct err *e)
{
    char *words[MOST_WORDS], *rest = NULL;
    int count = 0;

    memcpy(copy, line, strlen(line) + 1);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return bert_flags_parse(f, count, words, notes, e);
}

static void the_seeds_lines_are_taken(void **state)
{
    static const char *const lines[] = {
        "--model_name /model/bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm "
        "--train_batch_size 4 --mode perf --num_of_perf_samples 400",
        "--model_name=bert-large --train_batch_size=8 --mode=perf --num_of_perf_samples=800 "
        "--use_mixed_precision=True",
        "--model_name=bert-large --train_batch_size=4 --mode=perf --num_of_perf_samples=6400 "
        "--gradient_accumulation_steps=16",
        "--model_name=bert-large --train_batch_size=4 --display_loss_steps=10 "
        "--log_dir=logs/tensorboard/",
        "--model_name m --train_data_dir d --test_data_dir d --train_batch_size 76 --mode "
        "train "
        "--max_seq_length 128 --num_train_steps 640 --display_loss_steps 5 --optimizer Lamb",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        auto_str notes = {0};
        struct bert_flags f;
        char copy[512];
        struct err e;

        if (parse(&f, lines[i], copy, &notes, &e) < 0)
            fail_msg("%s: %s", lines[i], e.msg);
        assert_int_equal(notes.len, 0);
    }
}

static void defaults_are_the_originals(void **state)
{
    auto_str notes = {0};
    struct bert_flags f;
    char copy[512];

    (void)state;
    assert_int_equal(parse(&f, "--model_name m --train_batch_size 1", copy, &notes, NULL), 0);
    assert_string_equal(f.mode, "train");
    assert_string_equal(f.optimizer, "Adam");
    assert_string_equal(f.warmup_mode, "None");
    assert_float_equal(f.learning_rate, 5e-5, 1e-12);
    assert_float_equal(f.alpha, 0.9, 0);
    assert_float_equal(f.beta, 0.999, 0);
    assert_float_equal(f.lambda, 0.01, 0);
    assert_float_equal(f.epsilon, 1e-6, 0);
    assert_float_equal(f.ratio_max, 5, 0);
    assert_int_equal(f.num_train_steps, 100000);
    assert_int_equal(f.max_seq_length, 512);
    assert_int_equal(f.max_predictions_per_seq, 80);
    assert_int_equal(f.display_loss_steps, 10);
    assert_int_equal(f.checkpoint_period, 1000);
    assert_int_equal(f.max_num_checkpoints, 10);
    assert_int_equal(f.gradient_accumulation_steps, 1);
    assert_int_equal(f.seed, -1);
    assert_true(f.enable_grad_norm_clip);
    assert_false(f.do_bias_correction);
    assert_float_equal(f.learning_rate_phase2, 4e-3, 0);
    assert_int_equal(f.num_train_steps_phase2, 1563);
    assert_true(isnan(f.dropout));
    assert_false(bert_flags_given(&f, "seed"));
}

static void booleans_are_cxxopts(void **state)
{
    static const struct {
        const char *word;
        bool is_on;
    } rows[] = {
        {"--do_eval", true},    {"--do_eval=True", true},   {"--do_eval=true", true},
        {"--do_eval=1", true},  {"--do_eval=False", false}, {"--do_eval=false", false},
        {"--do_eval=f", false}, {"--do_eval=0", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *line =
            xasprintf("--model_name m --train_batch_size 1 %s", rows[i].word);
        auto_str notes = {0};
        struct bert_flags f;
        char copy[512];

        assert_int_equal(parse(&f, line, copy, &notes, NULL), 0);
        assert_int_equal(f.do_eval, rows[i].is_on);
    }
}

static void wrong_ones_are_refused_and_say_why(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"--train_batch_size 4", "--model_name is needed"},
        {"--model_name m", "--train_batch_size is needed"},
        {"--model_name m --train_batchsize 4", "did you mean --train_batch_size?"},
        {"--model_name m --train_batch_size four", "is not a whole number"},
        {"--model_name m --train_batch_size 4 --mode fast", "one of train, perf, validation"},
        {"--model_name m --train_batch_size 4 --warmup_mode Step",
         "one of None, Cosine, Constant, Linear, Poly"},
        {"--model_name m --train_batch_size 4 --use_mixed_precision maybe",
         "--use_mixed_precision=maybe"},
        {"--model_name m --train_batch_size 4 --nodo_eval", "there is no flag --nodo_eval"},
        {"--model_name m --train_batch_size 4 --learning_rate 2", "within 0 and 1"},
        {"--model_name m --train_batch_size 4 --pipeline_parallel_size 2", "within 1 and 1"},
        {"--model_name m --train_batch_size 4 --use_mixed_precision --precision fp32",
         "does not go with"},
        {"--model_name m --train_batch_size 4 --ratio_min 9", "--ratio_max is below"},
        {"--model_name m --train_batch_size", "needs a value"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_str notes = {0};
        struct bert_flags f;
        char copy[512];
        struct err e;

        assert_int_equal(parse(&f, rows[i].line, copy, &notes, &e), -1);
        if (!strstr(e.msg, rows[i].says))
            fail_msg("%s: %s", rows[i].line, e.msg);
    }
}

static void a_flag_without_effect_is_said_once(void **state)
{
    auto_str notes = {0};
    struct bert_flags f;
    char copy[512];

    (void)state;
    assert_int_equal(parse(&f,
                           "--model_name m --train_batch_size 4 --use_nccl --use_nccl=true "
                           "--allreduce_in_fp16",
                           copy, &notes, NULL),
                     0);
    assert_non_null(strstr(str_text(&notes), "--use_nccl does nothing here: "));
    assert_null(strstr(strstr(str_text(&notes), "--use_nccl") + 1, "--use_nccl"));
    assert_non_null(strstr(str_text(&notes), "--allreduce_in_fp16 does nothing here: "));
}

static void help_has_every_flag(void **state)
{
    static const char *const some[] = {
        "--model_name", "--num_of_perf_samples", "--lambda", "--train_batch_size_phase2",
        "--use_adasum", "--precision",           "Poly"};
    auto_free char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    bert_flags_print_help(out, "onnxruntime_training_bert", true);
    fclose(out);
    for (size_t i = 0; i < ARRAY_SIZE(some); i++)
        assert_non_null(strstr(text, some[i]));
    assert_true(str_starts(text, "usage: onnxruntime_training_bert "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seeds_lines_are_taken),
        cmocka_unit_test(defaults_are_the_originals),
        cmocka_unit_test(booleans_are_cxxopts),
        cmocka_unit_test(wrong_ones_are_refused_and_say_why),
        cmocka_unit_test(a_flag_without_effect_is_said_once),
        cmocka_unit_test(help_has_every_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
