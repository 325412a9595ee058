/* sequence.c - embedding, layer norm, rows picked out; what is joined around a layer norm.
 *
 * Forward, behind a linear layer: dropout, residual and layer norm are one kernel.  Backward: a
 * layer norm's gradient writes the gradient of the dropout before it too and sums its columns
 * for the bias of the linear layer before that.  Every tensor of the list is still written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/sequence.h"

#include "base/mem.h"
#include "train/num/rng.h"

static const struct op *op_of(const struct cuda_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

int bias_reader(const struct cuda_plan *p, int t)
{
    const struct graph *graph = p->head.graph;

    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];

        if (op->kind == OP_LINEAR_WEIGHT_GRAD && op->in[0] == t)
            return out_of(op, 1) >= 0 ? n : -1;
    }
    return -1;
}

struct place *keep_bias_parts(struct cuda_plan *p, int n, int reader, int splits, int64_t pitch)
{
    struct bias_parts *parts = arena_alloc(p->arena, sizeof *parts);

    parts->place = scratch(p, ELEM_F32, splits * pitch, n);
    parts->splits = splits;
    p->kept[reader] = parts;
    return parts->place;
}

/* The facts' address is known when an action runs. */
struct seq_dropout dropout_of(const struct cuda_plan *p, float rate, uint64_t stream)
{
    return (struct seq_dropout){.facts = p->facts,
                                .stream = stream,
                                .limit = rate > 0 ? rng_dropout_limit(rate) : 0,
                                .factor = 1 / (1 - rate)};
}

static int check_width(int64_t width, struct err *e)
{
    if (width <= SEQ_MOST_WIDTH)
        return 0;
    return err_set(e, ERR_METHOD, "a layer norm of more than %d columns", SEQ_MOST_WIDTH);
}

struct norm_work {
    struct place *x, *add, *sum, *gamma, *beta, *y, *mean, *inv_std;
    float epsilon, rate;
    uint64_t stream;
};

static int
run_norm(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct norm_work *w = a->work;
    struct seq_norm args = {.rows = w->y->rows,
                            .cols = w->y->cols,
                            .pitch = w->y->pitch,
                            .epsilon = w->epsilon,
                            .x = w->x->data,
                            .add = w->add ? w->add->data : NULL,
                            .sum = w->sum ? w->sum->data : NULL,
                            .gamma = w->gamma->data,
                            .beta = w->beta->data,
                            .y = w->y->data,
                            .mean = w->mean->data,
                            .inv_std = w->inv_std->data,
                            .dropout = dropout_of(p, w->rate, w->stream)};

    seq_norm(stream, p->elem, &args);
    return launched(e, a->label);
}

/* What LAYERNORM `norm` reads and writes besides its x; as part of op n. */
static struct norm_work *add_norm(struct cuda_plan *p, int norm, int n)
{
    const struct op *op = op_of(p, norm);
    struct norm_work *w = add_action(p, norm, run_norm, sizeof *w)->work;

    w->gamma = touch_master(p, op->in[1]);
    w->beta = touch_master(p, op->in[2]);
    w->epsilon = op->attrs.layernorm.epsilon;
    w->y = put(p, op->out[0], n);
    w->mean = put(p, op->out[1], n);
    w->inv_std = put(p, op->out[2], n);
    return w;
}

int plan_layernorm(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct norm_work *w;

    if (check_width(tensor_of(p, op->in[0])->dim[1], e) < 0)
        return -1;
    w = add_norm(p, n, n);
    w->x = touch(p, op->in[0], n);
    w->add = touch(p, in_of(op, 3), n);
    if (out_of(op, 3) >= 0)
        w->sum = put(p, op->out[3], n);
    return 0;
}

/* The op of that kind that reads t first, besides gradients; -1 when there is none. */
static int next_reader(const struct cuda_plan *p, int n, int t, enum op_kind kind)
{
    const struct graph *graph = p->head.graph;

    for (int i = n + 1; i < graph->op_count; i++)
        if (graph->ops[i].kind == kind && graph->ops[i].in[0] == t && !p->is_done[i])
            return i;
    return -1;
}

int plan_joined_norm(struct cuda_plan *p, int n, struct err *e)
{
    int x = op_of(p, n)->out[0], dropout = next_reader(p, n, x, OP_DROPOUT), norm;
    const struct op *drop = dropout < 0 ? NULL : op_of(p, dropout);
    struct norm_work *w;

    if (!drop || in_of(drop, 1) < 0 || !p->places[drop->in[1]].is_set ||
        p->places[drop->in[1]].elem != p->elem)
        return 0;
    norm = next_reader(p, dropout, drop->out[0], OP_LAYERNORM);
    if (norm < 0 || in_of(op_of(p, norm), 3) >= 0 ||
        tensor_of(p, drop->out[0])->dim[1] > SEQ_MOST_WIDTH)
        return 0;
    (void)e;
    p->is_done[dropout] = p->is_done[norm] = true;
    w = add_norm(p, norm, n);
    w->x = touch(p, x, n);
    w->add = touch(p, drop->in[1], n);
    w->sum = put(p, drop->out[0], n);
    w->rate = drop->attrs.dropout.rate;
    w->stream = drop->attrs.dropout.stream;
    return 0;
}

