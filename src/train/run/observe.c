/* observe.c - what is looked at beside the results: times of ops, events, figures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/num/par.h"
#include "train/report/peak.h"
#include "train/run/common.h"
#include "train/run/run-internal.h"

#include <inttypes.h>
#include <math.h>

/* The step before the last of the warm-up, as in the original; without one, the first. */
bool run_traces(const struct run *run, int64_t step)
{
    int64_t first = run->resumed_step;

    if (!run->flags->trace_file[0] || run->ranks->rank != 0)
        return false;
    return step == (run->warm_end - first >= 2 ? run->warm_end - 2 : first);
}

int run_observe_begin(struct run *run, struct err *e)
{
    bool profiles = run->profile && run->step >= run->warm_end;

    run->is_timed = profiles || run_traces(run, run->step);
    return run->is_timed ? plan_time(run->plan, true, e) : 0;
}

/* With the step just done, which run->step is one beyond. */
int run_observe_end(struct run *run, struct err *e)
{
    auto_free struct trace_span *spans = NULL;
    int count;

    if (!run->is_timed)
        return 0;
    spans = run_spans(run->plan, &count);
    if (run->profile && run->step > run->warm_end) {
        profile_add(run->profile, spans, count);
        run->profiled_steps++;
    }
    if (run_traces(run, run->step - 1)) {
        auto_str line = {0};

        str_addf(&line, "Dumping trace to %s", run->flags->trace_file);
        report_phase(run->report, str_text(&line));
        if (trace_write(run->flags->trace_file, run->ranks->rank, spans, count, e) < 0)
            return -1;
    }
    return plan_time(run->plan, false, e);
}

int run_add_events(struct run *run, const struct run_result *r, double rate, struct err *e)
{
    int64_t every = run->flags->save_summaries_steps > 0 ? run->flags->save_summaries_steps
                                                         : run->flags->display_every;
    const struct events_scalar scalars[] = {
        {"loss", (float)r->base_loss},      {"total_loss", (float)(r->base_loss + r->l2)},
        {"learning_rate", (float)r->lr},    {"images_per_second", (float)rate},
        {"top_1_accuracy", (float)r->top1}, {"top_5_accuracy", (float)r->top5},
        {"loss_scale", (float)r->scale},
    };

    if (!run->events || (run->step % every != 0 && run->step != 1))
        return 0;
    return events_add(run->events, run->step, scalars, (int)ARRAY_SIZE(scalars), e);
}

static void report_reduction(struct run *run)
{
    struct reducer_times times = {0};
    auto_str pace = {0};

    if (run->reducer) {
        reducer_times(run->reducer, &times);
        reducer_pace(run->reducer, &pace);
    }
    if (pace.len > 0)
        report_text(run->report, "buckets", str_text(&pace));
    report_number(run->report, "seconds.exposed_communication", times.exposed_s);
    report_number(run->report, "seconds.communication", times.busy_s);
    report_number(run->report, "communication.bytes", (double)times.bytes);
    report_number(run->report, "communication.calls", (double)times.calls);
}

/* What part of the cores' peak the timed steps had.  The peak is measured now, when the steps
 * are done, and only for who asks: it takes a tenth of a second. */
static void report_share_of_peak(struct run *run, double steps_s, double flops)
{
    int64_t steps = run->step - run->warm_end;
    double images = (double)(steps * run->spec.batch * run->spec.passes);
    bool is_wanted = run->profile || run->flags->json_file;

    if (run->is_gpu || !is_wanted || run->ranks->rank != 0 || steps <= 0 || steps_s <= 0)
        return;
    run->peak = peak_flops(par_threads());
    report_number(run->report, "flops.peak", run->peak);
    report_number(run->report, "flops.of_peak", images * flops / steps_s / run->peak);
}

void run_report_figures(struct run *run, double plan_s, double warmup_s, double steps_s)
{
    const struct graph *g = run->graph;
    double flops = graph_flops(g, !run_is_training(run)) / (double)g->batch;

    report_number(run->report, "seconds.plan", plan_s);
    report_number(run->report, "seconds.warmup", warmup_s);
    report_number(run->report, "seconds.steps", steps_s);
    report_number(run->report, "seconds.data_waited", loader_waited_s(run->loader));
    report_reduction(run);
    report_number(run->report, "flops.per_image", flops);
    report_share_of_peak(run, steps_s, flops);
    report_number(run->report, "corrupt_examples", (double)loader_corrupt(run->loader));
    report_number(run->report, "seed", (double)run->spec.seed);
    if (run->flags->benchmark_test_id)
        report_text(run->report, "test_id", run->flags->benchmark_test_id);
    if (run->profile)
        report_profile(run->report, run->profile, run->profiled_steps);
}

void run_print_profile(struct run *run)
{
    profile_print(run->profile, run->profiled_steps, run->peak, stderr);
}
