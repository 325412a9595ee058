/* plan.h - what the files of the CUDA backend share: how tensors lie, places, actions, the
 * plan.
 *
 * As in oneDNN's backend a plan is made in two passes.  The first walks the ops in order: each
 * gives its outputs a place, picks kernels and appends actions; touch() records at which ops a
 * tensor is needed.  Then memory is laid out and places get addresses.  An action's run() only
 * enqueues work on a stream: the same actions are captured into CUDA graphs, one for each
 * combination of STEP_ flags, and run one by one when each is to be timed.
 *
 * How tensors lie on the card, the same rule for all:
 * - The last dimension of what a kernel walks is contiguous and padded to a multiple of 8
 *   elements (`pitch`); padding is always zero, so kernels may read and add it.
 * - Activations of four dims: N H W C.  Two dims: rows, columns.  One or none: plain.
 * - Convolution weights: K R S C/groups, K padded to a multiple of 8 too; with several groups
 *   neither K nor C/groups is padded (pitch = cols), since padding would part the groups.
 *   Matrices K D: K rows padded to a multiple of 8.  Vectors: padded to 8.  All weights lie in
 *   this order as fp32 master, slots and gradient, and in the same order in the precision's
 *   type as the copy that kernels read, so one kernel over flat arrays updates all four.
 * - Inputs from the host lie as the host has them (dense).
 * - Roles PARAM (copy), ACTIVATION: the precision's type.  EXACT, STATE, GRAD: fp32 or int32.
 *   An EXACT of two or four dims is a part of a param's gradient and lies as the param does;
 *   of three it is dense.
 *
 * Nothing in a step may depend on the host: what changes from step to step is in step_facts on
 * the card, written by one copy before the graph is launched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_PLAN_H
#define TRAIN_BACKEND_CUDA_PLAN_H

#include "train/backend/backend.h"
#include "train/backend/cuda/kernels.h"
#include "train/graph/memplan.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

struct tuning;

/* Where a tensor, or scratch of an op, lies. */
struct place {
    enum elem elem;
    bool is_set;
    int64_t rows, cols, pitch; /* elements; rows includes padding rows of weights; four dims:
                                  rows = N H W (or K R S), cols = C */
    size_t bytes;              /* a multiple of 16 */
    int item;   /* in the planned block; -1 = elsewhere (params, states, gradients, inputs) */
    void *data; /* on the card; set when memory is laid out */
};

struct cuda_plan;
struct action;
/* Enqueue on `stream`; no wait, no allocation.  Errors: cuda_fail and friends. */
typedef int
action_fn(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e);

struct action {
    int op;
    int track; /* as in plan_span */
    const char *label;
    action_fn *run;
    void *work; /* of `run`, in the plan's arena; holds places, whose data are set by then */
    bool is_control; /* left out unless STEP_LAST */
};

/* Measures candidates when all places have memory (tune_choose), before the first capture. */
typedef int tune_fn(struct cuda_plan *p, void *work, struct err *e);

struct cuda_device {
    struct device_head head;
    int card;
    double memory_cap;
    int multiprocessors;
    int capability; /* 90: Hopper */
    size_t l2_bytes;
    cudaStream_t stream;  /* compute */
    cudaStream_t copying; /* host to card */
    cudnnHandle_t dnn;    /* on `stream` */
    cublasLtHandle_t blas;
    char name[96];
    int64_t memory_bytes;
};

struct cuda_plan {
    struct plan_head head;
    struct plan_options options;
    struct cuda_device *device;
    enum elem elem; /* of activations and of the copies of weights */
    struct arena *arena;
    struct place *places; /* by tensor */
    struct place **more;  /* scratch and workspaces */
    int more_count;
    struct memplan_item *items;
    int item_count;
    struct action *actions;
    int action_count;
    int *last_read;           /* by tensor: the last op that reads it here */
    bool *is_done;            /* by op: another op does it */
    void **kept;              /* by op: what its kind keeps for its gradient (arena) */
    size_t workspace_bytes;   /* the largest that any action asked for: one for all */
    size_t tuning_bytes;      /* ... that any candidate may need while it is measured */
    void *workspace;          /* what run() uses; another one while choices are measured */
    struct step_facts *facts; /* on the card; there from the start */
    float *values;            /* on the card: VALUES of them */
    unsigned flags;           /* STEP_ flags of the pass that is enqueued or captured */
    struct tuning *tunings;   /* those who want_tuning() */
    int tuning_count;
    struct cuda_plan *shares; /* options.shares */
    struct params *params;    /* params.h: masters, gradients, slots, copies, control ops */
    struct tune *tune;        /* tune.h: measured choices, kept on disk */
    struct capture *capture;  /* capture.h: graphs by flags, tickets, spans */
    struct feed *feed;        /* feed.h: inputs on their way */
    void *block;              /* all items */
    struct memplan memory;
    void **allocated; /* all memory on the card that plan_free gives back */
    int allocated_count;
    size_t allocated_bytes;
};

