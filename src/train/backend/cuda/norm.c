/* norm.c - batch normalisation with what is fused into it.
 *
 * Forward keeps scale, mean and beta of each channel for the gradient: the mask of a relu is
 * computed again from x, which has to be read anyway.  Where something was added before the
 * relu the mask is kept as bits, a sixteenth of reading y.
 *
 * A norm whose only use is to be added to another one (the side of a residual block that
 * changes size) only takes its statistics: the other applies both.
 *
 * A gradient that is the sum of two (the end of a residual block) is added up here, which saves
 * writing and reading the sum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/norm.h"

#include "base/mem.h"
#include "train/backend/cuda/make.h"
#include "train/backend/cuda/norm-kernels.h"

/* What forward keeps for the gradient, and for a norm that applies it. */
struct bn_kept {
    struct place *line, *bits;
    unsigned *counters;
    bool is_left; /* to the norm that it is added to */
};

struct bn_work {
    struct norm_forward f;
    struct conv_sums *sums; /* of the convolution before it; or NULL */
    struct place *x, *add, *add_line, *y, *bits, *gamma, *beta, *mean, *inv_std, *running_mean,
        *running_var, *line, *parts;
};

struct bn_grad_work {
    struct norm_backward b;
    int dgamma_tensor;
    struct place *dy, *dy2, *x, *bits, *dx, *dadd, *inv_std, *line, *dgamma, *dbeta, *grad_line,
        *parts;
};

static void *data_of(const struct place *place)
{
    return place ? place->data : NULL;
}

unsigned *zeroed_counters(struct cuda_plan *p, int count, struct err *e)
{
    void *data = NULL;

    if (card_alloc(p, (size_t)count * sizeof(unsigned), &data, "counters of sums", e) < 0)
        return NULL;
    return data;
}

static struct norm_shape shape_of(const struct cuda_plan *p, const struct place *x)
{
    return (struct norm_shape){.elem = x->elem,
                               .rows = x->rows,
                               .channels = (int)x->cols,
                               .pitch = (int)x->pitch,
                               .multiprocessors = p->device->multiprocessors,
                               .overlaps = p->device->capability >= 90};
}

static void settle_forward(struct bn_work *w)
{
    struct norm_forward *f = &w->f;

    f->x = w->x->data;
    f->add = data_of(w->add);
    f->add_line = data_of(w->add_line);
    f->y = data_of(w->y);
    f->bits = data_of(w->bits);
    f->gamma = w->gamma->data;
    f->beta = w->beta->data;
    f->mean = data_of(w->mean);
    f->inv_std = data_of(w->inv_std);
    f->running_mean = w->running_mean->data;
    f->running_var = w->running_var->data;
    f->line = w->line->data;
    f->parts = data_of(w->parts);
    if (w->sums) {
        f->sum = w->sums->sums->data;
        f->square = f->sum + f->shape.pitch;
    }
}

static int
run_bn(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct bn_work *w = a->work;

    (void)p;
    settle_forward(w);
    if (!w->mean)
        norm_freeze(&w->f, stream);
    else if (w->sums && w->sums->is_made)
        norm_finish(&w->f, stream);
    else
        norm_statistics(&w->f, stream);
    if (launched(e, "statistics of a batch norm") < 0)
        return -1;
    if (!w->y)
        return 0;
    norm_apply(&w->f, stream);
    return launched(e, "a batch norm");
}

