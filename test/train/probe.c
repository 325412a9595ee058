/* probe.c - one network, a few steps, everything written out: for comparison with another
 * implementation that starts from the same weights and pictures.
 *
 *   train-probe MODEL DATASET BATCH SIZE STEPS RATE FOLDER [BACKEND [PRECISION]]
 *
 * BACKEND: the CPU's best unless one is named.  PRECISION: fp32.
 *
 * Into FOLDER: tensors.txt ("param|state NAME DIMS"), and as plain floats in that order
 * begin.bin (params and states before the first step), grads.bin (of the params, in the first
 * step), end.bin (params and states after the last); images.bin, labels.bin; losses.txt; and
 * eval.txt, the loss of an eval graph that shares the trained params, after the last step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/backend/backend.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"
#include "train/graph/step.h"
#include "train/model/model.h"
#include "train/num/par.h"
#include "train/num/rng.h"
#include "train/run/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLASSES = 101,
    SEED = 11,
};

static const float CALM_SHIFT = 1.0f, CALM_SCALE = 0.35f;
/* Small gradients of activations have fewer bits in fp16; those of params are divided again. */
static const float FP16_LOSS_SCALE = 1024;

struct probe {
    const struct backend_ops *backend;
    enum precision precision;
    float loss_scale;
    const struct model *model;
    struct model_options options;
    struct graph *graph, *eval;
    struct device *device;
    struct plan *plan, *eval_plan;
    const char *folder;
    float *images;
    int32_t *labels;
    float rate;
    int steps;
};

static FILE *open_in(const struct probe *p, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", p->folder, name);
    FILE *file = fopen(path, "we");

    if (!file) {
        fprintf(stderr, "train-probe: could not write %s\n", path);
        exit(1);
    }
    return file;
}

static int build(struct probe *p, struct err *e)
{
    struct step_spec spec = {.fusion_bytes = 1 << 20,
                             .ranks = 1,
                             .updates_early = p->backend->updates_early,
                             .passes = 1};

    optim_defaults(&spec.optim, OPTIM_MOMENTUM);
    spec.optim.momentum = 0.9f;
    spec.optim.with_nesterov = false;
    spec.optim.weight_decay = 1e-4f;
    spec.optim.loss_scale = p->loss_scale;
    if (model_graph(p->model, GRAPH_TRAIN, &p->options, &p->graph, e) < 0 ||
        model_graph(p->model, GRAPH_EVAL, &p->options, &p->eval, e) < 0)
        return -1;
    graph_fuse(p->graph, p->backend->fusions);
    graph_fuse(p->eval, p->backend->fusions);
    if (graph_differentiate(p->graph, e) < 0)
        return -1;
    return graph_finish_step(p->graph, &spec, e);
}

static int plan(struct probe *p, struct err *e)
{
    struct plan_options options = {.precision = p->precision, .seed = SEED, .init_seed = SEED};

    if (device_open(p->backend, &(struct device_options){0}, &p->device, e) < 0 ||
        plan_new(p->device, p->graph, &options, &p->plan, e) < 0)
        return -1;
    options.shares = p->plan;
    return plan_new(p->device, p->eval, &options, &p->eval_plan, e);
}

/* A deep network with batch norms at its beginning is chaos: half of all relus lie near their
 * kink, a last bit flips some, and fp32 gradients are two per cent from those in double, here
 * and in PyTorch alike.  Nothing fine can be compared there.  So the norms begin away from the
 * kink, and blocks add little to what goes past them. */
static int calm(struct probe *p, struct err *e)
{
    for (int t = 0; t < p->graph->tensor_count; t++) {
        const struct tensor *tensor = &p->graph->tensors[t];
        size_t count = (size_t)tensor_elements(tensor);
        bool is_bias = str_ends(tensor->name, ".bias");

        if (tensor->role != ROLE_PARAM || tensor->decays)
            continue;
        auto_free float *values = xcalloc(count, sizeof *values);
        for (size_t i = 0; i < count; i++)
            values[i] = is_bias ? CALM_SHIFT : CALM_SCALE;
        if (plan_write(p->plan, t, values, count * sizeof *values, e) < 0)
            return -1;
    }
    return 0;
}

static void make_batch(struct probe *p)
{
    int64_t count = tensor_elements(&p->graph->tensors[p->graph->inputs[0]]);
    FILE *images = open_in(p, "images.bin"), *labels = open_in(p, "labels.bin");
    struct rng rng;

    rng_init(&rng, SEED, rng_stream("probe"));
    p->images = xcalloc((size_t)count, sizeof *p->images);
    p->labels = xcalloc((size_t)p->options.batch, sizeof *p->labels);
    for (int64_t i = 0; i < count; i++)
        p->images[i] = rng_normal(&rng);
    for (int64_t i = 0; i < p->options.batch; i++)
        p->labels[i] = (int32_t)rng_below(&rng, CLASSES);
    fwrite(p->images, sizeof *p->images, (size_t)count, images);
    fwrite(p->labels, sizeof *p->labels, (size_t)p->options.batch, labels);
    fclose(images);
    fclose(labels);
}

