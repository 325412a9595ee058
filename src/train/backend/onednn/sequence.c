/* sequence.c - embedding, layer normalisation, rows picked out.
 *
 * Sequences are dense rows of D.  Numbers that come from the host (ids, rows) are looked at
 * before they are used as addresses: one that is out of bounds ends the step with an error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/loops.h"

#include "train/backend/onednn/plan.h"
#include "train/num/par.h"

#include <string.h>

enum {
    ROW_GRAIN = 32,      /* rows that are worth a thread */
    COLUMN_GRAIN = 64,   /* columns, likewise */
    CLEAR_GRAIN = 65536, /* floats to be zeroed, likewise */
};

static const struct op *op_of(const struct onednn_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

static dnnl_memory_desc_t dense_of(const struct onednn_plan *p, int t)
{
    return shim_dense(tensor_of(p, t)->dims, tensor_of(p, t)->dim);
}

static bool is_within(struct onednn_plan *p, int input, const int32_t *numbers, int64_t below)
{
    int64_t count = tensor_elements(tensor_of(p, input));

    for (int64_t i = 0; i < count; i++)
        if (numbers[i] < 0 || numbers[i] >= below) {
            err_set(&p->error, ERR_INVALID, "input \"%s\" has %d, which is not 0 to %lld",
                    tensor_of(p, input)->name, numbers[i], (long long)below - 1);
            return false;
        }
    return true;
}

static void clear_piece(void *arg, int64_t from, int64_t to)
{
    memset((float *)arg + from, 0, (size_t)(to - from) * sizeof(float));
}

static void clear(float *floats, int64_t count)
{
    par_for(count, CLEAR_GRAIN, clear_piece, floats);
}

/* Embedding. */

struct embed_work {
    int ids_input, types_input;
    int64_t m, t, d, vocabulary, positions;
    struct place *word, *position, *type; /* backward: their gradients */
    struct place *y;                      /* backward: dy */
    bool adds; /* to what the table's other gradient wrote (make.c) */
    const int32_t *ids, *types;
};

static bool take_tokens(struct onednn_plan *p, struct embed_work *w)
{
    w->ids = p->fed[w->ids_input];
    w->types = p->fed[w->types_input];
    return is_within(p, w->ids_input, w->ids, w->vocabulary) &&
           is_within(p, w->types_input, w->types, 2);
}

static void embed_rows(void *arg, int64_t from, int64_t to)
{
    const struct embed_work *w = arg;

    for (int64_t i = from; i < to; i++)
        loops()->add_three((float *)w->y->data + i * w->d,
                           (const float *)w->word->data + w->ids[i] * w->d,
                           (const float *)w->position->data + i % w->t * w->d,
                           (const float *)w->type->data + w->types[i] * w->d, w->d);
}

static void run_embed(struct onednn_plan *p, const struct action *a)
{
    struct embed_work *w = a->work;

    if (take_tokens(p, w))
        par_for(w->m, ROW_GRAIN, embed_rows, w);
}

static struct embed_work embed_work_of(const struct onednn_plan *p, const struct op *forward)
{
    return (struct embed_work){.ids_input = forward->in[0],
                               .types_input = forward->in[1],
                               .m = tensor_of(p, forward->out[0])->dim[0],
                               .t = tensor_of(p, forward->in[0])->dim[1],
                               .d = tensor_of(p, forward->out[0])->dim[1],
                               .vocabulary = tensor_of(p, forward->in[2])->dim[0],
                               .positions = tensor_of(p, forward->in[3])->dim[0]};
}

/* Rows are found in dense tables: a layer that shares one takes it as it is. */
static struct place *put_table(struct onednn_plan *p, int t, struct err *e)
{
    dnnl_memory_desc_t md = dense_of(p, t);
    struct place *place = put_param(p, t, &md);

    if (shim_same(&place->md, &md))
        return place;
    err_set(e, ERR_METHOD, "the table \"%s\" has another layout already",
            tensor_of(p, t)->name);
    return NULL;
}

int plan_embed(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct embed_work w = embed_work_of(p, op);
    dnnl_memory_desc_t md = dense_of(p, op->out[0]);

    w.word = put_table(p, op->in[2], e);
    w.position = put_table(p, op->in[3], e);
    w.type = put_table(p, op->in[4], e);
    if (!w.word || !w.position || !w.type)
        return -1;
    w.y = put(p, op->out[0], &md, n);
    *(struct embed_work *)add_action(p, n, run_embed, sizeof w)->work = w;
    return 0;
}

/* Tokens in their order, columns shared out: who adds what does not depend on threads. */
static void embed_columns(void *arg, int64_t from, int64_t to)
{
    const struct embed_work *w = arg;

    for (int64_t i = 0; i < w->m; i++) {
        const float *dy = (const float *)w->y->data + i * w->d + from;

        loops()->add((float *)w->word->data + w->ids[i] * w->d + from, dy, to - from);
        loops()->add((float *)w->position->data + i % w->t * w->d + from, dy, to - from);
        loops()->add((float *)w->type->data + w->types[i] * w->d + from, dy, to - from);
    }
}

static void run_embed_grad(struct onednn_plan *p, const struct action *a)
{
    struct embed_work *w = a->work;

    if (!take_tokens(p, w))
        return;
    if (!w->adds)
        clear(w->word->data, w->vocabulary * w->d);
    clear(w->position->data, w->positions * w->d);
    clear(w->type->data, 2 * w->d);
    par_for(w->d, COLUMN_GRAIN, embed_columns, w);
}

int plan_embed_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n), *forward = op_of(p, op->forward);
    struct embed_work w = embed_work_of(p, forward);
    dnnl_memory_desc_t dy = dense_of(p, op->in[0]);
    dnnl_memory_desc_t word = dense_of(p, op->out[0]), position = dense_of(p, op->out[1]);
    dnnl_memory_desc_t type = dense_of(p, op->out[2]);

    if (in_of(op, 3) >= 0)
        return err_set(e, ERR_METHOD, "\"%s\" has a sum fused in", op->name);
    w.y = in_layout(p, op->in[0], &dy, n, e);
    if (!w.y)
        return -1;
    w.adds = p->joined[n] >= 0;
    w.word = w.adds ? &p->places[op_of(p, p->joined[n])->out[0]] : put(p, op->out[0], &word, n);
    w.position = put(p, op->out[1], &position, n);
    w.type = put(p, op->out[2], &type, n);
    *(struct embed_work *)add_action(p, n, run_embed_grad, sizeof w)->work = w;
    return 0;
}

