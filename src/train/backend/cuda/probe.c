/* probe.c - see train/backend/probe.h: one card's products and copies.
 *
 * Data are random: products of zeros run faster than any real ones.  A and B hold the same
 * numbers in two places, so that one copy in the host's memory is enough to check C.  The first
 * and the last product are compared bit by bit, which shows a card that computes wrong now and
 * then, and a few elements with a sum in double, which shows one that always does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/probe.h"

#include "train/backend/cuda/cuda.h"
#include "train/backend/cuda/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SIDE = 8192,
    CANDIDATES = 8, /* of cuBLASLt's guesses, each is tried once */
    SAMPLES = 64,
    MOST_QUEUED = 800, /* launches; the driver's queue has 1024 */
};
#define MATRIX_BYTES    ((size_t)SIDE * SIDE * 2)
#define WORKSPACE_BYTES ((size_t)64 << 20)
#define PRODUCT_FLOPS   (2.0 * SIDE * SIDE * SIDE)
#define MATRIX_S        0.8 /* long enough for clocks and power to settle */
#define COPY_S          0.25

struct probe {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasLtHandle_t blas;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t square;
    cublasLtMatmulAlgo_t algo;
    bool is_bf16;
    char *a, *b, *c, *workspace;     /* on the card */
    uint16_t *source, *first, *last; /* pinned, of the host */
    char *from, *to;                 /* for copies within the card */
    size_t copy_bytes;
};

static void probe_done(struct probe *p)
{
    if (p->square)
        cublasLtMatrixLayoutDestroy(p->square);
    if (p->product)
        cublasLtMatmulDescDestroy(p->product);
    if (p->blas)
        cublasLtDestroy(p->blas);
    cudaFree(p->a);
    cudaFree(p->b);
    cudaFree(p->c);
    cudaFree(p->workspace);
    cudaFree(p->from);
    cudaFree(p->to);
    cudaFreeHost(p->source);
    cudaFreeHost(p->first);
    cudaFreeHost(p->last);
    if (p->begin)
        cudaEventDestroy(p->begin);
    if (p->end)
        cudaEventDestroy(p->end);
    if (p->stream)
        cudaStreamDestroy(p->stream);
}

/* --- memory and numbers ----------------------------------------------------------------------
 */

static int take_card_memory(struct probe *p, struct err *e)
{
    size_t free_bytes, all_bytes;
    cudaError_t rc;

    if ((rc = cudaMalloc((void **)&p->a, MATRIX_BYTES)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&p->b, MATRIX_BYTES)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&p->c, MATRIX_BYTES)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&p->workspace, WORKSPACE_BYTES)) != cudaSuccess ||
        (rc = cudaMemGetInfo(&free_bytes, &all_bytes)) != cudaSuccess)
        return cuda_fail(e, rc, "get memory of the card");
    p->copy_bytes = (size_t)2 << 30; /* far beyond any cache */
    if (p->copy_bytes > free_bytes / 4)
        p->copy_bytes = free_bytes / 4;
    if ((rc = cudaMalloc((void **)&p->from, p->copy_bytes)) != cudaSuccess ||
        (rc = cudaMalloc((void **)&p->to, p->copy_bytes)) != cudaSuccess)
        return cuda_fail(e, rc, "get memory of the card");
    return 0;
}

static int take_host_memory(struct probe *p, struct err *e)
{
    cudaError_t rc;

    if ((rc = cudaMallocHost((void **)&p->source, MATRIX_BYTES)) != cudaSuccess ||
        (rc = cudaMallocHost((void **)&p->first, MATRIX_BYTES)) != cudaSuccess ||
        (rc = cudaMallocHost((void **)&p->last, MATRIX_BYTES)) != cudaSuccess)
        return cuda_fail(e, rc, "pin memory of the host");
    return 0;
}

