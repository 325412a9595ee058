/* conv-internal.h - what conv.c, conv-run.c and conv-check.c share: a convolution's work, and
 * the candidates it can be done with.
 *
 * conv.c lays out a conv_work for each op, gives it the set of its shape and settles the set's
 * choice; conv-run.c builds candidates as they are asked for, and runs them; conv-check.c knows
 * which of them are wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_CONV_INTERNAL_H
#define TRAIN_BACKEND_CUDA_CONV_INTERNAL_H

#include "train/backend/cuda/conv-kernels.h"
#include "train/backend/cuda/dnn.h"
#include "train/backend/cuda/norm-kernels.h"
#include "train/backend/cuda/norm.h"

enum form_kind {
    FORM_NONE,
    FORM_PLAIN, /* the convolution alone; what is missing is done behind it */
    FORM_FUSED, /* forward: with bias, relu; data: with the gradient of a relu */
    FORM_SUMS,  /* forward: with sums for a batch norm */
    FORM_STEM,  /* our own for pictures: with bias, relu */
    FORM_DIRECT,
};

enum {
    FORMS = 4, /* of one op, at most */
    CANDIDATES = FORMS * DNN_MOST_CONFIGS,
};

struct form {
    enum form_kind kind;
    struct dnn_graph *graph; /* NULL: not asked for yet */
    cudnnBackendDescriptor_t configs[DNN_MOST_CONFIGS];
    int config_count;
    bool has_all; /* configs: those of the second list are asked for when they are needed */
    struct dnn_kernel kernels[DNN_MOST_CONFIGS]; /* .plan is NULL: not made yet */
    bool is_bad[DNN_MOST_CONFIGS];               /* was tried and cannot, or is wrong */
    bool is_right[DNN_MOST_CONFIGS];             /* was tried and gives what it should */
};

/* All ways to do one shape. */
struct conv_set {
    const char *key;
    struct form forms[FORMS];
    bool is_settled;
    bool any_ran; /* an engine or the stem: then the direct form need not be tried */
    int choice;
};

struct conv_work {
    enum dnn_way way;
    struct window window;
    int action; /* index */
    struct conv_set *set;
    struct dnn_pack pack;
    struct conv_direct direct;
    struct dnn_shape x_shape, w_shape, y_shape;
    struct place *x, *w, *y; /* as the forward op calls them, or their gradients */
    struct place *bias, *add;
    bool has_relu, is_stem;
    struct place *mask; /* data: y of the relu whose gradient comes along; or NULL */
    struct conv_sums *sums;
    /* weights: dw as the kernel writes it, unless that is the gradient itself */
    struct place *rough;
    struct place *wanted; /* conv-check.c: dw as it should be, and two sums; or NULL */
    int grad;
    int64_t weights;
    struct place *parts;         /* of our own kernel for pictures */
    struct bias_work *bias_grad; /* which that kernel can make along; or NULL */
};

struct bias_work {
    const struct conv_work *conv;
    struct column_sums sums;
    struct place *dy, *dbias, *parts;
    int grad;
};

struct candidate {
    struct form *form;
    int config;
};

/* Number i of the set: those of one form stand together. */
static inline struct candidate candidate_of(struct conv_set *set, int i)
{
    return (struct candidate){&set->forms[i / DNN_MOST_CONFIGS], i % DNN_MOST_CONFIGS};
}

/* Ours, not an engine of cuDNN: nothing to build. */
static inline bool is_own(enum form_kind kind)
{
    return kind == FORM_STEM || kind == FORM_DIRECT;
}

/* Build it unless it is there; false when that cannot be, or there is no such candidate. */
bool candidate_is_ready(struct cuda_plan *p,
                        const struct conv_work *w,
                        const struct candidate *c);

/* Of one that is ready: the whole op, with what the form leaves out.  `adds`: to the gradient
 * of weights that is there. */
int candidate_run(struct cuda_plan *p,
                  struct conv_work *w,
                  const struct candidate *c,
                  bool adds,
                  cudaStream_t stream,
                  struct err *e);

/* Of a gradient of weights whose pads make engines suspect; of others nothing. */
void plan_conv_check(struct cuda_plan *p, int n, struct conv_work *w);
/* Before engines are tried: what they are held against. */
int conv_check_begin(struct cuda_plan *p, const struct conv_work *w, struct err *e);
/* Runs it. */
bool conv_is_right(struct cuda_plan *p, struct conv_work *w, const struct candidate *c);

#endif
