/* sequence-kernels.h - embedding, layer norm, rows picked out, sums of columns, GELU.
 *
 * All matrices have rows of `pitch` elements, a multiple of 8, padded with zeros.  Sums that go
 * over rows are made in two stages and in a fixed order: parts by runs of rows, then their sum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_SEQUENCE_KERNELS_H
#define TRAIN_BACKEND_CUDA_SEQUENCE_KERNELS_H

#include "train/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEQ_MOST_WIDTH = 2048, /* columns of a layer norm */
};

/* Element i is kept, times `factor`, as rng.h says; limit 0: all are. */
struct seq_dropout {
    const struct step_facts *facts;
    uint64_t stream;
    uint32_t limit;
    float factor;
};

/* y = gelu(x) by erf, or tanh(x); may be in place.  `count` is a multiple of 8. */
void seq_act(
    cudaStream_t stream, enum elem elem, bool is_gelu, const void *x, void *y, int64_t count);

/* In how many runs the rows of a sum over columns are cut. */
int seq_splits(int64_t rows, int64_t pitch, int multiprocessors);
/* parts (splits, pitch): sums of runs of rows of x. */
void seq_column_parts(cudaStream_t stream,
                      enum elem elem,
                      const void *x,
                      int64_t rows,
                      int64_t pitch,
                      float *parts,
                      int splits);
/* dx = dy * gelu'(pre), may be in place of dy; parts as above, of dx. */
void seq_gelu_grad(cudaStream_t stream,
                   enum elem elem,
                   const void *dy,
                   const void *pre,
                   void *dx,
                   int64_t rows,
                   int64_t pitch,
                   float *parts,
                   int splits);

/* to[i] (pitch) = sum over splits of parts[i * splits + split], or added to what is there. */
struct seq_sums {
    const float *parts;
    int splits;
    int64_t pitch;
    float *to[3];
    bool adds[3];
    int count;
};
void seq_column_sums(cudaStream_t stream, const struct seq_sums *sums);

struct seq_norm {
    int64_t rows, cols, pitch;
    float epsilon;
    const void *x;
    const void *add; /* or NULL */
    void *sum;       /* dropout(x) + add; NULL when it is x itself */
    const float *gamma, *beta;
    void *y;
    float *mean, *inv_std;
    struct seq_dropout dropout; /* of x, before it is added */
};
void seq_norm(cudaStream_t stream, enum elem elem, const struct seq_norm *args);

struct seq_norm_grad {
    int64_t rows, cols, pitch;
    const void *dy, *x;
    const float *gamma, *mean, *inv_std;
    void *dx;
    void *dropped;              /* dropout's gradient of dx, or NULL */
    struct seq_dropout dropout; /* of `dropped` */
    float *parts;               /* (3, splits, pitch): dgamma, dbeta, columns of `dropped` */
    int splits;
};
int seq_norm_splits(enum elem elem, int64_t rows, int64_t pitch, int multiprocessors);
void seq_norm_grad(cudaStream_t stream, enum elem elem, const struct seq_norm_grad *args);

struct seq_embed {
    int64_t rows, length, pitch; /* rows = N * T, length = T */
    const int32_t *ids, *types;
    const void *word, *position, *type;
    void *y;
};
void seq_embed(cudaStream_t stream, enum elem elem, const struct seq_embed *args);

/* Row r of `to` = sum, in order, of the rows i of x whose ids[i] is r; `so_far`'s row is added
 * first where it is given, then what is there when `adds`. */
struct seq_scatter {
    const void *x;
    const int32_t *ids;
    int64_t count, pitch; /* rows and pitch of x */
    int64_t to_rows;
    const float *so_far;
    void *to;
    enum elem to_elem; /* fp32 or x's */
    bool adds;
};
void seq_scatter(cudaStream_t stream, enum elem elem, const struct seq_scatter *args);

/* dposition (to_rows, pitch) and, in parts (2, length, pitch), what dtype is the sum of. */
struct seq_position {
    const void *dy;
    const int32_t *types;
    int64_t batch, length, pitch, to_rows;
    float *dposition;
    bool adds;
    float *parts;
};
void seq_position_grad(cudaStream_t stream, enum elem elem, const struct seq_position *args);

/* Row i of y = row rows[i] of x. */
void seq_gather(cudaStream_t stream,
                enum elem elem,
                const void *x,
                const int32_t *rows,
                int64_t count,
                int64_t pitch,
                void *y);

#ifdef __cplusplus
}
#endif

#endif
