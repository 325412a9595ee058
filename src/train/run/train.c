/* train.c - the loop.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "train/run/common.h"
#include "train/run/run-internal.h"

#include <inttypes.h>
#include <math.h>

struct clocks {
    int64_t begun_us, planned_us, warm_us;
};

static double seconds(int64_t from_us, int64_t to_us)
{
    return (double)(to_us - from_us) / 1e6;
}

static bool evaluates(const struct run *run)
{
    return run->eval_plan != NULL;
}

/* A step after the warm-up: its row, its events. */
static int tell(struct run *run, const struct run_result *r, double step_s, struct err *e)
{
    int64_t number = run->step - run->spec.warmup;
    double rate = (double)(run->spec.batch * run->spec.passes) / step_s;
    struct report_step row = {
        .step = number,
        .seconds = step_s,
        .loss = r->loss,
        .top1 = r->top1,
        .top5 = r->top5,
        .rate = rate,
        .learning_rate = r->lr,
        .is_shown = run->step == run->warm_end + 1 || number % run->flags->display_every == 0,
    };

    report_step(run->report, &row);
    return run_add_events(run, r, rate, e);
}

/* A step that was handed over ahead began, as far as anybody can tell, when the one before
 * ended. */
static int one_step(struct run *run, struct run_result *r, struct err *e)
{
    bool is_warm = run->step >= run->warm_end, is_under_way = run->flight_count > 0;
    int64_t began;

    if (run_observe_begin(run, e) < 0)
        return -1;
    began = is_under_way ? run->ended_us : clock_mono_us();
    if (run_step(run, r, e) < 0)
        return -1;
    run->ended_us = clock_mono_us();
    if (is_warm && tell(run, r, seconds(began, run->ended_us), e) < 0)
        return -1;
    return run_observe_end(run, e);
}

/* Evaluate in the middle of the training; *ret_is_enough: the accuracy asked for is reached. */
static int pause_and_evaluate(struct run *run, bool *ret_is_enough, struct err *e)
{
    double enough = run->flags->stop_at_top_1_accuracy;
    auto_str line = {0};

    str_addf(&line, "Running evaluation at global_step %" PRId64, run->step);
    report_phase(run->report, str_text(&line));
    if (run_evaluate(run, false, e) < 0)
        return -1;
    run_plan_evals(run, run->step - run->spec.warmup);
    *ret_is_enough = !isnan(enough) && enough > 0 && run->top1 >= enough;
    str_truncate(&line, 0);
    if (*ret_is_enough)
        str_addf(&line, "Stopping, as eval accuracy at least %g was reached", enough);
    else
        str_add(&line, "Resuming training");
    report_phase(run->report, str_text(&line));
    return 0;
}

static int after_step(struct run *run, bool *ret_is_enough, struct err *e)
{
    int64_t number = run->step - run->spec.warmup;

    if (run_is_training(run) && run_save_if_due(run, e) < 0)
        return -1;
    if (evaluates(run) && number == run->eval_at && run->step < run_end(run))
        return pause_and_evaluate(run, ret_is_enough, e);
    return 0;
}

static void end_warm_up(struct run *run, struct clocks *clocks)
{
    clocks->warm_us = clock_mono_us();
    loader_waited_s(run->loader); /* the waits of the warm-up are not counted */
    if (run->reducer) {
        auto_str unused = {0};

        reducer_times(run->reducer, &(struct reducer_times){0});
        reducer_pace(run->reducer, &unused);
    }
    report_phase(run->report, "Done warm up");
    report_columns(run->report);
}

static int loop(struct run *run,
                struct clocks *clocks,
                bool *ret_stopped,
                bool *ret_is_enough,
                struct err *e)
{
    struct run_result r = {0};

    report_phase(run->report, "Running warm up");
    while (run->step < run_end(run) && !*ret_is_enough && !r.wants_stop) {
        if (run->step == run->warm_end)
            end_warm_up(run, clocks);
        if (one_step(run, &r, e) < 0 || after_step(run, ret_is_enough, e) < 0)
            return -1;
    }
    *ret_stopped = r.wants_stop;
    return 0;
}

