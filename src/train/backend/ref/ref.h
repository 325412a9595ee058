/* ref.h - the oracle: every op in plain C, as its definition reads.
 *
 * Dense buffers in logical order, one loop nest per op (ref/conv.c, bn.c, pool.c, dense.c,
 * shape.c, loss.c, transformer.c), sums in double, no fusion of its own (it does fused kinds as
 * the definition says).  PRECISION_BF16 and PRECISION_FP16 round what would be stored to 16
 * bits and compute in float: the oracle of mixed precision.  Slow, and meant to be read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_REF_REF_H
#define TRAIN_BACKEND_REF_REF_H

#include <stdint.h>

struct backend_ops;
struct graph;
struct op;

extern const struct backend_ops backend_ref;

struct ref_step { /* what an op may need to know of the step it is in */
    uint64_t seed, number;
    int pass;
    float loss_scale;
};

/* One op over dense fp32 (or int32, u8) buffers, buffer[t] for tensor t: what op tests call.
 * Control ops are not among them. */
void ref_op(const struct graph *graph,
            const struct op *op,
            const struct ref_step *step,
            void *const *buffer);

#endif
