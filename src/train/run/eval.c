/* eval.c - top-1 and top-5 over the evaluation's examples, and when it is time for them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/run-internal.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <time.h>

struct tally {
    double top1, top5, examples;
    int64_t step;
    int64_t shown_us;
};

/* Batches of one rank: as asked for, else every example once; of synthetic data as many as
 * the training has. */
static int64_t eval_batches(const struct run *run)
{
    const struct flags *f = run->flags;
    struct dataset_facts facts;
    double examples = (double)run->spec.eval_batch * run->ranks->ranks;
    double epochs = f->eval && isnan(f->num_eval_epochs) ? f->num_epochs : f->num_eval_epochs;

    dataset_facts(run->eval_dataset, &facts);
    if (f->num_eval_batches > 0)
        return f->num_eval_batches;
    if (!isnan(epochs) && epochs > 0)
        return run_steps_of_epochs(epochs, (double)facts.count, examples);
    if (f->eval && f->num_batches > 0)
        return f->num_batches;
    return facts.is_synthetic ? run->spec.steps : INT64_MAX;
}

static int open_loader(const struct run *run, struct loader **ret_loader, struct err *e)
{
    const struct flags *f = run->flags;
    struct loader_options o = {
        .batch = run->spec.eval_batch,
        .decode = run->spec.decode,
        .seed = run->spec.seed,
        .rank = run->ranks->rank,
        .ranks = run->ranks->ranks,
        .threads =
            f->datasets_num_private_threads > 0 ? (int)f->datasets_num_private_threads : 0,
        .ahead = (int)f->datasets_prefetch_buffer_size + 1,
        .most_corrupt = (int)f->most_corrupt,
    };

    o.decode.is_training = false;
    o.decode.distorts = false;
    return loader_new(run->eval_dataset, &o, ret_loader, e);
}

static int64_t counted(const struct run *run, const struct batch *batch)
{
    int64_t count = 0;

    for (int64_t i = 0; i < run->spec.eval_batch; i++)
        count += batch->labels[i] >= 0;
    return count;
}

static void show_rate(struct run *run, struct tally *tally)
{
    int64_t every = run->flags->display_every, now = clock_mono_us();
    auto_str line = {0};

    if (tally->step % every)
        return;
    str_addf(&line, "%" PRId64 "\t%.1f examples/sec", tally->step,
             (double)(every * run->spec.eval_batch) * 1e6 / (double)(now - tally->shown_us));
    report_phase(run->report, str_text(&line));
    tally->shown_us = now;
}

/* 1 = done, 0 = there is no more. */
static int
eval_batch(struct run *run, struct loader *loader, struct tally *tally, struct err *e)
{
    struct step step = {.number = (uint64_t)tally->step};
    struct step_values values;
    struct batch batch;
    int rc;

    if (loader_next(loader, &batch, e) < 0)
        return -1;
    if (!batch.examples)
        return 0;
    step.feed[0] = batch.is_same ? NULL : batch.images;
    step.feed[1] = batch.is_same ? NULL : batch.labels;
    rc = plan_step(run->eval_plan, &step, &values, e);
    tally->examples += (double)counted(run, &batch);
    loader_release(loader, &batch);
    if (rc < 0)
        return -1;
    tally->top1 += (double)values.value[VALUE_TOP1];
    tally->top5 += (double)values.value[VALUE_TOP5];
    tally->step++;
    show_rate(run, tally);
    return 1;
}

static int eval_all(struct run *run, struct tally *tally, struct err *e)
{
    int64_t batches = eval_batches(run);
    struct loader *loader;
    int got = 1;

    if (open_loader(run, &loader, e) < 0)
        return -1;
    while (got > 0 && tally->step < batches)
        got = eval_batch(run, loader, tally, e);
    loader_free(loader);
    return got < 0 ? -1 : 0;
}

static int add_eval_events(struct run *run, double top1, double top5, struct err *e)
{
    const struct events_scalar scalars[] = {
        {"eval/top_1_accuracy", (float)top1},
        {"eval/top_5_accuracy", (float)top5},
    };

    if (!run->events)
        return 0;
    if (events_add(run->events, run->step, scalars, (int)ARRAY_SIZE(scalars), e) < 0)
        return -1;
    return events_flush(run->events, e);
}

int run_evaluate(struct run *run, bool shows_total, struct err *e)
{
    int64_t began = clock_mono_us();
    struct tally tally = {.shown_us = began};
    double sums[3];

    if (eval_all(run, &tally, e) < 0)
        return -1;
    sums[0] = tally.top1;
    sums[1] = tally.top5;
    sums[2] = tally.examples;
    if (run->ranks->ranks > 1 && comm_sum(run->comm, sums, 3, e) < 0)
        return -1;
    if (sums[2] <= 0)
        return err_set(e, ERR_NOT_FOUND, "there was no example to evaluate");
    run->top1 = sums[0] / sums[2];
    report_eval(run->report, (int64_t)sums[2], (double)(clock_mono_us() - began) / 1e6,
                run->top1, sums[1] / sums[2], run->step, shows_total);
    return add_eval_events(run, run->top1, sums[1] / sums[2], e);
}

/* The smaller of two, where 0 or less is none. */
static int64_t nearer(int64_t best, int64_t at, int64_t after)
{
    return at > after && at < best ? at : best;
}

void run_plan_evals(struct run *run, int64_t after)
{
    const struct flags *f = run->flags;
    double count = (double)run->data.count, every = f->eval_every_n_epochs;
    double examples = (double)(run->spec.batch * run->spec.passes) * (double)run->ranks->ranks;
    int64_t best = INT64_MAX;

    if (run->spec.eval_every > 0)
        best = nearer(best, (after / run->spec.eval_every + 1) * run->spec.eval_every, after);
    for (int i = 0; i < f->eval_at_step_count; i++)
        best = nearer(best, (int64_t)f->eval_at_steps[i], after);
    for (int i = 0; i < f->eval_at_epoch_count; i++)
        best = nearer(best, run_steps_of_epochs(f->eval_at_epochs[i], count, examples), after);
    for (double at = every; !isnan(every) && at < run->spec.epochs && best == INT64_MAX;
         at += every)
        best = nearer(best, run_steps_of_epochs(at, count, examples), after);
    run->eval_at = best;
}

/* --- yardbench --eval --- */

static int eval_newest(struct run *run, int64_t *last_step, struct err *e)
{
    auto_free char *path = NULL;
    struct checkpoint_facts facts;
    int missing;

    if (checkpoint_latest(run->flags->train_dir, &path, e) < 0)
        return -1;
    if (!path)
        return err_set(e, ERR_NOT_FOUND, "there is no checkpoint in \"%.200s\"",
                       run->flags->train_dir);
    if (checkpoint_load(run->eval_plan, path, true, &facts, &missing, e) < 0)
        return -1;
    if (facts.step == *last_step)
        return 0;
    run->step = *last_step = facts.step;
    return run_evaluate(run, true, e);
}

/* Sleep; true when a signal came. */
static bool nap(int64_t seconds)
{
    struct timespec time = {.tv_sec = seconds};
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    return sigtimedwait(&ends, NULL, &time) >= 0;
}

int run_eval_loop(struct run *run, struct err *e)
{
    int64_t last_step = -1, every = run->flags->eval_interval_secs;

    do {
        if (eval_newest(run, &last_step, e) < 0)
            return -1;
    } while (every > 0 && !nap(every));
    return 0;
}
