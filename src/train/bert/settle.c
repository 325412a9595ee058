/* settle.c - from flags to one struct bert_spec.  Pure; the rules are the original's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    DEFAULT_SEED = 1234,
    DEFAULT_EVAL_BATCH = 8,
    SCALE_GROWS_AFTER = 2000,
};

static const float dynamic_scale = 65536; /* where it begins */
static const float largest_norm = 1;      /* of all gradients, with --enable_grad_norm_clip */

static const char *or_null(const char *text)
{
    return text && text[0] ? text : NULL;
}

static enum bert_mode mode_of(const char *word)
{
    if (str_equal(word, "perf"))
        return BERT_PERF;
    return str_equal(word, "validation") ? BERT_VALIDATION : BERT_TRAIN;
}

static int settle_size(struct bert_spec *spec, const struct bert_flags *f, struct err *e)
{
    const char *slash = strrchr(f->model_name, '/');
    struct bert_size *s = &spec->size;

    if (bert_size_parse(f->model_name, s, e) < 0)
        return -1;
    if (!isnan(f->dropout))
        s->dropout = (float)f->dropout;
    spec->leaf = slash ? slash + 1 : f->model_name;
    snprintf(spec->model, sizeof(spec->model),
             "bert_L-%" PRId64 "_H-%" PRId64 "_A-%" PRId64 "_V_%" PRId64 "_S_%" PRId64,
             s->layers, s->width, s->heads, s->vocabulary, s->positions);
    return 0;
}

static void settle_first_phase(struct bert_spec *spec, const struct bert_flags *f)
{
    struct bert_phase *p = &spec->phases[spec->phase_count++];
    bool has_dir = bert_flags_given(f, "train_data_dir");

    *p = (struct bert_phase){
        .train_dir = spec->mode == BERT_PERF && !has_dir ? NULL : or_null(f->train_data_dir),
        .test_dir = or_null(f->test_data_dir),
        .batch = f->train_batch_size,
        .passes = f->gradient_accumulation_steps,
        .steps = f->num_train_steps,
        .rate = {bert_rate_mode_of(f->warmup_mode), f->learning_rate, f->warmup_ratio, 0},
    };
    if (spec->mode == BERT_PERF && !bert_flags_given(f, "num_train_steps"))
        p->steps = (f->num_of_perf_samples + p->batch - 1) / p->batch;
    p->rate.steps = p->steps;
}

static void settle_second_phase(struct bert_spec *spec, const struct bert_flags *f)
{
    struct bert_phase *p = &spec->phases[spec->phase_count];

    if (spec->mode != BERT_TRAIN || !or_null(f->train_data_dir_phase2))
        return;
    spec->phase_count++;
    *p = (struct bert_phase){
        .train_dir = f->train_data_dir_phase2,
        .test_dir = or_null(f->test_data_dir_phase2),
        .batch = f->train_batch_size_phase2,
        .passes = f->gradient_accumulation_steps_phase2,
        .steps = f->num_train_steps_phase2,
        .rate = {bert_rate_mode_of(f->warmup_mode), f->learning_rate_phase2,
                 f->warmup_ratio_phase2, f->num_train_steps_phase2},
    };
}

static void settle_optim(struct optim_spec *o, const struct bert_flags *f)
{
    bool is_lamb = str_equal_nocase(f->optimizer, "lamb");

    optim_defaults(o, is_lamb ? OPTIM_LAMB : OPTIM_ADAMW);
    o->beta1 = (float)f->alpha;
    o->beta2 = (float)f->beta;
    o->epsilon = (float)f->epsilon;
    o->weight_decay = (float)f->lambda;
    o->is_uncorrected = !f->do_bias_correction;
    o->trust_least = is_lamb ? (float)f->ratio_min : 0;
    o->trust_most = is_lamb ? (float)f->ratio_max : 0;
    o->clip_norm = f->enable_grad_norm_clip ? largest_norm : 0;
}

/* Whole updates: the clock begins with the first batch of one. */
static int64_t settle_warmup(const struct bert_spec *spec, const struct bert_flags *f)
{
    int64_t passes = spec->phases[0].passes;

    if (spec->mode != BERT_PERF)
        return 0;
    return (f->perf_warm_up_iters + passes - 1) / passes * passes;
}

