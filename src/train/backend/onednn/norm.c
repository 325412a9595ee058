/* norm.c - batch normalisation with what is fused into it.
 *
 * Forward keeps scale and shift of each channel for the gradient: the mask of a relu is then
 * computed again from x, which has to be read anyway, and neither y nor a mask is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/onednn/norm-loops.h"
#include "train/backend/onednn/plan.h"
#include "train/num/par.h"

#include <math.h>
#include <string.h>

enum {
    FAR_BYTES = 2 << 20, /* as large as a core's second-level cache gets */
};

struct bn_work {
    struct blocked form;
    struct bn_attrs attrs;
    enum norm_mask mask;
    struct place *x, *y, *add, *dy, *dy2, *dx, *dadd;
    struct place *gamma, *beta, *mean, *inv_std, *dgamma, *dbeta;
    float *running_mean, *running_var; /* set when memory is laid out */
    int running[2];                    /* tensors */
    struct place *parts;               /* N blocks 2 block: results of planes */
    struct place *line;                /* 2 C forward: scale, shift; 3 C backward: a, b, c */
    struct place *kept;                /* backward: the forward's line */
};

static float *floats(const struct place *place)
{
    return place ? place->data : NULL;
}

/* Address of a plane in a tensor that may not be there. */
static float *plane_at(const struct bn_work *w, const struct place *place, int64_t plane)
{
    return place ? floats(place) + plane * w->form.plane * w->form.block : NULL;
}

/* What a loop is given for plane number `plane` = n * blocks + block. */
static struct norm_plane plane_of(const struct bn_work *w, int64_t plane)
{
    int64_t first = plane % w->form.blocks * w->form.block;
    float *part = floats(w->parts) + plane * 2 * w->form.block;

    return (struct norm_plane){.pixels = w->form.plane,
                               .block = w->form.block,
                               .x = plane_at(w, w->x, plane),
                               .y = plane_at(w, w->y, plane),
                               .add = plane_at(w, w->add, plane),
                               .dy = plane_at(w, w->dy, plane),
                               .dy2 = plane_at(w, w->dy2, plane),
                               .dadd = plane_at(w, w->dadd, plane),
                               .mean = w->mean ? floats(w->mean) + first : NULL,
                               .mask = w->mask,
                               .has_relu = w->attrs.has_relu,
                               .sum = part,
                               .square = part + w->form.block};
}

static int64_t padded(const struct bn_work *w)
{
    return w->form.blocks * w->form.block;
}

/* Both directions look at all of a channel before they write it: a loop over planes, one over
 * channels, and a loop over planes again. */
struct pass {
    void (*look)(const struct bn_work *w, int64_t plane);
    void (*settle)(const struct bn_work *w, int64_t from, int64_t to); /* channels */
    void (*write)(const struct bn_work *w, int64_t plane);
};

struct pass_work {
    const struct bn_work *w;
    const struct pass *pass;
};

static void look_at_planes(void *arg, int64_t from, int64_t to)
{
    const struct pass_work *p = arg;

    for (int64_t i = from; i < to; i++)
        p->pass->look(p->w, i);
}

static void settle_channels(void *arg, int64_t from, int64_t to)
{
    const struct pass_work *p = arg;

    p->pass->settle(p->w, from, to);
}

static void write_planes(void *arg, int64_t from, int64_t to)
{
    const struct pass_work *p = arg;

    for (int64_t i = to - 1; i >= from; i--) /* what was read last is nearest */
        p->pass->write(p->w, i);
}

/* All of it for one block of channels after another: what is read again is in the cache. */
static void do_blocks(void *arg, int64_t from, int64_t to)
{
    const struct pass_work *p = arg;
    const struct blocked *form = &p->w->form;

    for (int64_t b = from; b < to; b++) {
        int64_t last = (b + 1) * form->block;

        for (int64_t n = 0; n < form->n; n++)
            p->pass->look(p->w, n * form->blocks + b);
        p->pass->settle(p->w, b * form->block, last < form->channels ? last : form->channels);
        for (int64_t n = form->n - 1; n >= 0; n--)
            p->pass->write(p->w, n * form->blocks + b);
    }
}

/* The sums of a plane are joined in the order of pictures either way: same bits. */
static void run_pass(const struct bn_work *w, const struct pass *pass)
{
    struct pass_work work = {w, pass};
    int64_t planes = w->form.n * w->form.blocks, threads = par_threads();

    if (w->form.blocks % threads == 0 || w->form.blocks >= 4 * threads) {
        par_for(w->form.blocks, 1, do_blocks, &work);
        return;
    }
    par_for(planes, 1, look_at_planes, &work);
    par_for(w->form.channels, 256, settle_channels, &work);
    par_for(planes, 1, write_planes, &work);
}

static void moments_at(const struct bn_work *w, int64_t i)
{
    struct norm_plane plane = plane_of(w, i);

    loops()->norm_moments(&plane);
}