static inline struct cuda_plan *cuda_plan(const struct plan *plan)
{
    return (struct cuda_plan *)(void *)(uintptr_t)plan;
}

static inline const struct tensor *tensor_of(const struct cuda_plan *p, int t)
{
    return &p->head.graph->tensors[t];
}

/* The input or output in a slot, -1 when there is none. */
static inline int in_of(const struct op *op, int slot)
{
    return slot < op->in_count ? op->in[slot] : -1;
}
static inline int out_of(const struct op *op, int slot)
{
    return slot < op->out_count ? op->out[slot] : -1;
}

/* cuda.c: errors of the three libraries, in words that name what was tried.  All return -1. */
int cuda_fail(struct err *e, cudaError_t status, const char *what);
int dnn_fail(struct err *e, cudnnStatus_t status, const char *what);
int blas_fail(struct err *e, cublasStatus_t status, const char *what);
/* The launch before it: cudaGetLastError. */
int launched(struct err *e, const char *what);

/* place.c: tensors and scratch. */

/* Op n needs tensor t: it lives at least until then.  The place of a param is its copy in the
 * plan's type, vectors too; its gradient's is the fp32 run in the arena.  NULL when t < 0. */
struct place *touch(struct cuda_plan *p, int t, int n);
/* A param as its fp32 master, the same layout: gamma and beta of normalisations. */
struct place *touch_master(struct cuda_plan *p, int t);
/* Give an output its place, by the rules above. */
struct place *put(struct cuda_plan *p, int t, int n);
/* ... in the memory of input `over` where nobody needs that any more. */
struct place *put_over(struct cuda_plan *p, int t, int over, int n);
/* ... as another view of the memory of `of` (RESHAPE of rows); sizes must fit. */
struct place *put_view(struct cuda_plan *p, int t, int of, int n);
/* Scratch of op n, or something kept longer when it is touched later. */
struct place *scratch(struct cuda_plan *p, enum elem elem, int64_t elements, int n);
void touch_place(struct cuda_plan *p, struct place *place, int n);
/* All actions share one workspace, sized by the largest: run() finds it in p->workspace.  May
 * be called while planning and by a tune_fn, once it knows what its choice needs. */
void want_workspace(struct cuda_plan *p, size_t bytes);
/* What the largest candidate may need while it is measured: p->workspace is that large then. */
void want_tuning_workspace(struct cuda_plan *p, size_t bytes);
/* The most that a candidate may ask for: options.workspace_cap, or 2 GiB. */
size_t workspace_cap(const struct cuda_plan *p);
/* `fn` is called once with all places set and filled with small random values. */
void want_tuning(struct cuda_plan *p, tune_fn *fn, void *work);

/* Append an action of op n; its label is the op's name, its work is zeroed. */
struct action *add_action(struct cuda_plan *p, int n, action_fn *run, size_t work_bytes);

/* The gradient of a param: a kernel that can write fp32 itself writes to put(p, grad, n) and
 * asks adds_to() in run() whether to add to what is there (beta = 1) or to write.  (A tensor
 * that is only a part of a gradient, ROLE_EXACT, is always written.)  Kernels that write the
 * plan's type go through scratch() and add_grad(). */
bool adds_to(const struct cuda_plan *p, int t);
/* Behind the action that wrote `from` (plan's type or fp32, the param's layout): into the
 * gradient, written or added as the pass asks.  Does the put() of `grad`. */
int add_grad(struct cuda_plan *p, int n, int grad, struct place *from, struct err *e);
/* Does the pass that is being enqueued or captured add to gradients (no STEP_FIRST)? */
bool pass_adds(const struct cuda_plan *p);

/* A planner may take over a later op: it sets p->is_done of it and, for what it then reads
 * later than the list says, raises p->last_read (which is what put_over() goes by). */

/* Planners by kind of op.  Each file has its own; make.c has the table. */
typedef int plan_fn(struct cuda_plan *p, int n, struct err *e);
/* each.c */
plan_fn plan_image, plan_each, plan_concat, plan_concat_grad, plan_pad, plan_pad_grad,
    plan_reshape, plan_dropout, plan_weighted_sum;
/* loss.c */
plan_fn plan_xent, plan_xent_grad;
/* conv.c, norm.c, pool.c */
plan_fn plan_conv, plan_conv_data, plan_conv_weights, plan_bn, plan_bn_grad, plan_pool,
    plan_pool_grad;
/* product.c */
plan_fn plan_linear, plan_linear_data, plan_linear_weights;
/* sequence.c, attention.c */
plan_fn plan_embed, plan_embed_grad, plan_layernorm, plan_layernorm_grad, plan_gather,
    plan_gather_grad, plan_attention, plan_attention_grad;

#endif
