/* shim.c - see shim.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/shim.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

int shim_fail(struct err *e, dnnl_status_t status, const char *what)
{
    enum err_code code = status == dnnl_unimplemented ? ERR_METHOD : ERR_INTERNAL;

    return err_set(e, code, "oneDNN could not make %s: status %d", what, (int)status);
}

static dnnl_format_tag_t dense_tag(int dims)
{
    static const dnnl_format_tag_t tags[] = {dnnl_a,   dnnl_a,    dnnl_ab,
                                             dnnl_abc, dnnl_abcd, dnnl_abcde};

    return tags[dims];
}

static dnnl_memory_desc_t by_tag(int dims, const int64_t *dim, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t all = {1};

    for (int i = 0; i < dims; i++)
        all[i] = dim[i];
    memset(&md, 0, sizeof md);
    (void)dnnl_memory_desc_init_by_tag(&md, dims ? dims : 1, all, dnnl_f32, tag);
    return md;
}

dnnl_memory_desc_t shim_dense(int dims, const int64_t *dim)
{
    return by_tag(dims, dim, dense_tag(dims));
}

dnnl_memory_desc_t shim_any(int dims, const int64_t *dim)
{
    return by_tag(dims, dim, dnnl_format_tag_any);
}

int shim_same_form(const dnnl_memory_desc_t *like,
                   const int64_t *dim,
                   dnnl_memory_desc_t *ret_md,
                   struct err *e)
{
    struct blocked form;
    dnnl_format_tag_t tag = dnnl_nchw;

    if (shim_blocked(like, &form, e) < 0)
        return -1;
    if (like->format_desc.blocking.inner_nblks == 1)
        tag = form.block == 16 ? dnnl_nChw16c : form.block == 8 ? dnnl_nChw8c : dnnl_nChw4c;
    else if (form.block > 1)
        tag = dnnl_nhwc;
    *ret_md = by_tag(4, dim, tag);
    return 0;
}

/* Is the memory of `md` the one that this tag describes? */
static bool has_tag(const dnnl_memory_desc_t *md, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t other = by_tag(md->ndims, md->dims, tag);

    return shim_same(md, &other);
}

int shim_blocked(const dnnl_memory_desc_t *md, struct blocked *ret_form, struct err *e)
{
    static const struct {
        dnnl_format_tag_t tag;
        int block; /* 0 = C */
    } forms[] = {
        {dnnl_nChw16c, 16}, {dnnl_nChw8c, 8}, {dnnl_nChw4c, 4}, {dnnl_nchw, 1}, {dnnl_nhwc, 0}};

    for (size_t i = 0; md->ndims == 4 && i < sizeof forms / sizeof *forms; i++)
        if (has_tag(md, forms[i].tag)) {
            int64_t block = forms[i].block ? forms[i].block : md->dims[1];

            *ret_form = (struct blocked){.n = md->dims[0],
                                         .channels = md->dims[1],
                                         .plane = md->dims[2] * md->dims[3],
                                         .block = block,
                                         .blocks = (md->dims[1] + block - 1) / block};
            return 0;
        }
    return err_set(e, ERR_METHOD, "oneDNN chose a layout that is not known here");
}

size_t shim_bytes(const dnnl_memory_desc_t *md)
{
    return dnnl_memory_desc_get_size(md);
}

bool shim_same(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b)
{
    return dnnl_memory_desc_equal(a, b);
}

void shim_describe(const dnnl_memory_desc_t *md, char *text, size_t size)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    size_t len = 0;

    text[0] = '\0';
    for (int i = 0; i < md->ndims && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%lld:%lld", i ? "," : "",
                                (long long)md->dims[i], (long long)b->strides[i]);
    for (int i = 0; i < b->inner_nblks && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "/%lld%c", (long long)b->inner_blks[i],
                                (char)('a' + b->inner_idxs[i]));
}

/* Strides, holes (counted from 0) and pads of a window. */
struct steps {
    dnnl_dims_t stride, hole, before, after, size;
};

