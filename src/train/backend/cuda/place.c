/* place.c - places, scratch, actions: see plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/each-kernels.h"
#include "train/backend/cuda/make.h"
#include "train/backend/cuda/params.h"

static void *grown(void *array, int count, size_t size)
{
    if (count & (count - 1))
        return array;
    return xreallocarray(array, count ? (size_t)count * 2 : 1, size);
}

static int new_item(struct cuda_plan *p, size_t bytes, int n, int shares)
{
    struct memplan_item item = {.bytes = bytes, .first = n, .last = n, .shares = shares};

    if (p->options.keeps_all) {
        item.first = 0;
        item.last = p->head.graph->op_count;
        item.shares = -1;
    }
    p->items = grown(p->items, p->item_count, sizeof *p->items);
    p->items[p->item_count] = item;
    return p->item_count++;
}

void touch_place(struct cuda_plan *p, struct place *place, int n)
{
    if (place && place->item >= 0 && p->items[place->item].last < n)
        p->items[place->item].last = n;
}

struct place *touch(struct cuda_plan *p, int t, int n)
{
    if (t < 0)
        return NULL;
    touch_place(p, &p->places[t], n);
    return &p->places[t];
}

struct place *touch_master(struct cuda_plan *p, int t)
{
    return t < 0 ? NULL : &p->params->all[p->params->of_tensor[t]].master_place;
}

/* Is it the weight of a convolution with groups? */
static bool is_grouped(const struct graph *graph, int t)
{
    for (int n = 0; n < graph->op_count; n++) {
        const struct op *op = &graph->ops[n];

        if (op->kind == OP_CONV && in_of(op, 1) == t && op->attrs.conv.groups > 1)
            return true;
    }
    return false;
}

static enum elem elem_of(const struct cuda_plan *p, const struct tensor *t)
{
    if (t->dtype == DTYPE_I32)
        return ELEM_I32;
    if (t->role == ROLE_INPUT)
        return t->dtype == DTYPE_U8 ? ELEM_U8 : ELEM_F32;
    return t->role == ROLE_PARAM || t->role == ROLE_ACTIVATION ? p->elem : ELEM_F32;
}

/* The param whose layout a gradient, a part of one, or a slot has; else -1. */
static int param_of(const struct graph *graph, int t)
{
    const struct tensor *tensor = &graph->tensors[t];
    const struct op *op = tensor->producer < 0 ? NULL : &graph->ops[tensor->producer];

    if (tensor->role == ROLE_PARAM)
        return t;
    if (tensor->param >= 0)
        return tensor->param;
    if (tensor->role == ROLE_EXACT && tensor->dims == 4 && op &&
        op->kind == OP_CONV_WEIGHT_GRAD)
        return graph->ops[op->forward].in[1];
    return -1;
}

static void lay_rows(struct place *place, int64_t rows, int64_t cols, int64_t pitch)
{
    int64_t elements = rows * pitch;

    place->rows = rows;
    place->cols = cols;
    place->pitch = pitch;
    place->bytes = (size_t)pitch_of(elements) * elem_bytes(place->elem);
    place->bytes = (place->bytes + 15) & ~(size_t)15;
}

void describe(const struct cuda_plan *p, int t, struct place *place)
{
    const struct graph *graph = p->head.graph;
    const struct tensor *tensor = &graph->tensors[t];
    const int64_t *d = tensor->dim;
    int param = param_of(graph, t);
    bool is_weight = param >= 0 || tensor->role == ROLE_EXACT;
    int64_t first = tensor->dims < 2 ? 1 : is_weight ? pitch_of(d[0]) : d[0];

    place->elem = elem_of(p, tensor);
    place->is_set = true;
    if (tensor->role == ROLE_INPUT || tensor->dims == 3)
        lay_rows(place, 1, tensor_elements(tensor), tensor_elements(tensor));
    else if (tensor->dims < 2)
        lay_rows(place, 1, tensor_elements(tensor), pitch_of(tensor_elements(tensor)));
    else if (tensor->dims == 2)
        lay_rows(place, first, d[1], pitch_of(d[1]));
    else if (param >= 0 && is_grouped(graph, param))
        lay_rows(place, d[0] * d[2] * d[3], d[1], d[1]);
    else
        lay_rows(place, first * d[2] * d[3], d[1], pitch_of(d[1]));
}

