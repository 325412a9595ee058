/* loop.c - the batches of a phase: handed over, waited for, told.
 *
 * A backend that returns early is given the next batch before the last one's values are waited
 * for; never beyond a step behind which the parameters must be at rest (a checkpoint, an
 * evaluation).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "train/bert/bert-internal.h"
#include "train/run/common.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

static double cpu_seconds(void)
{
    struct rusage u = {0};

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static bool saves_after(const struct bert_run *run, int64_t updates)
{
    int64_t every = run->flags->checkpoint_period;

    return every > 0 && updates % every == 0 && run->flags->checkpoints_dir[0];
}

static bool evaluates_after(const struct bert_run *run, int64_t step)
{
    return run->eval_plan && step % run->flags->evaluation_period == 0;
}

/* Must all be done behind batch `step` before the next one begins? */
static bool rests_after(const struct bert_run *run, int64_t step)
{
    int64_t passes = bert_phase_of(run)->passes;
    int64_t updates = run->updates + (step / passes - run->step / passes);

    return (step % passes == 0 && saves_after(run, updates)) || evaluates_after(run, step);
}

static bool may_hand_over(const struct bert_run *run)
{
    bool is_alone = !run->backend->returns_early || bert_is_observed(run);
    int most = is_alone ? 1 : PLAN_MOST_AHEAD;

    return run->flight_count < most && run->next_step < bert_end(run) && !run->wants_stop &&
           (run->flight_count == 0 || !rests_after(run, run->next_step));
}

static double rate_at(const struct bert_run *run, int64_t step)
{
    int64_t counted = step - run->spec.warmup;

    return bert_rate_at(&bert_phase_of(run)->rate, counted > 0 ? counted : 0);
}

static int hand_over(struct bert_run *run, struct err *e)
{
    int64_t passes = bert_phase_of(run)->passes;
    struct bert_flight *f = &run->flights[run->flight_count];
    int64_t ahead = run->next_step / passes - run->step / passes;
    struct step step = {.number = (uint64_t)(run->updates + ahead)};

    f->pass = step.pass = (int)(run->next_step % passes);
    f->lr = rate_at(run, run->next_step);
    step.lr = (float)f->lr;
    step.flags = (f->pass == 0 ? STEP_FIRST : 0U) | (f->pass == passes - 1 ? STEP_LAST : 0U);
    if (bert_source_next(run->source, &f->batch, &step, e) < 0 ||
        plan_run(run->plan, &step, &f->ticket, e) < 0)
        return -1;
    run->flight_count++;
    run->next_step++;
    return 0;
}

static int land(struct bert_run *run,
                struct bert_flight *ret_flight,
                struct step_values *ret_values,
                struct err *e)
{
    *ret_flight = run->flights[0];
    run->flight_count--;
    memmove(run->flights, run->flights + 1,
            (size_t)run->flight_count * sizeof(run->flights[0]));
    return plan_wait(run->plan, ret_flight->ticket, ret_values, e);
}

static int check_finite(struct bert_run *run, double loss, struct err *e)
{
    const char *what = isnan(loss) ? "not a number" : "infinite";

    if (isfinite(loss)) {
        run->last_finite = loss;
        return 0;
    }
    if (run->spec.optim.has_dynamic_scale)
        return 0;
    if (isnan(run->last_finite))
        return err_set(e, ERR_RANGE, "the loss is %s in step %" PRId64 ", the first one", what,
                       run->step + 1);
    return err_set(e, ERR_RANGE,
                   "the loss is %s in step %" PRId64 "; the last finite one was %.6g: try a "
                   "smaller --learning_rate",
                   what, run->step + 1, run->last_finite);
}

/* Means over the batches of the update and over the ranks, and whether to stop. */
static int share(struct bert_run *run, struct bert_losses *ret_losses, struct err *e)
{
    double n = run->ranks->ranks, batches = n * (double)bert_phase_of(run)->passes;
    double values[] = {run_was_signalled(), run->sums.total, run->sums.mlm, run->sums.nsp};

    if (n > 1 && comm_sum(run->comm, values, (int)ARRAY_SIZE(values), e) < 0)
        return -1;
    run->wants_stop |= values[0] > 0;
    *ret_losses =
        (struct bert_losses){values[1] / batches, values[2] / batches, values[3] / batches};
    run->sums = (struct bert_losses){0};
    return 0;
}

static int after_update(struct bert_run *run,
                        const struct bert_flight *f,
                        const struct step_values *values,
                        double seconds,
                        struct err *e)
{
    bool is_shown = run->updates % run->flags->display_loss_steps == 0;
    struct bert_row row = {.step = run->updates, .seconds = seconds, .lr = f->lr};

