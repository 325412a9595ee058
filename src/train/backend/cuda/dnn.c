/* dnn.c - see dnn.h.
 *
 * A finalized descriptor may still refer to those it was made of, so all are kept until the
 * arena goes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/dnn.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/cuda/plan.h"

#include <string.h>

typedef cudnnBackendDescriptor_t desc_t;

cudnnDataType_t dnn_type(enum elem elem)
{
    switch (elem) {
    case ELEM_F16:
        return CUDNN_DATA_HALF;
    case ELEM_BF16:
        return CUDNN_DATA_BFLOAT16;
    case ELEM_I32:
        return CUDNN_DATA_INT32;
    case ELEM_U8:
        return CUDNN_DATA_UINT8;
    case ELEM_F32:
        break;
    }
    return CUDNN_DATA_FLOAT;
}

struct dnn_shape
dnn_image(enum elem elem, int64_t n, int64_t c, int64_t h, int64_t w, int64_t pitch)
{
    return (struct dnn_shape){.type = dnn_type(elem),
                              .dim = {n, c, h, w},
                              .stride = {h * w * pitch, 1, w * pitch, pitch}};
}

struct dnn_shape dnn_list(enum elem elem, int64_t c)
{
    return (struct dnn_shape){
        .type = dnn_type(elem), .dim = {1, c, 1, 1}, .stride = {c, 1, c, c}};
}

static void destroy(void *desc)
{
    (void)cudnnBackendDestroyDescriptor(desc);
}

static void note(struct dnn_graph *g, cudnnStatus_t status, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS && status != CUDNN_STATUS_SUCCESS) {
        g->status = status;
        g->what = what;
    }
}

/* NULL after an error, or when one came before. */
static desc_t make(struct dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    desc_t desc = NULL;

    if (g->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    note(g, cudnnBackendCreateDescriptor(type, &desc), "a descriptor");
    if (desc)
        arena_defer(g->arena, destroy, desc);
    return desc;
}

static void set(struct dnn_graph *g,
                desc_t desc,
                cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type,
                int64_t count,
                const void *values,
                const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendSetAttribute(desc, name, type, count, values), what);
}

static void set_desc(struct dnn_graph *g,
                     desc_t desc,
                     cudnnBackendAttributeName_t name,
                     desc_t value,
                     const char *what)
{
    set(g, desc, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value, what);
}

static void finish(struct dnn_graph *g, desc_t desc, const char *what)
{
    if (g->status == CUDNN_STATUS_SUCCESS)
        note(g, cudnnBackendFinalize(desc), what);
}

struct dnn_graph *dnn_graph_new(struct arena *arena, cudnnHandle_t handle)
{
    struct dnn_graph *g = arena_alloc(arena, sizeof *g);

    g->arena = arena;
    g->handle = handle;
    g->status = CUDNN_STATUS_SUCCESS;
    g->next_uid = 1;
    return g;
}

static desc_t tensor(struct dnn_graph *g,
                     const struct dnn_shape *shape,
                     cudnnDataType_t type,
                     bool is_virtual)
{
    const char *what = "a tensor";
    desc_t desc = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t uid = g->next_uid++, align = 16;

    set(g, desc, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, what);
    set(g, desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape->dim, what);
    set(g, desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape->stride, what);
    set(g, desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid, what);
    set(g, desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align, what);
    set(g, desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual, what);
    finish(g, desc, what);
    if (!is_virtual && g->uid_count < DNN_MOST_TENSORS)
        g->uids[g->uid_count++] = uid;
    else if (!is_virtual)
        note(g, CUDNN_STATUS_BAD_PARAM, "so many tensors");
    return desc;
}

desc_t dnn_tensor(struct dnn_graph *g, const struct dnn_shape *shape)
{
    return tensor(g, shape, shape->type, false);
}

desc_t dnn_virtual(struct dnn_graph *g, const struct dnn_shape *shape)
{
    return tensor(g, shape, CUDNN_DATA_FLOAT, true);
}

static void add_op(struct dnn_graph *g, desc_t op, const char *what)
{
    finish(g, op, what);
    if (g->op_count < DNN_MOST_OPS)
        g->ops[g->op_count++] = op;
    else
        note(g, CUDNN_STATUS_BAD_PARAM, "so many operations");
}

static desc_t window_of(struct dnn_graph *g, const struct window *win)
{
    const char *what = "a window";
    desc_t desc = make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t dims = 2, dilation[] = {win->dilation_h, win->dilation_w};
    int64_t stride[] = {win->stride_h, win->stride_w};
    int64_t before[] = {win->top, win->left}, after[] = {win->bottom, win->right};

    set(g, desc, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before, what);
    set(g, desc, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after, what);
    finish(g, desc, what);
    return desc;
}

