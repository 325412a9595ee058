/* attention.c - attention over one product of queries, keys and values: heads shared out among
 * the threads, each done whole by one (attention-loops.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/attention-loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/par.h"
#include "train/num/rng.h"

struct attention_work {
    struct attention_attrs attrs;
    int64_t n, t, d; /* d: of y */
    int mask_input;
    struct place *qkv, *y, *saved, *dy, *dqkv; /* the last two: backward */
    struct place *room;
    size_t room_floats;  /* of one thread */
    const int32_t *mask; /* of the step that runs */
    struct keep keep;
};

static struct attention_head head_of(const struct attention_work *w, int64_t number)
{
    int64_t heads = w->attrs.heads, n = number / heads, e = w->d / heads;
    int64_t at = n * w->t * 3 * w->d + number % heads * e;
    int64_t y_at = n * w->t * w->d + number % heads * e;
    const float *q = (const float *)w->qkv->data + at;
    float *dq = w->dqkv ? (float *)w->dqkv->data + at : NULL;

    return (struct attention_head){.t = w->t,
                                   .e = e,
                                   .qkv_row = 3 * w->d,
                                   .y_row = w->d,
                                   .scale = w->attrs.scale,
                                   .has_dropout = w->attrs.dropout > 0,
                                   .keep = w->keep,
                                   .first = (uint64_t)(number * w->t * w->t),
                                   .q = q,
                                   .k = q + w->d,
                                   .v = q + 2 * w->d,
                                   .mask = w->mask + n * w->t,
                                   .y = (float *)w->y->data + y_at,
                                   .saved = (float *)w->saved->data + number * w->t,
                                   .dy = w->dy ? (const float *)w->dy->data + y_at : NULL,
                                   .dq = dq,
                                   .dk = dq ? dq + w->d : NULL,
                                   .dv = dq ? dq + 2 * w->d : NULL};
}

static int64_t heads_of(const struct attention_work *w)
{
    return w->n * w->attrs.heads;
}

/* The room of the piece that begins there. */
static float *room_of(const struct attention_work *w, int64_t from)
{
    float *room = w->room->data;

    for (int i = 0; i < par_pieces(heads_of(w), 1); i++, room += w->room_floats) {
        int64_t begin, end;

        par_piece(heads_of(w), 1, i, &begin, &end);
        if (begin == from)
            break;
    }
    return room;
}

static void do_heads(void *arg, int64_t from, int64_t to)
{
    const struct attention_work *w = arg;
    float *room = room_of(w, from);

    for (int64_t i = from; i < to; i++) {
        struct attention_head head = head_of(w, i);

        if (w->dqkv)
            loops()->attention_backward(&head, room);
        else
            loops()->attention_forward(&head, room);
    }
}

static void run_attention(struct onednn_plan *p, const struct action *a)
{
    struct attention_work *w = a->work;

    w->mask = p->fed[w->mask_input];
    w->keep = (struct keep){.key = p->options.seed ^ w->attrs.stream,
                            .hi = (uint64_t)p->step->pass << 48 | p->step->number,
                            .limit = rng_dropout_limit(w->attrs.dropout),
                            .scale = 1 / (1 - w->attrs.dropout)};
    par_for(heads_of(w), 1, do_heads, w);
}

static void add_attention(struct onednn_plan *p, int n, struct attention_work *w)
{
    w->room_floats = attention_room(w->t, w->d / w->attrs.heads, w->dqkv != NULL);
    w->room = scratch_floats(p, (int64_t)w->room_floats * par_pieces(heads_of(w), 1), n);
    *(struct attention_work *)add_action(p, n, run_attention, sizeof *w)->work = *w;
}

static struct attention_work
work_of(const struct onednn_plan *p, const struct op *op, int mask, int qkv)
{
    return (struct attention_work){.attrs = op->attrs.attention,
                                   .n = tensor_of(p, mask)->dim[0],
                                   .t = tensor_of(p, mask)->dim[1],
                                   .d = tensor_of(p, qkv)->dim[1] / 3,
                                   .mask_input = mask};
}

int plan_attention(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct attention_work w = work_of(p, op, op->in[1], op->in[0]);
    dnnl_memory_desc_t qkv = shim_dense(2, tensor_of(p, op->in[0])->dim);
    dnnl_memory_desc_t y = shim_dense(2, tensor_of(p, op->out[0])->dim);
    const struct tensor *saved = tensor_of(p, op->out[1]);
    dnnl_memory_desc_t saved_md = shim_dense(saved->dims, saved->dim);

    w.qkv = in_layout(p, op->in[0], &qkv, n, e);
    if (!w.qkv)
        return -1;
    w.y = put(p, op->out[0], &y, n);
    w.saved = put(p, op->out[1], &saved_md, n);
    add_attention(p, n, &w);
    return 0;
}

int plan_attention_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    struct attention_work w = work_of(p, op, op->in[2], op->in[1]);
    dnnl_memory_desc_t qkv = shim_dense(2, tensor_of(p, op->in[1])->dim);
    dnnl_memory_desc_t y = shim_dense(2, tensor_of(p, op->in[3])->dim);

    w.dy = in_layout(p, op->in[0], &y, n, e);
    w.qkv = in_layout(p, op->in[1], &qkv, n, e);
    if (!w.dy || !w.qkv)
        return -1;
    w.y = touch(p, op->in[3], n);
    w.saved = touch(p, op->in[4], n);
    w.dqkv = put(p, op->out[0], &qkv, n);
    add_attention(p, n, &w);
    return 0;
}
