/* optim.h - the optimisers: what they are told, what they keep, and their arithmetic on plain
 * arrays, which is what CPU backends run and what others are compared with.
 *
 * One step of parameter w with reduced gradient g (r = 1/loss_scale, times 1/ranks for a mean):
 *   g = g * r * clip                     (clip: one factor for all, from the global norm)
 *   g = g + decay * w                    (parameters that decay; L2 as part of the loss)
 *   g = min(max(g, -c), c)               (clip_value c)
 *   sgd       w -= lr * g
 *   momentum  m = momentum * m + g;  w -= lr * m, or lr * (g + momentum * m): Nesterov's,
 *             which is what tf_cnn_benchmarks means by momentum
 *   rmsprop   s = rho * s + (1-rho) * g^2;  m = momentum * m + lr * g / sqrt(s + eps);  w -= m
 *             (s begins at 1, as TensorFlow's does)
 *   adam      m, v with bias correction: TensorFlow's form,
 *             lr_t = lr * sqrt(1-beta2^t) / (1-beta1^t);  w -= lr_t * m / (sqrt(v) + eps)
 *   lars      as momentum with lr * trust, trust = eta * |w| / (|g| + decay * |w| + eps), |g|
 *             without the decay, for parameters that decay; the others as momentum
 *   lamb      Adam's direction plus decay * w, scaled by |w| / |direction|, within trust_least
 *             and trust_most, for parameters that decay
 * adam and lamb decouple nothing but what is written here; adamw is adam with decay * w added
 * to the direction and not to g.  is_uncorrected takes the bias correction out of all three.
 *
 * Threads: optim_apply runs over par_for.  Pure over its buffers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum optim_kind {
    OPTIM_SGD,
    OPTIM_MOMENTUM,
    OPTIM_RMSPROP,
    OPTIM_ADAM,
    OPTIM_ADAMW,
    OPTIM_LARS,
    OPTIM_LAMB,
    OPTIM_KINDS,
};

struct optim_spec {
    enum optim_kind kind;
    float momentum;                /* momentum, rmsprop, lars */
    float rmsprop_decay;           /* rho */
    float beta1, beta2;            /* adam, lamb */
    float epsilon;                 /* rmsprop, adam, lamb, lars */
    float trust;                   /* lars: eta */
    bool is_uncorrected;           /* adam, adamw, lamb: without the bias correction */
    float trust_least, trust_most; /* lamb; 0 = no bound */
    float weight_decay;            /* 0 = none */
    float clip_value;              /* 0 = none */
    float clip_norm;               /* 0 = none; of all gradients together */
    bool with_nesterov;            /* momentum, lars */
    float loss_scale;              /* 1 = none; the first one when it is dynamic */
    bool has_dynamic_scale;        /* halve on overflow, double after .. good steps */
    int scale_grows_after;         /* steps without overflow */
};

/* What the optimiser keeps for each parameter: arrays of the parameter's shape. */
enum {
    OPTIM_MOST_SLOTS = 2,
};
struct optim_info {
    const char *name;
    int slots;
    const char *slot_names[OPTIM_MOST_SLOTS]; /* "momentum", "adam_v": part of tensor names */
    float slot_begins[OPTIM_MOST_SLOTS];      /* the value a slot is filled with */
    bool needs_norms;                         /* of each parameter and its gradient */
};
const struct optim_info *optim_info(enum optim_kind kind); /* never NULL */
/* By name; the error lists the names there are. */
int optim_parse(const char *name, enum optim_kind *ret_kind, struct err *e);
/* The defaults of tf_cnn_benchmarks. */
void optim_defaults(struct optim_spec *spec, enum optim_kind kind);

/* One parameter's arrays, all of `count` elements in one and the same order of elements,
 * whichever that is; padding is zero in all of them and stays zero. */
struct optim_param {
    float *value;
    const float *grad;
    float *slot[OPTIM_MOST_SLOTS];
    size_t count;
    bool decays; /* false for biases of, and all of, normalisation layers */
};

struct optim_step {
    float lr;
    float grad_scale; /* r above */
    float clip_scale; /* from the global norm; 1 = none */
    int64_t number;   /* from 1: the t of Adam's bias correction */
};

/* Sum of squares of the gradient and whether all of it is finite: for clip_norm and for
 * dynamic loss scales.  Same bits for the same number of threads. */
double optim_square_sum(const float *values, size_t count, bool *ret_is_finite);

/* Update one parameter; returns sum(value^2)/2 from before the update when it decays (the L2
 * term of the reported loss), else 0. */
double optim_apply(const struct optim_spec *spec,
                   const struct optim_param *param,
                   const struct optim_step *step);

#endif
