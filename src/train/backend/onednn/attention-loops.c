/* attention-loops.c - see attention-loops.h.
 *
 * The products are of matrices of a few hundred rows and E columns: small enough that a library
 * spends much of its time on calling and packing.  Here the head is packed once, in the two
 * forms that the products need, and all five of them are one loop over tiles of registers:
 * TILES_HIGH rows by TILES_WIDE vectors, as the instruction set has room (CMakeLists.txt).
 *
 * Letters: S scores, P their softmax, F what dropout multiplies it with; capitals K', V' are
 * transposed.  S = (scale Q) K', y = (P F) V; backward D = sum of dy y over E,
 * dP = F (dy V'), dS = P (dP - D), dQ = scale dS K, dK = dS' (scale Q), dV = (P F)' dy.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/attention-loops.h"

#include "train/backend/onednn/vec.h"

#include <math.h>
#include <string.h>

/* --- products ------------------------------------------------------------------------------
 */

/* C (rows, columns) = A (rows, depth) B (depth, columns), or added to it.  A may lie either way
 * round.  Rows and columns are computed up to the next multiple: the room must be there. */
struct product {
    const float *a;
    int64_t a_row, a_step; /* from row to row, and along the depth */
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    int64_t rows, columns, depth;
    bool adds;
};

static void tile(const struct product *p, int64_t i, int64_t j)
{
    vec sum[TILES_HIGH][TILES_WIDE];
    const float *a = p->a + i * p->a_row, *b = p->b + j;
    float *c = p->c + i * p->c_row + j;

    UNROLL
    for (int r = 0; r < TILES_HIGH; r++) {
        UNROLL
        for (int v = 0; v < TILES_WIDE; v++)
            sum[r][v] = p->adds ? load(c + r * p->c_row + v * WIDE) : (vec){0};
    }
    for (int64_t k = 0; k < p->depth; k++, a += p->a_step, b += p->b_row) {
        UNROLL
        for (int r = 0; r < TILES_HIGH; r++) {
            UNROLL
            for (int v = 0; v < TILES_WIDE; v++)
                sum[r][v] += a[r * p->a_row] * load(b + v * WIDE);
        }
    }
    UNROLL
    for (int r = 0; r < TILES_HIGH; r++) {
        UNROLL
        for (int v = 0; v < TILES_WIDE; v++)
            store(c + r * p->c_row + v * WIDE, sum[r][v]);
    }
}

/* A strip of B stays in the cache while the rows go by. */
static void multiply(const struct product *p)
{
    for (int64_t j = 0; j < p->columns; j += (int64_t)TILES_WIDE * WIDE)
        for (int64_t i = 0; i < p->rows; i += TILES_HIGH)
            tile(p, i, j);
}

/* --- packing -------------------------------------------------------------------------------
 */

struct sizes {
    int64_t t, e, keys;     /* keys: behind the last that can be looked at */
    int64_t t_room, e_room; /* in whole tiles */
};

static struct sizes sizes_of(const struct attention_head *h)
{
    struct sizes s = {.t = h->t,
                      .e = h->e,
                      .t_room = attention_whole(h->t, ATTENTION_COLUMNS),
                      .e_room = attention_whole(h->e, ATTENTION_COLUMNS)};

    for (int64_t j = 0; j < h->t; j++)
        if (h->mask[j])
            s.keys = j + 1;
    return s;
}

/* Rows of E, close together, times `scale`; zeros behind them. */
static void pack(float *to,
                 const float *from,
                 int64_t from_row,
                 int64_t rows,
                 const struct sizes *s,
                 float scale)
{
    for (int64_t i = 0; i < rows; i++, to += s->e_room, from += from_row) {
        for (int64_t x = 0; x < s->e; x++)
            to[x] = from[x] * scale;
        for (int64_t x = s->e; x < s->e_room; x++)
            to[x] = 0;
    }
}

/* E rows of T; columns behind the keys are zero. */
static void pack_across(float *to, const float *from, int64_t from_row, const struct sizes *s)
{
    for (int64_t j = 0; j < s->keys; j += WIDE) /* a few columns: both sides stay cached */
        for (int64_t x = 0; x < s->e; x++)
            for (int64_t i = j; i < j + WIDE && i < s->keys; i++)
                to[x * s->t_room + i] = from[i * from_row + x];
    for (int64_t x = 0; x < s->e; x++)
        for (int64_t i = s->keys; i < s->t_room; i++)
            to[x * s->t_room + i] = 0;
}

