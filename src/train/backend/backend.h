/* backend.h - what runs a graph: the oracle in plain C, oneDNN, later CUDA.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend is given the whole step, plans it once (kernels, layouts, memory, order), and then
 * runs steps without allocating, deciding or asking anything.  The same interface fits a CUDA
 * graph: `plan` captures, `run` launches, `wait` waits for an event.
 *
 *   device_open()   threads or card
 *   plan_new()      graph + options -> plan; parameters get their initial values
 *   plan_write()    parameters and states from a checkpoint
 *   plan_run()      hand a step over; may return before it is done
 *   plan_wait()     its values
 *   plan_read()     parameters and states for a checkpoint
 *
 * Rules for a backend:
 * 1. No allocation, no file, no lock and no system call between plan_new and plan_free, but
 *    the waits of the reducer (the test counts malloc calls in steps 2..5: none of ours; what a
 *    library does inside a call, such as oneDNN's small map of arguments, is its own).
 * 2. Params, states and values come out as the list of ops says; all else is its own affair.
 * 3. Layouts are chosen at plan time and kept from op to op; activations are not reordered in a
 *    step, weights at most once after their update.
 * 4. All gradients lie in one arena: bucket after bucket, params in the order of
 *    graph->bucket_params, each slot in the layout that the weight-gradient kernel writes and
 *    padded with zeros.  The master and the optimiser slots have the same layout, so reduction
 *    and update are loops over plain floats.  With a reducer the arena is reducer_arena()'s,
 * and plan_new() attaches the buckets; the op REDUCE_START calls reducer_start(), REDUCE_WAIT
 *    reducer_wait().  plan_layout() describes it in text, and ranks
 *    compare it, since another instruction set may choose another.
 * 5. Precision belongs to the plan: activations, their gradients and the copies of weights that
 *    kernels read are in it; master weights, slots, statistics, losses and gradients in the
 *    arena are fp32.
 * 6. Same seed, same device, same threads: same bits, when options.is_repeatable asks for it
 *    (CPU backends always do it).
 * 7. An op kind or precision that it cannot do is ERR_METHOD at plan time, naming the op; never
 *    a silent fallback.
 *
 * Threads: a device and its plans belong to one thread, the step thread.
 */
#ifndef TRAIN_BACKEND_BACKEND_H
#define TRAIN_BACKEND_BACKEND_H

#include "base/err.h"
#include "train/graph/graph.h"

#include <stddef.h>
#include <stdint.h>

struct comm;
struct str;
struct device; /* each backend's own, begins with struct device_head */
struct plan;   /* likewise, struct plan_head */
struct reducer;

enum {
    BACKEND_ABI = 3, /* grows with every change here: backends can be loaded at run time */
};

enum precision {
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISIONS,
};

struct device_options {
    int threads;       /* CPU: as given to par_init */
    int card;          /* GPU: by local rank */
    double memory_cap; /* share of the card's memory; 0 = all that is needed */
};

struct device_facts {
    char name[96];       /* "AMD EPYC 9654, 2 threads, avx2", "NVIDIA H200" */
    char library[64];    /* "oneDNN 2.6.3", "cuDNN 9.14" */
    unsigned precisions; /* bits 1 << PRECISION_x */
    int64_t memory_bytes;
};

struct plan_options {
    enum precision precision;
    bool is_repeatable;
    bool avoids_winograd; /* CPUs: 3 x 3 convolutions directly, with their plain rounding */
    bool keeps_all; /* tests: no tensor's memory is used again, all can be read after a step */
    uint64_t seed;  /* of dropout; has the rank in it.  Initial values use init_seed */
    uint64_t init_seed;
    struct comm *comm;       /* for backends that bring their own reduction (NCCL) */
    struct reducer *reducer; /* for those that do not; NULL with one rank */
    struct plan *shares;     /* eval: params and states of this plan are used in place, also
                                when another graph made them; matched by name */
    size_t workspace_cap;    /* bytes for the scratch memory of one kernel; 0 = no limit */
    const char *cache_dir;   /* measured choices are kept here; NULL = nowhere */
};

enum {
    STEP_FIRST = 1 << 0, /* gradients in the arena are written; without it, added to */
    STEP_LAST = 1 << 1,  /* the control ops run; without it, they are passed over */
    STEP_WHOLE = STEP_FIRST | STEP_LAST,
};

struct step {
    uint64_t number; /* from 0; counts updates: dropout and Adam use it */
    unsigned flags;  /* of an eval graph: 0 */
    float lr;
    int pass; /* 0.. within the step when gradients accumulate; part of the dropout counter */
    /* The host's data for graph->inputs[i], dense, borrowed until plan_wait for this ticket (a
     * CPU backend reads it in place).  NULL = what was fed the last time is still there, in the
     * host's memory too: synthetic data cost nothing. */
    const void *feed[GRAPH_MOST_INPUTS];
};