static void apply_at(const struct bn_work *w, int64_t i)
{
    struct norm_plane plane = plane_of(w, i);
    int64_t first = i % w->form.blocks * w->form.block;

    plane.to = plane_at(w, w->y, i);
    plane.is_far = w->y->bytes > FAR_BYTES;
    plane.scale = floats(w->line) + first;
    plane.shift = floats(w->line) + padded(w) + first;
    loops()->norm_apply(&plane);
}

/* The two results of a channel in picture n. */
static const float *part_at(const struct bn_work *w, int64_t n, int64_t c)
{
    int64_t plane = n * w->form.blocks + c / w->form.block;

    return floats(w->parts) + plane * 2 * w->form.block + c % w->form.block;
}

/* Chan et al.: moments of all pictures from those of each, which have equally many pixels. */
static void join_moments(const struct bn_work *w, int64_t c, double *ret_mean, double *ret_var)
{
    double mean = 0, square = 0;

    for (int64_t n = 0; n < w->form.n; n++)
        mean += (double)*part_at(w, n, c);
    mean /= (double)w->form.n;
    for (int64_t n = 0; n < w->form.n; n++) {
        double away = (double)*part_at(w, n, c) - mean;

        square += (double)part_at(w, n, c)[w->form.block] + (double)w->form.plane * away * away;
    }
    *ret_mean = mean;
    *ret_var = square / (double)(w->form.n * w->form.plane);
}

static void move_running(float *running, double value, float decay)
{
    *running = (float)((double)decay * (double)*running + (1 - (double)decay) * value);
}

static void set_line(const struct bn_work *w, int64_t c, double mean, double inv)
{
    double scale = (double)floats(w->gamma)[c] * inv;

    floats(w->line)[c] = (float)scale;
    floats(w->line)[padded(w) + c] = (float)((double)floats(w->beta)[c] - mean * scale);
}

static void learn_channels(const struct bn_work *w, int64_t from, int64_t to)
{
    double count = (double)(w->form.n * w->form.plane);

    for (int64_t c = from; c < to; c++) {
        double mean, var, inv;

        join_moments(w, c, &mean, &var);
        inv = 1 / sqrt(var + (double)w->attrs.epsilon);
        floats(w->mean)[c] = (float)mean;
        floats(w->inv_std)[c] = (float)inv;
        set_line(w, c, mean, inv);
        move_running(&w->running_mean[c], mean, w->attrs.decay);
        if (w->attrs.is_unbiased && count > 1)
            var *= count / (count - 1);
        move_running(&w->running_var[c], var, w->attrs.decay);
    }
}

static void frozen_channels(const struct bn_work *w)
{
    for (int64_t c = 0; c < w->form.channels; c++)
        set_line(w, c, (double)w->running_mean[c],
                 1 / sqrt((double)w->running_var[c] + (double)w->attrs.epsilon));
}

/* What pads the last block: all zero, so that zeros stay zeros. */
static void clear_tail(const struct bn_work *w, float *line, int lists)
{
    int64_t tail = padded(w) - w->form.channels;

    for (int i = 0; i < lists && tail; i++)
        memset(line + i * padded(w) + w->form.channels, 0, (size_t)tail * sizeof *line);
}

static const struct pass learning = {moments_at, learn_channels, apply_at};

static void apply_of(void *arg, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        apply_at(arg, i);
}

static void run_bn(struct onednn_plan *p, const struct action *a)
{
    struct bn_work *w = a->work;

    w->running_mean = p->store.state[w->running[0]];
    w->running_var = p->store.state[w->running[1]];
    clear_tail(w, floats(w->line), 2);
    if (w->attrs.is_frozen) {
        frozen_channels(w);
        par_for(w->form.n * w->form.blocks, 1, apply_of, w);
    } else {
        clear_tail(w, floats(w->mean), 1);
        run_pass(w, &learning);
    }
}

/* A state's place is the store's: it has no layout to choose. */
int plan_bn(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    dnnl_memory_desc_t list = shim_dense(1, tensor_of(p, op->in[1])->dim);
    struct place *x = touch(p, op->in[0], n), *add = NULL;
    struct bn_work *w;

    if (in_of(op, 5) >= 0 && !(add = in_layout(p, op->in[5], &x->md, n, e)))
        return -1;
    w = add_action(p, n, run_bn, sizeof *w)->work;
    if (shim_blocked(&x->md, &w->form, e) < 0)
        return -1;
    w->attrs = op->attrs.bn;
    w->x = x;
    w->add = add;
    w->gamma = put_param(p, op->in[1], &list);
    w->beta = put_param(p, op->in[2], &list);
    w->running[0] = op->in[3];
    w->running[1] = op->in[4];
    w->y = put(p, op->out[0], &x->md, n);
    w->line = p->workspaces[n] = scratch_floats(p, 2 * padded(w), n);
    if (op->attrs.bn.is_frozen)
        return 0;
    w->mean = put(p, op->out[1], &list, n);
    w->inv_std = put(p, op->out[2], &list, n);
    w->parts = scratch_floats(p, w->form.n * 2 * padded(w), n);
    return 0;
}

