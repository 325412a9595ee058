/* dnn.h - the little of cuDNN's graph API that the backend needs.
 *
 * A dnn_graph is a few operations over tensors, put together call by call; the first failure
 * sticks and dnn_graph_done() tells it.  dnn_configs() asks the heuristics for engines that can
 * run it, best first, less those whose arithmetic the plan does not allow.  A dnn_kernel is one
 * of them made ready; dnn_run() enqueues it.
 *
 *   dnn_graph_new()   dnn_tensor() dnn_conv() dnn_pointwise() ...   dnn_graph_done()
 *   dnn_configs()     dnn_kernel_make()   for those that are tried
 *   dnn_bind()        addresses           dnn_run()                 each time
 *
 * Everything lives in the arena that dnn_graph_new() was given, descriptors too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_DNN_H
#define TRAIN_BACKEND_CUDA_DNN_H

#include "base/err.h"
#include "train/backend/cuda/kernels.h"
#include "train/graph/op.h"

#include <cudnn.h>

struct arena;

enum {
    DNN_MOST_OPS = 12,
    DNN_MOST_TENSORS = 24, /* with memory: what a run is given addresses for */
    DNN_MOST_CONFIGS = 16,
};

struct dnn_graph {
    struct arena *arena;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t ops[DNN_MOST_OPS];
    int op_count;
    int64_t uids[DNN_MOST_TENSORS]; /* of tensors with memory, in order of dnn_tensor() */
    int uid_count;
    int64_t next_uid;
    cudnnBackendDescriptor_t graph;
    cudnnStatus_t status; /* the first that was not success */
    const char *what;     /* what was tried then */
};

enum dnn_way {
    DNN_FORWARD,
    DNN_DATA,
    DNN_WEIGHTS,
};

/* N C H W (K C R S), and where each begins: any order in memory. */
struct dnn_shape {
    cudnnDataType_t type;
    int64_t dim[4], stride[4];
};

struct dnn_rules { /* which engines are allowed */
    bool is_repeatable;
    bool is_exact; /* fp32 without tensor cores or transforms */
    bool is_rough; /* 16-bit: parts of a sum may be added up in the output's type */
};

/* One engine with its knobs, ready to run. */
struct dnn_kernel {
    cudnnBackendDescriptor_t plan;
    size_t workspace_bytes;
};

/* Addresses for a kernel, in the order of the graph's tensors; made anew when they change.
 * Lies in the graph's arena, zeroed at first. */
struct dnn_pack {
    bool is_known; /* to the arena, which drops it */
    cudnnBackendDescriptor_t pack;
    cudnnBackendDescriptor_t plan; /* that it was made for */
    void *data[DNN_MOST_TENSORS];
    void *workspace;
};

cudnnDataType_t dnn_type(enum elem elem);
/* Channels last: dims of the letters, `pitch` elements from pixel to pixel. */
struct dnn_shape
dnn_image(enum elem elem, int64_t n, int64_t c, int64_t h, int64_t w, int64_t pitch);
/* 1 C 1 1. */
struct dnn_shape dnn_list(enum elem elem, int64_t c);

struct dnn_graph *dnn_graph_new(struct arena *arena, cudnnHandle_t handle);
cudnnBackendDescriptor_t dnn_tensor(struct dnn_graph *g, const struct dnn_shape *shape);
/* A value that is only passed on inside the kernel, always fp32. */
cudnnBackendDescriptor_t dnn_virtual(struct dnn_graph *g, const struct dnn_shape *shape);
/* x, w, y are what the forward convolution calls so; `way` says which one is computed. */
void dnn_conv(struct dnn_graph *g,
              enum dnn_way way,
              const struct window *window,
              cudnnBackendDescriptor_t x,
              cudnnBackendDescriptor_t w,
              cudnnBackendDescriptor_t y);
/* y = x mode b; b is NULL for modes of one operand.  RELU_BWD: x is dy, b what went into the
 * relu. */
void dnn_pointwise(struct dnn_graph *g,
                   cudnnPointwiseMode_t mode,
                   cudnnBackendDescriptor_t x,
                   cudnnBackendDescriptor_t b,
                   cudnnBackendDescriptor_t y);
/* Sums over all but C of y and of its square. */
void dnn_genstats(struct dnn_graph *g,
                  cudnnBackendDescriptor_t y,
                  cudnnBackendDescriptor_t sum,
                  cudnnBackendDescriptor_t square);

struct dnn_bn_weights { /* what the reduction of a batch norm's gradient reads and writes */
    cudnnBackendDescriptor_t dy, x, mean, inv_std, gamma;
    cudnnBackendDescriptor_t dgamma, dbeta, eq_dy, eq_x, eq_bias;
};
void dnn_bn_weights(struct dnn_graph *g, const struct dnn_bn_weights *bn);

/* 0, or -1 when something before it failed or cuDNN refuses the graph. */
int dnn_graph_done(struct dnn_graph *g, struct err *e);

/* How many engine configurations were found, at most DNN_MOST_CONFIGS; 0 when no engine takes
 * the graph. */
int dnn_configs(struct dnn_graph *g,
                const struct dnn_rules *rules,
                cudnnBackendDescriptor_t ret_configs[DNN_MOST_CONFIGS]);
/* Behind `count` of them, when those are few: what cuDNN keeps for shapes that the first list
 * knows nothing of.  Returns how many there are then. */
int dnn_more_configs(struct dnn_graph *g,
                     const struct dnn_rules *rules,
                     cudnnBackendDescriptor_t configs[DNN_MOST_CONFIGS],
                     int count);
/* -1 when the engine does not take these shapes after all, or needs more than `most_bytes`. */
int dnn_kernel_make(struct dnn_graph *g,
                    cudnnBackendDescriptor_t config,
                    size_t most_bytes,
                    struct dnn_kernel *ret_kernel);
/* "engine 38 2=1 13=0": number and knobs, for profiles. */
const char *dnn_config_name(struct dnn_graph *g, cudnnBackendDescriptor_t config);

/* data[i] is the address of the i-th dnn_tensor().  Nothing is done when all are as before. */
int dnn_bind(struct dnn_graph *g,
             struct dnn_pack *pack,
             const struct dnn_kernel *kernel,
             void *const *data,
             void *workspace,
             struct err *e);
int dnn_run(struct dnn_graph *g,
            const struct dnn_pack *pack,
            cudaStream_t stream,
            struct err *e);

#endif