struct step_values {
    float value[VALUES]; /* NaN for those that the graph does not have */
};

struct plan_memory {
    int64_t params_bytes; /* masters, copies, slots */
    int64_t grads_bytes;
    int64_t activations_bytes; /* the planned block, with workspaces */
    int64_t at_least_bytes;    /* what the block could not go below (memplan.h) */
    int64_t other_bytes;       /* library's own, as far as it tells */
};

struct plan_span { /* one op's time in one step, for profile and trace */
    int op;        /* first op of the graph that it did; fused ones are told in `label` */
    const char *label;
    int track; /* 0 compute, 1 reorders and copies, 2 communication */
    int64_t begin_ns, end_ns;
};

struct backend_ops {
    int abi;          /* BACKEND_ABI */
    const char *name; /* "ref", "onednn", "cuda" */
    const char *summary;
    unsigned fusions;   /* of fuse.h: what it wants done to graphs */
    bool updates_early; /* step.h */
    bool returns_early; /* plan_run comes back before its step is done: it is given the next one
                           before its values are waited for */

    int (*device_open)(const struct device_options *options,
                       struct device **ret_device,
                       struct err *e);
    void (*device_free)(struct device *device);
    void (*device_facts)(const struct device *device, struct device_facts *ret_facts);

    int (*plan_new)(struct device *device,
                    const struct graph *graph,
                    const struct plan_options *options,
                    struct plan **ret_plan,
                    struct err *e);
    void (*plan_free)(struct plan *plan);
    /* Hand over one pass.  Steps are done in the order of calls; at most PLAN_MOST_AHEAD may
     * be unwaited for. */
    int (*plan_run)(struct plan *plan,
                    const struct step *step,
                    uint64_t *ret_ticket,
                    struct err *e);
    /* Wait for a ticket and those before it. */
    int (*plan_wait)(struct plan *plan,
                     uint64_t ticket,
                     struct step_values *ret_values,
                     struct err *e);
    /* Whole tensors in logical order: fp32 for params, states, grads and activations, the
     * graph's dtype for the rest.  Between steps only.  Activations and their
     * gradients can be read when the plan keeps them (options.keeps_all); else ERR_METHOD. */
    int (*plan_read)(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e);
    int (*plan_write)(
        struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e);
    void (*plan_memory)(const struct plan *plan, struct plan_memory *ret_memory);
    /* One line for each param: name, offset and slot size in the arena, layout. */
    void (*plan_layout)(const struct plan *plan, struct str *out);
    /* Time each op of the steps that follow; costs a little (GPU: the graph is not used). */
    int (*plan_time)(struct plan *plan, bool is_on, struct err *e);
    /* Of the last step timed; borrowed until the next run. */
    const struct plan_span *(*plan_spans)(struct plan *plan, int *ret_count);
};

enum {
    PLAN_MOST_AHEAD = 2,
};

/* Every backend's own structs begin with these; the functions below go through them. */
struct device_head {
    const struct backend_ops *ops;
};
struct plan_head {
    const struct backend_ops *ops;
    const struct graph *graph;
};

/* The methods, as functions. */
int device_open(const struct backend_ops *ops,
                const struct device_options *options,
                struct device **ret_device,
                struct err *e);
void device_free(struct device *device);
void device_facts(const struct device *device, struct device_facts *ret_facts);
int plan_new(struct device *device,
             const struct graph *graph,
             const struct plan_options *options,
             struct plan **ret_plan,
             struct err *e);
void plan_free(struct plan *plan);
int plan_run(struct plan *plan, const struct step *step, uint64_t *ret_ticket, struct err *e);
int plan_wait(struct plan *plan,
              uint64_t ticket,
              struct step_values *ret_values,
              struct err *e);
/* Both of the above. */
int plan_step(struct plan *plan,
              const struct step *step,
              struct step_values *ret_values,
              struct err *e);
int plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e);
int plan_write(struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e);
void plan_memory(const struct plan *plan, struct plan_memory *ret_memory);
void plan_layout(const struct plan *plan, struct str *out);
int plan_time(struct plan *plan, bool is_on, struct err *e);
const struct plan_span *plan_spans(struct plan *plan, int *ret_count);
const struct graph *plan_graph(const struct plan *plan);

int precision_parse(const char *text, enum precision *ret_precision, struct err *e);
const char *precision_name(enum precision precision);

#endif
