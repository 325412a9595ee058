/* winograd.c - how a convolution is computed: directly, or by Winograd's tiles.
 *
 * F(4x4, 3x3): a tile of 4 x 4 results takes 36 products for each pair of channels instead of
 * 144, at the price of transforms of inputs, weights and results.  oneDNN 2.6 has it for
 * AVX-512, in layouts that the direct kernels use as well, with weights in one layout for all
 * three directions.  Measured against the direct kernels on two cores over 14 shapes and
 * batches of 1 to 16, it is twice as fast (1.4 to 2.6 times) where there are many tiles; where
 * they are few the transform of the weights eats the gain (256 x 256 channels: even at 40
 * tiles, 20 for the gradient of weights), and with 16 channels the transforms of the rest do.
 *
 * A rule and no measurement: what is chosen decides the last bits, and these have to be the
 * same in every run.  (Scratch memory, which the rule looks at too, grows with batch and
 * threads: with others of these the bits may be others.)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/plan.h"

enum {
    TILE = 4,
    LEAST_CHANNELS = 32,
    LEAST_TILES = 64,
    LEAST_TILES_WEIGHTS = 32,
};

/* The gradient of weights keeps sums of its own for each thread, 36 C K floats, and in some
 * schedules all transformed tiles.  Up to 16 pictures and 512 channels that is 160 MB for two
 * threads; many threads would want gigabytes. */
static const size_t most_scratch = (size_t)192 << 20;

typedef int desc_fn(dnnl_engine_t engine,
                    const struct conv_shape *shape,
                    dnnl_primitive_desc_t hint,
                    dnnl_primitive_desc_t *ret_pd,
                    struct err *e);

static int forward_desc(dnnl_engine_t engine,
                        const struct conv_shape *shape,
                        dnnl_primitive_desc_t hint,
                        dnnl_primitive_desc_t *ret_pd,
                        struct err *e)
{
    (void)hint;
    return shim_conv_forward(engine, shape, ret_pd, e);
}

static desc_fn *desc_of(enum op_kind kind)
{
    return kind == OP_CONV             ? forward_desc
           : kind == OP_CONV_DATA_GRAD ? shim_conv_data
                                       : shim_conv_weights;
}

static int64_t tiles_of(int64_t size)
{
    return (size + TILE - 1) / TILE;
}

/* oneDNN 2.6 takes uneven pads too, and its gradient of data is then shifted by them. */
static bool is_even(const struct window *w)
{
    return w->top == w->bottom && w->left == w->right && w->top <= 1 && w->left <= 1;
}

static bool pays(const struct conv_shape *s, enum op_kind kind)
{
    const struct window *w = &s->attrs->window;
    int64_t tiles = s->y.dims[0] * tiles_of(s->y.dims[2]) * tiles_of(s->y.dims[3]);

    return w->r == 3 && w->s == 3 && w->stride_h == 1 && w->stride_w == 1 &&
           w->dilation_h == 1 && w->dilation_w == 1 && is_even(w) && s->attrs->groups == 1 &&
           s->x.dims[1] >= LEAST_CHANNELS && s->y.dims[1] >= LEAST_CHANNELS &&
           tiles >= (kind == OP_CONV_WEIGHT_GRAD ? LEAST_TILES_WEIGHTS : LEAST_TILES);
}

static bool fits(const struct onednn_plan *p, dnnl_primitive_desc_t pd)
{
    dnnl_memory_desc_t md = shim_query(pd, dnnl_query_scratchpad_md);
    size_t cap = p->options.workspace_cap, bytes = shim_bytes(&md);

    return bytes <= most_scratch && (cap == 0 || bytes <= cap);
}

int conv_desc(struct onednn_plan *p,
              enum op_kind kind,
              const struct conv_shape *shape,
              dnnl_primitive_desc_t hint,
              dnnl_primitive_desc_t *ret_pd,
              struct err *e)
{
    struct conv_shape tiled = *shape;
    dnnl_primitive_desc_t pd;

    tiled.is_winograd = true;
    if (!p->options.avoids_winograd && pays(shape, kind) &&
        desc_of(kind)(p->engine, &tiled, hint, &pd, NULL) == 0) {
        if (fits(p, pd)) {
            *ret_pd = pd;
            return 0;
        }
        dnnl_primitive_desc_destroy(pd);
    }
    return desc_of(kind)(p->engine, shape, hint, ret_pd, e);
}