static void unpack(float *to,
                   int64_t to_row,
                   const float *from,
                   int64_t rows,
                   const struct sizes *s,
                   float scale)
{
    for (int64_t i = 0; i < rows; i++, to += to_row, from += s->e_room)
        for (int64_t x = 0; x < s->e; x++)
            to[x] = from[x] * scale;
}

static void clear(float *to, int64_t to_row, int64_t from, int64_t rows, int64_t e)
{
    for (int64_t i = from; i < rows; i++)
        memset(to + i * to_row, 0, (size_t)e * sizeof *to);
}

/* What is added to scores: 0, or minus infinity where there is nothing to look at. */
static void pack_mask(float *to, const struct attention_head *h, const struct sizes *s)
{
    for (int64_t j = 0; j < s->t_room; j++)
        to[j] = j < h->t && h->mask[j] ? 0 : -INFINITY;
}

/* --- softmax -------------------------------------------------------------------------------
 */

/* A row of scores becomes its softmax; returns the log of the sum. */
static float soften(float *s, const float *mask, int64_t count)
{
    vec most = splat(-INFINITY), sum = {0};
    float top, all;

    for (int64_t j = 0; j < count; j += WIDE) {
        vec v = load(s + j) + load(mask + j);

        store(s + j, v);
        most = larger(v, most);
    }
    top = largest_lane(most);
    for (int64_t j = 0; j < count; j += WIDE) {
        vec v = vec_exp(load(s + j) - splat(top));

        store(s + j, v);
        sum += v;
    }
    all = sum_of_lanes(sum);
    for (int64_t j = 0; j < count; j += WIDE)
        store(s + j, load(s + j) * splat(1 / all));
    return top + logf(all);
}

static void times(float *to, const float *by, int64_t count)
{
    for (int64_t j = 0; j < count; j += WIDE)
        store(to + j, load(to + j) * load(by + j));
}

/* Scores become P F, and dy V' becomes dS; keep is NULL without dropout. */
static void soften_grad(float *s,
                        float *dp,
                        const float *mask,
                        const float *keep,
                        float saved,
                        float d,
                        int64_t count)
{
    for (int64_t j = 0; j < count; j += WIDE) {
        vec p = vec_exp(load(s + j) + load(mask + j) - splat(saved));
        vec f = keep ? load(keep + j) : splat(1);

        store(dp + j, p * (load(dp + j) * f - splat(d)));
        store(s + j, p * f);
    }
}

static void draw(const struct attention_head *h, const struct sizes *s, int64_t i, float *to)
{
    FOR_ISA(loop_keep)(&h->keep, h->first + (uint64_t)(i * h->t), s->keys, to);
    for (int64_t j = s->keys; j < s->t_room && j % WIDE; j++)
        to[j] = 0;
}

/* --- a head --------------------------------------------------------------------------------
 */

/* Pieces of the room. */
struct room {
    float *at;
};

static float *piece(struct room *room, int64_t floats)
{
    float *at = room->at;

    room->at += floats;
    return at;
}

void FOR_ISA(attention_forward)(const struct attention_head *h, float *room)
{
    struct room at = {room};
    struct sizes s = sizes_of(h);
    float *k = piece(&at, s.e_room * s.t_room), *v = piece(&at, s.e_room * s.t_room);
    float *q = piece(&at, ATTENTION_ROWS * s.e_room),
          *y = piece(&at, ATTENTION_ROWS * s.e_room);
    float *scores = piece(&at, ATTENTION_ROWS * s.t_room);
    float *mask = piece(&at, s.t_room), *keep = piece(&at, s.t_room);
    int64_t wide = attention_whole(s.keys, WIDE);

    pack_across(k, h->k, h->qkv_row, &s);
    pack(v, h->v, h->qkv_row, s.keys, &s, 1);
    pack_mask(mask, h, &s);
    for (int64_t i = 0; i < h->t; i += ATTENTION_ROWS) {
        int64_t rows = h->t - i < ATTENTION_ROWS ? h->t - i : ATTENTION_ROWS;

        pack(q, h->q + i * h->qkv_row, h->qkv_row, rows, &s, h->scale);
        multiply(&(struct product){q, s.e_room, 1, k, s.t_room, scores, s.t_room, rows, s.keys,
                                   s.e, false});
        for (int64_t r = 0; r < rows; r++) {
            h->saved[i + r] = s.keys ? soften(scores + r * s.t_room, mask, wide) : 0;
            if (!h->has_dropout)
                continue;
            draw(h, &s, i + r, keep);
            times(scores + r * s.t_room, keep, wide);
        }
        multiply(&(struct product){scores, s.t_room, 1, v, s.e_room, y, s.e_room, rows, s.e,
                                   s.keys, false});
        unpack(h->y + i * h->y_row, h->y_row, y, rows, &s, 1);
    }
}