/* Layer normalisation. */

struct layernorm_work {
    float epsilon;
    int64_t m, d;
    struct place *x, *add, *gamma, *beta, *y, *sum, *mean, *inv_std;
    struct place *dy, *dx, *dgamma, *dbeta, *parts; /* parts: two rows for each piece */
};

static float *row_of(const struct place *place, int64_t row, int64_t d)
{
    return place ? (float *)place->data + row * d : NULL;
}

static void layernorm_rows(void *arg, int64_t from, int64_t to)
{
    const struct layernorm_work *w = arg;

    for (int64_t i = from; i < to; i++)
        loops()->norm_row(&(struct norm_row){.d = w->d,
                                             .epsilon = w->epsilon,
                                             .x = row_of(w->x, i, w->d),
                                             .add = row_of(w->add, i, w->d),
                                             .gamma = w->gamma->data,
                                             .beta = w->beta->data,
                                             .sum = row_of(w->sum, i, w->d),
                                             .y = row_of(w->y, i, w->d),
                                             .mean = row_of(w->mean, i, 1),
                                             .inv_std = row_of(w->inv_std, i, 1)});
}

static void run_layernorm(struct onednn_plan *p, const struct action *a)
{
    struct layernorm_work *w = a->work;

    (void)p;
    par_for(w->m, ROW_GRAIN, layernorm_rows, w);
}

static struct layernorm_work norm_work_of(const struct onednn_plan *p, const struct op *op)
{
    return (struct layernorm_work){.epsilon = op->attrs.layernorm.epsilon,
                                   .m = tensor_of(p, op->in[0])->dim[0],
                                   .d = tensor_of(p, op->in[0])->dim[1]};
}

int plan_layernorm(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct layernorm_work w = norm_work_of(p, op);
    dnnl_memory_desc_t md = dense_of(p, op->in[0]), row = dense_of(p, op->in[1]);
    dnnl_memory_desc_t column = dense_of(p, op->out[1]);

    w.x = in_layout(p, op->in[0], &md, n, e);
    if (!w.x || (in_of(op, 3) >= 0 && !(w.add = in_layout(p, op->in[3], &md, n, e))))
        return -1;
    w.gamma = put_param(p, op->in[1], &row);
    w.beta = put_param(p, op->in[2], &row);
    w.y = put(p, op->out[0], &md, n);
    w.mean = put(p, op->out[1], &column, n);
    w.inv_std = put(p, op->out[2], &column, n);
    if (w.add)
        w.sum = put(p, op->out[3], &md, n);
    *(struct layernorm_work *)add_action(p, n, run_layernorm, sizeof w)->work = w;
    return 0;
}

/* Which piece begins there. */
static int piece_at(int64_t count, int64_t from)
{
    int64_t begin, end;
    int i = 0;

    for (; i + 1 < par_pieces(count, ROW_GRAIN); i++) {
        par_piece(count, ROW_GRAIN, i, &begin, &end);
        if (begin == from)
            break;
    }
    return i;
}

static void layernorm_grad_rows(void *arg, int64_t from, int64_t to)
{
    const struct layernorm_work *w = arg;
    float *dgamma = row_of(w->parts, 2 * piece_at(w->m, from), w->d), *dbeta = dgamma + w->d;

    memset(dgamma, 0, (size_t)(2 * w->d) * sizeof *dgamma);
    for (int64_t i = from; i < to; i++)
        loops()->norm_row_grad(&(struct norm_row_grad){.d = w->d,
                                                       .dy = row_of(w->dy, i, w->d),
                                                       .x = row_of(w->x, i, w->d),
                                                       .gamma = w->gamma->data,
                                                       .mean = *row_of(w->mean, i, 1),
                                                       .inv_std = *row_of(w->inv_std, i, 1),
                                                       .dx = row_of(w->dx, i, w->d),
                                                       .dgamma = dgamma,
                                                       .dbeta = dbeta});
}