static struct steps steps_of(const struct window *w)
{
    return (struct steps){.stride = {w->stride_h, w->stride_w},
                          .hole = {w->dilation_h - 1, w->dilation_w - 1},
                          .before = {w->top, w->left},
                          .after = {w->bottom, w->right},
                          .size = {w->r, w->s}};
}

static dnnl_alg_kind_t act_kind(enum act act)
{
    return act == ACT_TANH ? dnnl_eltwise_tanh : dnnl_eltwise_relu;
}

/* With the caller's scratch memory, and an activation behind when asked. */
static int make_attr(enum act act, dnnl_primitive_attr_t *ret_attr, struct err *e)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);

    if (status != dnnl_success)
        return shim_fail(e, status, "attributes");
    status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && act != ACT_NONE) {
        status = dnnl_post_ops_create(&ops);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_eltwise(ops, 1, act_kind(act), 0, 0);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(attr, ops);
        dnnl_post_ops_destroy(ops);
    }
    if (status != dnnl_success) {
        dnnl_primitive_attr_destroy(attr);
        return shim_fail(e, status, "attributes");
    }
    *ret_attr = attr;
    return 0;
}

static int make(dnnl_engine_t engine,
                const void *desc,
                dnnl_status_t status,
                enum act act,
                dnnl_primitive_desc_t hint,
                const char *what,
                dnnl_primitive_desc_t *ret_pd,
                struct err *e)
{
    dnnl_primitive_attr_t attr;

    if (status != dnnl_success)
        return shim_fail(e, status, what);
    if (make_attr(act, &attr, e) < 0)
        return -1;
    status = dnnl_primitive_desc_create(ret_pd, desc, attr, engine, hint);
    dnnl_primitive_attr_destroy(attr);
    return status == dnnl_success ? 0 : shim_fail(e, status, what);
}

static dnnl_memory_desc_t bias_of(const dnnl_memory_desc_t *y)
{
    return shim_dense(1, (const int64_t[]){y->dims[1]});
}

static dnnl_prop_kind_t forward_kind(bool is_training)
{
    return is_training ? dnnl_forward_training : dnnl_forward_inference;
}

static dnnl_alg_kind_t conv_kind(const struct conv_shape *s)
{
    return s->is_winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

/* For inference alone Winograd's kernel would want weights in a layout that is no layout. */
int shim_conv_forward(dnnl_engine_t engine,
                      const struct conv_shape *s,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e)
{
    dnnl_convolution_desc_t desc;
    struct steps w = steps_of(&s->attrs->window);
    dnnl_memory_desc_t bias = bias_of(&s->y);
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, forward_kind(s->is_training || s->is_winograd), conv_kind(s), &s->x, &s->w,
        s->has_bias ? &bias : NULL, &s->y, w.stride, w.hole, w.before, w.after);

    return make(engine, &desc, status, s->attrs->act, NULL, "a convolution", ret_pd, e);
}

int shim_conv_data(dnnl_engine_t engine,
                   const struct conv_shape *s,
                   dnnl_primitive_desc_t hint,
                   dnnl_primitive_desc_t *ret_pd,
                   struct err *e)
{
    dnnl_convolution_desc_t desc;
    struct steps w = steps_of(&s->attrs->window);
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &desc, conv_kind(s), &s->x, &s->w, &s->y, w.stride, w.hole, w.before, w.after);

    return make(engine, &desc, status, ACT_NONE, hint, "a convolution's gradient", ret_pd, e);
}

int shim_conv_weights(dnnl_engine_t engine,
                      const struct conv_shape *s,
                      dnnl_primitive_desc_t hint,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e)
{
    dnnl_convolution_desc_t desc;
    struct steps w = steps_of(&s->attrs->window);
    dnnl_memory_desc_t bias = bias_of(&s->y);
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &desc, conv_kind(s), &s->x, &s->w, s->has_bias ? &bias : NULL, &s->y, w.stride, w.hole,
        w.before, w.after);

    return make(engine, &desc, status, ACT_NONE, hint, "a convolution's gradient", ret_pd, e);
}

