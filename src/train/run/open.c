/* open.c - everything a run needs, opened in order; and closed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/diff.h"
#include "train/graph/fuse.h"
#include "train/num/par.h"
#include "train/run/backends.h"
#include "train/run/run-internal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

bool run_is_training(const struct run *run)
{
    return !run->flags->forward_only && !run->flags->eval;
}

int64_t run_end(const struct run *run)
{
    return run->spec.warmup + run->spec.steps;
}

static bool evaluates(const struct flags *f)
{
    return f->eval || f->eval_every_n_steps > 0 ||
           (!isnan(f->eval_every_n_epochs) && f->eval_every_n_epochs > 0) ||
           f->eval_at_step_count > 0 || f->eval_at_epoch_count > 0;
}

static int open_data(struct run *run, struct err *e)
{
    const struct flags *f = run->flags;
    struct dataset_options o = {
        .folder = f->data_dir, .name = f->data_name, .seed = (uint64_t)f->tf_random_seed};
    const struct dataset *first;

    o.split = DATASET_EVAL;
    if (evaluates(f) && dataset_open(&o, &run->eval_dataset, e) < 0)
        return -1;
    o.split = DATASET_TRAIN;
    if (!f->eval && dataset_open(&o, &run->dataset, e) < 0)
        return -1;
    first = run->dataset ? run->dataset : run->eval_dataset;
    dataset_facts(first, &run->data);
    return 0;
}

static int64_t threads_of(const struct run *run)
{
    int64_t asked = run->flags->num_intra_threads;
    int cores;

    if (asked != FLAG_NONE && asked > 0)
        return asked;
    par_init(0);
    cores = par_threads() / run->ranks->local_ranks;
    return cores > 1 ? cores : 1;
}

/* The card of this rank: by --gpu_indices, else by its number on the host. */
static int card_of(const struct run *run)
{
    const char *at = run->flags->gpu_indices;

    for (int i = 0; i < run->ranks->local_rank && *at; i++)
        at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',');
    return *at >= '0' && *at <= '9' ? atoi(at) : run->ranks->local_rank;
}

static int open_device(struct run *run, struct err *e)
{
    struct device_options o = {.threads = (int)threads_of(run), .card = card_of(run)};

    par_init(o.threads);
    if (device_open(run->spec.backend, &o, &run->device, e) < 0)
        return -1;
    device_facts(run->device, &run->device_facts);
    run->is_gpu = str_equal(run->spec.backend->name, "cuda");
    if (run->device_facts.precisions & (1U << run->spec.precision))
        return 0;
    return err_set(e, ERR_METHOD, "the backend %s has no precision %s on %s",
                   run->spec.backend->name, precision_name(run->spec.precision),
                   run->device_facts.name);
}

static bool reduces(const struct run *run)
{
    return run->ranks->ranks > 1 && run->spec.update != RUN_INDEPENDENT && run_is_training(run);
}

static int finish_graph(struct run *run, struct err *e)
{
    struct reducer_options reduction;
    struct step_spec spec = {
        .optim = run->spec.optim,
        .ranks = reduces(run) ? run->ranks->ranks : 1,
        .is_mean = run->spec.update == RUN_MEAN,
        .updates_early = run->spec.backend->updates_early,
        .passes = run->spec.passes,
    };

    if (reducer_defaults(&reduction, e) < 0)
        return -1;
    spec.fusion_bytes = reduction.fusion_bytes;
    if (reduces(run) && reducer_new(run->comm, &reduction, &run->reducer, e) < 0)
        return -1;
    if (graph_differentiate(run->graph, e) < 0)
        return -1;
    return graph_finish_step(run->graph, &spec, e);
}

static int write_graph(const struct run *run, struct err *e)
{
    const char *path = run->flags->graph_file;
    auto_str text = {0};
    FILE *file;

    if (!path || run->ranks->rank != 0)
        return 0;
    graph_print(run->graph ? run->graph : run->eval_graph, &text);
    file = fopen(path, "we");
    if (!file || fwrite(str_text(&text), 1, text.len, file) != text.len || fclose(file) != 0)
        return err_sys(e, errno, "could not write \"%.200s\"", path);
    return 0;
}

