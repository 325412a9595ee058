/* bert-flags.h - the command line of onnxruntime_training_bert, and a few flags of our own.
 *
 * One table, in bert-flags.c (flags/table.h has the grammar; cxxopts' booleans are --name and
 * --name=True).  Names and defaults are the original's of 2020, with --num_of_perf_samples and
 * --perf_warm_up_iters of the year before.  Steps count batches of one rank, as there: with
 * gradient accumulation over k batches, --num_train_steps n makes n/k updates.
 *
 * Ours: --backend, --device, --precision, --dropout, --json, --init_weights, --num_threads,
 * --gpu_indices, --repeatable, --profile, --trace_file, --graph_file, --plan_only, --help,
 * --helpfull, --version.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_BERT_FLAGS_H
#define TRAIN_BERT_BERT_FLAGS_H

#include "train/flags/table.h"

struct bert_flags {
    const char *model_name, *mode, *optimizer, *warmup_mode;
    const char *train_data_dir, *test_data_dir;
    const char *train_data_dir_phase2, *test_data_dir_phase2;
    const char *output_dir, *perf_output_dir, *checkpoints_dir, *checkpoint_to_load_path;
    const char *log_dir, *convergence_test_output_file;
    int64_t train_batch_size, train_batch_size_phase2, eval_batch_size;
    int64_t num_train_steps, num_train_steps_phase2, num_of_perf_samples, perf_warm_up_iters;
    int64_t gradient_accumulation_steps, gradient_accumulation_steps_phase2;
    int64_t max_seq_length, max_predictions_per_seq;
    double learning_rate, learning_rate_phase2, warmup_ratio, warmup_ratio_phase2;
    double alpha, beta, lambda, epsilon, ratio_min, ratio_max;
    bool do_bias_correction, enable_grad_norm_clip;
    bool use_mixed_precision;
    double loss_scale;
    bool do_eval;
    int64_t evaluation_period, max_eval_steps;
    int64_t display_loss_steps, checkpoint_period, max_num_checkpoints;
    int64_t seed, data_parallel_size;
    double cuda_mem_limit_in_gb;
    /* ours */
    const char *backend, *device, *precision, *json_file, *init_weights, *graph_file;
    const char *gpu_indices, *trace_file;
    double dropout; /* NaN = the model's */
    int64_t num_threads;
    bool repeatable, profile, plan_only, wants_help, wants_helpfull, wants_version;

    struct flags_given given;
};

/* Defaults, then what the words say, checked. */
int bert_flags_parse(
    struct bert_flags *flags, int count, char *const words[], struct str *notes, struct err *e);
bool bert_flags_given(const struct bert_flags *flags, const char *name);
/* called: "yardbench bert" or the original's name. */
void bert_flags_print_help(FILE *out, const char *called, bool all);

#endif
