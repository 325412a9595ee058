/* make.c - graphs and plans of a phase.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "train/bert/bert-internal.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"
#include "train/graph/step.h"
#include "train/run/backends.h"

#include <inttypes.h>

int bert_make_graph(const struct bert_run *run,
                    int64_t ranks,
                    int64_t fusion_bytes,
                    struct graph **ret_graph,
                    struct err *e)
{
    struct step_spec spec = {
        .optim = run->spec.optim,
        .fusion_bytes = fusion_bytes,
        .ranks = ranks,
        .is_mean = true,
        .updates_early = run->backend->updates_early,
        .passes = bert_phase_of(run)->passes,
    };
    struct graph *graph;

    if (bert_graph(&run->spec.size, GRAPH_TRAIN, &run->shape, &graph, e) < 0)
        return -1;
    graph_fuse(graph, run->backend->fusions);
    if (graph_differentiate(graph, e) < 0 || graph_finish_step(graph, &spec, e) < 0) {
        graph_free(graph);
        return -1;
    }
    *ret_graph = graph;
    return 0;
}

static int write_graph(const struct bert_run *run, struct err *e)
{
    const char *path = run->flags->graph_file;
    auto_str text = {0};

    if (!path[0] || !bert_speaks(run))
        return 0;
    graph_print(run->graph, &text);
    return fs_write_durably(path, str_text(&text), text.len, 0666, e);
}

static int plan_of(struct bert_run *run,
                   const struct graph *graph,
                   struct plan *shares,
                   struct plan **ret_plan,
                   struct err *e)
{
    auto_free char *cache_dir = backends_cache_dir();
    struct plan_options o = {
        .precision = run->precision,
        .is_repeatable = run->flags->repeatable,
        .seed = run->spec.seed + (uint64_t)run->ranks->rank,
        .init_seed = run->spec.seed,
        .comm = run->comm,
        .reducer = run->reducer,
        .shares = shares,
        .cache_dir = cache_dir,
    };

    return plan_new(run->device, graph, &o, ret_plan, e);
}

int bert_make_plan(struct bert_run *run, struct err *e)
{
    int ranks = run->ranks->ranks;
    struct reducer_options reduction;

    if (reducer_defaults(&reduction, e) < 0)
        return -1;
    if (ranks > 1 && reducer_new(run->comm, &reduction, &run->reducer, e) < 0)
        return -1;
    if (bert_make_graph(run, ranks, reduction.fusion_bytes, &run->graph, e) < 0 ||
        write_graph(run, e) < 0)
        return -1;
    return plan_of(run, run->graph, NULL, &run->plan, e);
}

int bert_make_eval_plan(struct bert_run *run, struct err *e)
{
    if (bert_graph(&run->spec.size, GRAPH_EVAL, &run->eval_shape, &run->eval_graph, e) < 0)
        return -1;
    graph_fuse(run->eval_graph, run->backend->fusions);
    return plan_of(run, run->eval_graph, run->plan, &run->eval_plan, e);
}

int bert_print_plan(struct bert_run *run, struct err *e)
{
    const struct bert_size *s = &run->spec.size;
    const struct bert_phase *p = bert_phase_of(run);
    double sequence_flops;

    if (bert_make_graph(run, run->ranks->ranks, 0, &run->graph, e) < 0)
        return -1;
    sequence_flops = graph_flops(run->graph, false) / (double)run->shape.batch;
    printf("Model: %s\n", run->spec.model);
    printf("Layers: %" PRId64 ", width: %" PRId64 ", heads: %" PRId64 ", between: %" PRId64
           ", vocabulary: %" PRId64 ", positions: %" PRId64 ", dropout: %g\n",
           s->layers, s->width, s->heads, s->between, s->vocabulary, s->positions,
           (double)s->dropout);
    printf("Parameters: %" PRId64 "\n", graph_param_count(run->graph));
    printf("Sequence: %" PRId64 " tokens, %" PRId64 " masked\n", run->shape.sequence,
           run->shape.predictions);
    printf("Batch size: %" PRId64 " x %" PRId64 " x %d ranks\n", p->batch, p->passes,
           run->ranks->ranks);
    printf("Number of Batches: %" PRId64 " behind %" PRId64 " of warm-up\n", p->steps,
           run->spec.warmup);
    printf("Weight Update Steps: %" PRId64 "\n", p->steps / p->passes);
    printf("Work: %.4g TFLOP a sequence, %d ops\n", sequence_flops / 1e12,
           run->graph->op_count);
    return 0;
}