static int make_train_graph(struct run *run, struct err *e)
{
    if (model_graph(run->spec.model, GRAPH_TRAIN, &run->spec.model_options, &run->graph, e) < 0)
        return -1;
    graph_fuse(run->graph, run->spec.backend->fusions);
    return run_is_training(run) ? finish_graph(run, e) : 0;
}

static int make_eval_graph(struct run *run, struct err *e)
{
    struct model_options o = run->spec.model_options;

    o.batch = run->spec.eval_batch;
    if (model_graph(run->spec.model, GRAPH_EVAL, &o, &run->eval_graph, e) < 0)
        return -1;
    graph_fuse(run->eval_graph, run->spec.backend->fusions);
    return 0;
}

static int make_plan(struct run *run,
                     const struct graph *graph,
                     struct plan *shares,
                     struct plan **ret_plan,
                     struct err *e)
{
    auto_free char *cache_dir = backends_cache_dir();
    struct plan_options o = {
        .precision = run->spec.precision,
        .is_repeatable = run->flags->repeatable,
        .avoids_winograd = !run->flags->winograd_nonfused,
        .seed = run->spec.seed + (uint64_t)run->ranks->rank,
        .init_seed = run->spec.seed,
        .comm = run->comm,
        .reducer = run->reducer,
        .shares = shares,
        .cache_dir = cache_dir,
    };

    return plan_new(run->device, graph, &o, ret_plan, e);
}

static int make_plans(struct run *run, struct err *e)
{
    if (run->dataset &&
        (make_train_graph(run, e) < 0 || make_plan(run, run->graph, NULL, &run->plan, e) < 0))
        return -1;
    if (run->eval_dataset &&
        (make_eval_graph(run, e) < 0 ||
         make_plan(run, run->eval_graph, run->plan, &run->eval_plan, e) < 0))
        return -1;
    return write_graph(run, e);
}

static int open_loader(struct run *run, struct err *e)
{
    const struct flags *f = run->flags;
    struct loader_options o = {
        .batch = run->spec.batch,
        .decode = run->spec.decode,
        .seed = run->spec.seed,
        .rank = run->ranks->rank,
        .ranks = run->ranks->ranks,
        .first_batch = run->batches,
        .threads =
            f->datasets_num_private_threads > 0 ? (int)f->datasets_num_private_threads : 0,
        .ahead = (int)f->datasets_prefetch_buffer_size + 1,
        .repeats_sample = f->datasets_repeat_cached_sample,
        .is_shuffled = true,
        .most_corrupt = (int)f->most_corrupt,
    };

    /* Horovod's ranks have synthetic data of their own, as in the original. */
    if (run->spec.is_synthetic && run->spec.update == RUN_SUM)
        o.seed += (uint64_t)run->ranks->rank;
    return run->dataset ? loader_new(run->dataset, &o, &run->loader, e) : 0;
}

static const char *mode_of(const struct flags *f)
{
    if (f->eval)
        return "evaluation";
    if (f->forward_only)
        return "forward-only";
    return evaluates(f) ? "training + evaluation" : "training";
}

static void fill_memory(const struct run *run, struct report_facts *facts)
{
    struct plan_memory memory;

    plan_memory(run->plan ? run->plan : run->eval_plan, &memory);
    facts->params_bytes = memory.params_bytes;
    facts->grads_bytes = memory.grads_bytes;
    facts->activations_bytes = memory.activations_bytes;
    facts->at_least_bytes = memory.at_least_bytes;
}

static void fill_facts(const struct run *run, const char *dataset, struct report_facts *facts)
{
    const struct flags *f = run->flags;
    const struct graph *graph = run->graph ? run->graph : run->eval_graph;
    int64_t batch = run->dataset ? run->spec.batch * run->spec.passes : run->spec.eval_batch;

    *facts = (struct report_facts){
        .model = run->spec.model->name,
        .dataset = dataset,
        .mode = mode_of(f),
        .global_batch = batch * run->ranks->ranks,
        .device_batch = batch,
        .batches = run->spec.steps,
        .epochs = run->spec.epochs,
        .device_kind = run->is_gpu ? "gpu" : "cpu",
        .data_format = f->data_format,
        .optimizer = f->optimizer,
        .variables = f->variable_update,
        .horovod_device = f->horovod_device,
        .loss_name = f->loss_type_to_report,
        .shows_accuracy = f->print_training_accuracy || f->forward_only,
        .is_verbose = f->summary_verbosity > 0,
        .rank = run->ranks->rank,
        .ranks = run->ranks->ranks,
        .threads = par_threads(),
        .backend = run->spec.backend->name,
        .device = run->device_facts.name,
        .library = run->device_facts.library,
        .precision = precision_name(run->spec.precision),
        .params = graph_param_count(graph),
        .flops_per_image = graph_flops(graph, !run_is_training(run)) / (double)graph->batch,
    };
    fill_memory(run, facts);
}

