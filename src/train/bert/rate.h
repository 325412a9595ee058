/* rate.h - the learning rate of a step, as onnxruntime_training_bert reckons it.  Pure.
 *
 * With x = (step + 1) / steps and w the warm-up's share, the rate is the largest one times
 *   x / w                     while x < w (not with None)
 *   None, Constant   1
 *   Cosine           (1 + cos(pi x)) / 2
 *   Linear           (1 - x) / (1 - w)
 *   Poly             sqrt(1 - x)
 * Steps are batches of a rank, not updates.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_RATE_H
#define TRAIN_BERT_RATE_H

#include <stdint.h>

enum bert_rate_mode {
    BERT_RATE_NONE,
    BERT_RATE_COSINE,
    BERT_RATE_CONSTANT,
    BERT_RATE_LINEAR,
    BERT_RATE_POLY,
};

/* The name must be one of those that the flag takes. */
enum bert_rate_mode bert_rate_mode_of(const char *name);

struct bert_rate {
    enum bert_rate_mode mode;
    double most;   /* the largest rate */
    double warmup; /* share of the steps, 0..1 */
    int64_t steps;
};

/* Of step `step`, counted from 0. */
double bert_rate_at(const struct bert_rate *rate, int64_t step);

#endif
