/* update.c - the arithmetic of a step on plain arrays.
 *
 * An array is cut into at most MOST_BLOCKS blocks, by its length alone; threads take blocks,
 * and what is summed is summed by block and then over the blocks in order.  So the results do
 * not even depend on the number of threads.  Within a block the work goes tile by tile: the
 * sum of squares reads what the update reads again, from the nearest cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/num/clones.h"
#include "train/num/par.h"
#include "train/optim/optim.h"

#include <math.h>

enum {
    MOST_BLOCKS = 256,
    LEAST_BLOCK = 16384, /* floats: some 10 us of work, against 1 us to hand it over */
    TILE = 2048,         /* floats: five arrays of it are 40 KiB */
    LANES = 8,
};

/* Numbers that are the same for all elements of a parameter. */
struct factors {
    float scale; /* of the gradient */
    float decay; /* 0 for parameters that do not decay */
    float clip;  /* INFINITY = none */
    float rate;  /* learning rate, with all that multiplies it */
    float momentum, rho, beta1, beta2, epsilon;
};

struct work;
typedef void update_fn(const struct work *work, size_t from, size_t to);

struct work {
    const struct optim_param *param;
    struct factors f;
    update_fn *update;   /* NULL = none */
    const float *values; /* whose squares are summed; NULL = nobody's */
    size_t block;
    double sums[MOST_BLOCKS];
};

/* In lanes, so that it becomes vectors; the order is fixed all the same. */
CLONES static double square_sum(const float *restrict values, size_t count)
{
    double lane[LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + LANES <= count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += (double)values[i + j] * (double)values[i + j];
    for (; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

static inline float clipped(float g, float most)
{
    return g > most ? most : g < -most ? -most : g;
}

static inline float gradient(const struct factors *f, float g, float w)
{
    return clipped(f->scale * g + f->decay * w, f->clip);
}

CLONES static void update_sgd(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++)
        w[i] -= f.rate * gradient(&f, g[i], w[i]);
}

CLONES static void update_momentum(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    float *restrict m = work->param->slot[0];
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++) {
        float gi = gradient(&f, g[i], w[i]);

        m[i] = f.momentum * m[i] + gi;
        w[i] -= f.rate * m[i];
    }
}

CLONES static void update_nesterov(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    float *restrict m = work->param->slot[0];
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++) {
        float gi = gradient(&f, g[i], w[i]);

        m[i] = f.momentum * m[i] + gi;
        w[i] -= f.rate * (gi + f.momentum * m[i]);
    }
}

CLONES static void update_rmsprop(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    float *restrict s = work->param->slot[0];
    float *restrict m = work->param->slot[1];
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++) {
        float gi = gradient(&f, g[i], w[i]);

        s[i] = f.rho * s[i] + (1 - f.rho) * gi * gi;
        m[i] = f.momentum * m[i] + f.rate * gi / sqrtf(s[i] + f.epsilon);
        w[i] -= m[i];
    }
}

CLONES static void update_adam(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    float *restrict m = work->param->slot[0];
    float *restrict v = work->param->slot[1];
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++) {
        float gi = gradient(&f, g[i], w[i]);

        m[i] = f.beta1 * m[i] + (1 - f.beta1) * gi;
        v[i] = f.beta2 * v[i] + (1 - f.beta2) * gi * gi;
        w[i] -= f.rate * m[i] / (sqrtf(v[i]) + f.epsilon);
    }
}

/* The first pass of the two that decay beside the gradient: m and v alone. */
CLONES static void update_moments(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict m = work->param->slot[0];
    float *restrict v = work->param->slot[1];
    const float *restrict g = work->param->grad;

    for (size_t i = from; i < to; i++) {
        float gi = clipped(f.scale * g[i], f.clip);

        m[i] = f.beta1 * m[i] + (1 - f.beta1) * gi;
        v[i] = f.beta2 * v[i] + (1 - f.beta2) * gi * gi;
    }
}

/* The second: w moves against the direction.  f.momentum has the bias correction. */
static inline float direction(const struct factors *f, float m, float v, float w)
{
    return f->momentum * m / (sqrtf(v) + f->epsilon) + f->decay * w;
}

CLONES static void update_direction(const struct work *work, size_t from, size_t to)
{
    const struct factors f = work->f;
    float *restrict w = work->param->value;
    const float *restrict m = work->param->slot[0];
    const float *restrict v = work->param->slot[1];

    for (size_t i = from; i < to; i++)
        w[i] -= f.rate * direction(&f, m[i], v[i], w[i]);
}

static size_t block_of(size_t count)
{
    size_t block = (count + MOST_BLOCKS - 1) / MOST_BLOCKS;

    if (block < LEAST_BLOCK)
        block = LEAST_BLOCK;
    return (block + TILE - 1) / TILE * TILE;
}

static void do_block(struct work *work, size_t from, size_t to, double *ret_sum)
{
    double sum = 0;

    for (size_t at = from; at < to; at += TILE) {
        size_t end = at + TILE < to ? at + TILE : to;

        if (work->values)
            sum += square_sum(work->values + at, end - at);
        if (work->update)
            work->update(work, at, end);
    }
    *ret_sum = sum;
}

static void do_blocks(void *arg, int64_t from, int64_t to)
{
    struct work *work = arg;

    for (int64_t b = from; b < to; b++) {
        size_t begin = (size_t)b * work->block, end = begin + work->block;

        if (end > work->param->count)
            end = work->param->count;
        do_block(work, begin, end, &work->sums[b]);
    }
}