static bool is_kept(const struct tensor *t)
{
    return t->role == ROLE_PARAM ||
           (t->role == ROLE_STATE && !str_starts(t->name, "optimizer."));
}

/* One file of params and states, or of gradients. */
static int write_all(struct probe *p, const char *name, bool grads, struct err *e)
{
    FILE *file = open_in(p, name);
    int result = 0;

    for (int t = 0; t < p->graph->tensor_count && result == 0; t++) {
        const struct tensor *tensor = &p->graph->tensors[t];
        size_t count = (size_t)tensor_elements(tensor);

        if (grads ? tensor->role != ROLE_PARAM : !is_kept(tensor))
            continue;
        auto_free float *values = xcalloc(count, sizeof *values);
        result =
            plan_read(p->plan, grads ? tensor->grad : t, values, count * sizeof *values, e);
        for (size_t i = 0; i < count && grads; i++)
            values[i] /= p->loss_scale;
        fwrite(values, sizeof *values, count, file);
    }
    fclose(file);
    return result;
}

static void write_list(struct probe *p)
{
    FILE *file = open_in(p, "tensors.txt");

    for (int t = 0; t < p->graph->tensor_count; t++) {
        const struct tensor *tensor = &p->graph->tensors[t];

        if (!is_kept(tensor))
            continue;
        fprintf(file, "%s %s ", tensor->role == ROLE_PARAM ? "param" : "state", tensor->name);
        for (int i = 0; i < tensor->dims; i++)
            fprintf(file, "%s%lld", i ? "," : "", (long long)tensor->dim[i]);
        fputc('\n', file);
    }
    fclose(file);
}

static int train(struct probe *p, struct err *e)
{
    FILE *file = open_in(p, "losses.txt");
    struct step_values values;
    int result = 0;

    for (int i = 0; i < p->steps && result == 0; i++) {
        struct step step = {.number = (uint64_t)i,
                            .flags = STEP_WHOLE,
                            .lr = p->rate,
                            .feed = {p->images, p->labels}};

        result = plan_step(p->plan, &step, &values, e);
        if (result == 0 && i == 0)
            result = write_all(p, "grads.bin", true, e);
        fprintf(file, "%.9g %.9g\n", (double)values.value[VALUE_LOSS],
                (double)values.value[VALUE_L2]);
    }
    fclose(file);
    return result;
}

static int evaluate(struct probe *p, struct err *e)
{
    FILE *file = open_in(p, "eval.txt");
    struct step step = {.feed = {p->images, p->labels}};
    struct step_values values;
    int result = plan_step(p->eval_plan, &step, &values, e);

    if (result == 0)
        fprintf(file, "%.9g %g %g\n", (double)values.value[VALUE_LOSS],
                (double)values.value[VALUE_TOP1], (double)values.value[VALUE_TOP5]);
    fclose(file);
    return result;
}

static int run(struct probe *p, struct err *e)
{
    if (build(p, e) < 0 || plan(p, e) < 0 || calm(p, e) < 0)
        return -1;
    make_batch(p);
    write_list(p);
    if (write_all(p, "begin.bin", false, e) < 0 || train(p, e) < 0)
        return -1;
    if (write_all(p, "end.bin", false, e) < 0)
        return -1;
    return evaluate(p, e);
}

static int read_args(struct probe *p, int argc, char **argv, struct err *e)
{
    p->options = (struct model_options){.batch = atoll(argv[3]),
                                        .classes = CLASSES,
                                        .height = atoll(argv[4]),
                                        .width = atoll(argv[4]),
                                        .image_type = DTYPE_F32,
                                        .image_scale = {1, 1, 1, 1}};
    p->steps = atoi(argv[5]);
    p->rate = strtof(argv[6], NULL);
    p->folder = argv[7];
    if (backends_find(argc > 8 ? argv[8] : "auto", "cpu", &p->backend, e) < 0 ||
        (argc > 9 && precision_parse(argv[9], &p->precision, e) < 0))
        return -1;
    p->loss_scale = p->precision == PRECISION_FP16 ? FP16_LOSS_SCALE : 1;
    return model_find(argv[1], argv[2], &p->model, e);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct probe p = {0};

    if (argc < 8) {
        fprintf(stderr, "usage: train-probe MODEL DATASET BATCH SIZE STEPS RATE FOLDER "
                        "[BACKEND [PRECISION]]\n");
        return 2;
    }
    par_init(1); /* two teams on a busy machine wait for each other more than they compute */
    if (read_args(&p, argc, argv, &e) < 0 || run(&p, &e) < 0) {
        fprintf(stderr, "train-probe: %s\n", e.msg);
        return 1;
    }
    plan_free(p.eval_plan);
    plan_free(p.plan);
    device_free(p.device);
    graph_free(p.graph);
    graph_free(p.eval);
    free(p.images);
    free(p.labels);
    return 0;
}
