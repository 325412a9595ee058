/* cuda.c - the backend: the card, plans, errors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/cuda.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/cuda/capture.h"
#include "train/backend/cuda/feed.h"
#include "train/backend/cuda/make.h"
#include "train/backend/cuda/params.h"
#include "train/backend/cuda/tune.h"
#include "train/graph/fuse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int cuda_fail(struct err *e, cudaError_t status, const char *what)
{
    enum err_code code = status == cudaErrorMemoryAllocation ? ERR_NO_SPACE : ERR_INTERNAL;

    return err_set(e, code, "%s: CUDA: %s (%s)", what, cudaGetErrorString(status),
                   cudaGetErrorName(status));
}

int dnn_fail(struct err *e, cudnnStatus_t status, const char *what)
{
    char more[200] = "";

    cudnnGetLastErrorString(more, sizeof more);
    return err_set(e, ERR_INTERNAL, "%s: cuDNN: %s %s", what, cudnnGetErrorString(status),
                   more);
}

int blas_fail(struct err *e, cublasStatus_t status, const char *what)
{
    return err_set(e, ERR_INTERNAL, "%s: cuBLASLt: %s", what, cublasLtGetStatusString(status));
}

int launched(struct err *e, const char *what)
{
    cudaError_t status = cudaGetLastError();

    return status == cudaSuccess ? 0 : cuda_fail(e, status, what);
}

static struct cuda_device *device_of(const struct device *device)
{
    return (struct cuda_device *)(void *)(uintptr_t)device;
}

int cuda_cards(void)
{
    int count = 0;

    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return count;
}

static int find_card(int card, struct err *e)
{
    int count = 0, version = 0;
    cudaError_t status = cudaGetDeviceCount(&count);

    if (status != cudaSuccess)
        (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&version);
    if (version == 0)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no NVIDIA driver here (libcuda.so.1): no card can be used");
    if (status == cudaErrorInsufficientDriver)
        return err_set(e, ERR_NOT_FOUND,
                       "the NVIDIA driver is too old: it can do CUDA %d.%d, needed is %d.%d",
                       version / 1000, version % 1000 / 10, CUDART_VERSION / 1000,
                       CUDART_VERSION % 1000 / 10);
    if (status != cudaSuccess && status != cudaErrorNoDevice)
        return cuda_fail(e, status, "looking for cards");
    if (count == 0)
        return err_set(e, ERR_NOT_FOUND, "the NVIDIA driver is here, but no card");
    if (card < 0 || card >= count)
        return err_set(e, ERR_NOT_FOUND, "there is no card %d: there are %d, from 0", card,
                       count);
    return 0;
}

static void cuda_device_free(struct device *device)
{
    struct cuda_device *d = device_of(device);

    if (d->blas)
        cublasLtDestroy(d->blas);
    if (d->dnn)
        cudnnDestroy(d->dnn);
    if (d->copying)
        cudaStreamDestroy(d->copying);
    if (d->stream)
        cudaStreamDestroy(d->stream);
    free(d);
}

static int learn(struct cuda_device *d, struct err *e)
{
    struct cudaDeviceProp prop;
    cudaError_t status = cudaSetDevice(d->card);

    if (status == cudaSuccess)
        status = cudaGetDeviceProperties(&prop, d->card);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "opening the card");
    snprintf(d->name, sizeof d->name, "%s", prop.name);
    d->multiprocessors = prop.multiProcessorCount;
    d->capability = prop.major * 10 + prop.minor;
    d->l2_bytes = (size_t)prop.l2CacheSize;
    d->memory_bytes = (int64_t)prop.totalGlobalMem;
    if (prop.major < 8)
        return err_set(e, ERR_METHOD, "%s has compute capability %d.%d: at least 8.0 is needed",
                       d->name, prop.major, prop.minor);
    return 0;
}

static int open_libraries(struct cuda_device *d, struct err *e)
{
    cudaError_t status = cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking);
    cudnnStatus_t dnn;
    cublasStatus_t blas;

    if (status == cudaSuccess)
        status = cudaStreamCreateWithFlags(&d->copying, cudaStreamNonBlocking);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "a stream");
    dnn = cudnnCreate(&d->dnn);
    if (dnn == CUDNN_STATUS_SUCCESS)
        dnn = cudnnSetStream(d->dnn, d->stream);
    if (dnn != CUDNN_STATUS_SUCCESS)
        return dnn_fail(e, dnn, "opening cuDNN");
    blas = cublasLtCreate(&d->blas);
    return blas == CUBLAS_STATUS_SUCCESS ? 0 : blas_fail(e, blas, "opening cuBLASLt");
}

static int cuda_device_open(const struct device_options *options,
                            struct device **ret_device,
                            struct err *e)
{
    struct cuda_device *d;

    if (find_card(options->card, e) < 0)
        return -1;
    d = xcalloc(1, sizeof *d);
    d->head.ops = &backend_cuda;
    d->card = options->card;
    d->memory_cap = options->memory_cap;
    if (learn(d, e) < 0 || open_libraries(d, e) < 0) {
        cuda_device_free((struct device *)(void *)d);
        return -1;
    }
    *ret_device = (struct device *)(void *)d;
    return 0;
}

static void cuda_device_facts(const struct device *device, struct device_facts *ret_facts)
{
    const struct cuda_device *d = device_of(device);
    size_t dnn = cudnnGetVersion(), blas = cublasLtGetVersion();

    *ret_facts =
        (struct device_facts){.precisions = 1u << PRECISION_FP32 | 1u << PRECISION_TF32 |
                                            1u << PRECISION_BF16 | 1u << PRECISION_FP16,
                              .memory_bytes = d->memory_bytes};
    snprintf(ret_facts->name, sizeof ret_facts->name, "%s", d->name);
    snprintf(ret_facts->library, sizeof ret_facts->library,
             "cuDNN %zu.%zu.%zu, cuBLASLt %zu.%zu", dnn / 10000, dnn % 10000 / 100, dnn % 100,
             blas / 10000, blas % 10000 / 100);
}

static void cuda_plan_free(struct plan *plan)
{
    struct cuda_plan *p = cuda_plan(plan);

    (void)cudaStreamSynchronize(p->device->stream);
    capture_free(p->capture);
    feed_free(p->feed);
    params_free(p->params);
    tune_free(p->tune);
    for (int i = 0; i < p->allocated_count; i++)
        cudaFree(p->allocated[i]);
    free((void *)p->allocated);
    free(p->actions);
    free(p->items);
    free((void *)p->more);
    free(p->tunings);
    arena_free(p->arena);
    free(p);
}

static enum elem elem_for(enum precision precision)
{
    return precision == PRECISION_BF16   ? ELEM_BF16
           : precision == PRECISION_FP16 ? ELEM_F16
                                         : ELEM_F32;
}

/* Times hold for one kind of card and one version of each library. */
static struct tune *open_tune(const struct cuda_device *device, const char *dir)
{
    char name[160];