struct norm_grad_work {
    struct place *dy, *x, *gamma, *mean, *inv_std, *dx, *dropped, *parts, *dgamma, *dbeta;
    int dgamma_tensor, dbeta_tensor, splits;
    float rate;
    uint64_t stream;
};

static void
sum_norm_parts(struct cuda_plan *p, const struct norm_grad_work *w, cudaStream_t stream)
{
    struct seq_sums sums = {.parts = w->parts->data,
                            .splits = w->splits,
                            .pitch = w->dx->pitch,
                            .to = {w->dgamma->data, w->dbeta->data},
                            .adds = {adds_to(p, w->dgamma_tensor), adds_to(p, w->dbeta_tensor)},
                            .count = 2};

    seq_column_sums(stream, &sums);
}

static int
run_norm_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct norm_grad_work *w = a->work;
    struct seq_norm_grad args = {.rows = w->dx->rows,
                                 .cols = w->dx->cols,
                                 .pitch = w->dx->pitch,
                                 .dy = w->dy->data,
                                 .x = w->x->data,
                                 .gamma = w->gamma->data,
                                 .mean = w->mean->data,
                                 .inv_std = w->inv_std->data,
                                 .dx = w->dx->data,
                                 .dropped = w->dropped ? w->dropped->data : NULL,
                                 .dropout = dropout_of(p, w->rate, w->stream),
                                 .parts = w->parts->data,
                                 .splits = w->splits};

    seq_norm_grad(stream, p->elem, &args);
    if (launched(e, a->label) < 0)
        return -1;
    sum_norm_parts(p, w, stream);
    return launched(e, a->label);
}

/* The dropout's gradient of dx, with the sums for the bias of the layer before it. */
static void join_dropout_grad(struct cuda_plan *p, int n, struct norm_grad_work *w)
{
    int dx = op_of(p, n)->out[0], drop = next_reader(p, n, dx, OP_DROPOUT_GRAD), below;
    const struct op *op = drop < 0 ? NULL : op_of(p, drop);
    struct bias_parts *parts;

    if (!op)
        return;
    p->is_done[drop] = true;
    w->dropped = put(p, op->out[0], n);
    w->rate = op->attrs.dropout.rate;
    w->stream = op->attrs.dropout.stream;
    below = bias_reader(p, op->out[0]);
    if (below < 0)
        return;
    parts = arena_alloc(p->arena, sizeof *parts);
    parts->place = w->parts;
    parts->skip = 2 * w->splits * w->dx->pitch;
    parts->splits = w->splits;
    p->kept[below] = parts;
}

int plan_layernorm_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct norm_grad_work *w;

    if (check_width(tensor_of(p, op->in[1])->dim[1], e) < 0)
        return -1;
    w = add_action(p, n, run_norm_grad, sizeof *w)->work;
    w->dy = touch(p, op->in[0], n);
    w->x = touch(p, op->in[1], n);
    w->gamma = touch_master(p, op->in[2]);
    w->mean = touch(p, op->in[3], n);
    w->inv_std = touch(p, op->in[4], n);
    w->dx = put_over(p, op->out[0], op->in[0], n);
    w->dgamma = put(p, w->dgamma_tensor = op->out[1], n);
    w->dbeta = put(p, w->dbeta_tensor = op->out[2], n);
    w->splits = seq_norm_splits(p->elem, w->dx->rows, w->dx->pitch, p->device->multiprocessors);
    w->parts = scratch(p, ELEM_F32, 3 * (int64_t)w->splits * w->dx->pitch, n);
    join_dropout_grad(p, n, w);
    return 0;
}

struct embed_work {
    struct place *ids, *types, *word, *position, *type, *y;
    int64_t length;
};

static int
run_embed(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct embed_work *w = a->work;
    struct seq_embed args = {.rows = w->y->rows,
                             .length = w->length,
                             .pitch = w->y->pitch,
                             .ids = w->ids->data,
                             .types = w->types->data,
                             .word = w->word->data,
                             .position = w->position->data,
                             .type = w->type->data,
                             .y = w->y->data};

    seq_embed(stream, p->elem, &args);
    return launched(e, a->label);
}