static const struct conv_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
} conv_names[] = {
    [DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [DNN_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [DNN_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

void dnn_conv(struct dnn_graph *g,
              enum dnn_way way,
              const struct window *window,
              desc_t x,
              desc_t w,
              desc_t y)
{
    const struct conv_names *names = &conv_names[way];
    const char *what = "a convolution";
    desc_t win = window_of(g, window), op = make(g, names->type);
    float alpha = 1, beta = 0;

    set_desc(g, op, names->window, win, what);
    set_desc(g, op, names->x, x, what);
    set_desc(g, op, names->w, w, what);
    set_desc(g, op, names->y, y, what);
    set(g, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha, what);
    set(g, op, names->beta, CUDNN_TYPE_FLOAT, 1, &beta, what);
    add_op(g, op, what);
}

static desc_t pointwise_of(struct dnn_graph *g, cudnnPointwiseMode_t mode)
{
    desc_t desc = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;

    set(g, desc, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode, "a function");
    set(g, desc, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute,
        "a function");
    finish(g, desc, "a function");
    return desc;
}

void dnn_pointwise(struct dnn_graph *g, cudnnPointwiseMode_t mode, desc_t x, desc_t b, desc_t y)
{
    const char *what = "a function of elements";
    bool is_grad = mode == CUDNN_POINTWISE_RELU_BWD;
    desc_t function = pointwise_of(g, mode);
    desc_t op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function, what);
    if (is_grad) {
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, x, what);
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, b, what);
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, y, what);
    } else {
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x, what);
        if (b)
            set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b, what);
        set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y, what);
    }
    add_op(g, op, what);
}

void dnn_genstats(struct dnn_graph *g, desc_t y, desc_t sum, desc_t square)
{
    const char *what = "statistics of a convolution";
    desc_t op = make(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;

    set(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode, what);
    set(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute,
        what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, square, what);
    add_op(g, op, what);
}

void dnn_bn_weights(struct dnn_graph *g, const struct dnn_bn_weights *bn)
{
    const char *what = "sums of a batch norm's gradient";
    desc_t op = make(g, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;

    set(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute,
        what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, bn->x, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, bn->dy, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, bn->mean, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, bn->inv_std, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, bn->gamma, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, bn->dgamma, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, bn->dbeta, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, bn->eq_dy, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, bn->eq_x, what);
    set_desc(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, bn->eq_bias, what);
    add_op(g, op, what);
}

int dnn_graph_done(struct dnn_graph *g, struct err *e)
{
    const char *what = "a graph of operations";
    desc_t graph = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->op_count,
        g->ops, what);
    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle, what);
    finish(g, graph, what);
    if (g->status != CUDNN_STATUS_SUCCESS)
        return dnn_fail(e, g->status, g->what);
    g->graph = graph;
    return 0;
}

/* Questions to the heuristics may be answered with "no": they do not spoil the graph. */
static desc_t make_freely(struct dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    desc_t desc = NULL;

    if (cudnnBackendCreateDescriptor(type, &desc) != CUDNN_STATUS_SUCCESS)
        return NULL;
    arena_defer(g->arena, destroy, desc);
    return desc;
}

static desc_t engine_of(struct dnn_graph *g, desc_t config)
{
    desc_t engine = make_freely(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t count = 0;

    if (!engine || cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                            &engine) != CUDNN_STATUS_SUCCESS)
        return NULL;
    return engine;
}

/* Inputs rounded to less than they are never wanted. */
static bool is_refused(cudnnBackendNumericalNote_t note, const struct dnn_rules *rules)
{
    switch ((int)note) {
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return true;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return !rules->is_rough;
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        return rules->is_repeatable;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return rules->is_exact;
    default:
        return false;
    }
}

static bool is_allowed(struct dnn_graph *g, desc_t config, const struct dnn_rules *rules)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    desc_t engine = engine_of(g, config);
    int64_t count = 0;

    if (!engine || cudnnBackendGetAttribute(
                       engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                       CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        if (is_refused(notes[i], rules))
            return false;
    return true;
}

static desc_t heuristics(struct dnn_graph *g, cudnnBackendHeurMode_t mode)
{
    desc_t heur = make_freely(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);

    if (!heur ||
        cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &g->graph) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
                                 &mode) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(heur) != CUDNN_STATUS_SUCCESS)
        return NULL;
    return heur;
}

enum {
    ASKED = 64, /* of one kind of heuristics; many of them are refused by the rules */
};

/* Append what one kind of heuristics proposes. */
static int propose(struct dnn_graph *g,
                   cudnnBackendHeurMode_t mode,
                   const struct dnn_rules *rules,
                   desc_t *configs,
                   int count)
{
    desc_t heur = heuristics(g, mode), found[ASKED];
    int64_t made = 0, got = 0;

    if (!heur || cudnnBackendGetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &made,
                                          NULL) != CUDNN_STATUS_SUCCESS)
        return count;
    made = made > ASKED ? ASKED : made;
    for (int64_t i = 0; i < made; i++)
        if (!(found[i] = make_freely(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)))
            return count;
    if (made == 0 || cudnnBackendGetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &got,
                                              found) != CUDNN_STATUS_SUCCESS)
        return count;
    for (int64_t i = 0; i < got && i < made && count < DNN_MOST_CONFIGS; i++)
        if (is_allowed(g, found[i], rules))
            configs[count++] = found[i];
    return count;
}

