/* ahead.c - passes that were handed to the backend and not yet waited for.
 *
 * A backend that returns early (a GPU) must never wait for the host: the first pass of step
 * n + 1 is handed over before step n is waited for, and what the host does with step n's
 * results (rows, events, the sum over ranks) goes on beside it.  Nothing is handed over across
 * a pause: a place where somebody looks at the parameters or the clock (a checkpoint, an
 * evaluation, the end of the warm-up, a step that is timed op by op, the end).
 *
 * A CPU backend is done when it returns, so there is at most one pass here, and it is waited
 * for at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/run-internal.h"

static int most_ahead(const struct run *run)
{
    return run->spec.backend->returns_early ? PLAN_MOST_AHEAD : 1;
}

/* The same on all ranks, which compared what it depends on. */
static bool pauses_everywhere(const struct run *run, int64_t step)
{
    int64_t number = step - run->spec.warmup;

    return step >= run_end(run) || step >= run->stop_at || step == run->warm_end ||
           (run->eval_plan && number == run->eval_at) || run_saves_at(run, step);
}

/* What this rank alone looks at. */
static bool pauses_here(const struct run *run, int64_t step)
{
    return run->is_timed || (run->profile && step >= run->warm_end) || run_traces(run, step) ||
           run_save_is_late(run);
}

/* A stop takes effect after the step that the others may have been given already. */
void run_stop_after(struct run *run, int64_t step)
{
    bool is_ahead = most_ahead(run) > 1 && !pauses_everywhere(run, step);

    if (run->stop_at == INT64_MAX)
        run->stop_at = is_ahead ? step + 1 : step;
}

static bool may_hand_over(const struct run *run)
{
    if (run->flight_count == 0)
        return true;
    if (run->flight_count == most_ahead(run))
        return false;
    if (run->next_step == run->step)
        return true;
    return run->next_step == run->step + 1 && !pauses_everywhere(run, run->next_step) &&
           !pauses_here(run, run->next_step);
}

static unsigned flags_of(const struct run *run, int pass)
{
    if (!run_is_training(run))
        return 0;
    return (pass == 0 ? STEP_FIRST : 0U) | (pass == run->spec.passes - 1 ? STEP_LAST : 0U);
}

static void count_on(struct run *run)
{
    if (++run->next_pass < run->spec.passes)
        return;
    run->next_pass = 0;
    run->next_step++;
}

static int hand_over(struct run *run, struct err *e)
{
    struct run_flight *flight = &run->flights[run->flight_count];
    struct step step = {
        .number = (uint64_t)run->next_step,
        .lr = (float)schedule_rate(&run->spec.schedule, run->next_step),
        .pass = run->next_pass,
        .flags = flags_of(run, run->next_pass),
    };

    if (loader_next(run->loader, &flight->batch, e) < 0)
        return -1;
    step.feed[0] = flight->batch.is_same ? NULL : flight->batch.images;
    step.feed[1] = flight->batch.is_same ? NULL : flight->batch.labels;
    if (plan_run(run->plan, &step, &flight->ticket, e) < 0) {
        loader_release(run->loader, &flight->batch);
        return -1;
    }
    run->flight_count++;
    count_on(run);
    return 0;
}

static int64_t counted(const struct batch *batch, int64_t size)
{
    int64_t count = 0;

    for (int64_t i = 0; i < size; i++)
        count += batch->labels[i] >= 0;
    return count;
}

/* The oldest. */
static int
land(struct run *run, struct step_values *ret_values, int64_t *ret_examples, struct err *e)
{
    struct run_flight flight = run->flights[0];
    int rc = plan_wait(run->plan, flight.ticket, ret_values, e);

    *ret_examples = counted(&flight.batch, run->spec.batch);
    loader_release(run->loader, &flight.batch);
    run->flight_count--;
    for (int i = 0; i < run->flight_count; i++)
        run->flights[i] = run->flights[i + 1];
    run->batches++;
    return rc;
}

int run_pass(struct run *run,
             struct step_values *ret_values,
             int64_t *ret_examples,
             struct err *e)
{
    while (may_hand_over(run))
        if (hand_over(run, e) < 0)
            return -1;
    return land(run, ret_values, ret_examples, e);
}

void run_land_all(struct run *run)
{
    struct step_values unused;
    int64_t examples;

    while (run->flight_count > 0)
        (void)land(run, &unused, &examples, NULL);
}
