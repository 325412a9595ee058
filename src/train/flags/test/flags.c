/* SPDX-License-Identifier: Apache-2.0 */
#include "train/flags/flags.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/flags/flags-internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_WORDS = 16,
};

/* Parse words, given as one text with blanks between them.  Flags borrow them: they live until
 * the next call. */
static int parse(const char *text, struct flags *flags, struct str *notes, struct err *e)
{
    static char copy[1024];
    char *words[MOST_WORDS];
    char *rest = copy, *word;
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    while ((word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    return flags_parse(flags, count, words, notes, e);
}

static void there_are_137_flags_and_each_is_taken(void **state)
{
    int original = 0;

    (void)state;
    for (int i = 0; i < flags_table.count; i++) {
        const struct flag_row *row = &flags_table.rows[i];

        /* MLPerf's flag is defined beside the table of the others. */
        original += !row->is_ours && !str_equal(row->name, "ml_perf_compliance_logging");
        assert_true((row->help != NULL) != (row->why != NULL));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(row->name, flags_table.rows[j].name);
    }
    assert_int_equal(original, FLAGS_ORIGINAL);
}

static void defaults_are_the_originals(void **state)
{
    auto_str notes = {0};
    auto_flags f;

    (void)state;
    assert_int_equal(parse("", &f, &notes, NULL), 0);
    assert_string_equal(f.model, "trivial");
    assert_string_equal(f.variable_update, "parameter_server");
    assert_string_equal(f.optimizer, "sgd");
    assert_int_equal(f.num_batches, FLAG_NONE);
    assert_true(isnan(f.init_learning_rate));
    assert_float_equal(f.weight_decay, 0.00004, 0);
    assert_float_equal(f.rmsprop_epsilon, 1, 0);
    assert_int_equal(f.tf_random_seed, 1234);
    assert_int_equal(f.display_every, 10);
    assert_int_equal(f.max_ckpts_to_keep, 5);
    assert_true(f.fuse_decode_and_crop);
    assert_null(f.data_dir);
    assert_int_equal(notes.len, 0);
}

static void forms_of_a_flag(void **state)
{
    static const struct {
        const char *words;
        bool distortions;
        int64_t batch;
    } cases[] = {
        {"--batch_size=7", false, 7},
        {"--batch_size 7", false, 7},
        {"-batch_size 7", false, 7},
        {"--distortions", true, 0},
        {"--distortions=True", true, 0},
        {"--distortions=t --batch_size 1", true, 1},
        {"--distortions --nodistortions", false, 0},
        {"--distortions=0", false, 0},
        {"--batch_size 3 --batch_size 4 --", false, 4},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        auto_str notes = {0};
        auto_flags f;

        assert_int_equal(parse(cases[i].words, &f, &notes, NULL), 0);
        assert_int_equal(f.distortions, cases[i].distortions);
        assert_int_equal(f.batch_size, cases[i].batch);
    }
}

static void the_recipes_line_is_taken(void **state)
{
    auto_str notes = {0};
    auto_flags f;

    (void)state;
    assert_int_equal(
        parse("--model resnet101 --batch_size 64 --variable_update horovod", &f, &notes, NULL),
        0);
    assert_string_equal(f.model, "resnet101");
    assert_string_equal(f.variable_update, "horovod");
    assert_true(flags_given(&f, "batch_size"));
    assert_false(flags_given(&f, "eval_batch_size"));
    assert_int_equal(notes.len, 0);
}

static void wrong_ones_are_named(void **state)
{
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"--batch_sise=7", "there is no flag --batch_sise; did you mean --batch_size?"},
        {"--quux=7", "there is no flag --quux"},
        {"--nobatch_size", "there is no flag --nobatch_size"},
        {"--batch_size", "--batch_size needs a value"},
        {"--batch_size=many", "--batch_size: \"many\" is not a whole number"},
        {"--batch_size=-1", "--batch_size: \"-1\" is not within 0 and 65536"},
        {"--batch_size=1e3", "not a whole number"},
        {"--weight_decay=x", "--weight_decay: \"x\" is not a number"},
        {"--weight_decay=nan", "is not a number"},
        {"--momentum=1.5", "--momentum: \"1.5\" is not within 0 and 1"},
        {"--optimizer=sgdm", "--optimizer: \"sgdm\" is not one of sgd, momentum"},
        {"--job_name=boss", "--job_name: \"boss\" is not one of ps, worker, controller"},
        {"--distortions=maybe", "is not true or false"},
        {"--distortions False", "unknown positional argument \"False\""},
        {"--xla=7", "--xla: \"7\" is not true or false"},
        {"resnet50", "unknown positional argument \"resnet50\""},
        {"-- --model=x", "unknown positional argument"},
        {"--eval_during_training_at_specified_steps=1,x", "is not a number"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        auto_str notes = {0};
        auto_flags f;
        struct err e;

        assert_int_equal(parse(cases[i].words, &f, &notes, &e), -1);
        if (!strstr(e.msg, cases[i].message))
            fail_msg("%s: %s", cases[i].words, e.msg);
    }
}

static void flags_without_effect_are_said_once(void **state)
{
    auto_str notes = {0};
    auto_flags f;

    (void)state;
    assert_int_equal(parse("--xla --noxla --ps_hosts=a:1 --model=lenet", &f, &notes, NULL), 0);
    assert_string_equal(str_text(&notes),
                        "--xla does nothing here: XLA is TensorFlow's; steps are compiled as a "
                        "whole anyway\n"
                        "--ps_hosts does nothing here: there are no parameter servers; ranks "
                        "are started by mpirun\n");
}

static void flags_that_do_not_go_together_are_refused(void **state)
{
    static const char *const bad[] = {
        "--eval --forward_only",
        "--num_batches=3 --num_epochs=2",
        "--eval",
        "--eval --train_dir=x --eval_during_training_every_n_steps=3",
        "--eval_during_training_every_n_steps=3 --eval_during_training_every_n_epochs=1",
        "--eval_during_training_at_specified_steps=1.5",
        "--stop_at_top_1_accuracy=0.5",
        "--save_model_secs=3 --save_model_steps=3",
        "--piecewise_learning_rate_schedule=0.1 --init_learning_rate=0.1",
        "--num_epochs_per_decay=2",
        "--num_epochs_per_decay=2 --learning_rate_decay_factor=0.1",
        "--minimum_learning_rate=0.1",
        "--gradient_clip=1 --clip_norm=1",
        "--use_fp16 --precision=bf16",
        "--num_gpus=2",
        "--forward_only --freeze_when_forward_only --train_dir=x",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        auto_str notes = {0};
        auto_flags f;
        struct err e;

        if (parse(bad[i], &f, &notes, &e) == 0)
            fail_msg("taken: %s", bad[i]);
    }
}

static void lists_become_numbers(void **state)
{
    auto_str notes = {0};
    auto_flags f;

    (void)state;
    assert_int_equal(
        parse("--eval_during_training_at_specified_epochs=1,2.5,4", &f, &notes, NULL), 0);
    assert_int_equal(f.eval_at_epoch_count, 3);
    assert_float_equal(f.eval_at_epochs[1], 2.5, 0);
}

static void seed_is_an_alias(void **state)
{
    auto_str notes = {0};
    auto_flags f;

    (void)state;
    assert_int_equal(parse("--seed=7", &f, &notes, NULL), 0);
    assert_int_equal(f.tf_random_seed, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_137_flags_and_each_is_taken),
        cmocka_unit_test(defaults_are_the_originals),
        cmocka_unit_test(forms_of_a_flag),
        cmocka_unit_test(the_recipes_line_is_taken),
        cmocka_unit_test(wrong_ones_are_named),
        cmocka_unit_test(flags_without_effect_are_said_once),
        cmocka_unit_test(flags_that_do_not_go_together_are_refused),
        cmocka_unit_test(lists_become_numbers),
        cmocka_unit_test(seed_is_an_alias),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
