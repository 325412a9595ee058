/* agree.c - all ranks must run one and the same program.
 *
 * What they compare is what they settled on, not the words of their command lines: the same
 * thing may be said in two ways.  Each part is compared by itself, so that the message says
 * which one differs.  Left out is what may differ: folders, devices, threads, what is printed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/run-internal.h"

#include <inttypes.h>

/* Numbers are written so that other bits are other texts. */
static void add(struct str *text, double value)
{
    str_addf(text, " %a", value);
}

static void describe_work(const struct run *run, struct str *text)
{
    const struct run_spec *s = &run->spec;

    str_addf(text, "%s %s %" PRId64 " examples, batch %" PRId64 " x %" PRId64, s->model->name,
             run->data.name, run->data.count, s->batch, s->passes);
    str_addf(text, ", steps %" PRId64 " + %" PRId64 ", %s %d, update %d", s->warmup, s->steps,
             precision_name(s->precision), run_is_training(run), (int)s->update);
    add(text, (double)s->model_options.label_smoothing);
}

static void describe_optim(const struct run *run, struct str *text)
{
    const struct optim_spec *o = &run->spec.optim;
    const float numbers[] = {
        o->momentum,     o->rmsprop_decay, o->beta1,       o->beta2,
        o->epsilon,      o->trust,         o->trust_least, o->trust_most,
        o->weight_decay, o->clip_value,    o->clip_norm,   o->loss_scale,
    };

    str_addf(text, "%s %d %d %d %d", optim_info(o->kind)->name, o->with_nesterov,
             o->is_uncorrected, o->has_dynamic_scale, o->scale_grows_after);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        add(text, (double)numbers[i]);
}

static void describe_rates(const struct run *run, struct str *text)
{
    const struct schedule *s = &run->spec.schedule;
    const double numbers[] = {s->rate,  s->factor,        s->decay_epochs,   s->floor,
                              s->power, s->warmup_epochs, s->steps_per_epoch};

    str_addf(text, "%d %" PRId64, (int)s->kind, s->steps);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        add(text, numbers[i]);
    for (int i = 0; i < s->pieces; i++) {
        add(text, s->piece_epoch[i]);
        add(text, s->piece_rate[i]);
    }
}

/* Ranks evaluate together, and look for the newest checkpoint together. */
static void describe_pauses(const struct run *run, struct str *text)
{
    const struct flags *f = run->flags;

    str_addf(text, "%d %d %" PRId64 " x %" PRId64, run->eval_dataset != NULL,
             f->train_dir != NULL, run->spec.eval_batch, f->num_eval_batches);
    str_addf(text, ", every %" PRId64 " and %" PRId64, run->spec.eval_every,
             run->spec.save_every);
    add(text, f->num_eval_epochs);
    add(text, f->eval_every_n_epochs);
    add(text, f->stop_at_top_1_accuracy);
    for (int i = 0; i < f->eval_at_step_count; i++)
        add(text, f->eval_at_steps[i]);
    for (int i = 0; i < f->eval_at_epoch_count; i++)
        add(text, f->eval_at_epochs[i]);
}

static void describe_seed(const struct run *run, struct str *text)
{
    str_addf(text, "%" PRIu64, run->spec.seed);
}

static void describe_layout(const struct run *run, struct str *text)
{
    if (run->plan)
        plan_layout(run->plan, text);
}

typedef void describe_fn(const struct run *run, struct str *text);

static int compare(struct run *run, const char *what, describe_fn *describe, struct err *e)
{
    auto_str text = {0};

    describe(run, &text);
    return comm_agree(run->comm, what, str_text(&text), e);
}

int run_agree_on_spec(struct run *run, struct err *e)
{
    static const struct {
        const char *what;
        describe_fn *describe;
    } parts[] = {
        {"network, data, batches and steps", describe_work},
        {"optimizer", describe_optim},
        {"learning rates", describe_rates},
        {"evaluation and checkpoints", describe_pauses},
        {"seed", describe_seed},
    };

    for (size_t i = 0; i < ARRAY_SIZE(parts) && run->ranks->ranks > 1; i++)
        if (compare(run, parts[i].what, parts[i].describe, e) < 0)
            return -1;
    return 0;
}

int run_agree_on_layout(struct run *run, struct err *e)
{
    return run->ranks->ranks > 1 ? compare(run, "layout of gradients", describe_layout, e) : 0;
}