int shim_linear_forward(dnnl_engine_t engine,
                        const struct linear_shape *s,
                        dnnl_primitive_desc_t *ret_pd,
                        struct err *e)
{
    dnnl_inner_product_desc_t desc;
    dnnl_memory_desc_t bias = bias_of(&s->y);
    dnnl_status_t status = dnnl_inner_product_forward_desc_init(
        &desc, forward_kind(s->is_training), &s->x, &s->w, s->has_bias ? &bias : NULL, &s->y);

    return make(engine, &desc, status, s->act, NULL, "a linear layer", ret_pd, e);
}

int shim_linear_data(dnnl_engine_t engine,
                     const struct linear_shape *s,
                     dnnl_primitive_desc_t hint,
                     dnnl_primitive_desc_t *ret_pd,
                     struct err *e)
{
    dnnl_inner_product_desc_t desc;
    dnnl_status_t status =
        dnnl_inner_product_backward_data_desc_init(&desc, &s->x, &s->w, &s->y);

    return make(engine, &desc, status, ACT_NONE, hint, "a linear layer's gradient", ret_pd, e);
}

int shim_linear_weights(dnnl_engine_t engine,
                        const struct linear_shape *s,
                        dnnl_primitive_desc_t hint,
                        dnnl_primitive_desc_t *ret_pd,
                        struct err *e)
{
    dnnl_inner_product_desc_t desc;
    dnnl_memory_desc_t bias = bias_of(&s->y);
    dnnl_status_t status = dnnl_inner_product_backward_weights_desc_init(
        &desc, &s->x, &s->w, s->has_bias ? &bias : NULL, &s->y);

    return make(engine, &desc, status, ACT_NONE, hint, "a linear layer's gradient", ret_pd, e);
}

static dnnl_alg_kind_t pool_kind(const struct pool_attrs *pool, bool is_max)
{
    if (is_max)
        return dnnl_pooling_max;
    return pool->counts_padding ? dnnl_pooling_avg_include_padding
                                : dnnl_pooling_avg_exclude_padding;
}

int shim_pool_forward(dnnl_engine_t engine,
                      const struct pool_attrs *pool,
                      bool is_max,
                      bool is_training,
                      const dnnl_memory_desc_t *x,
                      const dnnl_memory_desc_t *y,
                      dnnl_primitive_desc_t *ret_pd,
                      struct err *e)
{
    dnnl_pooling_desc_t desc;
    struct steps w = steps_of(&pool->window);
    dnnl_status_t status = dnnl_pooling_forward_desc_init(&desc, forward_kind(is_training),
                                                          pool_kind(pool, is_max), x, y,
                                                          w.stride, w.size, w.before, w.after);

    return make(engine, &desc, status, ACT_NONE, NULL, "a pool", ret_pd, e);
}

int shim_pool_backward(dnnl_engine_t engine,
                       const struct pool_attrs *pool,
                       bool is_max,
                       const dnnl_memory_desc_t *dx,
                       const dnnl_memory_desc_t *dy,
                       dnnl_primitive_desc_t hint,
                       dnnl_primitive_desc_t *ret_pd,
                       struct err *e)
{
    dnnl_pooling_desc_t desc;
    struct steps w = steps_of(&pool->window);
    dnnl_status_t status = dnnl_pooling_backward_desc_init(
        &desc, pool_kind(pool, is_max), dx, dy, w.stride, w.size, w.before, w.after);

    return make(engine, &desc, status, ACT_NONE, hint, "a pool's gradient", ret_pd, e);
}

int shim_reorder(dnnl_engine_t engine,
                 const dnnl_memory_desc_t *from,
                 const dnnl_memory_desc_t *to,
                 dnnl_primitive_desc_t *ret_pd,
                 struct err *e)
{
    dnnl_primitive_attr_t attr;
    dnnl_status_t status;

    if (make_attr(ACT_NONE, &attr, e) < 0)
        return -1;
    status = dnnl_reorder_primitive_desc_create(ret_pd, from, engine, to, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    return status == dnnl_success ? 0 : shim_fail(e, status, "a reorder");
}

dnnl_memory_desc_t shim_query(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);
    dnnl_memory_desc_t none;

    memset(&none, 0, sizeof none);
    return md ? *md : none;
}
