/* product.c - linear layers through cuBLASLt.
 *
 * Rows lie one after another here and columns there, so each product is asked for transposed:
 *   y  (M K) = x w'    as   K M = (w as D K)' (x as D M)
 *   dx (M D) = dy w    as   D M = (w as D K)  (dy as K M)
 *   dw (K D) = dy' x   as   D K = (x as D M)  (dy as K M)'
 * Weights are padded with zero rows and columns and so is what is multiplied with them: all
 * products take the padded sizes, and what comes out is padded with zeros too.
 *
 * The bias and a relu are in the product's store.  A GELU is not: cuBLASLt's is the one by tanh
 * and ours is by erf, so the product writes what went into it and a kernel goes over that.
 *
 * Joined at plan time:
 * - a SUM of a data gradient and one other: the product adds (only when not all is kept);
 * - a GELU's gradient behind a data gradient: its kernel sums the columns for the bias of the
 *   layer below on the way;
 * - dropout, residual and layer norm behind a layer: see plan_joined_norm() in sequence.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/backend/cuda/sequence-kernels.h"
#include "train/backend/cuda/sequence.h"
#include "train/backend/cuda/tune.h"

enum {
    MOST_FOUND = 12,
    MOST_WORKSPACE = 32 << 20, /* what cuBLAS advises for Hopper */
};

struct product {
    struct cuda_plan *plan;
    const char *name;
    struct place *a, *b, *c, *d, *bias; /* d = a b + c; c and bias may be NULL */
    bool transposes_a, transposes_b;
    int64_t m, n, k; /* d is m n, all column after column */
    bool has_relu;
    int grad; /* the tensor in d, when the pass decides whether to add to it; else -1 */
    /* When places have addresses: */
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a_layout, b_layout, d_layout;
    cublasLtMatmulHeuristicResult_t found[MOST_FOUND];
    int count, choice;
};

static const struct op *op_of(const struct cuda_plan *p, int n)
{
    return &p->head.graph->ops[n];
}

static cudaDataType_t type_of(enum elem elem)
{
    return elem == ELEM_BF16 ? CUDA_R_16BF : elem == ELEM_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static cublasComputeType_t compute_of(const struct cuda_plan *p)
{
    return p->options.precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
}

static cublasLtEpilogue_t epilogue_of(const struct product *w)
{
    if (w->bias)
        return w->has_relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    return w->has_relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasStatus_t
set(struct product *w, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)
{
    return cublasLtMatmulDescSetAttribute(&w->desc, what, value, bytes);
}

static cublasStatus_t describe_bias(struct product *w)
{
    cudaDataType_t type = type_of(w->bias->elem);
    const void *data = w->bias->data;
    cublasStatus_t status = set(w, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);

    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    return set(w, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &data, sizeof data);
}

static cublasStatus_t describe(struct product *w)
{
    cublasOperation_t a = w->transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = w->transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = epilogue_of(w);
    cublasStatus_t status = cublasLtMatmulDescInit(&w->desc, compute_of(w->plan), CUDA_R_32F);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(w, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(w, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set(w, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS && w->bias)
        status = describe_bias(w);
    return status;
}

static cublasStatus_t lay_out(struct product *w)
{
    uint64_t m = (uint64_t)w->m, n = (uint64_t)w->n, k = (uint64_t)w->k;
    bool ta = w->transposes_a, tb = w->transposes_b;
    cublasStatus_t status = cublasLtMatrixLayoutInit(&w->a_layout, type_of(w->a->elem),
                                                     ta ? k : m, ta ? m : k, w->a->pitch);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixLayoutInit(&w->b_layout, type_of(w->b->elem), tb ? n : k,
                                          tb ? k : n, w->b->pitch);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatrixLayoutInit(&w->d_layout, type_of(w->d->elem), m, n, w->d->pitch);
    return status;
}

/* The largest power of two that an address is a multiple of, at most 256. */
static uint32_t alignment(const void *data)
{
    uintptr_t at = (uintptr_t)data | 256;

    return (uint32_t)(at & -at);
}

static const void *added(const struct product *w)
{
    return w->c ? w->c->data : w->d->data;
}

static cublasStatus_t
prefer(cublasLtMatmulPreference_t prefers, const struct product *w, size_t workspace)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        uint32_t value;
    } rows[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(w->a->data)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(w->b->data)},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(added(w))},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(w->d->data)},
    };
    cublasStatus_t status = cublasLtMatmulPreferenceInit(prefers);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulPreferenceSetAttribute(
            prefers, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (size_t i = 0; i < ARRAY_SIZE(rows) && status == CUBLAS_STATUS_SUCCESS; i++)
        status = cublasLtMatmulPreferenceSetAttribute(prefers, rows[i].what, &rows[i].value,
                                                      sizeof rows[i].value);
    return status;
}