int plan_embed(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct embed_work *w = add_action(p, n, run_embed, sizeof *w)->work;

    w->ids = touch(p, op->in[0], n);
    w->types = touch(p, op->in[1], n);
    w->word = touch(p, op->in[2], n);
    w->position = touch(p, op->in[3], n);
    w->type = touch(p, op->in[4], n);
    w->length = tensor_of(p, op->in[0])->dim[1];
    w->y = put(p, op->out[0], n);
    if (w->word->pitch == w->y->pitch)
        return 0;
    return err_set(e, ERR_INTERNAL, "tables and rows of other pitches");
}

struct embed_grad_work {
    struct place *dy, *ids, *types, *so_far, *dword, *dposition, *dtype, *parts;
    int grads[3];
    int64_t batch, length;
};

static void
run_word_grad(struct cuda_plan *p, const struct embed_grad_work *w, cudaStream_t stream)
{
    struct seq_scatter args = {.x = w->dy->data,
                               .ids = w->ids->data,
                               .count = w->batch * w->length,
                               .pitch = w->dy->pitch,
                               .to_rows = w->dword->rows,
                               .so_far = w->so_far ? w->so_far->data : NULL,
                               .to = w->dword->data,
                               .to_elem = ELEM_F32,
                               .adds = adds_to(p, w->grads[0])};

    seq_scatter(stream, p->elem, &args);
}

/* dtype's two rows are sums of what the positions' blocks left in parts. */
static void
run_position_grad(struct cuda_plan *p, const struct embed_grad_work *w, cudaStream_t stream)
{
    struct seq_position args = {.dy = w->dy->data,
                                .types = w->types->data,
                                .batch = w->batch,
                                .length = w->length,
                                .pitch = w->dy->pitch,
                                .to_rows = w->dposition->rows,
                                .dposition = w->dposition->data,
                                .adds = adds_to(p, w->grads[1]),
                                .parts = w->parts->data};
    float *dtype = w->dtype->data;
    bool adds = adds_to(p, w->grads[2]);
    struct seq_sums sums = {.parts = w->parts->data,
                            .splits = (int)w->length,
                            .pitch = w->dy->pitch,
                            .to = {dtype, dtype + w->dtype->pitch},
                            .adds = {adds, adds},
                            .count = 2};

    seq_position_grad(stream, p->elem, &args);
    seq_column_sums(stream, &sums);
}

static int
run_embed_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    run_word_grad(p, a->work, stream);
    run_position_grad(p, a->work, stream);
    return launched(e, a->label);
}

int plan_embed_grad(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct embed_grad_work *w = add_action(p, n, run_embed_grad, sizeof *w)->work;

    (void)e;
    w->dy = touch(p, op->in[0], n);
    w->ids = touch(p, op->in[1], n);
    w->types = touch(p, op->in[2], n);
    w->so_far = touch(p, in_of(op, 3), n);
    for (int i = 0; i < 3; i++)
        w->grads[i] = op->out[i];
    w->dword = put(p, op->out[0], n);
    w->dposition = put(p, op->out[1], n);
    w->dtype = put(p, op->out[2], n);
    w->batch = tensor_of(p, op->in[1])->dim[0];
    w->length = tensor_of(p, op->in[1])->dim[1];
    w->parts = scratch(p, ELEM_F32, 2 * w->length * w->dy->pitch, n);
    return 0;
}

struct gather_work {
    struct place *x, *rows, *y;
    int64_t count;
};

static int
run_gather(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct gather_work *w = a->work;

    seq_gather(stream, p->elem, w->x->data, w->rows->data, w->count, w->y->pitch, w->y->data);
    return launched(e, a->label);
}

static int
run_gather_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct gather_work *w = a->work;
    struct seq_scatter args = {.x = w->x->data,
                               .ids = w->rows->data,
                               .count = w->count,
                               .pitch = w->y->pitch,
                               .to_rows = w->y->rows,
                               .to = w->y->data,
                               .to_elem = p->elem};

    seq_scatter(stream, p->elem, &args);
    return launched(e, a->label);
}

static void plan_rows(struct cuda_plan *p, int n, action_fn *run)
{
    const struct op *op = op_of(p, n);
    struct gather_work *w = add_action(p, n, run, sizeof *w)->work;

    w->x = touch(p, op->in[0], n);
    w->rows = touch(p, op->in[1], n);
    w->count = tensor_of(p, op->in[1])->dim[0];
    w->y = put(p, op->out[0], n);
}

int plan_gather(struct cuda_plan *p, int n, struct err *e)
{
    (void)e;
    plan_rows(p, n, run_gather);
    return 0;
}

int plan_gather_grad(struct cuda_plan *p, int n, struct err *e)
{
    (void)e;
    plan_rows(p, n, run_gather_grad);
    return 0;
}