/* Run update and sum over all blocks; returns the sum. */
static double run(struct work *work)
{
    size_t count = work->param->count;
    int64_t blocks;
    double sum = 0;

    work->block = block_of(count);
    blocks = (int64_t)((count + work->block - 1) / work->block);
    par_for(blocks, 1, do_blocks, work);
    for (int64_t b = 0; b < blocks; b++)
        sum += work->sums[b];
    return sum;
}

double optim_square_sum(const float *values, size_t count, bool *ret_is_finite)
{
    struct optim_param param = {.count = count};
    struct work work = {.param = &param, .values = values};
    double sum = run(&work);

    /* The square of the largest float is far below the largest double. */
    if (ret_is_finite)
        *ret_is_finite = isfinite(sum);
    return sum;
}

/* sum of squares of the directions: a reading pass of its own, for lamb */
static double direction_square_sum(const struct work *work)
{
    const struct optim_param *p = work->param;
    float tile[TILE];
    double sum = 0;

    for (size_t at = 0; at < p->count; at += TILE) {
        size_t len = p->count - at < TILE ? p->count - at : TILE;

        for (size_t i = 0; i < len; i++)
            tile[i] =
                direction(&work->f, p->slot[0][at + i], p->slot[1][at + i], p->value[at + i]);
        sum += square_sum(tile, len);
    }
    return sum;
}

static double lars_trust(const struct optim_spec *spec, const struct work *work, double w2)
{
    double w = sqrt(w2);
    double g = sqrt(optim_square_sum(work->param->grad, work->param->count, NULL)) *
               fabs((double)work->f.scale);

    if (w <= 0 || g <= 0)
        return 1;
    return (double)spec->trust * w / (g + (double)work->f.decay * w + (double)spec->epsilon);
}

static double bias_correction(const struct optim_spec *spec, int64_t number)
{
    if (spec->is_uncorrected)
        return 1;
    return sqrt(1 - pow((double)spec->beta2, (double)number)) /
           (1 - pow((double)spec->beta1, (double)number));
}

static double lamb_trust(const struct optim_spec *spec, const struct work *work, double w2)
{
    double d2 = direction_square_sum(work), trust;

    if (w2 <= 0 || d2 <= 0)
        return 1;
    trust = sqrt(w2 / d2);
    if (spec->trust_least > 0 && trust < (double)spec->trust_least)
        return (double)spec->trust_least;
    if (spec->trust_most > 0 && trust > (double)spec->trust_most)
        return (double)spec->trust_most;
    return trust;
}

/* adamw and lamb: moments, then the direction with the decay in it. */
static void apply_direction(const struct optim_spec *spec,
                            struct work *work,
                            const struct optim_step *step,
                            double w2)
{
    double trust = 1;

    work->values = NULL;
    work->update = update_moments;
    run(work);
    work->f.momentum = (float)bias_correction(spec, step->number);
    if (spec->kind == OPTIM_LAMB && work->param->decays)
        trust = lamb_trust(spec, work, w2);
    work->f.rate = (float)((double)step->lr * trust);
    work->update = update_direction;
    run(work);
}

static update_fn *update_of(const struct optim_spec *spec)
{
    switch (spec->kind) {
    case OPTIM_SGD:
        return update_sgd;
    case OPTIM_RMSPROP:
        return update_rmsprop;
    case OPTIM_ADAM:
        return update_adam;
    case OPTIM_MOMENTUM:
    case OPTIM_LARS:
        return spec->with_nesterov ? update_nesterov : update_momentum;
    case OPTIM_ADAMW:
    case OPTIM_LAMB:
    case OPTIM_KINDS:
        break;
    }
    return NULL;
}

static struct factors factors_of(const struct optim_spec *spec,
                                 const struct optim_param *param,
                                 const struct optim_step *step)
{
    struct factors f = {
        .scale = step->grad_scale * step->clip_scale,
        .decay = param->decays ? spec->weight_decay : 0,
        .clip = spec->clip_value > 0 ? spec->clip_value : INFINITY,
        .rate = step->lr,
        .momentum = spec->momentum,
        .rho = spec->rmsprop_decay,
        .beta1 = spec->beta1,
        .beta2 = spec->beta2,
        .epsilon = spec->epsilon,
    };

    if (spec->kind == OPTIM_ADAM)
        f.rate = (float)((double)step->lr * bias_correction(spec, step->number));
    return f;
}

double optim_apply(const struct optim_spec *spec,
                   const struct optim_param *param,
                   const struct optim_step *step)
{
    struct work work = {
        .param = param,
        .f = factors_of(spec, param, step),
        .update = update_of(spec),
        .values = param->decays ? param->value : NULL,
    };
    double w2;

    if (spec->kind == OPTIM_LARS && param->decays) { /* needs |w| before anything moves */
        w2 = optim_square_sum(param->value, param->count, NULL);
        work.f.rate = (float)((double)step->lr * lars_trust(spec, &work, w2));
        work.values = NULL;
        run(&work);
    } else if (!work.update) {
        w2 = param->decays ? optim_square_sum(param->value, param->count, NULL) : 0;
        apply_direction(spec, &work, step, w2);
    } else {
        w2 = run(&work);
    }
    return param->decays ? w2 / 2 : 0;
}