static void run_layernorm_grad(struct onednn_plan *p, const struct action *a)
{
    struct layernorm_work *w = a->work;
    size_t bytes = (size_t)w->d * sizeof(float);

    (void)p;
    par_for(w->m, ROW_GRAIN, layernorm_grad_rows, w);
    memcpy(w->dgamma->data, row_of(w->parts, 0, w->d), bytes);
    memcpy(w->dbeta->data, row_of(w->parts, 1, w->d), bytes);
    for (int i = 1; i < par_pieces(w->m, ROW_GRAIN); i++) {
        loops()->add(w->dgamma->data, row_of(w->parts, 2 * i, w->d), w->d);
        loops()->add(w->dbeta->data, row_of(w->parts, 2 * i + 1, w->d), w->d);
    }
}

int plan_layernorm_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct layernorm_work w = norm_work_of(p, op);
    dnnl_memory_desc_t md = dense_of(p, op->in[0]), row = dense_of(p, op->in[2]);

    w.dy = in_layout(p, op->in[0], &md, n, e);
    w.x = in_layout(p, op->in[1], &md, n, e);
    if (!w.dy || !w.x)
        return -1;
    w.gamma = &p->places[op->in[2]];
    w.mean = touch(p, op->in[3], n);
    w.inv_std = touch(p, op->in[4], n);
    w.parts = scratch_floats(p, 2 * w.d * par_pieces(w.m, ROW_GRAIN), n);
    w.dx = put_over(p, op->out[0], &md, w.dy == &p->places[op->in[0]] ? op->in[0] : -1, n);
    w.dgamma = put(p, op->out[1], &row, n);
    w.dbeta = put(p, op->out[2], &row, n);
    *(struct layernorm_work *)add_action(p, n, run_layernorm_grad, sizeof w)->work = w;
    return 0;
}

/* Rows picked out. */

struct gather_work {
    int rows_input;
    int64_t count, m, d;
    struct place *x, *y; /* backward: dx, dy */
    const int32_t *rows;
};

static void pick_rows(void *arg, int64_t from, int64_t to)
{
    const struct gather_work *w = arg;

    for (int64_t i = from; i < to; i++)
        memcpy(row_of(w->y, i, w->d), row_of(w->x, w->rows[i], w->d),
               (size_t)w->d * sizeof(float));
}

static void run_pick(struct onednn_plan *p, const struct action *a)
{
    struct gather_work *w = a->work;

    w->rows = p->fed[w->rows_input];
    if (is_within(p, w->rows_input, w->rows, w->m))
        par_for(w->count, ROW_GRAIN, pick_rows, w);
}

int plan_gather_rows(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    const struct tensor *x = tensor_of(p, op->in[0]);
    dnnl_memory_desc_t md = dense_of(p, op->in[0]), y = dense_of(p, op->out[0]);
    struct gather_work w = {.rows_input = op->in[1],
                            .count = tensor_of(p, op->out[0])->dim[0],
                            .m = x->dim[0],
                            .d = x->dim[1]};

    w.x = in_layout(p, op->in[0], &md, n, e);
    if (!w.x)
        return -1;
    w.y = put(p, op->out[0], &y, n);
    *(struct gather_work *)add_action(p, n, run_pick, sizeof w)->work = w;
    return 0;
}

/* A row may be picked more than once: columns are shared out, as in the embedding. */
static void spread_columns(void *arg, int64_t from, int64_t to)
{
    const struct gather_work *w = arg;

    for (int64_t i = 0; i < w->count; i++)
        loops()->add(row_of(w->x, w->rows[i], w->d) + from, row_of(w->y, i, w->d) + from,
                     to - from);
}

static void run_spread(struct onednn_plan *p, const struct action *a)
{
    struct gather_work *w = a->work;

    w->rows = p->fed[w->rows_input];
    if (!is_within(p, w->rows_input, w->rows, w->m))
        return;
    clear(w->x->data, w->m * w->d);
    par_for(w->d, COLUMN_GRAIN, spread_columns, w);
}

int plan_gather_rows_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    const struct tensor *dx = tensor_of(p, op->out[0]);
    dnnl_memory_desc_t md = dense_of(p, op->out[0]), dy = dense_of(p, op->in[0]);
    struct gather_work w = {.rows_input = op->in[1],
                            .count = tensor_of(p, op->in[0])->dim[0],
                            .m = dx->dim[0],
                            .d = dx->dim[1]};

    w.y = in_layout(p, op->in[0], &dy, n, e);
    if (!w.y)
        return -1;
    w.x = put(p, op->out[0], &md, n);
    *(struct gather_work *)add_action(p, n, run_spread, sizeof w)->work = w;
    return 0;
}