static bool wants_progress(const struct run *run)
{
    const char *progress = run->flags->progress;

    if (run->ranks->rank != 0 || str_equal(progress, "off"))
        return false;
    return str_equal(progress, "on") || isatty(STDERR_FILENO);
}

static int open_report(struct run *run, struct err *e)
{
    struct report_options o = {
        .out = stdout,
        .json_file = run->ranks->rank == 0 ? run->flags->json_file : NULL,
        .shows_progress = wants_progress(run),
        .ewma = run->flags->display_perf_ewma,
    };

    /* Horovod's ranks all print, as in the original; else one does. */
    if (run->ranks->rank != 0 && run->spec.update != RUN_SUM) {
        run->out = fopen("/dev/null", "we");
        if (!run->out)
            return err_sys(e, errno, "could not open /dev/null");
        o.out = run->out;
    }
    return report_new(&o, &run->report, e);
}

static int open_events(struct run *run, struct err *e)
{
    const struct flags *f = run->flags;
    const char *folder = f->eval ? f->eval_dir : f->train_dir;

    if (run->ranks->rank != 0 || f->summary_verbosity < 1 || !folder)
        return 0;
    return events_open(folder, &run->events, e);
}

static int open_all(struct run *run, struct err *e)
{
    if (open_device(run, e) < 0 || make_plans(run, e) < 0 || run_agree_on_layout(run, e) < 0 ||
        run_resume(run, e) < 0 || open_loader(run, e) < 0)
        return -1;
    if (run->flags->profile)
        run->profile = profile_new();
    return open_events(run, e);
}

static void say(const struct run *run, const struct str *notes)
{
    if (run->ranks->rank == 0 && notes->len)
        fprintf(stderr, "yardbench: %s", str_text(notes));
}

/* The report first: then what goes wrong later is in it. */
int run_open(struct run *run, const struct flags *flags, struct comm *comm, struct err *e)
{
    auto_str notes = {0};

    *run = (struct run){
        .flags = flags,
        .comm = comm,
        .ranks = comm_facts(comm),
        .last_finite_loss = NAN,
        .loss_scale = 1,
        .saved_step = -1,
        .stop_at = INT64_MAX,
        .top1 = NAN,
    };
    run->spec.update = str_equal(flags->variable_update, "horovod") ? RUN_SUM : RUN_MEAN;
    if (open_report(run, e) < 0 || open_data(run, e) < 0 ||
        run_settle(flags, run->ranks, &run->data, &run->spec, &notes, e) < 0)
        return -1;
    say(run, &notes);
    return run_agree_on_spec(run, e) < 0 ? -1 : open_all(run, e);
}

void run_print_header(struct run *run)
{
    struct report_facts facts;

    free(run->dataset_text); /* the report repeats it at the end */
    run->dataset_text =
        xasprintf("%s%s", run->data.name, run->data.is_synthetic ? " (synthetic)" : "");
    fill_facts(run, run->dataset_text, &facts);
    report_header(run->report, &facts);
}

void run_close(struct run *run)
{
    run_land_all(run);
    loader_free(run->loader);
    plan_free(run->eval_plan);
    plan_free(run->plan);
    graph_free(run->eval_graph);
    graph_free(run->graph);
    reducer_free(run->reducer);
    device_free(run->device);
    dataset_free(run->dataset);
    dataset_free(run->eval_dataset);
    events_free(run->events);
    profile_free(run->profile);
    report_free(run->report);
    if (run->out)
        fclose(run->out);
    free(run->dataset_text);
}
