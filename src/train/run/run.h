/* run.h - a run from flags to totals: what `yardbench` without a subcommand does.
 *
 *   run_settle()   flags, model, dataset and ranks become one struct run_spec: batch sizes,
 *                  steps, schedule, optimiser, precision.  Pure; tf_cnn_benchmarks' rules and
 *                  defaults are here.
 *   run_train()    open everything, warm up, the timed loop, checkpoints, evaluations, totals.
 *   run_eval()     evaluate the newest checkpoint, once or every eval_interval_secs.
 *
 * The loop, each step: batch ready? -> plan_run -> (the one before) plan_wait -> release batch
 * -> report, events, checkpoint, evaluation when due.  With a CPU backend run and wait are one
 * after another; a GPU has one step ahead.
 *
 * variable_update: horovod sums gradients (learning rates are the user's affair, as in the
 * original), replicated and the parameter_server forms average them, independent does not
 * reduce.  distributed_* and collective_* are taken as replicated, with a note.  Seeds: horovod
 * rank r uses seed + r for data and dropout, initial values come from rank 0 by broadcast.
 *
 * With a sum over n ranks the weight decay is n times the flag's, since in the original every
 * rank's gradient has it in it; the L2 term of the loss that is shown is not.  In forward-only
 * runs that term is constant and computed once from the params.
 *
 * A loss that is not finite ends the run (ERR_RANGE, the step and the last finite loss in the
 * message) unless a loss scale is at work.  SIGINT and SIGTERM end it after the current step,
 * with a checkpoint when there is a --train_dir, totals of what was done, and status 128 + n.
 *
 * Exit status: 0 done; 1 failed; 2 the command line is wrong; 3 model, folder or file is not
 * there; as base/err.c's table has them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_RUN_RUN_H
#define TRAIN_RUN_RUN_H

#include "base/err.h"
#include "train/backend/backend.h"
#include "train/comm/comm.h"
#include "train/data/dataset.h"
#include "train/data/loader.h"
#include "train/flags/flags.h"
#include "train/graph/step.h"
#include "train/model/model.h"
#include "train/optim/schedule.h"

struct str;

enum run_update {
    RUN_SUM,         /* horovod */
    RUN_MEAN,        /* replicated */
    RUN_INDEPENDENT, /* each for itself */
};

struct run_spec {
    const struct model *model;
    struct model_options model_options;
    const struct backend_ops *backend;
    enum precision precision;
    enum run_update update;
    struct optim_spec optim;
    struct schedule schedule;
    struct decode_options decode;
    int64_t batch, eval_batch;     /* of one rank */
    int64_t steps, warmup, passes; /* passes: gradient accumulation */
    int64_t eval_every;            /* steps; 0 = never */
    int64_t save_every;            /* steps; 0 = at the end only */
    uint64_t seed;
    double epochs;
    bool is_synthetic;
};

int run_settle(const struct flags *flags,
               const struct comm_facts *ranks,
               const struct dataset_facts *dataset,
               struct run_spec *ret_spec,
               struct str *notes,
               struct err *e);

/* *ret_signal: the one that ended the run early, else 0. */
int run_train(const struct flags *flags, struct comm *comm, int *ret_signal, struct err *e);
int run_eval(const struct flags *flags, struct comm *comm, struct err *e);

#endif
