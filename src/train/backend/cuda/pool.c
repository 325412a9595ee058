/* pool.c - maximum and average pools.
 *
 * A maximum's gradient needs only where in its window it was, a byte each: neither x nor y is
 * read again.  Where x comes out of a relu whose gradient follows, a maximum that the relu cut
 * off gets no place: then the pool's gradient is the relu's too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/norm.h"
#include "train/backend/cuda/pool-kernels.h"

#include <limits.h>

struct pool_work {
    struct pool pool;
    bool is_max;
    struct place *from, *more, *to, *places; /* more: added to `from`, or NULL */
};

static int
run_pool(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct pool_work *w = a->work;

    (void)p;
    w->pool.places = w->places ? w->places->data : NULL;
    if (w->is_max)
        pool_max(&w->pool, w->from->data, w->to->data, stream);
    else
        pool_average(&w->pool, w->from->data, w->to->data, stream);
    return launched(e, "a pool");
}

static int
run_pool_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct pool_work *w = a->work;

    (void)p;
    w->pool.places = w->places ? w->places->data : NULL;
    if (w->is_max)
        pool_max_grad(&w->pool, w->from->data, w->more ? w->more->data : NULL, w->to->data,
                      stream);
    else
        pool_average_grad(&w->pool, w->from->data, w->to->data, stream);
    return launched(e, "a pool's gradient");
}

/* x and y of the forward op, whichever way it goes. */
static int
fill(const struct cuda_plan *p, const struct op *forward, struct pool_work *w, struct err *e)
{
    const struct tensor *x = tensor_of(p, forward->in[0]), *y = tensor_of(p, forward->out[0]);
    const struct pool_attrs *pool = &forward->attrs.pool;
    int64_t pitch = pitch_of(x->dim[1]);
    int64_t picture = (x->dim[2] + y->dim[2]) * (x->dim[3] + y->dim[3]) * pitch / 8;

    if (picture > INT_MAX || x->dim[0] * (picture / 256 + 1) > INT_MAX)
        return err_set(e, ERR_TOO_LARGE, "a pool over so many pixels");
    w->is_max = forward->kind == OP_MAX_POOL;
    w->pool = (struct pool){.elem = p->elem,
                            .n = (int)x->dim[0],
                            .h = (int)x->dim[2],
                            .w = (int)x->dim[3],
                            .p = (int)y->dim[2],
                            .q = (int)y->dim[3],
                            .channels = (int)x->dim[1],
                            .pitch = (int)pitch,
                            .r = pool->window.r,
                            .s = pool->window.s,
                            .stride_h = pool->window.stride_h,
                            .stride_w = pool->window.stride_w,
                            .top = pool->window.top,
                            .left = pool->window.left,
                            .counts_padding = pool->counts_padding};
    return 0;
}

/* The gradient of the relu before pool n, when the pool's own can do it. */
static int relu_before(const struct cuda_plan *p, int n)
{
    const struct graph *graph = p->head.graph;

    for (int i = n + 1; i < graph->op_count; i++)
        if (graph->ops[i].kind == OP_MAX_POOL_GRAD && graph->ops[i].forward == n)
            return relu_behind(p, graph->ops[i].out[0], graph->ops[n].in[0]);
    return -1;
}

int plan_pool(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct pool_work *w = add_action(p, n, run_pool, sizeof *w)->work;

    if (fill(p, op, w, e) < 0)
        return -1;
    w->from = touch(p, op->in[0], n);
    w->to = put(p, op->out[0], n);
    if (w->is_max && p->head.graph->mode == GRAPH_TRAIN) {
        enum elem elem = pool_place_bytes(w->pool.r, w->pool.s) == 1 ? ELEM_U8 : ELEM_I32;

        w->pool.has_relu = relu_before(p, n) >= 0;
        w->places = scratch(p, elem, w->to->rows * w->to->pitch, n);
        p->kept[n] = w->places;
    }
    return 0;
}

/* dy may be a sum that is added up here; dx may be what a relu's gradient makes of it. */
static void take_ends(struct cuda_plan *p, int n, struct pool_work *w)
{
    const struct op *op = &p->head.graph->ops[n];
    int relu = w->is_max ? relu_before(p, op->forward) : -1;
    int to = relu >= 0 ? p->head.graph->ops[relu].out[0] : op->out[0];
    int parts[2];

    if (relu >= 0)
        p->is_done[relu] = true;
    join_sum(p, to);
    parts_of_sum(p, op->in[0], parts);
    w->from = touch(p, parts[0], n);
    w->more = touch(p, parts[1], n);
    w->to = put(p, to, n);
}

int plan_pool_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct pool_work *w = add_action(p, n, run_pool_grad, sizeof *w)->work;

    if (fill(p, &p->head.graph->ops[op->forward], w, e) < 0)
        return -1;
    take_ends(p, n, w);
    if (!w->is_max)
        return 0;
    w->places = p->kept[op->forward];
    if (!w->places)
        return err_set(e, ERR_INTERNAL, "pool \"%s\" kept nothing", op->name);
    touch_place(p, w->places, n);
    return 0;
}
