/* scale-print.c - the table and the prediction, for people and for programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"
#include "train/scale/scale-internal.h"

static const int64_t node_counts[] = {8, 64, 512, 4096};

static const struct scale_run *widest(const struct scale_figures *figures)
{
    return &figures->runs[figures->run_count - 1];
}

static double efficiency(const struct scale_figures *figures, const struct scale_run *run)
{
    return run->images_per_s / run->ranks / figures->runs[0].images_per_s;
}

/* The run that predictions start from: the widest with a core for each thread.  Where ranks
 * are more than cores they wait for each other's time on them, which nodes would not. */
static const struct scale_run *model_run(const struct scale_figures *figures)
{
    const struct scale_run *run = widest(figures);

    while (run > figures->runs && run->ranks * figures->threads > figures->cores)
        run--;
    return run;
}

/* Without a run of several ranks, buckets are taken to come evenly over the last two thirds of
 * the step: the backward pass has about twice the work of the forward pass. */
static void spread_evenly(const struct scale_run *run, struct predict_bucket *even)
{
    double forward = run->typical_s / 3;

    for (int b = 0; b < SCALE_EVEN_BUCKETS; b++)
        even[b] = (struct predict_bucket){
            forward + (run->typical_s - forward) * (b + 1) / SCALE_EVEN_BUCKETS,
            (double)run->params * sizeof(float) / SCALE_EVEN_BUCKETS};
}

/* The run had steps of its own length: its times become parts of the step of one rank. */
static void stretch(const struct scale_run *run, double step_s, struct predict_bucket *room)
{
    double compute_s = run->step_s - run->exposed_s;
    double factor = compute_s > 0 ? step_s / compute_s : 1;

    for (int b = 0; b < run->bucket_count; b++)
        room[b] =
            (struct predict_bucket){run->buckets[b].ready_s * factor, run->buckets[b].bytes};
}

void scale_input(const struct scale_figures *figures,
                 struct predict_input *ret_input,
                 struct predict_bucket *room)
{
    const struct scale_run *run = model_run(figures);
    double step_s = figures->runs[0].typical_s, compute_s = run->step_s - run->exposed_s;

    *ret_input = (struct predict_input){
        .step_s = step_s,
        .backward_end_s = step_s,
        .buckets = room,
        .bucket_count = run->bucket_count > 0 ? run->bucket_count : SCALE_EVEN_BUCKETS,
        .node_bytes_per_s = run->busy_s > 0 ? run->bytes / run->busy_s : 0,
        .ranks_per_node = run->ranks,
    };
    if (run->bucket_count > 0) {
        stretch(run, step_s, room);
        if (compute_s > 0)
            ret_input->backward_end_s = run->backward_end_s * step_s / compute_s;
    } else {
        spread_evenly(&figures->runs[0], room);
    }
}

static void print_runs(const struct scale_figures *figures, FILE *out)
{
    fprintf(out, "%s, batch %lld a rank, %d thread%s a rank, %d cores\n\n", figures->model,
            (long long)figures->runs[0].batch, figures->threads,
            figures->threads == 1 ? "" : "s", figures->cores);
    fprintf(out,
            "ranks  images/sec  efficiency   step ms  compute ms  reduced ms  exposed ms\n");
    for (int i = 0; i < figures->run_count; i++) {
        const struct scale_run *run = &figures->runs[i];

        fprintf(out, "%5d  %10.2f  %8.1f %%  %8.1f  %10.1f  %10.2f  %10.2f%s\n", run->ranks,
                run->images_per_s, 100 * efficiency(figures, run), run->step_s * 1e3,
                (run->step_s - run->exposed_s) * 1e3, run->busy_s * 1e3, run->exposed_s * 1e3,
                run->ranks > figures->cores ? "  (more ranks than cores)" : "");
    }
}