static size_t workspace_of(const struct cuda_plan *p)
{
    return workspace_cap(p) < MOST_WORKSPACE ? workspace_cap(p) : MOST_WORKSPACE;
}

static int find(struct product *w, struct err *e)
{
    cublasLtMatmulPreferenceOpaque_t prefers;
    cublasStatus_t status = describe(w);

    if (status == CUBLAS_STATUS_SUCCESS)
        status = lay_out(w);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = prefer(&prefers, w, workspace_of(w->plan));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(w->plan->device->blas, &w->desc, &w->a_layout,
                                                &w->b_layout, &w->d_layout, &w->d_layout,
                                                &prefers, MOST_FOUND, w->found, &w->count);
    if (status != CUBLAS_STATUS_SUCCESS || w->count == 0)
        return blas_fail(
            e, status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status, w->name);
    return 0;
}

static cublasStatus_t multiply(const struct product *w, int i, bool adds, cudaStream_t stream)
{
    struct cuda_plan *p = w->plan;
    float one = 1, beta = adds ? 1 : 0;

    return cublasLtMatmul(p->device->blas, (cublasLtMatmulDescOpaque_t *)(uintptr_t)&w->desc,
                          &one, w->a->data,
                          (cublasLtMatrixLayoutOpaque_t *)(uintptr_t)&w->a_layout, w->b->data,
                          (cublasLtMatrixLayoutOpaque_t *)(uintptr_t)&w->b_layout, &beta,
                          added(w), (cublasLtMatrixLayoutOpaque_t *)(uintptr_t)&w->d_layout,
                          w->d->data, (cublasLtMatrixLayoutOpaque_t *)(uintptr_t)&w->d_layout,
                          &w->found[i].algo, p->workspace, w->found[i].workspaceSize, stream);
}

