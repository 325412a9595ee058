/* flags.h - the command line of tf_cnn_benchmarks, all 137 flags of it, and a few of our own.
 *
 * One table, in flags-table.c: a row has name, type, default, bounds or words, help, and where
 * its value goes in struct flags, or that it does nothing here and why ("XLA is TensorFlow's").
 * --help, the manual page and the test that counts 137 are made from the rows.
 *
 * Grammar, absl's: --name value, --name=value, -name; booleans --name, --noname, --name=true;
 * "--" ends flags; a positional argument is an error ("Received unknown positional arguments").
 * A flag that does nothing here is said once on stderr when it was given; an unknown one is an
 * error that names it and the nearest; a value that does not parse names flag, value and what
 * would.  --flagfile is not taken.
 *
 * Checks across flags, as the original's: eval with forward_only, num_batches with num_epochs,
 * NHWC with device=cpu unless --mkl (here the data format of the CPU is our own affair: NCHW on
 * a CPU is taken with the word on stderr that the layout is blocked anyway), ...
 *
 * Ours: --json FILE, --backend auto|ref|onednn|cuda, --precision, --seed (alias of
 * tf_random_seed), --profile, --gradient_accumulation_steps, --label_smoothing, --clip_norm,
 * --optimizer also adamw lars lamb, --learning_rate_schedule cosine|polynomial, --most_corrupt,
 * --repeatable, --progress auto|on|off, --version, --help.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_FLAGS_FLAGS_H
#define TRAIN_FLAGS_FLAGS_H

#include "train/flags/table.h"

enum {
    FLAGS_ORIGINAL = 137,
};

struct flags {
    /* what */
    const char *model, *data_name, *data_dir;
    bool eval, forward_only, freeze_when_forward_only, print_training_accuracy;
    int64_t batch_size, eval_batch_size;
    int64_t num_batches, num_warmup_batches, num_eval_batches, autotune_threshold;
    double num_epochs, num_eval_epochs;             /* NaN = not given */
    double stop_at_top_1_accuracy;                  /* NaN */
    int64_t eval_interval_secs, eval_every_n_steps; /* FLAG_NONE */
    double eval_every_n_epochs;                     /* NaN */
    double eval_at_steps[FLAGS_MOST_POINTS], eval_at_epochs[FLAGS_MOST_POINTS];
    int eval_at_step_count, eval_at_epoch_count;
    /* where */
    const char *device; /* NULL = gpu where there is one, else cpu */
    const char *data_format, *gpu_indices, *horovod_device, *backend, *precision;
    int64_t num_gpus, num_intra_threads, num_inter_threads;
    const char *variable_update; /* as given; run.h understands it */
    /* data */
    const char *resize_method, *input_preprocessor;
    bool distortions, fuse_decode_and_crop, datasets_repeat_cached_sample;
    int64_t datasets_num_private_threads, datasets_prefetch_buffer_size, most_corrupt;
    /* learning */
    const char *optimizer, *piecewise_learning_rate_schedule, *learning_rate_schedule;
    double init_learning_rate, resnet_base_lr; /* NaN */
    double num_epochs_per_decay, learning_rate_decay_factor, minimum_learning_rate;
    double num_learning_rate_warmup_epochs;
    double momentum, rmsprop_decay, rmsprop_momentum, rmsprop_epsilon;
    double adam_beta1, adam_beta2, adam_epsilon;
    double gradient_clip, clip_norm; /* NaN */
    double weight_decay, label_smoothing;
    int64_t gradient_accumulation_steps;
    bool use_fp16, fp16_vars, fp16_enable_auto_loss_scale;
    double fp16_loss_scale; /* NaN: the model's */
    int64_t fp16_inc_loss_scale_every_n;
    int64_t tf_random_seed;
    bool repeatable, winograd_nonfused, ml_perf;
    /* what is said and kept */
    int64_t display_every;
    double display_perf_ewma; /* NaN */
    const char *loss_type_to_report;
    const char *train_dir, *eval_dir, *backbone_model_path, *benchmark_log_dir;
    const char *trace_file, *json_file, *graph_file, *benchmark_test_id, *progress;
    int64_t save_summaries_steps, summary_verbosity, save_model_secs, save_model_steps;
    int64_t max_ckpts_to_keep;
    bool use_chrome_trace_format, profile, wants_help, wants_helpfull, wants_version;

    struct flags_given given;
    struct arena *arena; /* holds texts made here */
};

/* Sets defaults, then what the words say.  Texts are borrowed from words.  What is said about
 * flags without effect is appended to notes, a line each. */
int flags_parse(
    struct flags *flags, int count, char *const words[], struct str *notes, struct err *e);
void flags_done(struct flags *flags);
#define auto_flags __attribute__((cleanup(flags_done))) struct flags

/* Was it on the command line? */
bool flags_given(const struct flags *flags, const char *name);

/* Usage, examples, the flags that do something here; with `all`, the others with their reason.
 */
void flags_print_help(FILE *out, bool all);

#endif
