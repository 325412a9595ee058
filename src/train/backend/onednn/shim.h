/* shim.h - the little of oneDNN that the backend needs, in the backend's words.
 *
 * Descriptors of primitives differ between 2.x and 3.x; they are made here and nowhere else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_ONEDNN_SHIM_H
#define TRAIN_BACKEND_ONEDNN_SHIM_H

#include "base/err.h"
#include "train/graph/op.h"

#include <dnnl.h>
#include <stddef.h>

enum {
    SHIM_MOST_ARGS = 12,
};

/* The forms of an activation that own loops understand: channels in blocks, the rest plain.
 * nchw has blocks of 1, nhwc one block of C. */
struct blocked {
    int64_t n, channels, plane; /* plane: H W */
    int64_t block, blocks;
};

int shim_fail(struct err *e, dnnl_status_t status, const char *what);

/* Dense in logical order; dims 0 = a scalar. */
dnnl_memory_desc_t shim_dense(int dims, const int64_t *dim);
dnnl_memory_desc_t shim_any(int dims, const int64_t *dim);
/* As `like` in form, with other dims: N C H W. */
int shim_same_form(const dnnl_memory_desc_t *like,
                   const int64_t *dim,
                   dnnl_memory_desc_t *ret_md,
                   struct err *e);
/* ERR_METHOD when it is no form that loops understand. */
int shim_blocked(const dnnl_memory_desc_t *md, struct blocked *ret_form, struct err *e);
size_t shim_bytes(const dnnl_memory_desc_t *md);
bool shim_same(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b);
/* "16x64x56x56 blocks 16 of 1": for plan_layout. */
void shim_describe(const dnnl_memory_desc_t *md, char *text, size_t size);

struct conv_shape { /* dims as oneDNN wants them; weights have a dimension more with groups */
    dnnl_memory_desc_t x, w, y; /* `any`, or fixed */
    const struct conv_attrs *attrs;
    bool has_bias;
    bool is_training;
    bool is_winograd; /* ERR_METHOD where oneDNN cannot; takes training's weights always */
};

/* Primitive descriptors.  The caller destroys them. */
int shim_conv_forward(dnnl_engine_t engine,
                      const struct conv_shape *shape,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e);
int shim_conv_data(dnnl_engine_t engine,
                   const struct conv_shape *shape,
                   dnnl_primitive_desc_t hint,
                   dnnl_primitive_desc_t *ret_pd,
                   struct err *e);
int shim_conv_weights(dnnl_engine_t engine,
                      const struct conv_shape *shape,
                      dnnl_primitive_desc_t hint,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e);

struct linear_shape {
    dnnl_memory_desc_t x, w, y;
    enum act act;
    bool has_bias;
    bool is_training;
};
int shim_linear_forward(dnnl_engine_t engine,
                        const struct linear_shape *shape,
                        dnnl_primitive_desc_t *ret_pd,
                        struct err *e);
int shim_linear_data(dnnl_engine_t engine,
                     const struct linear_shape *shape,
                     dnnl_primitive_desc_t hint,
                     dnnl_primitive_desc_t *ret_pd,
                     struct err *e);
int shim_linear_weights(dnnl_engine_t engine,
                        const struct linear_shape *shape,
                        dnnl_primitive_desc_t hint,
                        dnnl_primitive_desc_t *ret_pd,
                        struct err *e);

/* is_max, else average. */
int shim_pool_forward(dnnl_engine_t engine,
                      const struct pool_attrs *pool,
                      bool is_max,
                      bool is_training,
                      const dnnl_memory_desc_t *x,
                      const dnnl_memory_desc_t *y,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e);
int shim_pool_backward(dnnl_engine_t engine,
                       const struct pool_attrs *pool,
                       bool is_max,
                       const dnnl_memory_desc_t *dx,
                       const dnnl_memory_desc_t *dy,
                       dnnl_primitive_desc_t hint,
                       dnnl_primitive_desc_t *ret_pd,
                       struct err *e);
int shim_reorder(dnnl_engine_t engine,
                 const dnnl_memory_desc_t *from,
                 const dnnl_memory_desc_t *to,
                 dnnl_primitive_desc_t *ret_pd,
                 struct err *e);

/* What a primitive wants to be given. */
dnnl_memory_desc_t shim_query(dnnl_primitive_desc_t pd, dnnl_query_t what);

#endif
