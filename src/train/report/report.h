/* report.h - what a run prints, to the letter as tf_cnn_benchmarks prints it, and what it
 * writes for programs.
 *
 * On stdout, each line in one write (ranks share a pipe):
 *   TensorFlow:  1.8                      kept, since scripts look for it; the version that the
 *   Model:       resnet101                recipes ran with
 *   Dataset:     imagenet (synthetic)
 *   Mode:        training
 *   SingleSess:  False
 *   Batch size:  512 global
 *                64 per device
 *   Num batches: 100
 *   Num epochs:  0.04
 *   Devices:     ['horovod/cpu:0', ...]
 *   NUMA bind:   False
 *   Data format: NCHW
 *   Optimizer:   sgd
 *   Variables:   horovod
 *   ==========
 *   Generating training model / Initializing graph / Running warm up / Done warm up
 *   Step<TAB>Img/sec<TAB>total_loss[<TAB>top_1_accuracy<TAB>top_5_accuracy]
 *   1<TAB>images/sec: 28.2 +/- 0.0 (jitter = 0.0)<TAB>10.050
 *   (64 dashes) / total images/sec: 224.96 / (64 dashes)
 * Evaluation: "%i\t%.1f examples/sec", "Accuracy @ 1 = %.4f Accuracy @ 5 = %.4f [%d examples]".
 * Between Variables and the line of "=": "Backend:", "Precision:", "Memory:" only with
 * --summary_verbosity > 0, so that the block stays the original's.
 *
 * On stderr: notes, errors, and on a terminal one progress line that is rewritten (step, rate,
 * loss, time left), never when stderr is a file.
 *
 * --json FILE: one object, written whole at the end (also after an error, with "error"), keys
 * in report.c's table: model, dataset, batch, ranks, threads, backend, device, library,
 * precision, steps[] {step, seconds, loss, top1, top5, rate, learning_rate},
 * images_per_second {mean, uncertainty, jitter, total}, seconds {plan, warmup, steps,
 * data_waited, exposed_communication, reduced}, memory {params, grads, activations, at_least,
 * resident}, flops {per_image, peak, of_peak} (of direct sums, whatever a kernel does; of this
 * rank's cores), eval {...}, ops[] with --profile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_REPORT_H
#define TRAIN_REPORT_REPORT_H

#include "base/err.h"
#include "train/report/timing.h"

#include <stdint.h>
#include <stdio.h>

struct report; /* opaque */
struct profile;

struct report_facts {            /* the header block, and what the JSON repeats of it */
    const char *model, *dataset; /* "imagenet (synthetic)" */
    const char *mode;            /* "training", "forward-only", "evaluation" */
    int64_t global_batch, device_batch, batches;
    double epochs;
    const char *device_kind; /* "cpu", "gpu" */
    const char *data_format, *optimizer, *variables;
    const char *horovod_device; /* NULL or "" = not said */
    const char *loss_name;      /* "total_loss" */
    bool shows_accuracy;
    bool is_verbose;
    int rank, ranks, threads;
    const char *backend, *device, *library, *precision;
    int64_t params;
    double flops_per_image;
    int64_t params_bytes, grads_bytes, activations_bytes, at_least_bytes;
};

struct report_options {
    FILE *out;             /* stdout */
    const char *json_file; /* NULL = none; with ranks, rank 0 writes */
    bool shows_progress;
    double ewma; /* NaN */
};

struct report_step {
    int64_t step; /* from 1 */
    double seconds;
    double loss;       /* the one that is shown (loss_type_to_report) */
    double top1, top5; /* shares; NaN = not known */
    double rate;       /* images/sec of this step, this rank */
    double learning_rate;
    bool is_shown; /* a row is printed */
};

int report_new(const struct report_options *options, struct report **ret_report, struct err *e);
void report_free(struct report *report);

void report_header(struct report *report, const struct report_facts *facts);
void report_phase(struct report *report, const char *text); /* "Running warm up" */
void report_columns(struct report *report);
void report_step(struct report *report, const struct report_step *step);
/* wall_s: of the whole loop, with what lies between steps.  Not shown when training and
 * evaluation took turns, as in the original. */
void report_total(struct report *report, double wall_s, bool is_shown);
void report_eval(struct report *report,
                 int64_t examples,
                 double seconds,
                 double top1,
                 double top5,
                 int64_t step,
                 bool shows_total);
/* More numbers for the JSON: "seconds.plan", 1.25. */
void report_number(struct report *report, const char *path, double value);
void report_text(struct report *report, const char *path, const char *value);
/* The table of ops for the JSON, over `steps` steps. */
void report_profile(struct report *report, const struct profile *profile, int steps);
/* Write the JSON.  why may be NULL: the run went well. */
int report_end(struct report *report, const struct err *why, struct err *e);

#endif
