/* norm-loops.h - batch normalisation over one plane: H W pixels of one block of channels.
 *
 * The loops run over memory once for statistics and once to apply them.  A plane fits into the
 * second-level cache, so its mean and its sum of squares about that mean cost one read from
 * further away; planes are put together afterwards (Chan et al.), which is also the accurate
 * way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_NORM_LOOPS_H
#define TRAIN_BACKEND_ONEDNN_NORM_LOOPS_H

#include "train/backend/onednn/loops.h"

#include <stdbool.h>
#include <stdint.h>

enum norm_mask {
    NORM_MASK_NONE,
    NORM_MASK_AGAIN, /* relu of scale x + shift: computed again */
    NORM_MASK_Y,     /* y > 0 */
};

struct norm_plane {
    int64_t pixels, block;
    const float *x, *y, *add;   /* y: of NORM_MASK_Y */
    const float *dy, *dy2;      /* dy2: to be added to dy; or NULL */
    float *to;                  /* y forward; dx backward */
    float *dadd;                /* the masked gradient, or NULL */
    const float *scale, *shift; /* by channel of the block: y = scale x + shift */
    const float *mean;
    const float *a, *b, *c; /* dx = a d + b x + c */
    enum norm_mask mask;
    bool has_relu;
    bool is_far;         /* `to` would not stay in the caches: norm_apply writes past them */
    float *sum, *square; /* results by channel */
};

#ifdef LOOPS_ISA
/* Mean, and sum of squares about it. */
void FOR_ISA(norm_moments)(const struct norm_plane *p);
/* to = scale x + shift (+ add), relu when asked. */
void FOR_ISA(norm_apply)(const struct norm_plane *p);
/* sum of d, and of d (x - mean), d = (dy + dy2) masked; dadd gets d. */
void FOR_ISA(norm_sums)(const struct norm_plane *p);
/* to = a d + b x + c; d = dy masked (dadd's content where there is one: mask NONE). */
void FOR_ISA(norm_grad)(const struct norm_plane *p);
#endif

#endif
