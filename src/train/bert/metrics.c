/* metrics.c - the figures of a run for programs: the original's JSON, and --json.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "train/bert/bert-internal.h"
#include "train/num/par.h"
#include "train/record/json-plain.h"

#include <inttypes.h>
#include <sys/resource.h>

static double per(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

void bert_figures(const struct bert_run *run, struct bert_figures *ret_figures)
{
    const struct bert_times *t = &run->times;
    double size = (double)run->shape.batch;
    double wall = (double)(t->ended_us - t->begun_us) / 1e6;
    int64_t batches = run->step - run->first_step, updates = run->updates - run->first_updates;

    *ret_figures = (struct bert_figures){
        .batches = batches,
        .updates = updates,
        .accumulations = batches - updates,
        .per_batch_ms = batches > 0 ? t->batches_s / (double)batches * 1000 : 0,
        .throughput = per(size * (double)batches, t->batches_s),
        .stable = per(size * (double)t->stable, t->stable_s),
        .step_s = batches > 0 ? wall / (double)batches : 0,
        .step_throughput = per(size * (double)batches, wall),
    };
    if (t->late > 0)
        ret_figures->end_to_end =
            per(size * (double)t->late, (double)(t->ended_us - t->late_us) / 1e6);
}

static bool is_mixed(const struct bert_run *run)
{
    return run->precision == PRECISION_FP16 || run->precision == PRECISION_BF16;
}

static const char *optimizer_of(const struct bert_run *run)
{
    return run->spec.optim.kind == OPTIM_LAMB ? "Lamb" : "Adam";
}

static char *display_name(const struct bert_run *run)
{
    return xasprintf("%s.onnx_bert_%s_%" PRId64 "_%s", run->spec.leaf,
                     is_mixed(run) ? "fp16" : "fp32", run->shape.sequence, optimizer_of(run));
}

static void add_number_text(struct jsonw *w, const char *key, int64_t number)
{
    auto_free char *text = xasprintf("%" PRId64, number);

    jsonw_text(w, key, text);
}

/* In the original these are texts, and the settings one text that is JSON itself. */
static void add_config(struct jsonw *w, const struct bert_run *run)
{
    const struct bert_phase *p = bert_phase_of(run);
    auto_str text = {0};
    struct jsonw config;

    jsonw_begin(&config, &text);
    jsonw_double(&config, "LearningRate", p->rate.most);
    jsonw_double(&config, "WarmupRatio", p->rate.warmup);
    jsonw_text(&config, "WarmupMode", run->flags->warmup_mode);
    jsonw_int(&config, "TrainSteps", p->steps);
    jsonw_text(&config, "ModelPath", run->flags->model_name);
    jsonw_text(&config, "TrainDataDir", p->train_dir ? p->train_dir : "");
    jsonw_text(&config, "TestDataDir", p->test_dir ? p->test_dir : "");
    jsonw_end(&config);
    jsonw_text(w, "RunConfig", str_text(&text));
}

static void add_ours(struct jsonw *w, const struct bert_run *run, const struct bert_figures *f)
{
    jsonw_text(w, "Precision", precision_name(run->precision));
    jsonw_text(w, "Backend", run->backend->name);
    jsonw_text(w, "Device", run->device_facts.name);
    jsonw_int(w, "Ranks", run->ranks->ranks);
    jsonw_double(w, "ThroughputOfAllRanks", f->throughput * run->ranks->ranks);
}

static void format_metrics(const struct bert_run *run, const char *name, struct str *out)
{
    auto_free char *model = xasprintf("%s.onnx", run->spec.leaf);
    double wall = (double)(run->times.ended_us - run->times.begun_us) / 1e6;
    struct rusage usage = {0};
    struct bert_figures f;
    struct jsonw w;

    getrusage(RUSAGE_SELF, &usage);
    bert_figures(run, &f);
    jsonw_begin(&w, out);
    jsonw_text(&w, "Model", "bert");
    jsonw_open_object(&w, "DerivedProperties");
    add_number_text(&w, "SeqLen", run->shape.sequence);
    add_number_text(&w, "PredictionsPerSeq", run->shape.predictions);
    jsonw_close(&w);
    jsonw_int(&w, "Round", run->round);
    jsonw_int(&w, "BatchSize", run->shape.batch);
    jsonw_int(&w, "NumOfBatches", f.batches);
    jsonw_int(&w, "GradAccSteps", f.accumulations);
    jsonw_int(&w, "WeightUpdateSteps", f.updates);
    jsonw_double(&w, "TotalTime", run->times.batches_s);
    jsonw_double(&w, "AvgTimePerBatch", f.per_batch_ms);
    jsonw_double(&w, "Throughput", f.throughput);
    jsonw_double(&w, "StabilizedThroughput", f.stable);
    jsonw_double(&w, "EndToEndThroughput", f.end_to_end);
    jsonw_bool(&w, "UseMixedPrecision", is_mixed(run));
    jsonw_text(&w, "Optimizer", optimizer_of(run));
    jsonw_text(&w, "ModelName", model);
    jsonw_text(&w, "DisplayName", name);
    jsonw_int(&w, "Memory", usage.ru_maxrss / 1024);
    jsonw_int(&w, "AvgCPU", (int64_t)(100 * per(run->times.cpu_s, wall)));
    add_config(&w, run);
    add_ours(&w, run, &f);
    jsonw_end(&w);
    str_add_char(out, '\n');
}