static int64_t settle_eval_batch(const struct bert_spec *spec, const struct bert_flags *f)
{
    if (spec->mode == BERT_PERF || (spec->mode == BERT_TRAIN && !f->do_eval))
        return 0;
    if (f->eval_batch_size > 0)
        return f->eval_batch_size;
    return f->train_batch_size > 0 ? f->train_batch_size : DEFAULT_EVAL_BATCH;
}

static void note_what_is_left_out(const struct bert_spec *spec,
                                  const struct bert_flags *f,
                                  const struct comm_facts *ranks,
                                  struct str *notes)
{
    if (bert_flags_given(f, "data_parallel_size") && f->data_parallel_size != ranks->ranks)
        str_addf(notes,
                 "--data_parallel_size is %" PRId64 ", but there are %d ranks: they all share "
                 "the data\n",
                 f->data_parallel_size, ranks->ranks);
    if (spec->mode == BERT_PERF && (or_null(f->log_dir) || or_null(f->checkpoints_dir)))
        str_add(notes, "--mode perf writes no events and no checkpoints\n");
    if (spec->mode == BERT_TRAIN && spec->phases[0].steps % spec->phases[0].passes)
        str_addf(notes,
                 "%" PRId64 " steps are no multiple of %" PRId64 " accumulated ones: the last "
                 "%" PRId64 " update nothing\n",
                 spec->phases[0].steps, spec->phases[0].passes,
                 spec->phases[0].steps % spec->phases[0].passes);
}

int bert_settle(const struct bert_flags *flags,
                const struct comm_facts *ranks,
                struct bert_spec *ret_spec,
                struct str *notes,
                struct err *e)
{
    struct bert_spec spec = {.mode = mode_of(flags->mode)};

    if (settle_size(&spec, flags, e) < 0)
        return -1;
    settle_first_phase(&spec, flags);
    settle_second_phase(&spec, flags);
    settle_optim(&spec.optim, flags);
    spec.warmup = settle_warmup(&spec, flags);
    spec.seed = flags->seed > 0 ? (uint64_t)flags->seed : DEFAULT_SEED;
    spec.eval_batch = settle_eval_batch(&spec, flags);
    note_what_is_left_out(&spec, flags, ranks, notes);
    *ret_spec = spec;
    return 0;
}

static bool is_among(unsigned has, enum precision precision)
{
    return has & (1U << precision);
}

static enum precision mixed_of(unsigned has, struct str *notes)
{
    if (is_among(has, PRECISION_FP16))
        return PRECISION_FP16;
    if (is_among(has, PRECISION_BF16)) {
        str_add(notes, "mixed precision is bf16 here: the device has no fp16\n");
        return PRECISION_BF16;
    }
    str_add(notes, "there is no mixed precision here: the device has fp32 alone\n");
    return PRECISION_FP32;
}

int bert_settle_precision(const struct bert_flags *flags,
                          unsigned has,
                          struct optim_spec *optim,
                          enum precision *ret_precision,
                          struct str *notes,
                          struct err *e)
{
    enum precision precision = PRECISION_FP32;

    if (flags->precision) {
        if (precision_parse(flags->precision, &precision, e) < 0)
            return -1;
        if (!is_among(has, precision))
            return err_set(e, ERR_METHOD, "the device has no precision %s", flags->precision);
    } else if (flags->use_mixed_precision) {
        precision = mixed_of(has, notes);
    }
    if (precision == PRECISION_FP16) {
        optim->has_dynamic_scale = flags->loss_scale == 0;
        optim->loss_scale = flags->loss_scale > 0 ? (float)flags->loss_scale : dynamic_scale;
        optim->scale_grows_after = SCALE_GROWS_AFTER;
    }
    *ret_precision = precision;
    return 0;
}

void bert_place(const struct bert_spec *spec,
                int64_t updates,
                int *ret_round,
                int64_t *ret_step)
{
    int round = 0;

    for (; round < spec->phase_count - 1; round++) {
        const struct bert_phase *p = &spec->phases[round];

        if (updates < p->steps / p->passes)
            break;
        updates -= p->steps / p->passes;
    }
    *ret_round = round;
    *ret_step = updates * spec->phases[round].passes;
}