static int try_product(void *context, int i, cudaStream_t stream)
{
    const struct product *w = context;

    if (w->found[i].state != CUBLAS_STATUS_SUCCESS)
        return -1;
    return multiply(w, i, w->c != NULL, stream) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

/* Everything that the choice depends on. */
static char *key_of(const struct product *w)
{
    return xasprintf(
        "product m%lld n%lld k%lld %c%c lda%lld ldb%lld ldd%lld types %d %d %d "
        "compute %d epilogue %d adds %d align %u %u %u %u workspace %zu",
        (long long)w->m, (long long)w->n, (long long)w->k, w->transposes_a ? 't' : 'n',
        w->transposes_b ? 't' : 'n', (long long)w->a->pitch, (long long)w->b->pitch,
        (long long)w->d->pitch, w->a->elem, w->b->elem, w->d->elem, (int)compute_of(w->plan),
        (int)epilogue_of(w), w->c != NULL, alignment(w->a->data), alignment(w->b->data),
        alignment(added(w)), alignment(w->d->data), workspace_of(w->plan));
}

static int tune_product(struct cuda_plan *p, void *work, struct err *e)
{
    struct product *w = work;
    auto_free char *key = NULL;

    if (find(w, e) < 0)
        return -1;
    key = key_of(w);
    if (tune_choose(p, key, w->count, try_product, w, &w->choice, e) < 0)
        return err_wrap(e, "\"%s\"", w->name);
    want_workspace(p, w->found[w->choice].workspaceSize);
    return 0;
}

static int
run_product(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct product *w = a->work;
    bool adds = w->c || (w->grad >= 0 && adds_to(p, w->grad));
    cublasStatus_t status = multiply(w, w->choice, adds, stream);

    return status == CUBLAS_STATUS_SUCCESS ? 0 : blas_fail(e, status, a->label);
}

static void add_product(struct cuda_plan *p, int n, const struct product *asked)
{
    struct product *w = add_action(p, n, run_product, sizeof *w)->work;

    *w = *asked;
    w->plan = p;
    w->name = op_of(p, n)->name;
    want_tuning_workspace(p, workspace_of(p));
    want_tuning(p, tune_product, w);
}

/* All three of a product must be of the plan's layout: a matrix as the host has it is not. */
static int check_pitch(const struct cuda_plan *p,
                       const struct place *x,
                       const struct place *w,
                       struct err *e)
{
    if (x->elem == p->elem && w->elem == p->elem && x->pitch == w->pitch)
        return 0;
    return err_set(e, ERR_METHOD, "needs rows of the plan's own layout (%lld and %lld)",
                   (long long)x->pitch, (long long)w->pitch);
}

struct act_work {
    struct place *x, *y;
    enum act act;
};

static int
run_act(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct act_work *w = a->work;

    seq_act(stream, p->elem, w->act == ACT_GELU, w->x->data, w->y->data,
            w->y->rows * w->y->pitch);
    return launched(e, a->label);
}

static void add_act(struct cuda_plan *p, int n, enum act act, struct place *x, struct place *y)
{
    struct act_work *w = add_action(p, n, run_act, sizeof *w)->work;

    *w = (struct act_work){.x = x, .y = y, .act = act};
}

int plan_linear(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    enum act act = op->attrs.linear.act;
    bool is_apart = act == ACT_GELU || act == ACT_TANH;
    struct place *x = touch(p, op->in[0], n), *w = touch(p, op->in[1], n);
    struct place *bias = touch(p, in_of(op, 2), n), *y, *pre;

    if (check_pitch(p, x, w, e) < 0)
        return -1;
    y = put(p, op->out[0], n);
    pre = out_of(op, 1) >= 0 ? put(p, op->out[1], n) : y;
    add_product(p, n,
                &(struct product){.a = w,
                                  .b = x,
                                  .d = is_apart ? pre : y,
                                  .bias = bias,
                                  .transposes_a = true,
                                  .m = y->pitch,
                                  .n = tensor_of(p, op->out[0])->dim[0],
                                  .k = w->pitch,
                                  .has_relu = act == ACT_RELU,
                                  .grad = -1});
    if (is_apart)
        add_act(p, n, act, pre, y);
    return act == ACT_NONE ? plan_joined_norm(p, n, e) : 0;
}

int only_reader(const struct cuda_plan *p, int t)
{
    const struct graph *graph = p->head.graph;
    int found = -1;

    for (int n = 0; n < graph->op_count; n++)
        for (int i = 0; i < graph->ops[n].in_count; i++) {
            if (graph->ops[n].in[i] != t)
                continue;
            if (found >= 0)
                return -1;
            found = n;
        }
    return found;
}

/* The other part of the SUM that reads dx alone, when it is there by now. */
static int joined_sum(const struct cuda_plan *p, int n, int *ret_other)
{
    int dx = op_of(p, n)->out[0], sum = only_reader(p, dx);
    const struct op *op = sum < 0 ? NULL : op_of(p, sum);

    if (!op || op->kind != OP_SUM || op->in_count != 2 || p->options.keeps_all ||
        p->is_done[sum] || tensor_of(p, dx)->role != ROLE_ACTIVATION)
        return -1;
    *ret_other = op->in[op->in[0] == dx ? 1 : 0];
    if (*ret_other == dx || !p->places[*ret_other].is_set ||
        p->places[*ret_other].elem != p->elem)
        return -1;
    return sum;
}

static struct place *put_sum(struct cuda_plan *p, int n, int sum, int other)
{
    p->is_done[sum] = true;
    if (p->last_read[other] == sum)
        p->last_read[other] = n;
    return put_over(p, op_of(p, sum)->out[0], other, n);
}

struct gelu_grad_work {
    struct place *dy, *pre, *dx, *parts;
    int splits;
};

static int
run_gelu_grad(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct gelu_grad_work *w = a->work;

    seq_gelu_grad(stream, p->elem, w->dy->data, w->pre->data, w->dx->data, w->dy->rows,
                  w->dy->pitch, w->parts->data, w->splits);
    return launched(e, a->label);
}

/* The gradient of a GELU right behind, and the parts of the bias' gradient below it. */
static void join_gelu_grad(struct cuda_plan *p, int n)
{
    int dx = op_of(p, n)->out[0], next = only_reader(p, dx), below;
    const struct op *op = next < 0 ? NULL : op_of(p, next);
    struct gelu_grad_work *w;

    if (!op || op->kind != OP_GELU_GRAD || p->is_done[next] || op->in[0] != dx)
        return;
    below = bias_reader(p, op->out[0]);
    if (below < 0)
        return;
    p->is_done[next] = true;
    w = add_action(p, next, run_gelu_grad, sizeof *w)->work;
    w->dy = touch(p, dx, n);
    w->pre = touch(p, op->in[1], n);
    if (p->last_read[dx] == next)
        p->last_read[dx] = n;
    w->dx = put_over(p, op->out[0], dx, n);
    w->splits = seq_splits(w->dy->rows, w->dy->pitch, p->device->multiprocessors);
    w->parts = keep_bias_parts(p, n, below, w->splits, w->dy->pitch);
}

int plan_linear_data(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct place *dy = touch(p, op->in[0], n), *w = touch(p, op->in[1], n), *dx;
    int other = -1, sum = joined_sum(p, n, &other);

    if (dy->elem != p->elem || w->elem != p->elem || dy->pitch != w->rows)
        return err_set(e, ERR_METHOD, "needs rows of the plan's own layout");
    dx = sum < 0 ? put(p, op->out[0], n) : put_sum(p, n, sum, other);
    add_product(p, n,
                &(struct product){.a = w,
                                  .b = dy,
                                  .c = sum < 0 ? NULL : touch(p, other, n),
                                  .d = dx,
                                  .m = w->pitch,
                                  .n = tensor_of(p, op->in[0])->dim[0],
                                  .k = w->rows,
                                  .grad = -1});
    if (sum < 0)
        join_gelu_grad(p, n);
    return 0;
}

struct bias_work {
    struct place *dy, *parts, *to;
    int64_t skip; /* floats, in parts */
    int splits, grad;
    bool is_ready; /* the parts are there already */
};

static int
run_bias(struct cuda_plan *p, const struct action *a, cudaStream_t stream, struct err *e)
{
    const struct bias_work *w = a->work;
    struct seq_sums sums = {.parts = (const float *)w->parts->data + w->skip,
                            .splits = w->splits,
                            .pitch = w->dy->pitch,
                            .to = {w->to->data},
                            .adds = {adds_to(p, w->grad)},
                            .count = 1};

    if (!w->is_ready)
        seq_column_parts(stream, w->dy->elem, w->dy->data, w->dy->rows, w->dy->pitch,
                         w->parts->data, w->splits);
    seq_column_sums(stream, &sums);
    return launched(e, a->label);
}

static void add_bias_grad(struct cuda_plan *p, int n, struct place *dy)
{
    const struct op *op = op_of(p, n);
    const struct bias_parts *parts = p->kept[n];
    struct bias_work *w = add_action(p, n, run_bias, sizeof *w)->work;

    *w = (struct bias_work){.dy = dy, .grad = op->out[1]};
    w->to = put(p, op->out[1], n);
    w->is_ready = parts != NULL;
    if (parts) {
        w->parts = parts->place;
        w->skip = parts->skip;
        w->splits = parts->splits;
        touch_place(p, w->parts, n);
        return;
    }
    w->splits = seq_splits(dy->rows, dy->pitch, p->device->multiprocessors);
    w->parts = scratch(p, ELEM_F32, w->splits * dy->pitch, n);
}

int plan_linear_weights(struct cuda_plan *p, int n, struct err *e)
{
    const struct op *op = op_of(p, n);
    struct place *dy = touch(p, op->in[0], n), *x = touch(p, op->in[1], n), *dw;

    if (dy->elem != p->elem || x->elem != p->elem)
        return err_set(e, ERR_METHOD, "needs rows of the plan's own layout");
    dw = put(p, op->out[0], n);
    if (dw->pitch != x->pitch || dw->rows > dy->pitch)
        return err_set(e, ERR_METHOD, "needs rows of the plan's own layout");
    add_product(p, n,
                &(struct product){.a = x,
                                  .b = dy,
                                  .d = dw,
                                  .transposes_b = true,
                                  .m = x->pitch,
                                  .n = dw->rows,
                                  .k = tensor_of(p, op->in[0])->dim[0],
                                  .grad = op->out[0]});
    if (out_of(op, 1) >= 0)
        add_bias_grad(p, n, dy);
    return 0;
}