/* Numbers of magnitude 0.5 to 1 with random signs and fractions: sign, fixed exponent, bits. */
static void draw_numbers(struct probe *p)
{
    const uint64_t exponent = p->is_bf16 ? 0x3f003f003f003f00ULL : 0x3800380038003800ULL;
    const uint64_t random = p->is_bf16 ? 0x807f807f807f807fULL : 0x83ff83ff83ff83ffULL;
    uint64_t x = 88172645463325252ULL, four;

    for (size_t i = 0; i < (size_t)SIDE * SIDE; i += 4) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        four = exponent | (x & random);
        memcpy(p->source + i, &four, sizeof four);
    }
}

static double value_of(const struct probe *p, uint16_t bits)
{
    int exponent = p->is_bf16 ? (bits >> 7) & 0xff : (bits >> 10) & 0x1f;
    int fraction = p->is_bf16 ? bits & 0x7f : bits & 0x3ff;
    int width = p->is_bf16 ? 7 : 10, bias = p->is_bf16 ? 127 : 15;
    double value = ldexp(1 + ldexp(fraction, -width), exponent - bias);

    return bits & 0x8000 ? -value : value;
}

static int send_numbers(struct probe *p, struct err *e)
{
    cudaError_t rc;

    draw_numbers(p);
    if ((rc = cudaMemcpy(p->a, p->source, MATRIX_BYTES, cudaMemcpyDefault)) != cudaSuccess ||
        (rc = cudaMemcpy(p->b, p->source, MATRIX_BYTES, cudaMemcpyDefault)) != cudaSuccess)
        return cuda_fail(e, rc, "copy to the card");
    for (size_t at = 0; at + MATRIX_BYTES <= p->copy_bytes; at += MATRIX_BYTES)
        if ((rc = cudaMemcpy(p->from + at, p->a, MATRIX_BYTES, cudaMemcpyDefault)) !=
            cudaSuccess)
            return cuda_fail(e, rc, "copy within the card");
    return 0;
}

/* --- what can be repeated and timed ----------------------------------------------------------
 */

typedef int work_fn(struct probe *p, struct err *e);

static int multiply(struct probe *p, struct err *e)
{
    const float one = 1, zero = 0;
    cublasStatus_t rc = cublasLtMatmul(p->blas, p->product, &one, p->a, p->square, p->b,
                                       p->square, &zero, p->c, p->square, p->c, p->square,
                                       &p->algo, p->workspace, WORKSPACE_BYTES, p->stream);

    return rc == CUBLAS_STATUS_SUCCESS ? 0 : blas_fail(e, rc, "multiply");
}

static int copy_within(struct probe *p, struct err *e)
{
    cudaError_t rc =
        cudaMemcpyAsync(p->to, p->from, p->copy_bytes, cudaMemcpyDeviceToDevice, p->stream);

    return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "copy within the card");
}

static int copy_to_card(struct probe *p, struct err *e)
{
    cudaError_t rc =
        cudaMemcpyAsync(p->to, p->source, MATRIX_BYTES, cudaMemcpyHostToDevice, p->stream);

    return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "copy to the card");
}

static int copy_from_card(struct probe *p, struct err *e)
{
    cudaError_t rc =
        cudaMemcpyAsync(p->last, p->to, MATRIX_BYTES, cudaMemcpyDeviceToHost, p->stream);

    return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "copy from the card");
}

/* Enqueue `times` of it between the events. */
static int enqueue(struct probe *p, work_fn *work, int times, struct err *e)
{
    cudaError_t rc = cudaEventRecord(p->begin, p->stream);

    if (rc != cudaSuccess)
        return cuda_fail(e, rc, "record an event");
    for (int i = 0; i < times; i++)
        if (work(p, e) < 0)
            return -1;
    rc = cudaEventRecord(p->end, p->stream);
    return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "record an event");
}

static int finish(struct probe *p, double *ret_s, struct err *e)
{
    float ms;
    cudaError_t rc = cudaEventSynchronize(p->end);

    if (rc != cudaSuccess || (rc = cudaEventElapsedTime(&ms, p->begin, p->end)) != cudaSuccess)
        return cuda_fail(e, rc, "wait for the card");
    *ret_s = ms / 1e3;
    return 0;
}

static int time_once(struct probe *p, work_fn *work, double *ret_s, struct err *e)
{
    return enqueue(p, work, 1, e) < 0 || finish(p, ret_s, e) < 0 ? -1 : 0;
}

