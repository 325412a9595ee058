/* graph.h - the whole step as a list of ops over tensors: what models build, what is
 * differentiated, and what a backend is given to plan and run.
 *
 * Life of a graph:
 *   graph_new()              mode: train or eval, batch, seed of initial values
 *   model_build()            forward ops (build.h), ending in the graph's values
 *   graph_fuse()             BN+ReLU, BN+add+ReLU, ...: as the backend asks        (fuse.h)
 *   graph_differentiate()    backward ops, down to every parameter's gradient      (diff.h)
 *   graph_finish_step()      buckets, reductions, updates                          (step.h)
 *   backend_plan()           from then on the graph is read-only and must outlive the plan
 * An eval graph is built and fused only.
 *
 * Ops run in the order of the list: that is the program.  A backend may group, fuse and reorder
 * as long as every tensor that is visible from outside (params, states, values) gets the value
 * that the list gives it, within the tolerance of the precision.
 *
 * Shapes are logical, in a fixed order of letters (README): activations N C H W, convolution
 * weights K C R S, matrices rows then columns, images from the host N H W C.  Where a tensor
 * really lies, blocked or NHWC or padded, is the backend's secret; whoever reads or writes a
 * tensor from outside (checkpoint, tests) sees it dense in the logical order, in fp32.
 *
 * Numbers, not pointers: tensors and ops are indices into the graph's arrays, -1 is none.
 * First error sticks: build functions return -1 after an error and graph_check() tells it, so
 * that a model reads as a model.
 *
 * Threads: a graph is built by one thread and read by any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_GRAPH_GRAPH_H
#define TRAIN_GRAPH_GRAPH_H

#include "base/err.h"
#include "train/graph/op.h"
#include "train/optim/optim.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TENSOR_MOST_DIMS = 4,
    GRAPH_MOST_INPUTS = 8,
};

enum dtype { /* of the host's side of a tensor */
             DTYPE_F32,
             DTYPE_I32,
             DTYPE_U8,
};

enum role {
    ROLE_INPUT,      /* fed by the host each step */
    ROLE_PARAM,      /* trained; the master is fp32 in every precision */
    ROLE_STATE,      /* kept between steps and saved, not trained: running statistics,
                        optimiser slots */
    ROLE_ACTIVATION, /* values and their gradients; stored in the plan's precision */
    ROLE_EXACT,      /* lives for a step, always fp32 or int32: saved statistics, losses */
    ROLE_GRAD,       /* of a param; lies in the gradient arena, in its bucket */
};

/* How a parameter or state is filled at the start, in its logical order, from
 * rng_stream("init/" name): the same bits in every backend and on every rank. */
enum init_kind {
    INIT_CONSTANT,         /* a */
    INIT_NORMAL,           /* mean 0, stddev a */
    INIT_TRUNCATED_NORMAL, /* mean 0, stddev a, within 2a */
    INIT_UNIFORM,          /* -a..a */
};
struct init {
    enum init_kind kind;
    float a;
};

struct tensor {
    const char *name; /* params and states: unique, as in checkpoints; others: for people */
    enum role role;
    enum dtype dtype;
    int dims;
    int64_t dim[TENSOR_MOST_DIMS];
    int producer; /* op, or -1 */
    struct init init;
    bool decays; /* param: does weight decay touch it? */
    int grad;    /* param: its gradient, once differentiated; else -1 */
    int param;   /* grad and optimiser slot: whose; else -1 */
    int bucket;  /* param and grad: once the step is finished; else -1 */
};

/* What a step tells of itself, by number: each is a ROLE_EXACT scalar or -1 in this graph. */
enum value {
    VALUE_LOSS,      /* what is differentiated, without the L2 term: mean over the batch */
    VALUE_L2,        /* sum of value^2/2 over params that decay, before the update */
    VALUE_TOP1,      /* how many of the batch are right */
    VALUE_TOP5,      /* ... among the first five */
    VALUE_GRAD_NORM, /* of all reduced gradients; only with clip_norm or a loss scale */
    VALUE_FINITE,    /* 1, or 0 when a gradient overflowed and the update was skipped */
    VALUE_SCALE,     /* the loss scale that the step used */
    VALUE_MLM_LOSS,  /* BERT's two losses */
    VALUE_NSP_LOSS,
    VALUES,
};

/* A run of gradients that are reduced together: contiguous in the gradient arena, in the order
 * in which the backward pass finishes them. */
struct bucket {
    int first, count; /* into graph->bucket_params */
    int64_t elements; /* by logical shape; the backend's padding comes on top */
};

enum graph_mode {
    GRAPH_TRAIN,
    GRAPH_EVAL, /* running statistics, no dropout */
};

struct graph {
    const char *name;
    enum graph_mode mode;
    int64_t batch;
    struct tensor *tensors;
    int tensor_count;
    struct op *ops;
    int op_count;
    int forward_end;  /* ops before it are the forward pass */
    int backward_end; /* ops before it and after forward_end are the backward pass */
    int inputs[GRAPH_MOST_INPUTS];
    int input_count;
    int values[VALUES];
    struct bucket *buckets;
    int bucket_count;
    int *bucket_params; /* every param once, ordered by bucket */
    struct optim_spec optim;
    /* Gradients are multiplied by r = 1 / (loss scale * passes * (is_mean ? ranks : 1)). */
    bool is_mean;
    int64_t ranks, passes;
    struct arena *arena; /* holds names and lists */
    struct err error;    /* the one that stuck; code ERR_NONE when all is well */
};

struct graph *graph_new(const char *name, enum graph_mode mode, int64_t batch);
void graph_free(struct graph *graph);

/* The error that stuck, if any. */
int graph_check(const struct graph *graph, struct err *e);
/* Make an error stick (the first wins); returns -1. */
int graph_fail(struct graph *graph, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Low level; models use build.h.  Names are copied. */
int graph_add_tensor(struct graph *graph,
                     const char *name,
                     enum role role,
                     enum dtype dtype,
                     int dims,
                     const int64_t *dim);
/* Append an op: its outputs are made, with the shapes that its kind infers from inputs and
 * attributes.  Returns the op's number. */
int graph_add_op(struct graph *graph,
                 enum op_kind kind,
                 const union op_attrs *attrs,
                 const int *in,
                 int in_count);

int64_t tensor_elements(const struct tensor *tensor);
/* By name among params and states; -1 when there is none. */
int graph_find(const struct graph *graph, const char *name);
int64_t graph_param_count(const struct graph *graph); /* elements of all params */
/* Multiply-adds of convolutions and matrix products, times two: of one op, of the forward pass,
 * of the whole step.  What figures "of peak" are made with. */
double op_flops(const struct graph *graph, const struct op *op);
double graph_flops(const struct graph *graph, bool forward_only);

/* Fill `values` with the initial value of a param or state, in logical order: the same whatever
 * the number of threads that help (par.h). */
void graph_initial(const struct graph *graph, int tensor, uint64_t seed, float *values);

struct str;
/* The program as text, one op a line, with shapes: for people and golden tests. */
void graph_print(const struct graph *graph, struct str *out);

#endif