static int final_evaluation(struct run *run, struct err *e)
{
    auto_str line = {0};

    str_addf(&line, "Running final evaluation at global_step %" PRId64, run->step);
    report_phase(run->report, str_text(&line));
    return run_evaluate(run, false, e);
}

static int
finish(struct run *run, const struct clocks *c, bool stopped, bool is_enough, struct err *e)
{
    int64_t now = clock_mono_us();
    int64_t warm = c->warm_us ? c->warm_us : now;

    run_report_figures(run, seconds(c->begun_us, c->planned_us), seconds(c->planned_us, warm),
                       seconds(warm, now));
    report_total(run->report, seconds(warm, now), !evaluates(run));
    if (evaluates(run))
        report_phase(run->report, "Done with training");
    if (run_save(run, e) < 0)
        return -1;
    if (evaluates(run) && !stopped && !is_enough && final_evaluation(run, e) < 0)
        return -1;
    if (run->profile && run->ranks->rank == 0)
        run_print_profile(run);
    return run->ranks->ranks > 1 ? comm_barrier(run->comm, e) : 0;
}

/* The L2 term of a run that changes no parameter. */
static int fix_l2(struct run *run, struct err *e)
{
    const struct graph *g = run->graph;

    for (int t = 0; t < g->tensor_count && !run_is_training(run); t++) {
        size_t count = (size_t)tensor_elements(&g->tensors[t]);
        auto_free float *values = NULL;

        if (g->tensors[t].role != ROLE_PARAM || !g->tensors[t].decays)
            continue;
        values = xreallocarray(NULL, count, sizeof(*values));
        if (plan_read(run->plan, t, values, count * sizeof(*values), e) < 0)
            return -1;
        run->fixed_l2 += run->flags->weight_decay * optim_square_sum(values, count, NULL) / 2;
    }
    return 0;
}

static int train(struct run *run, struct clocks *clocks, bool *ret_stopped, struct err *e)
{
    bool is_enough = false;

    clocks->planned_us = clock_mono_us();
    run->resumed_step = run->next_step = run->step;
    run->saved_ms = clock_mono_ms();
    run->warm_end = run->step + run->spec.warmup;
    if (run->warm_end > run_end(run)) /* a resumed run with little left has less of it */
        run->warm_end = run->step < run_end(run) ? run_end(run) - 1 : run->step;
    run_plan_evals(run, run->step > run->spec.warmup ? run->step - run->spec.warmup : 0);
    if (fix_l2(run, e) < 0)
        return -1;
    run_print_header(run);
    report_phase(run->report, "Generating training model");
    report_phase(run->report, "Initializing graph");
    if (run->step >= run_end(run) && run->ranks->rank == 0)
        fprintf(stderr,
                "yardbench: nothing is left to do: the checkpoint is of step %" PRId64
                ", the run ends with step %" PRId64 "\n",
                run->step, run_end(run));
    if (loop(run, clocks, ret_stopped, &is_enough, e) < 0)
        return -1;
    return finish(run, clocks, *ret_stopped, is_enough, e);
}

/* The report is written whatever happened. */
static int end(struct run *run, int rc, struct err *e)
{
    struct err unsaid;

    if (run->report && report_end(run->report, rc < 0 ? e : NULL, rc < 0 ? &unsaid : e) < 0 &&
        rc == 0)
        rc = -1;
    run_close(run);
    return rc;
}

int run_train(const struct flags *flags, struct comm *comm, int *ret_signal, struct err *e)
{
    struct clocks clocks = {.begun_us = clock_mono_us()};
    bool was_stopped = false;
    struct run run;
    int rc;

    run_block_signals();
    rc = run_open(&run, flags, comm, e);
    if (rc == 0)
        rc = train(&run, &clocks, &was_stopped, e);
    *ret_signal = was_stopped ? run_pending_signal() : 0;
    return end(&run, rc, e);
}

int run_eval(const struct flags *flags, struct comm *comm, struct err *e)
{
    struct run run;
    int rc;

    run_block_signals();
    rc = run_open(&run, flags, comm, e);
    if (rc == 0) {
        run_print_header(&run);
        rc = run_eval_loop(&run, e);
    }
    return end(&run, rc, e);
}
