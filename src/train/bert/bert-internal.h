/* bert-internal.h - a run of BERT while it lasts, and what settling it gives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_BERT_INTERNAL_H
#define TRAIN_BERT_BERT_INTERNAL_H

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/backend.h"
#include "train/bert-data/bert-data.h"
#include "train/bert/bert-flags.h"
#include "train/bert/bert.h"
#include "train/bert/rate.h"
#include "train/comm/comm.h"
#include "train/comm/reducer.h"
#include "train/model/bert.h"
#include "train/report/events.h"
#include "train/report/trace.h"

#include <stdio.h>

enum {
    BERT_MOST_PHASES = 2,
    BERT_STABLE_BATCHES = 128, /* the last ones, whose throughput counts as stable */
};

enum bert_mode {
    BERT_TRAIN,
    BERT_PERF,
    BERT_VALIDATION,
};

/* --- settle.c: from flags to what is done.  Pure. --- */
struct bert_phase {
    const char *train_dir, *test_dir; /* NULL = random data, no evaluation */
    int64_t batch, passes;
    int64_t steps; /* batches of a rank, without the warm-up */
    struct bert_rate rate;
};

struct bert_spec {
    enum bert_mode mode;
    struct bert_size size;
    const char *leaf; /* of --model_name: behind the last "/" */
    char model[64];   /* the size written out, as checkpoints have it */
    struct bert_phase phases[BERT_MOST_PHASES];
    int phase_count;
    int64_t warmup;          /* batches before the clock runs; whole updates */
    int64_t eval_batch;      /* 0 = nothing is evaluated */
    struct optim_spec optim; /* loss scale: once the precision is known */
    uint64_t seed;
};

int bert_settle(const struct bert_flags *flags,
                const struct comm_facts *ranks,
                struct bert_spec *ret_spec,
                struct str *notes,
                struct err *e);
/* The precision among those a device has (bits), and with it the loss scale. */
int bert_settle_precision(const struct bert_flags *flags,
                          unsigned has,
                          struct optim_spec *optim,
                          enum precision *ret_precision,
                          struct str *notes,
                          struct err *e);
/* Where in which phase a run stands after so many updates. */
void bert_place(const struct bert_spec *spec,
                int64_t updates,
                int *ret_round,
                int64_t *ret_step);

/* --- source.c: batches, from files or made up --- */
struct bert_source; /* opaque */

/* path NULL: random data.  An open source has no batches yet: what it holds decides the graph.
 */
int bert_source_open(const char *path, struct bert_source **ret_source, struct err *e);
void bert_source_free(struct bert_source *source);
/* NULL: random data. */
const struct bert_data_facts *bert_source_facts(const struct bert_source *source);
int bert_source_begin(struct bert_source *source,
                      const struct bert_loader_options *options,
                      int64_t vocabulary,
                      struct err *e);
/* Also fills step->feed; NULL where it is what was fed before. */
int bert_source_next(struct bert_source *source,
                     struct bert_batch *ret_batch,
                     struct step *step,
                     struct err *e);

/* --- the run --- */
struct bert_flight { /* a batch that the backend has been given */
    uint64_t ticket;
    struct bert_batch batch;
    double lr;
    int pass;
};

struct bert_losses {
    double total, mlm, nsp;
};

/* One update, for --json. */
struct bert_row {
    int64_t step;
    double seconds, lr, scale;
    struct bert_losses losses;
};

struct bert_times {   /* of a phase; a batch counts once it is behind the warm-up */
    double batches_s; /* sum over the batches */
    double stable_s;  /* over the last BERT_STABLE_BATCHES of the phase */
    int64_t stable;   /* how many of them there were */
    int64_t begun_us; /* the loop, at the end of the warm-up */
    int64_t late_us;  /* when BERT_STABLE_BATCHES were done; 0 = not yet */
    int64_t late;     /* batches since */
    int64_t ended_us; /* the loop */
    double cpu_s;     /* processor time of the loop */
};

struct bert_run {
    const struct bert_flags *flags;
    struct comm *comm;
    const struct comm_facts *ranks;
    struct bert_spec spec;
    const struct backend_ops *backend;
    struct device *device;
    struct device_facts device_facts;
    enum precision precision;

