/* plan.h - what the files of this backend share: places, actions, the plan.
 *
 * A plan is made in two passes.  The first walks the ops in order: each picks primitives, gives
 * its outputs a layout and appends actions; touch() records at which ops a tensor is needed.
 * Then memory is laid out, and the second pass puts addresses into the memory objects that the
 * actions already hold.  A step runs the actions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_PLAN_H
#define TRAIN_BACKEND_ONEDNN_PLAN_H

#include "train/backend/backend.h"
#include "train/backend/onednn/shim.h"
#include "train/backend/store.h"
#include "train/graph/memplan.h"

/* Where a tensor, or scratch of an op, lies. */
struct place {
    dnnl_memory_desc_t md;
    bool is_set; /* has md */
    int item;    /* in the planned block; -1 = elsewhere (params, states, gradients, inputs) */
    size_t bytes;
    const struct place *of; /* the same memory under another shape; or NULL */
    void *data;             /* set when memory is laid out */
    dnnl_memory_t memory;
};

struct onednn_plan;
struct action;
typedef void action_fn(struct onednn_plan *p, const struct action *a);

struct action {
    int op;
    int track; /* as in plan_span */
    const char *label;
    action_fn *run; /* NULL: a primitive */
    void *work;     /* of `run`; in the plan's arena */
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[SHIM_MOST_ARGS];
    int arg_count;
    bool is_control; /* left out unless STEP_LAST */
};

/* A kernel's own copy of a param, in its own layout. */
struct copy {
    int param; /* tensor */
    struct place *place;
    dnnl_primitive_t reorder;
};

struct onednn_plan {
    struct plan_head head;
    struct plan_options options;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct arena *arena;
    struct place *places; /* by tensor */
    struct place **more;  /* scratch: reorders, workspaces, copies' places */
    int more_count;
    struct memplan_item *items;
    int item_count;
    struct action *actions;
    int action_count;
    struct copy *copies;
    int copy_count;
    dnnl_primitive_desc_t *descs; /* by op: of forward products and pools, as hints */
    struct place **workspaces;    /* by op: what a forward op keeps for its gradient */
    int *last_read;               /* by tensor: the last op that reads it here */
    int *joined;   /* by op: the SUM that a BN_GRAD does itself, or an EMBED_GRAD with a
                      LINEAR_WEIGHT_GRAD; else -1 */
    bool *is_done; /* by op: another op does it */
    int reorders;  /* of activations, in one step */
    struct store store;
    const struct onednn_plan *shares;
    uint64_t copied_version;
    size_t scratch_bytes;
    void *scratch;
    dnnl_memory_t *scratches; /* one for each primitive that wants one */
    int scratch_count;
    void *block; /* all items */
    void *copies_block;
    size_t copies_bytes;
    struct memplan memory;
    const void **fed;        /* by tensor */
    const struct step *step; /* while one runs */
    struct err error;        /* of an action of the step that runs */
    struct step_values values;
    uint64_t ticket;
    bool is_timed;
    struct plan_span *spans;
    int span_count;
};

static inline struct onednn_plan *onednn_plan(const struct plan *plan)
{
    return (struct onednn_plan *)(void *)(uintptr_t)plan;
}

static inline const struct tensor *tensor_of(const struct onednn_plan *p, int t)
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

/* plan.c: tensors and scratch. */

/* Op n needs tensor t: it lives at least until then. */
struct place *touch(struct onednn_plan *p, int t, int n);
/* Give an output its layout. */
struct place *put(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int n);
/* ... in the memory of input `over` where nobody needs that any more. */
struct place *
put_over(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int over, int n);
/* The layout of a value that its gradient takes as well. */
const dnnl_memory_desc_t *layout_of(const struct onednn_plan *p, int t);
/* Scratch of op n, or a workspace that lives longer when it is touched later. */
struct place *scratch(struct onednn_plan *p, const dnnl_memory_desc_t *md, int n);
struct place *scratch_floats(struct onednn_plan *p, int64_t floats, int n);
void touch_place(struct onednn_plan *p, struct place *place, int n);
/* Tensor t in this layout: itself, or a reordered copy. */
struct place *
in_layout(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int n, struct err *e);

/* Actions. */
struct action *add_action(struct onednn_plan *p, int n, action_fn *run, size_t work_bytes);
/* A primitive; destroys pd unless keep.  NULL after an error. */
struct action *
add_primitive(struct onednn_plan *p, int n, dnnl_primitive_desc_t pd, bool keep, struct err *e);
void add_arg(struct action *a, int arg, struct place *place);
int add_reorder(
    struct onednn_plan *p, int n, struct place *from, struct place *to, struct err *e);

/* make.c: the passes, in this order. */
void plan_find_last_reads(struct onednn_plan *p);
void plan_join_sums(struct onednn_plan *p);
int plan_ops(struct onednn_plan *p, struct err *e);
int plan_lay_out(struct onednn_plan *p, struct err *e);

/* params.c */
/* A param's master gets this layout unless it has one; returns it. */
struct place *put_param(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md);
/* A param in the layout that a kernel wants: the master itself or a copy. */
struct place *
param_in(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, struct err *e);
int add_refresh(struct onednn_plan *p, int n, int bucket, struct err *e);
int refresh_all(struct onednn_plan *p, struct err *e);
int params_begin(struct onednn_plan *p, struct err *e);
int onednn_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e);
int onednn_plan_write(
    struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e);

/* winograd.c: the descriptor of a convolution or of one of its gradients. */
int conv_desc(struct onednn_plan *p,
              enum op_kind kind,
              const struct conv_shape *shape,
              dnnl_primitive_desc_t hint,
              dnnl_primitive_desc_t *ret_pd,
              struct err *e);

/* The kinds of ops: each plans op n. */
typedef int plan_fn(struct onednn_plan *p, int n, struct err *e);
plan_fn plan_conv, plan_conv_data, plan_conv_weights;
plan_fn plan_linear, plan_linear_data, plan_linear_weights;
plan_fn plan_pool, plan_pool_grad;
plan_fn plan_bn, plan_bn_grad;
plan_fn plan_each; /* activations, their gradients, sums */
plan_fn plan_image, plan_concat, plan_concat_grad, plan_pad, plan_pad_grad, plan_reshape;
plan_fn plan_dropout;
plan_fn plan_xent, plan_xent_grad, plan_weighted_sum;
plan_fn plan_embed, plan_embed_grad, plan_layernorm, plan_layernorm_grad;
plan_fn plan_gather_rows, plan_gather_rows_grad;
plan_fn plan_attention, plan_attention_grad;

#endif