static struct norm_plane grad_plane(const struct bn_work *w, int64_t i)
{
    struct norm_plane plane = plane_of(w, i);
    int64_t first = i % w->form.blocks * w->form.block;

    plane.scale = floats(w->kept) + first;
    plane.shift = floats(w->kept) + padded(w) + first;
    return plane;
}

static void sums_at(const struct bn_work *w, int64_t i)
{
    struct norm_plane plane = grad_plane(w, i);

    loops()->norm_sums(&plane);
}

static void grad_at(const struct bn_work *w, int64_t i)
{
    struct norm_plane plane = grad_plane(w, i);
    const float *line = floats(w->line) + i % w->form.blocks * w->form.block;

    if (plane.dadd) {
        plane.dy = plane.dadd;
        plane.mask = NORM_MASK_NONE;
    }
    plane.to = plane_at(w, w->dx, i);
    plane.a = line;
    plane.b = line + padded(w);
    plane.c = line + 2 * padded(w);
    loops()->norm_grad(&plane);
}

/* dx = gamma inv (d - mean(d) - xhat mean(d xhat)), as a line in d and x. */
static void grad_channels(const struct bn_work *w, int64_t from, int64_t to)
{
    double count = (double)(w->form.n * w->form.plane);

    for (int64_t c = from; c < to; c++) {
        double sum = 0, dot = 0, mean = (double)floats(w->mean)[c];
        double inv = (double)floats(w->inv_std)[c], a, b;

        for (int64_t n = 0; n < w->form.n; n++) {
            sum += (double)*part_at(w, n, c);
            dot += (double)part_at(w, n, c)[w->form.block];
        }
        floats(w->dgamma)[c] = (float)(dot * inv);
        floats(w->dbeta)[c] = (float)sum;
        a = (double)floats(w->gamma)[c] * inv;
        b = -a * inv * inv * dot / count;
        floats(w->line)[c] = (float)a;
        floats(w->line)[padded(w) + c] = (float)b;
        floats(w->line)[2 * padded(w) + c] = (float)(-a * sum / count - b * mean);
    }
}

static const struct pass differentiating = {sums_at, grad_channels, grad_at};

static void run_bn_grad(struct onednn_plan *p, const struct action *a)
{
    struct bn_work *w = a->work;

    (void)p;
    clear_tail(w, floats(w->line), 3);
    run_pass(w, &differentiating);
}

/* The gradient that comes in: one tensor, or the two of a SUM that is done here. */
static int
take_dy(struct onednn_plan *p, int n, struct bn_work *w, int ret_over[2], struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    int sum = p->joined[n];
    int dy = sum < 0 ? op->in[0] : p->head.graph->ops[sum].in[0];
    int dy2 = sum < 0 ? -1 : p->head.graph->ops[sum].in[1];

    w->dy = in_layout(p, dy, &w->x->md, n, e);
    if (!w->dy || (dy2 >= 0 && !(w->dy2 = in_layout(p, dy2, &w->x->md, n, e))))
        return -1;
    ret_over[0] = w->dy == &p->places[dy] ? dy : -1;
    ret_over[1] = dy2 >= 0 && w->dy2 == &p->places[dy2] ? dy2 : -1;
    return 0;
}

static enum norm_mask mask_of(const struct op *op, const struct op *forward)
{
    if (!op->attrs.bn.has_relu)
        return NORM_MASK_NONE;
    return in_of(forward, 5) >= 0 ? NORM_MASK_Y : NORM_MASK_AGAIN;
}

int plan_bn_grad(struct onednn_plan *p, int n, struct err *e)
{
    const struct op *op = &p->head.graph->ops[n];
    const struct op *forward = &p->head.graph->ops[op->forward];
    dnnl_memory_desc_t list = shim_dense(1, tensor_of(p, op->out[1])->dim);
    struct bn_work w = {.attrs = op->attrs.bn, .mask = mask_of(op, forward)};
    int over[2];

    w.x = touch(p, op->in[1], n);
    if (shim_blocked(&w.x->md, &w.form, e) < 0 || take_dy(p, n, &w, over, e) < 0)
        return -1;
    if (w.mask == NORM_MASK_Y)
        w.y = touch(p, op->in[5], n);
    w.gamma = &p->places[op->in[2]];
    w.mean = touch(p, op->in[3], n);
    w.inv_std = touch(p, op->in[4], n);
    w.kept = p->workspaces[op->forward];
    touch_place(p, w.kept, n);
    if (out_of(op, 3) >= 0) {
        w.dadd = put_over(p, op->out[3], &w.x->md, over[0], n);
        w.dx = put_over(p, op->out[0], &w.x->md, over[1], n);
    } else {
        w.dx = put_over(p, op->out[0], &w.x->md, over[0], n);
    }
    w.dgamma = put(p, op->out[1], &list, n);
    w.dbeta = put(p, op->out[2], &list, n);
    w.parts = scratch_floats(p, w.form.n * 2 * padded(&w), n);
    w.line = scratch_floats(p, 3 * padded(&w), n);
    *(struct bn_work *)add_action(p, n, run_bn_grad, sizeof w)->work = w;
    return 0;
}