    int round; /* the phase */
    struct bert_source *source, *test;
    struct bert_options shape, eval_shape;
    struct graph *graph, *eval_graph;
    struct plan *plan, *eval_plan;
    struct reducer *reducer;

    int64_t updates;    /* of all phases, with the warm-up */
    int64_t step;       /* batches of this phase done, with the warm-up */
    int64_t first_step; /* where this process began in this phase */
    int64_t first_updates;
    struct bert_flight flights[PLAN_MOST_AHEAD]; /* oldest first */
    int flight_count;
    int64_t next_step;       /* the batch to hand over next */
    bool wants_stop;         /* a signal reached one of the ranks */
    int64_t ended_us;        /* when the last batch's results were there */
    struct bert_losses sums; /* over the batches of this update */
    double last_finite;
    double loss_scale; /* 1 = none */
    int64_t saved_at;  /* updates */

    struct bert_times times;
    struct bert_row *rows;
    size_t row_count, row_room;
    struct profile *profile; /* --profile */
    int profiled;            /* batches in it */
    bool has_traced;
    struct events *events;
    FILE *losses; /* --convergence_test_output_file */
};

const struct bert_phase *bert_phase_of(const struct bert_run *run);
int64_t bert_end(const struct bert_run *run); /* of the phase, with the warm-up */
bool bert_speaks(const struct bert_run *run); /* rank 0 */

/* open.c */
int bert_open(struct bert_run *run,
              const struct bert_flags *flags,
              struct comm *comm,
              struct err *e);
int bert_open_phase(struct bert_run *run, struct err *e);
void bert_close_phase(struct bert_run *run);
void bert_close(struct bert_run *run);

/* make.c: graphs and plans. */
int bert_make_graph(const struct bert_run *run,
                    int64_t ranks,
                    int64_t fusion_bytes,
                    struct graph **ret_graph,
                    struct err *e);
int bert_make_plan(struct bert_run *run, struct err *e);
int bert_make_eval_plan(struct bert_run *run, struct err *e);
int bert_print_plan(struct bert_run *run, struct err *e); /* --plan_only */

/* loop.c: one phase. */
int bert_loop(struct bert_run *run, struct err *e);

/* eval.c */
int bert_evaluate(struct bert_run *run, struct err *e);
int bert_validate(struct bert_run *run, struct err *e); /* --mode validation */

/* save.c */
int bert_resume(struct bert_run *run, struct err *e);
int bert_begin_with(struct bert_run *run, struct err *e); /* weights of a new run */
int bert_save(struct bert_run *run, struct err *e);
/* Params and states by name, in memory, from the plan of one phase to that of the next. */
struct bert_carry; /* opaque */
int bert_carry_take(struct bert_run *run, struct bert_carry **ret_carry, struct err *e);
int bert_carry_give(struct bert_run *run, const struct bert_carry *carry, struct err *e);
void bert_carry_free(struct bert_carry *carry);
DEFINE_AUTOPTR(bert_carry)

/* weights.c: weights alone, with the names of HuggingFace's BertForPreTraining. */
int bert_weights_save(struct plan *plan, const char *path, struct err *e);
int bert_weights_load(struct plan *plan, const char *path, struct err *e);

/* observe.c: times of ops. */
bool bert_is_observed(const struct bert_run *run); /* batches are then not handed over ahead */
int bert_observe(struct bert_run *run, bool is_on, struct err *e);
int bert_observe_batch(struct bert_run *run, struct err *e);
void bert_print_profile(const struct bert_run *run);

/* show.c: lines. */
void bert_show_batch(const struct bert_run *run,
                     const struct bert_batch *batch,
                     double seconds);
int bert_show_losses(struct bert_run *run,
                     const char *tag,
                     int64_t examples,
                     const struct bert_losses *losses,
                     double lr,
                     struct err *e);
void bert_show_summary(const struct bert_run *run);

/* metrics.c: files for programs. */
struct bert_figures {
    int64_t batches, updates, accumulations;
    double per_batch_ms, throughput, stable, end_to_end, step_s, step_throughput;
};
void bert_figures(const struct bert_run *run, struct bert_figures *ret_figures);
int bert_write_metrics(const struct bert_run *run, struct err *e);
int bert_write_json(const struct bert_run *run, const struct err *why, struct err *e);
void bert_add_row(struct bert_run *run, const struct bert_row *row);

#endif