int bert_write_metrics(const struct bert_run *run, struct err *e)
{
    const char *folder = run->flags->perf_output_dir;
    auto_free char *name = NULL, *path = NULL;
    auto_str text = {0};

    if (!bert_speaks(run) || !folder[0])
        return 0;
    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    name = display_name(run);
    path = xasprintf("%s/onnxruntime_perf_metrics_%s.json", folder, name);
    format_metrics(run, name, &text);
    if (fs_write_durably(path, str_text(&text), text.len, 0666, e) < 0)
        return -1;
    printf("\n\nSaved perf metrics file: %s\n\n", path);
    return 0;
}

/* --- --json --- */

void bert_add_row(struct bert_run *run, const struct bert_row *row)
{
    if (!run->flags->json_file[0])
        return;
    if (run->row_count == run->row_room) {
        run->row_room = run->row_room ? 2 * run->row_room : 256;
        run->rows = xreallocarray(run->rows, run->row_room, sizeof(*run->rows));
    }
    run->rows[run->row_count++] = *row;
}

static void add_rows(struct jsonw *w, const struct bert_run *run)
{
    jsonw_open_array(w, "steps");
    for (size_t i = 0; i < run->row_count; i++) {
        const struct bert_row *r = &run->rows[i];

        jsonw_open_object(w, NULL);
        jsonw_int(w, "step", r->step);
        jsonw_double(w, "seconds", r->seconds);
        jsonw_double(w, "loss", r->losses.total);
        jsonw_double(w, "mlm_loss", r->losses.mlm);
        jsonw_double(w, "nsp_loss", r->losses.nsp);
        jsonw_double(w, "learning_rate", r->lr);
        jsonw_double(w, "loss_scale", r->scale);
        jsonw_close(w);
    }
    jsonw_close(w);
}

static void add_plan(struct jsonw *w, const struct bert_run *run)
{
    struct plan_memory m;

    plan_memory(run->plan, &m);
    jsonw_int(w, "params", graph_param_count(run->graph));
    jsonw_double(w, "flops_per_sequence",
                 graph_flops(run->graph, false) / (double)run->shape.batch);
    jsonw_open_object(w, "memory");
    jsonw_int(w, "params", m.params_bytes);
    jsonw_int(w, "grads", m.grads_bytes);
    jsonw_int(w, "activations", m.activations_bytes);
    jsonw_int(w, "at_least", m.at_least_bytes);
    jsonw_int(w, "other", m.other_bytes);
    jsonw_close(w);
}

static void format_json(const struct bert_run *run, const struct err *why, struct str *out)
{
    struct bert_figures f;
    struct jsonw w;

    bert_figures(run, &f);
    jsonw_begin(&w, out);
    jsonw_text(&w, "error", why ? why->msg : NULL);
    jsonw_text(&w, "model", run->spec.model);
    jsonw_int(&w, "batch", run->shape.batch);
    jsonw_int(&w, "sequence", run->shape.sequence);
    jsonw_int(&w, "predictions", run->shape.predictions);
    jsonw_int(&w, "ranks", run->ranks->ranks);
    jsonw_int(&w, "threads", par_threads());
    jsonw_text(&w, "backend", run->backend ? run->backend->name : NULL);
    jsonw_text(&w, "device", run->device_facts.name);
    jsonw_text(&w, "library", run->device_facts.library);
    jsonw_text(&w, "precision", precision_name(run->precision));
    jsonw_int(&w, "seed", (int64_t)run->spec.seed);
    if (run->plan)
        add_plan(&w, run);
    jsonw_open_object(&w, "sequences_per_second");
    jsonw_double(&w, "mean", f.throughput);
    jsonw_double(&w, "stable", f.stable);
    jsonw_double(&w, "wall", f.step_throughput);
    jsonw_double(&w, "total", f.throughput * run->ranks->ranks);
    jsonw_close(&w);
    add_rows(&w, run);
    if (run->profile)
        profile_json(run->profile, run->profiled, &w);
    jsonw_end(&w);
    str_add_char(out, '\n');
}

int bert_write_json(const struct bert_run *run, const struct err *why, struct err *e)
{
    auto_str text = {0};

    if (!bert_speaks(run) || !run->flags->json_file[0])
        return 0;
    format_json(run, why, &text);
    return fs_write_durably(run->flags->json_file, str_text(&text), text.len, 0666, e);
}
