/* run-internal.h - a run while it lasts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RUN_RUN_INTERNAL_H
#define TRAIN_RUN_RUN_INTERNAL_H

#include "base/mem.h"
#include "base/str.h"
#include "train/comm/reducer.h"
#include "train/report/events.h"
#include "train/report/report.h"
#include "train/report/trace.h"
#include "train/run/run.h"

struct run_flight { /* a pass that the backend has been given */
    uint64_t ticket;
    struct batch batch; /* borrowed by the backend until it is waited for */
};

struct run {
    const struct flags *flags;
    struct comm *comm;
    const struct comm_facts *ranks;
    struct run_spec spec;
    struct dataset_facts data;
    struct dataset *dataset, *eval_dataset;
    struct loader *loader;
    struct device *device;
    struct device_facts device_facts;
    struct reducer *reducer;
    struct graph *graph, *eval_graph; /* without training, the graph is NULL */
    struct plan *plan, *eval_plan;    /* eval_plan: NULL when nothing is evaluated */
    struct report *report;
    char *dataset_text; /* "imagenet (synthetic)" */
    FILE *out;          /* of a rank that does not print; else NULL */
    struct events *events;
    struct profile *profile;
    int profiled_steps;
    double peak; /* FLOP/s of the cores, measured at the end; 0 = it was not */
    bool is_gpu;

    int64_t resumed_step, warm_end; /* the first step, and the first that is timed */
    bool is_timed;                  /* ops of this step are */
    int64_t step;    /* updates so far, with the warm-up and with what a checkpoint brought */
    int64_t batches; /* that those steps took from the loader */
    struct run_flight flights[PLAN_MOST_AHEAD]; /* oldest first */
    int flight_count;
    int64_t next_step; /* the pass to hand over next */
    int next_pass;
    int64_t stop_at;  /* a signal's: run no step beyond; INT64_MAX = none came */
    int64_t ended_us; /* when the last step's results were there */
    double fixed_l2;  /* of a forward-only run */
    double last_finite_loss;
    double loss_scale; /* of the last step; 1 = none */
    int64_t saved_step, saved_ms;
    int64_t eval_at; /* next step to evaluate after; INT64_MAX = none */
    double top1;     /* of the last evaluation; NaN = none */
};

/* What became of a step; loss with the L2 term or without it, as --loss_type_to_report says. */
struct run_result {
    double loss, base_loss, l2, top1, top5, lr;
    double scale;    /* loss scale, or NaN */
    bool wants_stop; /* a signal reached one of the ranks */
};

/* open.c */
int run_open(struct run *run, const struct flags *flags, struct comm *comm, struct err *e);
void run_close(struct run *run);
void run_print_header(struct run *run);
bool run_is_training(const struct run *run); /* not forward-only, not evaluation */
int64_t run_end(const struct run *run);      /* the step with which it is done */

/* agree.c: fail on every rank, naming what differs and where. */
int run_agree_on_spec(struct run *run, struct err *e);
int run_agree_on_layout(struct run *run, struct err *e);

/* ahead.c */
/* One pass of the current step, in their order: hand over what may be, wait for it. */
int run_pass(struct run *run,
             struct step_values *ret_values,
             int64_t *ret_examples,
             struct err *e);
void run_stop_after(struct run *run, int64_t step);
void run_land_all(struct run *run); /* after an error: what the backend borrowed comes back */

/* step.c: one step with all its passes, and its results. */
int run_step(struct run *run, struct run_result *ret_result, struct err *e);

/* eval.c */
int run_eval_loop(struct run *run, struct err *e); /* --eval */
int run_evaluate(struct run *run, bool shows_total, struct err *e);
void run_plan_evals(struct run *run, int64_t after); /* sets eval_at */

/* save.c */
int run_resume(struct run *run, struct err *e);
int run_save(struct run *run, struct err *e);
int run_save_if_due(struct run *run, struct err *e);
bool run_saves_at(const struct run *run, int64_t step); /* --save_model_steps */
bool run_save_is_late(const struct run *run);           /* --save_model_secs */

/* observe.c */
bool run_traces(const struct run *run, int64_t step);
int run_observe_begin(struct run *run, struct err *e);
int run_observe_end(struct run *run, struct err *e);
int run_add_events(struct run *run,
                   const struct run_result *result,
                   double rate,
                   struct err *e);
void run_report_figures(struct run *run, double plan_s, double warmup_s, double steps_s);

void run_print_profile(struct run *run);

/* settle.c: as the original rounds it. */
int64_t run_steps_of_epochs(double epochs, double count, double examples);

#endif