    if (share(run, &row.losses, e) < 0 || check_finite(run, row.losses.total, e) < 0)
        return -1;
    row.scale = (double)values->value[VALUE_SCALE];
    if (!isnan(row.scale))
        run->loss_scale = row.scale;
    bert_add_row(run, &row);
    if (is_shown && run->spec.mode != BERT_PERF &&
        bert_show_losses(run, "train", run->shape.batch, &row.losses, f->lr, e) < 0)
        return -1;
    run->updates++;
    return 0;
}

static void count_time(struct bert_run *run, double seconds)
{
    struct bert_times *t = &run->times;
    int64_t done = run->step + 1 - run->spec.warmup;

    if (done < 1)
        return;
    t->batches_s += seconds;
    if (bert_end(run) - run->step <= BERT_STABLE_BATCHES) {
        t->stable_s += seconds;
        t->stable++;
    }
    if (t->late_us)
        t->late++;
    else if (done >= BERT_STABLE_BATCHES)
        t->late_us = run->ended_us;
}

static int rest(struct bert_run *run, bool is_update, struct err *e)
{
    if (run->flight_count > 0)
        return 0;
    if (is_update && saves_after(run, run->updates) && bert_save(run, e) < 0)
        return -1;
    return evaluates_after(run, run->step) ? bert_evaluate(run, e) : 0;
}

/* The batch that was handed over first: what it gave, and what is due behind it. */
static int one_batch(struct bert_run *run, struct err *e)
{
    bool is_under_way = run->flight_count > 0;
    int64_t began = is_under_way ? run->ended_us : clock_mono_us();
    struct step_values values;
    struct bert_flight f;
    double seconds;
    bool is_update;

    while (may_hand_over(run))
        if (hand_over(run, e) < 0)
            return -1;
    if (land(run, &f, &values, e) < 0)
        return -1;
    run->ended_us = clock_mono_us();
    seconds = (double)(run->ended_us - began) / 1e6;
    is_update = f.pass == bert_phase_of(run)->passes - 1;
    run->sums.total += (double)values.value[VALUE_LOSS];
    run->sums.mlm += (double)values.value[VALUE_MLM_LOSS];
    run->sums.nsp += (double)values.value[VALUE_NSP_LOSS];
    count_time(run, seconds);
    if (is_update && after_update(run, &f, &values, seconds, e) < 0)
        return -1;
    run->step++;
    bert_show_batch(run, &f.batch, seconds);
    return bert_observe_batch(run, e) < 0 ? -1 : rest(run, is_update, e);
}

static int begin(struct bert_run *run, struct err *e)
{
    struct bert_loader_options o = {
        .batch = run->shape.batch,
        .sequence = run->shape.sequence,
        .predictions = run->shape.predictions,
        .seed = run->spec.seed,
        .rank = run->ranks->rank,
        .ranks = run->ranks->ranks,
        .first_batch = run->step,
        .is_shuffled = true,
    };

    run->first_step = run->next_step = run->step;
    run->first_updates = run->updates;
    run->times.begun_us = clock_mono_us();
    return bert_source_begin(run->source, &o, run->spec.size.vocabulary, e);
}

/* The clock begins, or begins anew. */
static int end_warmup(struct bert_run *run, struct err *e)
{
    run->first_step = run->step;
    run->first_updates = run->updates;
    run->times.begun_us = clock_mono_us();
    run->times.cpu_s = -cpu_seconds();
    if (run->step - run->spec.warmup >= BERT_STABLE_BATCHES) /* a run that goes on */
        run->times.late_us = run->times.begun_us;
    return bert_observe(run, true, e);
}

static bool is_done(const struct bert_run *run)
{
    return run->step >= bert_end(run) || (run->wants_stop && run->flight_count == 0);
}

int bert_loop(struct bert_run *run, struct err *e)
{
    bool is_warm = false;

    if (begin(run, e) < 0)
        return -1;
    if (run->step >= bert_end(run) && bert_speaks(run))
        fprintf(stderr, "yardbench: nothing is left to do in round %d\n", run->round);
    while (!is_done(run)) {
        if (!is_warm && run->step >= run->spec.warmup) {
            if (end_warmup(run, e) < 0)
                return -1;
            is_warm = true;
        }
        if (one_batch(run, e) < 0)
            return -1;
    }
    run->times.ended_us = clock_mono_us();
    run->times.cpu_s += cpu_seconds();
    return bert_observe(run, false, e);
}