/* Seconds of one of them, over about wanted_s of them; one goes before, to learn how many. */
static int time_many(struct probe *p,
                     work_fn *work,
                     double wanted_s,
                     void (*meanwhile)(void *arg),
                     void *arg,
                     double *ret_s,
                     struct err *e)
{
    double once = 0, all = 0;
    int times;

    if (time_once(p, work, &once, e) < 0 || time_once(p, work, &once, e) < 0)
        return -1;
    times = once > wanted_s / MOST_QUEUED ? (int)(wanted_s / once) + 1 : MOST_QUEUED;
    if (enqueue(p, work, times, e) < 0)
        return -1;
    if (meanwhile) {
        usleep((useconds_t)(once * times * 0.6e6));
        meanwhile(arg);
    }
    if (finish(p, &all, e) < 0)
        return -1;
    *ret_s = all / times;
    return 0;
}

/* --- products --------------------------------------------------------------------------------
 */

static int make_product(struct probe *p, struct err *e)
{
    cudaDataType_t type = p->is_bf16 ? CUDA_R_16BF : CUDA_R_16F;
    cublasStatus_t rc;

    if ((rc = cublasLtCreate(&p->blas)) != CUBLAS_STATUS_SUCCESS ||
        (rc = cublasLtMatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F)) !=
            CUBLAS_STATUS_SUCCESS ||
        (rc = cublasLtMatrixLayoutCreate(&p->square, type, SIDE, SIDE, SIDE)) !=
            CUBLAS_STATUS_SUCCESS)
        return blas_fail(e, rc, "set up cuBLASLt");
    return 0;
}

static int ask_candidates(struct probe *p,
                          cublasLtMatmulHeuristicResult_t *found,
                          int *ret_count,
                          struct err *e)
{
    const size_t workspace = WORKSPACE_BYTES;
    cublasLtMatmulPreference_t wish = NULL;
    cublasStatus_t rc = cublasLtMatmulPreferenceCreate(&wish);

    if (rc == CUBLAS_STATUS_SUCCESS)
        rc = cublasLtMatmulPreferenceSetAttribute(
            wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    if (rc == CUBLAS_STATUS_SUCCESS)
        rc =
            cublasLtMatmulAlgoGetHeuristic(p->blas, p->product, p->square, p->square, p->square,
                                           p->square, wish, CANDIDATES, found, ret_count);
    if (wish)
        cublasLtMatmulPreferenceDestroy(wish);
    return rc == CUBLAS_STATUS_SUCCESS ? 0 : blas_fail(e, rc, "find a kernel for products");
}

/* The fastest of what cuBLASLt proposes. */
static int choose_product(struct probe *p, struct err *e)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    cublasLtMatmulAlgo_t best = {0};
    double best_s = INFINITY, s = 0;
    int count = 0;

    if (make_product(p, e) < 0 || ask_candidates(p, found, &count, e) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        p->algo = found[i].algo;
        if (time_once(p, multiply, &s, e) < 0 || time_once(p, multiply, &s, e) < 0)
            return -1;
        if (s < best_s) {
            best_s = s;
            best = found[i].algo;
        }
    }
    if (count == 0)
        return err_set(e, ERR_METHOD, "cuBLASLt has no kernel for products of 16-bit numbers");
    p->algo = best;
    return 0;
}

static int fetch_product(struct probe *p, uint16_t *to, struct err *e)
{
    cudaError_t rc = cudaStreamSynchronize(p->stream);

    if (rc != cudaSuccess ||
        (rc = cudaMemcpy(to, p->c, MATRIX_BYTES, cudaMemcpyDefault)) != cudaSuccess)
        return cuda_fail(e, rc, "copy from the card");
    return 0;
}

/* An element of C against its sum in double.  C has eight bits, so it may be off by 1/256 of
 * itself; sums of 8192 terms of variance 0.34 have a spread of 53, beside which 0.5 is far more
 * than sums in fp32 are off by and far less than what a broken unit makes. */