struct backward {
    const struct attention_head *h;
    struct sizes s;
    float *k_across, *v_across, *k; /* the head, packed */
    float *dk, *dv;
    float *q, *dy, *dq; /* of the rows at hand */
    float *scores, *dp;
    float *mask, *keep;
};

static float dot(const float *a, const float *b, int64_t count)
{
    vec sum = {0};
    float rest = 0;
    int64_t x = 0;

    for (; x + WIDE <= count; x += WIDE)
        sum += load(a + x) * load(b + x);
    for (; x < count; x++)
        rest += a[x] * b[x];
    return sum_of_lanes(sum) + rest;
}

static void rows_softmax(const struct backward *b, int64_t i, int64_t rows)
{
    const struct attention_head *h = b->h;

    for (int64_t r = 0; r < rows; r++) {
        float d = dot(h->dy + (i + r) * h->y_row, h->y + (i + r) * h->y_row, h->e);

        if (h->has_dropout)
            draw(h, &b->s, i + r, b->keep);
        soften_grad(b->scores + r * b->s.t_room, b->dp + r * b->s.t_room, b->mask,
                    h->has_dropout ? b->keep : NULL, h->saved[i + r], d,
                    attention_whole(b->s.keys, WIDE));
    }
}

static void rows_backward(const struct backward *b, int64_t i, int64_t rows)
{
    const struct attention_head *h = b->h;
    const struct sizes *s = &b->s;
    int64_t t = s->t_room, e = s->e_room;
    bool adds = i > 0;

    pack(b->q, h->q + i * h->qkv_row, h->qkv_row, rows, s, h->scale);
    pack(b->dy, h->dy + i * h->y_row, h->y_row, rows, s, 1);
    multiply(&(struct product){b->q, e, 1, b->k_across, t, b->scores, t, rows, s->keys, s->e,
                               false});
    multiply(
        &(struct product){b->dy, e, 1, b->v_across, t, b->dp, t, rows, s->keys, s->e, false});
    rows_softmax(b, i, rows);
    multiply(&(struct product){b->dp, t, 1, b->k, e, b->dq, e, rows, s->e, s->keys, false});
    multiply(&(struct product){b->dp, 1, t, b->q, e, b->dk, e, s->keys, s->e, rows, adds});
    multiply(&(struct product){b->scores, 1, t, b->dy, e, b->dv, e, s->keys, s->e, rows, adds});
    unpack(h->dq + i * h->qkv_row, h->qkv_row, b->dq, rows, s, h->scale);
}

void FOR_ISA(attention_backward)(const struct attention_head *h, float *room)
{
    struct room at = {room};
    struct sizes s = sizes_of(h);
    int64_t head = s.t_room * s.e_room;
    struct backward b = {.h = h,
                         .s = s,
                         .k_across = piece(&at, head),
                         .v_across = piece(&at, head),
                         .k = piece(&at, head),
                         .dk = piece(&at, head),
                         .dv = piece(&at, head),
                         .q = piece(&at, ATTENTION_ROWS * s.e_room),
                         .dy = piece(&at, ATTENTION_ROWS * s.e_room),
                         .dq = piece(&at, ATTENTION_ROWS * s.e_room),
                         .scores = piece(&at, ATTENTION_ROWS * s.t_room),
                         .dp = piece(&at, ATTENTION_ROWS * s.t_room),
                         .mask = piece(&at, s.t_room),
                         .keep = piece(&at, s.t_room)};

    pack_across(b.k_across, h->k, h->qkv_row, &s);
    pack_across(b.v_across, h->v, h->qkv_row, &s);
    pack(b.k, h->k, h->qkv_row, s.keys, &s, 1);
    pack_mask(b.mask, h, &s);
    for (int64_t i = 0; i < h->t; i += ATTENTION_ROWS)
        rows_backward(&b, i, h->t - i < ATTENTION_ROWS ? h->t - i : ATTENTION_ROWS);
    unpack(h->dk, h->qkv_row, b.dk, s.keys, &s, 1);
    unpack(h->dv, h->qkv_row, b.dv, s.keys, &s, 1);
    clear(h->dk, h->qkv_row, s.keys, h->t, h->e);
    clear(h->dv, h->qkv_row, s.keys, h->t, h->e);
}
