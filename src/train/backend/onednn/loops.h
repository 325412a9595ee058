/* loops.h - loops over memory of rows and sequences, attention, and batch normalisation,
 * compiled once for each instruction set.
 *
 * The files behind it (loops.c, attention-loops.c, norm-loops.c) are compiled as a whole for
 * each (CMakeLists.txt), because compilers cut vectors to the machine's size before they
 * inline; what they export has FOR_ISA() around its name.  loops() gives the best table for
 * this machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_LOOPS_H
#define TRAIN_BACKEND_ONEDNN_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What dropout multiplies elements with: 0, or `scale` where the element's half of a word
 * (rng.h) is at least the limit. */
struct keep {
    uint64_t key, hi; /* seed ^ stream; pass and step */
    uint32_t limit;
    float scale;
};

/* One row of layer normalisation.  add: or NULL; then sum is written too, where x lies if one
 * likes. */
struct norm_row {
    int64_t d;
    float epsilon;
    const float *x, *add, *gamma, *beta;
    float *sum, *y, *mean, *inv_std;
};

struct norm_row_grad {
    int64_t d;
    const float *dy, *x, *gamma;
    float mean, inv_std;
    float *dx, *dgamma, *dbeta; /* the last two are added to; dx may lie where dy lies */
};

struct attention_head; /* attention-loops.h */
struct norm_plane;     /* norm-loops.h */

struct loops {
    void (*gelu)(float *to, const float *x, int64_t count);
    void (*gelu_grad)(float *to, const float *dy, const float *x, int64_t count);
    /* to += from */
    void (*add)(float *to, const float *from, int64_t count);
    /* to = a + b + c */
    void (*add_three)(float *to, const float *a, const float *b, const float *c, int64_t count);
    /* The factors of elements first..first+count-1. */
    void (*keep)(const struct keep *keep, uint64_t first, int64_t count, float *to);
    /* to = x * factor + add (or none) */
    void (*scale_add)(
        float *to, const float *x, const float *factor, const float *add, int64_t count);
    void (*norm_row)(const struct norm_row *r);
    void (*norm_row_grad)(const struct norm_row_grad *r);
    /* Softmax over a row, in parts. */
    float (*largest)(const float *x, int64_t count);
    double (*sum_exp)(const float *x, float minus, int64_t count); /* of e^(x - minus) */
    /* to = e^(x - minus) times */
    void (*exp)(float *to, const float *x, float minus, float times, int64_t count);
    /* How many are not at most `than`; a NaN is not. */
    int64_t (*count_above)(const float *x, float than, int64_t count);
    void (*attention_forward)(const struct attention_head *h, float *room);
    void (*attention_backward)(const struct attention_head *h, float *room);
    void (*norm_moments)(const struct norm_plane *p);
    void (*norm_apply)(const struct norm_plane *p);
    void (*norm_sums)(const struct norm_plane *p);
    void (*norm_grad)(const struct norm_plane *p);
};

/* For this machine. */
const struct loops *loops(void);

extern const struct loops loops_v4, loops_v3, loops_any; /* x86-64-v4 and -v3; every machine */

#define ISA_JOIN(name, isa)  name##_##isa
#define ISA_NAMED(name, isa) ISA_JOIN(name, isa)
#define FOR_ISA(name)        ISA_NAMED(name, LOOPS_ISA)

#endif