static bool is_element_right(const struct probe *p, size_t row, size_t column)
{
    double sum = 0, got = value_of(p, p->last[row + column * SIDE]);

    for (size_t k = 0; k < SIDE; k++)
        sum +=
            value_of(p, p->source[row + k * SIDE]) * value_of(p, p->source[k + column * SIDE]);
    return fabs(got - sum) <= fabs(sum) / 128 + 0.5;
}

static bool is_right(const struct probe *p)
{
    uint64_t x = 1;

    if (memcmp(p->first, p->last, MATRIX_BYTES) != 0)
        return false;
    for (int i = 0; i < SAMPLES; i++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        if (!is_element_right(p, (x >> 33) % SIDE, (x >> 48) % SIDE))
            return false;
    }
    return true;
}

static int measure_products(struct probe *p,
                            void (*under_load)(void *arg),
                            void *arg,
                            struct probe_figures *f,
                            struct err *e)
{
    double s = 0;

    if (choose_product(p, e) < 0 || multiply(p, e) < 0 || fetch_product(p, p->first, e) < 0 ||
        time_many(p, multiply, MATRIX_S, under_load, arg, &s, e) < 0 ||
        fetch_product(p, p->last, e) < 0)
        return -1;
    f->matrix_flops = PRODUCT_FLOPS / s;
    f->is_right = is_right(p);
    return 0;
}

static int measure_copies(struct probe *p, struct probe_figures *f, struct err *e)
{
    double within = 0, to = 0, from = 0;

    if (time_many(p, copy_within, COPY_S, NULL, NULL, &within, e) < 0 ||
        time_many(p, copy_to_card, COPY_S, NULL, NULL, &to, e) < 0 ||
        time_many(p, copy_from_card, COPY_S, NULL, NULL, &from, e) < 0)
        return -1;
    f->copy_bytes_s = 2.0 * (double)p->copy_bytes / within;
    f->to_card_bytes_s = (double)MATRIX_BYTES / to;
    f->from_card_bytes_s = (double)MATRIX_BYTES / from;
    return 0;
}

/* --- a card ----------------------------------------------------------------------------------
 */

static int look_at_card(int card, struct probe *p, struct probe_figures *f, struct err *e)
{
    struct cudaDeviceProp facts;
    cudaError_t rc;

    if ((rc = cudaSetDevice(card)) != cudaSuccess ||
        (rc = cudaGetDeviceProperties(&facts, card)) != cudaSuccess ||
        (rc = cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking)) != cudaSuccess ||
        (rc = cudaEventCreate(&p->begin)) != cudaSuccess ||
        (rc = cudaEventCreate(&p->end)) != cudaSuccess)
        return cuda_fail(e, rc, "open the card");
    snprintf(f->name, sizeof f->name, "%s", facts.name);
    f->memory_bytes = (int64_t)facts.totalGlobalMem;
    f->is_bf16 = p->is_bf16 = facts.major >= 8;
    return 0;
}

static int measure(int card,
                   void (*under_load)(void *arg),
                   void *arg,
                   struct probe_figures *ret_figures,
                   struct err *e)
{
    struct probe p = {0};
    struct probe_figures f = {0};
    int rc = look_at_card(card, &p, &f, e);

    if (rc == 0)
        rc = take_card_memory(&p, e) < 0 || take_host_memory(&p, e) < 0 ||
                     send_numbers(&p, e) < 0 ||
                     measure_products(&p, under_load, arg, &f, e) < 0 ||
                     measure_copies(&p, &f, e) < 0
                 ? -1
                 : 0;
    probe_done(&p);
    if (rc == 0)
        *ret_figures = f;
    return rc;
}

static int bus_of(int card, char ret_bus[PROBE_BUS_BYTES], struct err *e)
{
    cudaError_t rc = cudaDeviceGetPCIBusId(ret_bus, PROBE_BUS_BYTES, card);

    return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "find the card's address");
}

const struct probe_ops probe_cuda = {
    .abi = PROBE_ABI,
    .cards = cuda_cards,
    .bus = bus_of,
    .measure = measure,
    .gang_id = probe_gang_id,
    .all_reduce = probe_all_reduce,
};