    snprintf(name, sizeof name, "cuda-%s-%zu-%zu.tune", device->name, cudnnGetVersion(),
             cublasLtGetVersion());
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-')
            *c = '-';
    return tune_open(dir, name);
}

static struct cuda_plan *new_plan(struct cuda_device *device,
                                  const struct graph *graph,
                                  const struct plan_options *options)
{
    struct cuda_plan *p = xcalloc(1, sizeof *p);
    size_t tensors = (size_t)graph->tensor_count + 1, ops = (size_t)graph->op_count + 1;

    p->head = (struct plan_head){&backend_cuda, graph};
    p->options = *options;
    p->device = device;
    p->elem = elem_for(options->precision);
    p->shares = options->shares ? cuda_plan(options->shares) : NULL;
    p->arena = arena_new();
    p->places = arena_alloc(p->arena, tensors * sizeof *p->places);
    p->last_read = arena_alloc(p->arena, tensors * sizeof *p->last_read);
    p->is_done = arena_alloc(p->arena, ops * sizeof *p->is_done);
    p->kept = arena_alloc(p->arena, ops * sizeof(void *));
    p->tune = open_tune(device, options->cache_dir);
    for (size_t t = 0; t < tensors; t++)
        p->places[t].item = -1;
    return p;
}

static int cuda_plan_new(struct device *device,
                         const struct graph *graph,
                         const struct plan_options *options,
                         struct plan **ret_plan,
                         struct err *e)
{
    cudaError_t status = cudaSetDevice(device_of(device)->card);
    struct cuda_plan *p;

    if (status != cudaSuccess)
        return cuda_fail(e, status, "the card");
    p = new_plan(device_of(device), graph, options);
    if (make_plan(p, e) < 0) {
        cuda_plan_free((struct plan *)(void *)p);
        return -1;
    }
    *ret_plan = (struct plan *)(void *)p;
    return 0;
}

static void cuda_plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    const struct cuda_plan *p = cuda_plan(plan);
    int64_t counted;

    *ret_memory = (struct plan_memory){
        .activations_bytes = (int64_t)(p->memory.bytes + p->workspace_bytes),
        .at_least_bytes = (int64_t)(p->memory.at_least + p->workspace_bytes)};
    params_memory(p->params, ret_memory);
    counted =
        ret_memory->activations_bytes + ret_memory->params_bytes + ret_memory->grads_bytes;
    if ((int64_t)p->allocated_bytes > counted)
        ret_memory->other_bytes = (int64_t)p->allocated_bytes - counted;
}

static void cuda_plan_layout(const struct plan *plan, struct str *out)
{
    const struct cuda_plan *p = cuda_plan(plan);

    for (int i = 0; i < p->params->count; i++) {
        const struct param *param = &p->params->all[i];
        const struct place *place = &param->master_place;

        str_addf(out, "%s %zu %zu rows %lld pitch %lld\n", tensor_of(p, param->tensor)->name,
                 param->offset, param->count, (long long)place->rows, (long long)place->pitch);
    }
}

const struct backend_ops backend_cuda = {
    .abi = BACKEND_ABI,
    .name = "cuda",
    .summary = "NVIDIA cards through cuDNN and cuBLASLt",
    .fusions = FUSE_BN_RELU | FUSE_BN_ADD_RELU | FUSE_CONV_RELU | FUSE_LINEAR_ACT |
               FUSE_DROPOUT_ADD | FUSE_ADD_LAYERNORM,
    .updates_early = true,
    .returns_early = true,
    .device_open = cuda_device_open,
    .device_free = cuda_device_free,
    .device_facts = cuda_device_facts,
    .plan_new = cuda_plan_new,
    .plan_free = cuda_plan_free,
    .plan_run = cuda_plan_run,
    .plan_wait = cuda_plan_wait,
    .plan_read = cuda_plan_read,
    .plan_write = cuda_plan_write,
    .plan_memory = cuda_plan_memory,
    .plan_layout = cuda_plan_layout,
    .plan_time = cuda_plan_time,
    .plan_spans = cuda_plan_spans,
};