void shape_on_card(const struct cuda_plan *p, int t, struct shape_of *ret_shape)
{
    const struct tensor *tensor = tensor_of(p, t);
    int64_t pitch = p->places[t].pitch;
    const int64_t *d = tensor->dim;

    *ret_shape = (struct shape_of){.dim = {1, 1, 1, 1}};
    if (tensor->role == ROLE_INPUT || tensor->dims < 2 || tensor->dims == 3) {
        ret_shape->dim[3] = tensor_elements(tensor);
        ret_shape->stride[3] = 1;
    } else if (tensor->dims == 2) {
        *ret_shape = (struct shape_of){{1, 1, d[0], d[1]}, {0, 0, pitch, 1}};
    } else {
        *ret_shape = (struct shape_of){{d[0], d[1], d[2], d[3]},
                                       {d[2] * d[3] * pitch, 1, d[3] * pitch, pitch}};
    }
}

static bool is_planned(const struct tensor *t)
{
    return t->role == ROLE_ACTIVATION || t->role == ROLE_EXACT;
}

struct place *put_over(struct cuda_plan *p, int t, int over, int n)
{
    int shares = over >= 0 && p->last_read[over] <= n ? p->places[over].item : -1;

    if (t < 0)
        return NULL;
    if (p->places[t].is_set) /* a gradient: its place was there before */
        return &p->places[t];
    describe(p, t, &p->places[t]);
    if (is_planned(tensor_of(p, t)))
        p->places[t].item = new_item(p, p->places[t].bytes, n, shares);
    return &p->places[t];
}

struct place *put(struct cuda_plan *p, int t, int n)
{
    return put_over(p, t, -1, n);
}

/* Both names now stand for one memory: it is needed as long as either. */
struct place *put_view(struct cuda_plan *p, int t, int of, int n)
{
    struct place *place = &p->places[t];

    describe(p, t, place);
    place->item = p->places[of].item;
    place->data = p->places[of].data;
    touch_place(p, place, n);
    if (p->last_read[t] > p->last_read[of])
        p->last_read[of] = p->last_read[t];
    p->last_read[t] = p->last_read[of];
    return place;
}

struct place *scratch(struct cuda_plan *p, enum elem elem, int64_t elements, int n)
{
    struct place *place = arena_alloc(p->arena, sizeof *place);

    place->elem = elem;
    place->is_set = true;
    lay_rows(place, 1, elements, pitch_of(elements));
    place->item = new_item(p, place->bytes, n, -1);
    p->more = (struct place **)grown((void *)p->more, p->more_count, sizeof(struct place *));
    p->more[p->more_count++] = place;
    return place;
}

void want_workspace(struct cuda_plan *p, size_t bytes)
{
    if (bytes > p->workspace_bytes)
        p->workspace_bytes = bytes;
}

void want_tuning_workspace(struct cuda_plan *p, size_t bytes)
{
    if (bytes > p->tuning_bytes)
        p->tuning_bytes = bytes;
}

size_t workspace_cap(const struct cuda_plan *p)
{
    const size_t most = (size_t)2 << 30;

    return p->options.workspace_cap ? p->options.workspace_cap : most;
}

void want_tuning(struct cuda_plan *p, tune_fn *fn, void *work)
{
    p->tunings = grown(p->tunings, p->tuning_count, sizeof *p->tunings);
    p->tunings[p->tuning_count++] = (struct tuning){fn, work};
}

struct action *add_action(struct cuda_plan *p, int n, action_fn *run, size_t work_bytes)
{
    struct action *a;

    p->actions = grown(p->actions, p->action_count, sizeof *p->actions);
    a = &p->actions[p->action_count++];
    *a = (struct action){.op = n, .run = run, .label = p->head.graph->ops[n].name};
    if (work_bytes)
        a->work = arena_alloc(p->arena, work_bytes);
    return a;
}

bool pass_adds(const struct cuda_plan *p)
{
    return (p->flags & STEP_FIRST) == 0;
}

bool adds_to(const struct cuda_plan *p, int t)
{
    return tensor_of(p, t)->role == ROLE_GRAD && pass_adds(p);
}

struct grad_work {
    int grad;
    struct place *from, *to;
};

static int
run_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct grad_work *w = a->work;

    launch_grad(w->to->data, w->from->data, w->from->elem,
                (int64_t)(w->to->bytes / sizeof(float)), adds_to(p, w->grad), stream);
    return launched(e, a->label);
}

int add_grad(struct cuda_plan *p, int n, int grad, struct place *from, struct err *e)
{
    struct place *to = put(p, grad, n);
    struct grad_work *w = add_action(p, n, run_grad, sizeof *w)->work;

    if (from->bytes / elem_bytes(from->elem) < to->bytes / elem_bytes(to->elem))
        return err_set(e, ERR_INTERNAL, "\"%s\" does not fit its gradient",
                       tensor_of(p, grad)->name);
    touch_place(p, from, n);
    *w = (struct grad_work){grad, from, to};
    return 0;
}
