/* flags-check.c - which flags do not go together.  The rules are the original's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/flags/flags-internal.h"

#include <math.h>

/* A rule that is broken is told with its text. */
struct rule {
    bool is_broken;
    const char *text;
};

static int first_broken(const struct rule *rules, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].is_broken)
            return err_set(e, ERR_INVALID, "%s", rules[i].text);
    return 0;
}

static bool is_set(double value)
{
    return !isnan(value) && value != 0;
}

static int eval_flags(const struct flags *f)
{
    return (f->eval_every_n_steps > 0) + is_set(f->eval_every_n_epochs) +
           (f->eval_at_step_count > 0) + (f->eval_at_epoch_count > 0);
}

static int check_modes(const struct flags *f, struct err *e)
{
    bool evaluates = eval_flags(f) > 0;
    const struct rule rules[] = {
        {f->forward_only && f->eval, "only one of --forward_only and --eval can be given"},
        {f->num_batches > 0 && is_set(f->num_epochs),
         "at most one of --num_batches and --num_epochs can be given"},
        {f->num_eval_batches > 0 && is_set(f->num_eval_epochs),
         "at most one of --num_eval_batches and --num_eval_epochs can be given"},
        {eval_flags(f) > 1, "at most one of the --eval_during_training_* flags can be given"},
        {evaluates && f->eval,
         "at most one of --eval and --eval_during_training_* can be given"},
        {evaluates && f->forward_only,
         "at most one of --forward_only and --eval_during_training_* can be given"},
        {is_set(f->stop_at_top_1_accuracy) && !evaluates,
         "--stop_at_top_1_accuracy needs one of the --eval_during_training_* flags"},
        {f->eval && !f->train_dir, "--eval needs --train_dir, where the checkpoints are"},
        {f->save_model_secs > 0 && f->save_model_steps > 0,
         "at most one of --save_model_secs and --save_model_steps can be given"},
        {f->forward_only && f->freeze_when_forward_only && f->train_dir,
         "--freeze_when_forward_only with --forward_only does not go with --train_dir"},
        {f->num_gpus != 1, "--num_gpus must be 1: a rank has one device, start more ranks"},
    };

    return first_broken(rules, ARRAY_SIZE(rules), e);
}

static int check_rates(const struct flags *f, struct err *e)
{
    bool has_rate = !isnan(f->init_learning_rate);
    bool decays = is_set(f->num_epochs_per_decay) || is_set(f->learning_rate_decay_factor);
    bool is_whole =
        has_rate && is_set(f->num_epochs_per_decay) && is_set(f->learning_rate_decay_factor);
    const struct rule rules[] = {
        {f->piecewise_learning_rate_schedule &&
             (has_rate || decays || is_set(f->minimum_learning_rate)),
         "--piecewise_learning_rate_schedule goes with no other flag of the learning rate"},
        {decays && !is_whole, "--num_epochs_per_decay and --learning_rate_decay_factor go "
                              "together, and need --init_learning_rate"},
        {is_set(f->minimum_learning_rate) && !is_whole && !f->learning_rate_schedule,
         "--minimum_learning_rate needs --init_learning_rate and a decay"},
        {f->learning_rate_schedule && !has_rate,
         "--learning_rate_schedule needs --init_learning_rate"},
        {f->learning_rate_schedule && decays,
         "--learning_rate_schedule does not go with --num_epochs_per_decay"},
        {is_set(f->gradient_clip) && is_set(f->clip_norm),
         "at most one of --gradient_clip and --clip_norm can be given"},
        {f->use_fp16 && f->precision && !str_equal(f->precision, "fp16"),
         "--use_fp16 does not go with another --precision"},
    };

    return first_broken(rules, ARRAY_SIZE(rules), e);
}

static bool is_cpu(const struct flags *f)
{
    return f->device && str_equal_nocase(f->device, "cpu");
}

int flags_check(const struct flags *flags, struct str *notes, struct err *e)
{
    if (check_modes(flags, e) < 0 || check_rates(flags, e) < 0)
        return -1;
    for (int i = 0; i < flags->eval_at_step_count; i++)
        if (floor(flags->eval_at_steps[i]) != flags->eval_at_steps[i])
            return err_set(e, ERR_INVALID,
                           "--eval_during_training_at_specified_steps: %g is no whole number",
                           flags->eval_at_steps[i]);
    if (is_cpu(flags) && flags_given(flags, "data_format") &&
        str_equal(flags->data_format, "NCHW"))
        str_add(notes, "--data_format=NCHW on a CPU: the layout is blocked anyway\n");
    return 0;
}