static int measure_statistics(void *norm, bool has_sums, cudaStream_t stream)
{
    struct bn_work *w = norm;
    struct norm_forward f;

    settle_forward(w);
    f = w->f;
    f.running_mean = f.running_var = NULL;
    if (has_sums)
        norm_finish(&f, stream);
    else
        norm_statistics(&f, stream);
    return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

/* The convolution that x comes from, if it may give sums. */
static void meet_conv(struct cuda_plan *p, const struct op *op, int n, struct bn_work *w)
{
    int producer = tensor_of(p, op->in[0])->producer;

    w->sums = producer >= 0 ? conv_sums_of(p, producer) : NULL;
    if (!w->sums)
        return;
    w->sums->measure = measure_statistics;
    w->sums->norm = w;
    touch_place(p, w->sums->sums, n);
}

static int plan_statistics(struct cuda_plan *p, int n, struct bn_work *w, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct bn_kept *kept = p->kept[n];

    w->mean = put(p, op->out[1], n);
    w->inv_std = put(p, op->out[2], n);
    w->parts = scratch(p, ELEM_F32, norm_parts(&w->f.shape), n);
    kept->counters = zeroed_counters(p, norm_counters(&w->f.shape), e);
    if (!kept->counters)
        return -1;
    if (op->attrs.bn.has_relu && w->add)
        kept->bits = scratch(p, ELEM_U8, w->x->rows * w->x->pitch / 8, n);
    w->bits = kept->bits;
    w->f.counters = kept->counters;
    meet_conv(p, op, n, w);
    return 0;
}

int sole_reader(const struct graph *graph, int t)
{
    int reader = -1;

    for (int i = 0; i < graph->op_count; i++)
        for (int j = 0; j < graph->ops[i].in_count; j++) {
            if (graph->ops[i].in[j] != t)
                continue;
            if (reader >= 0)
                return -1;
            reader = i;
        }
    return reader;
}

/* Can another norm apply op n, which is its addend? */
static bool is_left(const struct cuda_plan *p, const struct op *op)
{
    const struct graph *graph = p->head.graph;
    int reader = p->options.keeps_all ? -1 : sole_reader(graph, op->out[0]);

    return reader >= 0 && graph->ops[reader].kind == OP_BN &&
           in_of(&graph->ops[reader], 5) == op->out[0] && !op->attrs.bn.has_relu &&
           in_of(op, 5) < 0;
}

/* What is added: a tensor as it is, or what goes into a norm that left itself to this one. */
static void take_add(struct cuda_plan *p, int n, struct bn_work *w)
{
    int add = in_of(&p->head.graph->ops[n], 5);
    int producer = add < 0 ? -1 : tensor_of(p, add)->producer;
    const struct op *side = producer < 0 ? NULL : &p->head.graph->ops[producer];
    const struct bn_kept *kept = side && side->kind == OP_BN ? p->kept[producer] : NULL;

    if (!kept || !kept->is_left) {
        w->add = touch(p, add, n);
        return;
    }
    w->add = touch(p, side->in[0], n);
    w->add_line = kept->line;
    touch_place(p, w->add_line, n);
    if (p->last_read[side->in[0]] < n)
        p->last_read[side->in[0]] = n;
}

int plan_bn(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct bn_attrs *bn = &op->attrs.bn;
    struct bn_work *w = add_action(p, n, run_bn, sizeof *w)->work;
    struct bn_kept *kept = p->kept[n] = arena_alloc(p->arena, sizeof *kept);

    w->x = touch(p, op->in[0], n);
    take_add(p, n, w);
    w->gamma = touch_master(p, op->in[1]);
    w->beta = touch_master(p, op->in[2]);
    w->running_mean = touch(p, op->in[3], n);
    w->running_var = touch(p, op->in[4], n);
    kept->is_left = is_left(p, op);
    w->y = kept->is_left ? NULL : put(p, op->out[0], n);
    w->f = (struct norm_forward){.shape = shape_of(p, w->x),
                                 .epsilon = bn->epsilon,
                                 .decay = bn->decay,
                                 .has_relu = bn->has_relu,
                                 .is_unbiased = bn->is_unbiased};
    w->line = kept->line = scratch(p, ELEM_F32, 3 * w->x->pitch, n);
    return bn->is_frozen ? 0 : plan_statistics(p, n, w, e);
}

static void settle_backward(const struct cuda_plan *p, struct bn_grad_work *w)
{
    struct norm_backward *b = &w->b;

    b->dy = w->dy->data;
    b->dy2 = data_of(w->dy2);
    b->x = w->x->data;
    b->bits = data_of(w->bits);
    b->dx = w->dx->data;
    b->dadd = data_of(w->dadd);
    b->inv_std = w->inv_std->data;
    b->line = w->line->data;
    b->dgamma = w->dgamma->data;
    b->dbeta = w->dbeta->data;
    b->grad_line = w->grad_line->data;
    b->parts = w->parts->data;
    b->adds = adds_to(p, w->dgamma_tensor);
}

static int
run_bn_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    struct bn_grad_work *w = a->work;

    settle_backward(p, w);
    norm_sums(&w->b, stream);
    if (launched(e, "sums of a batch norm's gradient") < 0)
        return -1;
    norm_grad(&w->b, stream);
    return launched(e, "a batch norm's gradient");
}

