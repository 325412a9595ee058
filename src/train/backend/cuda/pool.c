/* pool.c - maximum and average pools.
 *
 * A maximum's gradient needs only where in its window it was, a byte each: neither x nor y is
 * read again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/norm.h"
#include "train/backend/cuda/pool-kernels.h"

#include <limits.h>

struct pool_work {
    struct pool pool;
    bool is_max;
    struct place *from, *to, *places;
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
        pool_max_grad(&w->pool, w->from->data, w->to->data, stream);
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

    if (tensor_elements(x) / x->dim[1] * pitch / 8 > (int64_t)INT_MAX * 256)
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

int plan_pool(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct pool_work *w = add_action(p, n, run_pool, sizeof *w)->work;

    if (fill(p, op, w, e) < 0)
        return -1;
    w->from = touch(p, op->in[0], n);
    w->to = put(p, op->out[0], n);
    if (w->is_max && p->head.graph->mode == GRAPH_TRAIN) {
        enum elem elem = w->pool.r * w->pool.s <= 256 ? ELEM_U8 : ELEM_I32;

        w->places = scratch(p, elem, w->to->rows * w->to->pitch, n);
        p->kept[n] = w->places;
    }
    return 0;
}

int plan_pool_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct pool_work *w = add_action(p, n, run_pool_grad, sizeof *w)->work;

    if (fill(p, &p->head.graph->ops[op->forward], w, e) < 0)
        return -1;
    join_sum(p, op->out[0]);
    w->from = touch(p, op->in[0], n);
    w->to = put(p, op->out[0], n);
    if (!w->is_max)
        return 0;
    w->places = p->kept[op->forward];
    if (!w->places)
        return err_set(e, ERR_INTERNAL, "pool \"%s\" kept nothing", op->name);
    touch_place(p, w->places, n);
    return 0;
}