static void print_prediction(const struct scale_figures *figures, FILE *out)
{
    auto_free struct predict_bucket *room = xcalloc(SCALE_MOST_BUCKETS, sizeof(*room));
    struct predict_input input;
    double bytes = 0;

    scale_input(figures, &input, room);
    for (int b = 0; b < input.bucket_count; b++)
        bytes += input.buckets[b].bytes;
    fprintf(
        out,
        "\npredicted, %s: latency %.1f us, %.1f GB/s a node; %d rank%s a node\n"
        "  assumed: %.1f MB in %d buckets, %s; the median step of one rank;\n"
        "  ring or halving and doubling, whichever is faster; no contention in the network\n\n",
        figures->network.name, figures->network.alpha_s * 1e6,
        figures->network.bytes_per_s / 1e9, input.ranks_per_node,
        input.ranks_per_node == 1 ? "" : "s", bytes / 1e6, input.bucket_count,
        model_run(figures)->bucket_count > 0
            ? "ready when they were here"
            : "ready evenly over the last two thirds of the step");
    fprintf(out, "nodes  ranks  images/sec  efficiency   step ms  exposed ms\n");
    for (size_t i = 0; i < ARRAY_SIZE(node_counts); i++) {
        double ranks = (double)node_counts[i] * input.ranks_per_node;
        struct predict_result result;

        predict(&input, &figures->network, node_counts[i], &result);
        fprintf(out, "%5lld  %5.0f  %10.0f  %8.1f %%  %8.1f  %10.2f\n",
                (long long)node_counts[i], ranks,
                ranks * (double)figures->runs[0].batch / result.step_s, 100 * result.efficiency,
                result.step_s * 1e3, result.exposed_s * 1e3);
    }
}

void scale_print(const struct scale_figures *figures, FILE *out)
{
    print_runs(figures, out);
    print_prediction(figures, out);
}

static void add_runs(struct jsonw *w, const struct scale_figures *figures)
{
    jsonw_open_array(w, "runs");
    for (int i = 0; i < figures->run_count; i++) {
        const struct scale_run *run = &figures->runs[i];

        jsonw_open_object(w, NULL);
        jsonw_int(w, "ranks", run->ranks);
        jsonw_double(w, "images_per_second", run->images_per_s);
        jsonw_double(w, "efficiency", efficiency(figures, run));
        jsonw_double(w, "step_seconds", run->step_s);
        jsonw_double(w, "compute_seconds", run->step_s - run->exposed_s);
        jsonw_double(w, "reduced_seconds", run->busy_s);
        jsonw_double(w, "exposed_seconds", run->exposed_s);
        jsonw_double(w, "reduced_bytes", run->bytes);
        jsonw_close(w);
    }
    jsonw_close(w);
}

static void add_predictions(struct jsonw *w, const struct scale_figures *figures)
{
    auto_free struct predict_bucket *room = xcalloc(SCALE_MOST_BUCKETS, sizeof(*room));
    struct predict_input input;

    scale_input(figures, &input, room);
    jsonw_open_array(w, "predicted");
    for (size_t i = 0; i < ARRAY_SIZE(node_counts); i++) {
        struct predict_result result;

        predict(&input, &figures->network, node_counts[i], &result);
        jsonw_open_object(w, NULL);
        jsonw_int(w, "nodes", node_counts[i]);
        jsonw_int(w, "ranks", node_counts[i] * input.ranks_per_node);
        jsonw_double(w, "efficiency", result.efficiency);
        jsonw_double(w, "step_seconds", result.step_s);
        jsonw_double(w, "exposed_seconds", result.exposed_s);
        jsonw_close(w);
    }
    jsonw_close(w);
}

int scale_write_json(const struct scale_figures *figures, const char *path, struct err *e)
{
    auto_str text = {0};
    struct jsonw w;

    jsonw_begin(&w, &text);
    jsonw_text(&w, "model", figures->model);
    jsonw_int(&w, "batch", figures->runs[0].batch);
    jsonw_int(&w, "threads", figures->threads);
    jsonw_int(&w, "cores", figures->cores);
    jsonw_open_object(&w, "network");
    jsonw_text(&w, "name", figures->network.name);
    jsonw_double(&w, "latency_seconds", figures->network.alpha_s);
    jsonw_double(&w, "bytes_per_second", figures->network.bytes_per_s);
    jsonw_close(&w);
    add_runs(&w, figures);
    add_predictions(&w, figures);
    jsonw_end(&w);
    str_add_char(&text, '\n');
    return fs_write_durably(path, text.data, text.len, 0644, e);
}
