/* control.c - what surrounds and ends a pass: its beginning, reductions, norm, updates, values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/control.h"

#include "train/backend/cuda/params.h"

#include <float.h>
#include <math.h>

static enum update_kind update_kind_of(enum optim_kind kind)
{
    switch (kind) {
    case OPTIM_MOMENTUM:
        return UPDATE_MOMENTUM;
    case OPTIM_RMSPROP:
        return UPDATE_RMSPROP;
    case OPTIM_ADAM:
        return UPDATE_ADAM;
    case OPTIM_ADAMW:
        return UPDATE_ADAMW;
    case OPTIM_LARS:
        return UPDATE_LARS;
    case OPTIM_LAMB:
        return UPDATE_LAMB;
    case OPTIM_SGD:
    case OPTIM_KINDS:
        break;
    }
    return UPDATE_SGD;
}

void params_rule(const struct cuda_plan *p, struct update_rule *ret_rule)
{
    const struct graph *graph = p->head.graph;
    const struct optim_spec *o = &graph->optim;
    double passes = graph->passes > 1 ? (double)graph->passes : 1;
    double ranks = graph->is_mean && graph->ranks > 1 ? (double)graph->ranks : 1;

    *ret_rule = (struct update_rule){
        .kind = update_kind_of(o->kind),
        .with_nesterov = o->with_nesterov,
        .momentum = o->momentum,
        .rho = o->rmsprop_decay,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = fmaxf(o->epsilon, FLT_MIN), /* padding must not become 0/0 */
        .trust = o->trust,
        .is_uncorrected = o->is_uncorrected,
        .trust_least = o->trust_least,
        .trust_most = o->trust_most,
        .decay = o->weight_decay,
        .clip_value = o->clip_value > 0 ? o->clip_value : INFINITY,
        .clip_norm = o->clip_norm,
        .divisor = passes * ranks,
        .has_dynamic_scale = o->has_dynamic_scale,
        .scale_grows_after = o->scale_grows_after};
}

static struct update_arrays arrays_of(const struct cuda_plan *p)
{
    const struct params *params = p->params;

    return (struct update_arrays){.masters = params->masters,
                                  .slot0 = params->slots[0],
                                  .slot1 = params->slots[1],
                                  .grads = params->grads,
                                  .copies = params->copies,
                                  .elem = p->elem,
                                  .chunks = params->chunks,
                                  .spans = params->spans,
                                  .parts = params->parts,
                                  .trusts = params->trusts};
}

static int
run_begin(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct update_rule rule;

    params_rule(p, &rule);
    launch_begin(p->facts, p->params->scale_state, &rule, stream);
    return launched(e, a->label);
}

void plan_beginning(struct cuda_plan *p)
{
    add_action(p, 0, run_begin, 0)->label = "begin";
}

static int
run_norm(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct update_arrays arrays = arrays_of(p);
    struct update_rule rule;

    params_rule(p, &rule);
    launch_norm(&arrays, p->params->chunk_count, &rule, p->facts, p->params->scale_state,
                p->params->good_state, stream);
    return launched(e, a->label);
}

struct bucket_work {
    int bucket, last; /* of an update: a run of buckets */
};

static int
run_update(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct bucket_work *w = a->work;
    const struct bucket *from = &p->head.graph->buckets[w->bucket];
    const struct bucket *last = &p->head.graph->buckets[w->last];
    const int *first = p->params->first_chunk;
    struct update_arrays arrays = arrays_of(p);
    struct update_rule rule;

    params_rule(p, &rule);
    launch_update(&arrays, first[w->bucket], first[w->last + 1] - first[w->bucket], from->first,
                  last->first + last->count - from->first, &rule, p->facts, stream);
    return launched(e, a->label);
}

static int run_reduce_start(struct cuda_plan *p,
                            const struct action *a,
                            cudaStream_t stream,
                            struct err *e)
{
    return reduce_start(p, ((const struct bucket_work *)a->work)->bucket, stream, e);
}

static int
run_reduce_wait(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    return reduce_wait(p, ((const struct bucket_work *)a->work)->bucket, stream, e);
}

static action_fn *control_of(enum op_kind kind)
{
    switch ((int)kind) {
    case OP_REDUCE_START:
        return run_reduce_start;
    case OP_REDUCE_WAIT:
        return run_reduce_wait;
    case OP_GRAD_NORM:
        return run_norm;
    default:
        return run_update;
    }
}

/* Updates behind one another are one launch: a bucket alone is too little to fill a card for
 * long, and each launch has a beginning and an end at which it is not full.  Rules that read a
 * bucket twice (lars, lamb) go by buckets: the second time it is still in the cache. */
static bool joins_last(struct cuda_plan *p, const struct op *op)
{
    enum optim_kind kind = p->head.graph->optim.kind;
    struct action *a = p->action_count > 0 ? &p->actions[p->action_count - 1] : NULL;
    struct bucket_work *w = a && a->run == run_update ? a->work : NULL;

    if (!w || op->kind != OP_UPDATE || op->attrs.bucket != w->last + 1 || kind == OPTIM_LARS ||
        kind == OPTIM_LAMB)
        return false;
    w->last++;
    return true;
}

int plan_control(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct action *a;

    (void)e;
    if (joins_last(p, op))
        return 0;
    a = add_action(p, n, control_of(op->kind), sizeof(struct bucket_work));
    *(struct bucket_work *)a->work = (struct bucket_work){op->attrs.bucket, op->attrs.bucket};
    a->is_control = true;
    a->track = op->kind == OP_REDUCE_START || op->kind == OP_REDUCE_WAIT ? 2 : 0;
    a->label = op_info(op->kind)->name;
    return 0;
}

/* Which value comes from where: those of ops lie in their places, the others in the facts. */
static struct value_table table_of(const struct cuda_plan *p)
{
    const int *there = p->head.graph->values;
    struct value_table table = {.count = VALUES};

    for (int i = 0; i < VALUES; i++) {
        const struct place *place = there[i] < 0 ? NULL : &p->places[there[i]];

        if (place && place->is_set && place->data) {
            table.kind[i] = FROM_PLACE;
            table.from[i] = place->data;
        }
    }
    if (there[VALUE_L2] >= 0)
        table.kind[VALUE_L2] = FROM_L2;
    if (there[VALUE_GRAD_NORM] >= 0)
        table.kind[VALUE_GRAD_NORM] = FROM_NORM;
    if (there[VALUE_FINITE] >= 0)
        table.kind[VALUE_FINITE] = FROM_FINITE;
    if (there[VALUE_SCALE] >= 0)
        table.kind[VALUE_SCALE] = FROM_SCALE;
    return table;
}

static int
run_values(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct value_table table = table_of(p);

    launch_values(&table, p->params->parts, p->params->chunk_count, (p->flags & STEP_LAST) != 0,
                  p->facts, p->values, stream);
    return launched(e, a->label);
}

void plan_ending(struct cuda_plan *p)
{
    const struct graph *graph = p->head.graph;

    for (int i = 0; i < VALUES; i++)
        if (graph->values[i] >= 0 && p->places[graph->values[i]].is_set)
            touch(p, graph->values[i], graph->op_count);
    add_action(p, graph->op_count - 1, run_values, 0)->label = "values";
}
