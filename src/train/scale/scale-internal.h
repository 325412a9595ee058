/* scale-internal.h - the figures that scale.c gathers and scale-print.c shows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SCALE_SCALE_INTERNAL_H
#define TRAIN_SCALE_SCALE_INTERNAL_H

#include "base/err.h"
#include "train/scale/predict.h"

#include <stdio.h>

enum {
    SCALE_MOST_RUNS = 12,
    SCALE_MOST_BUCKETS = 4096,
    SCALE_EVEN_BUCKETS = 8, /* taken when none were seen */
};

struct scale_run { /* of one number of ranks; times are means over steps, of rank 0 */
    int ranks;
    int64_t batch, params;
    double images_per_s;
    double step_s, exposed_s, busy_s;
    double typical_s; /* the median step: what others on the machine slow down now and then does
                         not change it */
    double bytes;     /* reduced in a step */
    /* How the buckets came: empty with one rank. */
    double backward_end_s;
    struct predict_bucket *buckets; /* freed by scale_run_done() */
    int bucket_count;
};
void scale_run_done(struct scale_run *run);

struct scale_figures {
    const char *model;
    int threads, cores;
    struct predict_network network;
    struct scale_run runs[SCALE_MOST_RUNS];
    int run_count;
};

/* A run's --json report, parsed. */
int scale_read_report(const char *text, size_t len, struct scale_run *ret_run, struct err *e);
/* "<end> <ready>:<bytes> ..." (reducer.h, reducer_pace). */
int scale_read_pace(const char *text, struct scale_run *run, struct err *e);

/* What predict() is given: the widest run that had a core for each thread, in terms of the run
 * with one rank.  Buckets go to room (SCALE_MOST_BUCKETS). */
void scale_input(const struct scale_figures *figures,
                 struct predict_input *ret_input,
                 struct predict_bucket *room);

void scale_print(const struct scale_figures *figures, FILE *out);
int scale_write_json(const struct scale_figures *figures, const char *path, struct err *e);

#endif