int relu_behind(const struct cuda_plan *p, int t, int y)
{
    const struct graph *graph = p->head.graph;
    int reader = t < 0 || p->options.keeps_all ? -1 : sole_reader(graph, t);

    if (reader < 0 || graph->ops[reader].kind != OP_RELU_GRAD ||
        graph->ops[reader].in[0] != t || graph->ops[reader].in[1] != y ||
        tensor_of(p, t)->role != ROLE_ACTIVATION)
        return -1;
    return reader;
}

/* Can op n add up the two parts of the gradient that comes in? */
static bool can_join(const struct graph *graph, int n)
{
    if (n < 0)
        return false;
    return graph->ops[n].kind == OP_MAX_POOL_GRAD ||
           (graph->ops[n].kind == OP_BN_GRAD && out_of(&graph->ops[n], 3) >= 0);
}

void join_sum(struct cuda_plan *p, int t)
{
    const struct graph *graph = p->head.graph;
    int sum = t < 0 || p->options.keeps_all ? -1 : sole_reader(graph, t);
    int reader;

    if (sum < 0 || p->is_done[sum] || graph->ops[sum].kind != OP_SUM ||
        graph->ops[sum].in_count != 2 || tensor_of(p, t)->role != ROLE_ACTIVATION)
        return;
    reader = sole_reader(graph, graph->ops[sum].out[0]);
    if (!can_join(graph, reader))
        return;
    p->is_done[sum] = true;
    for (int i = 0; i < 2; i++)
        if (p->last_read[graph->ops[sum].in[i]] < reader)
            p->last_read[graph->ops[sum].in[i]] = reader;
}

void parts_of_sum(const struct cuda_plan *p, int t, int ret_parts[2])
{
    int sum = tensor_of(p, t)->producer;
    /* A sum that a product did has its own place. */
    bool is_joined = sum >= 0 && p->is_done[sum] && p->head.graph->ops[sum].kind == OP_SUM &&
                     !p->places[t].is_set;

    ret_parts[0] = is_joined ? p->head.graph->ops[sum].in[0] : t;
    ret_parts[1] = is_joined ? p->head.graph->ops[sum].in[1] : -1;
}

static enum norm_mask mask_of(const struct op *op, const struct bn_kept *kept)
{
    if (!op->attrs.bn.has_relu)
        return NORM_MASK_NONE;
    return kept->bits ? NORM_MASK_BITS : NORM_MASK_AGAIN;
}

/* dadd is written by the first pass, which is the last that reads dy and dy2; dx by the second,
 * which reads dadd, or dy when there is none. */
static void put_results(struct cuda_plan *p, int n, struct bn_grad_work *w, const int over[2])
{
    const struct op *op = &p->head.graph->ops[n];

    for (int i = 0; i < op->out_count; i++)
        join_sum(p, op->out[i]);
    if (out_of(op, 3) < 0) {
        w->dx = put_over(p, op->out[0], over[0], n);
    } else {
        w->dadd = put_over(p, op->out[3], over[0], n);
        w->dx = over[1] >= 0 ? put_over(p, op->out[0], over[1], n) : put(p, op->out[0], n);
    }
    w->dgamma = put(p, op->out[1], n);
    w->dbeta = put(p, op->out[2], n);
}

int plan_bn_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct bn_kept *kept = p->kept[op->forward];
    struct bn_grad_work *w = add_action(p, n, run_bn_grad, sizeof *w)->work;
    int over[2];

    if (!kept)
        return err_set(e, ERR_INTERNAL, "batch norm \"%s\" kept nothing", op->name);
    w->x = touch(p, op->in[1], n);
    parts_of_sum(p, op->in[0], over);
    w->dy = touch(p, over[0], n);
    w->dy2 = touch(p, over[1], n);
    w->inv_std = touch(p, op->in[4], n);
    w->line = kept->line;
    touch_place(p, w->line, n);
    w->bits = kept->bits;
    if (w->bits)
        touch_place(p, w->bits, n);
    put_results(p, n, w, over);
    w->dgamma_tensor = op->out[1];
    w->b = (struct norm_backward){
        .shape = shape_of(p, w->x), .mask = mask_of(op, kept), .counters = kept->counters};
    w->parts = scratch(p, ELEM_F32, norm_parts(&w->b.shape), n);
    w->grad_line = scratch(p, ELEM_F32, 2 * w->x->pitch, n);
    return 0;
}
