/* schedule.h - the learning rate of each step.  Pure.
 *
 * tf_cnn_benchmarks' order of preference: piecewise_learning_rate_schedule
 * ("lr0;epoch1;lr1;..."), else init_learning_rate with num_epochs_per_decay,
 * learning_rate_decay_factor (staircase) and minimum_learning_rate, else the model's own
 * (ResNet: 0.128 * batch/256, times 0.1 at epochs 30, 60, 80, 90, with 5 epochs of linear
 * warm-up; the others: 0.005).  num_learning_rate_warmup_epochs is linear from 0.  BERT: linear
 * warm-up and linear or polynomial decay by steps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_SCHEDULE_H
#define TRAIN_OPTIM_SCHEDULE_H

#include "base/err.h"

#include <stdint.h>

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_PIECEWISE,   /* rate[i] from epoch[i] on */
    SCHEDULE_EXPONENTIAL, /* factor every decay_epochs, in stairs, not below floor */
    SCHEDULE_COSINE,      /* to floor at the end */
    SCHEDULE_POLYNOMIAL,  /* to floor at the end; power 1 = linear */
};

enum {
    SCHEDULE_MOST_PIECES = 32,
};

struct schedule {
    enum schedule_kind kind;
    double rate; /* at the beginning, after warm-up */
    int pieces;
    double piece_rate[SCHEDULE_MOST_PIECES];
    double piece_epoch[SCHEDULE_MOST_PIECES]; /* piece_epoch[0] = 0 */
    double factor, decay_epochs, floor, power;
    double warmup_epochs;
    double steps_per_epoch; /* examples / global batch; not whole */
    int64_t steps;          /* of the whole run: cosine, polynomial */
};

/* "0.1;30;0.01;60;0.001".  Epochs must rise. */
int schedule_parse_pieces(struct schedule *schedule, const char *text, struct err *e);
/* The rate of step `step`, counted from 0. */
double schedule_rate(const struct schedule *schedule, int64_t step);

#endif