int dnn_configs(struct dnn_graph *g,
                const struct dnn_rules *rules,
                desc_t ret_configs[DNN_MOST_CONFIGS])
{
    return g->graph ? propose(g, CUDNN_HEUR_MODE_A, rules, ret_configs, 0) : 0;
}

int dnn_more_configs(struct dnn_graph *g,
                     const struct dnn_rules *rules,
                     desc_t configs[DNN_MOST_CONFIGS],
                     int count)
{
    if (!g->graph || count >= DNN_MOST_CONFIGS / 2)
        return count;
    return propose(g, CUDNN_HEUR_MODE_FALLBACK, rules, configs, count);
}

int dnn_kernel_make(struct dnn_graph *g,
                    desc_t config,
                    size_t most_bytes,
                    struct dnn_kernel *ret_kernel)
{
    desc_t plan = make_freely(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t count = 0, bytes = 0;

    if (!plan ||
        cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                 &g->handle) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &config) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes < 0 || (size_t)bytes > most_bytes)
        return -1;
    *ret_kernel = (struct dnn_kernel){.plan = plan, .workspace_bytes = (size_t)bytes};
    return 0;
}

static void add_knob(desc_t choice, struct str *out)
{
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    int64_t value = 0, count = 0;

    if (cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                                 1, &count, &type) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                                 &count, &value) == CUDNN_STATUS_SUCCESS)
        str_addf(out, " %d=%lld", (int)type, (long long)value);
}

const char *dnn_config_name(struct dnn_graph *g, desc_t config)
{
    desc_t engine = engine_of(g, config), knobs[CUDNN_KNOB_TYPE_COUNTS];
    auto_str out = {0};
    int64_t count = 0, index = -1;

    if (engine)
        (void)cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                       1, &count, &index);
    str_addf(&out, "engine %lld", (long long)index);
    for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; i++)
        if (!(knobs[i] = make_freely(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)))
            return arena_strdup(g->arena, str_text(&out));
    count = 0;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count,
                                 knobs) != CUDNN_STATUS_SUCCESS)
        count = 0;
    for (int64_t i = 0; i < count && i < CUDNN_KNOB_TYPE_COUNTS; i++)
        add_knob(knobs[i], &out);
    return arena_strdup(g->arena, str_text(&out));
}

static void drop_pack(void *arg)
{
    struct dnn_pack *pack = arg;

    if (pack->pack)
        (void)cudnnBackendDestroyDescriptor(pack->pack);
    pack->pack = NULL;
}

/* What was bound before goes at once: rebinding happens while choices are measured. */
static int new_pack(struct dnn_graph *g, struct dnn_pack *pack, struct err *e)
{
    cudnnStatus_t status;

    if (!pack->is_known)
        arena_defer(g->arena, drop_pack, pack);
    pack->is_known = true;
    drop_pack(pack);
    status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack->pack);
    return status == CUDNN_STATUS_SUCCESS ? 0 : dnn_fail(e, status, "a list of addresses");
}

int dnn_bind(struct dnn_graph *g,
             struct dnn_pack *pack,
             const struct dnn_kernel *kernel,
             void *const *data,
             void *workspace,
             struct err *e)
{
    size_t bytes = (size_t)g->uid_count * sizeof *data;
    cudnnStatus_t status;

    if (pack->pack && pack->plan == kernel->plan && pack->workspace == workspace &&
        memcmp(pack->data, data, bytes) == 0)
        return 0;
    if (new_pack(g, pack, e) < 0)
        return -1;
    status = cudnnBackendSetAttribute(pack->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                      CUDNN_TYPE_INT64, g->uid_count, g->uids);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(pack->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, g->uid_count, data);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(pack->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(pack->pack);
    if (status != CUDNN_STATUS_SUCCESS)
        return dnn_fail(e, status, "a list of addresses");
    memcpy(pack->data, data, bytes);
    pack->plan = kernel->plan;
    pack->workspace = workspace;
    return 0;
}

int dnn_run(struct dnn_graph *g,
            const struct dnn_pack *pack,
            cudaStream_t stream,
            struct err *e)
{
    cudaStream_t now = NULL;
    cudnnStatus_t status = cudnnGetStream(g->handle, &now);

    if (status == CUDNN_STATUS_SUCCESS && now != stream)
        status = cudnnSetStream(g->handle, stream);
    if (status != CUDNN_STATUS_SUCCESS)
        return dnn_fail(e, status, "cuDNN's stream");
    status = cudnnBackendExecute(g->handle, pack->plan, pack->pack);
    return status == CUDNN_STATUS_SUCCESS ? 0 : dnn_fail(e, status, "a cuDNN kernel");
}
