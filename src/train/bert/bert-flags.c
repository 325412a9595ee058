/* bert-flags.c - every flag of onnxruntime_training_bert, then ours.
 *
 * A row with `why` is taken, checked and has no effect here; `why` is what is said about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-flags.h"

#include "base/mem.h"
#include "base/str.h"

#define AT(field) offsetof(struct bert_flags, field)

/* Above every number that makes sense, and exact as a double. */
#define BIG 9e15
#define ANY 1e300 /* of real numbers */

static const struct flag_row rows[] = {
    {"model_name", FLAG_TEXT, AT(model_name),
     .help = "which BERT, by the name of its file: bert-large, bert-base, bert-tiny, "
             "bert_L-24_H-1024_A-16_V_30528; folder and endings do not matter"},
    {"mode", FLAG_WORD, AT(mode), .initial = "train", .words = "train|perf|validation",
     .help = "perf measures, with random data; validation gives the losses of the newest "
             "checkpoint over --test_data_dir"},
    {"train_batch_size", FLAG_INT, AT(train_batch_size), .initial = "0", .least = 0,
     .most = 65536, .help = "sequences of one batch and rank"},
    {"eval_batch_size", FLAG_INT, AT(eval_batch_size), .initial = "0", .least = 0,
     .most = 65536, .help = "the same for evaluation; 0 = --train_batch_size"},
    {"num_of_perf_samples", FLAG_INT, AT(num_of_perf_samples), .initial = "100", .least = 1,
     .most = BIG,
     .help = "with --mode perf, how many sequences each rank takes; --num_train_steps wins"},
    {"perf_warm_up_iters", FLAG_INT, AT(perf_warm_up_iters), .initial = "10", .least = 0,
     .most = BIG, .help = "with --mode perf, batches before the clock runs"},
    {"num_train_steps", FLAG_INT, AT(num_train_steps), .initial = "100000", .least = 0,
     .most = BIG, .help = "batches of each rank"},
    {"gradient_accumulation_steps", FLAG_INT, AT(gradient_accumulation_steps), .initial = "1",
     .least = 1, .most = 65536, .help = "batches whose gradients make one update"},
    {"max_seq_length", FLAG_INT, AT(max_seq_length), .initial = "512", .least = 2,
     .most = 65536, .help = "tokens of a sequence; with data files, theirs unless it is given"},
    {"max_predictions_per_seq", FLAG_INT, AT(max_predictions_per_seq), .initial = "80",
     .least = 1, .most = 65536, .help = "masked tokens of a sequence; likewise"},

    {"train_data_dir", FLAG_TEXT, AT(train_data_dir),
     .initial = "bert_data/128/books_wiki_en_corpus/train",
     .help = "folder of training data, as `yardbench bert-data` writes it"},
    {"test_data_dir", FLAG_TEXT, AT(test_data_dir),
     .initial = "bert_data/128/books_wiki_en_corpus/test", .help = "the same for evaluation"},
    {"output_dir", FLAG_TEXT, AT(output_dir), .initial = "",
     .help = "where the trained weights go, with the names PyTorch's BERT has"},
    {"perf_output_dir", FLAG_TEXT, AT(perf_output_dir), .initial = "",
     .help = "where the figures go as JSON"},
    {"checkpoints_dir", FLAG_TEXT, AT(checkpoints_dir), .initial = "",
     .help = "where checkpoints go, and where a run goes on from"},
    {"checkpoint_to_load_path", FLAG_TEXT, AT(checkpoint_to_load_path), .initial = "",
     .help = "go on from this checkpoint instead of the newest of --checkpoints_dir"},
    {"checkpoint_period", FLAG_INT, AT(checkpoint_period), .initial = "1000", .least = 0,
     .most = BIG, .help = "updates from one checkpoint to the next; 0 = at the end only"},
    {"max_num_checkpoints", FLAG_INT, AT(max_num_checkpoints), .initial = "10", .least = 1,
     .most = 1e6, .help = "how many checkpoints are kept"},
    {"log_dir", FLAG_TEXT, AT(log_dir), .initial = "",
     .help = "folder for TensorBoard's events; not with --mode perf"},
    {"convergence_test_output_file", FLAG_TEXT, AT(convergence_test_output_file), .initial = "",
     .help = "the losses as lines step,total_loss,mlm_loss,nsp_loss"},
    {"display_loss_steps", FLAG_INT, AT(display_loss_steps), .initial = "10", .least = 1,
     .most = BIG, .help = "updates from one line of losses, and event, to the next"},
    {"do_eval", FLAG_BOOL, AT(do_eval), .initial = "false",
     .help = "evaluate on --test_data_dir while training"},
    {"evaluation_period", FLAG_INT, AT(evaluation_period), .initial = "100", .least = 1,
     .most = BIG, .help = "batches from one evaluation to the next"},
    {"max_eval_steps", FLAG_INT, AT(max_eval_steps), .initial = "100", .least = 1, .most = BIG,
     .help = "batches of an evaluation at most"},

    {"optimizer", FLAG_WORD, AT(optimizer), .initial = "Adam", .words = "Adam|Lamb|adam|lamb",
     .help = "which optimiser"},
    {"learning_rate", FLAG_REAL, AT(learning_rate), .initial = "5e-5", .least = 0, .most = 1,
     .help = "the largest learning rate"},
    {"warmup_ratio", FLAG_REAL, AT(warmup_ratio), .initial = "0", .least = 0, .most = 1,
     .help = "share of the steps in which the rate rises to it"},
    {"warmup_mode", FLAG_WORD, AT(warmup_mode), .initial = "None",
     .words = "None|Cosine|Constant|Linear|Poly",
     .help = "what the rate does behind the warm-up; None: no warm-up either"},
    {"alpha", FLAG_REAL, AT(alpha), .initial = "0.9", .least = 0, .most = 1,
     .help = "decay of the first moment (beta1)"},
    {"beta", FLAG_REAL, AT(beta), .initial = "0.999", .least = 0, .most = 1,
     .help = "decay of the second moment (beta2)"},
    {"lambda", FLAG_REAL, AT(lambda), .initial = "0.01", .least = 0, .most = ANY,
     .help = "weight decay; not of biases and LayerNorms"},
    {"epsilon", FLAG_REAL, AT(epsilon), .initial = "1e-6", .least = 0, .most = ANY,
     .help = "added to the root of the second moment"},
    {"ratio_min", FLAG_REAL, AT(ratio_min), .initial = "0.05", .least = 0, .most = ANY,
     .help = "Lamb's trust ratio at least"},
    {"ratio_max", FLAG_REAL, AT(ratio_max), .initial = "5.0", .least = 0, .most = ANY,
     .help = "Lamb's trust ratio at most"},
    {"do_bias_correction", FLAG_BOOL, AT(do_bias_correction), .initial = "false",
     .help = "correct the moments of the first steps"},
    {"enable_grad_norm_clip", FLAG_BOOL, AT(enable_grad_norm_clip), .initial = "true",
     .help = "scale gradients whose norm, all together, is above 1"},
    {"use_mixed_precision", FLAG_BOOL, AT(use_mixed_precision), .initial = "false",
     .help = "16-bit activations and products, fp32 weights"},
    {"loss_scale", FLAG_REAL, AT(loss_scale), .initial = "0.0", .least = 0, .most = 16777216,
     .help = "with mixed precision; 0 = found while training, from 65536"},
    {"seed", FLAG_INT, AT(seed), .initial = "-1", .least = -1, .most = BIG,
     .help = "of weights, dropout and order of data; below 1: always the same one"},
    {"data_parallel_size", FLAG_INT, AT(data_parallel_size), .initial = "1", .least = 1,
     .most = 65536, .help = "how many ranks share the data: all that were started"},
    {"cuda_mem_limit_in_gb", FLAG_REAL, AT(cuda_mem_limit_in_gb), .initial = "-1.0",
     .least = -1, .most = 1e6, .help = "memory of the GPU to use at most; -1 = all"},

    {"train_data_dir_phase2", FLAG_TEXT, AT(train_data_dir_phase2), .initial = "",
     .help = "train a second time, on these data: longer sequences"},
    {"test_data_dir_phase2", FLAG_TEXT, AT(test_data_dir_phase2), .initial = "",
     .help = "evaluation of the second phase"},
    {"train_batch_size_phase2", FLAG_INT, AT(train_batch_size_phase2), .initial = "1",
     .least = 1, .most = 65536, .help = "batch of the second phase"},
    {"learning_rate_phase2", FLAG_REAL, AT(learning_rate_phase2), .initial = "4e-3", .least = 0,
     .most = 1, .help = "rate of the second phase"},
    {"num_train_steps_phase2", FLAG_INT, AT(num_train_steps_phase2), .initial = "1563",
     .least = 0, .most = BIG, .help = "batches of the second phase"},
    {"warmup_ratio_phase2", FLAG_REAL, AT(warmup_ratio_phase2), .initial = "0.128", .least = 0,
     .most = 1, .help = "warm-up of the second phase"},
    {"gradient_accumulation_steps_phase2", FLAG_INT, AT(gradient_accumulation_steps_phase2),
     .initial = "1", .least = 1, .most = 65536, .help = "accumulation of the second phase"},

    {"use_nccl", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "ranks find the best way by themselves: NCCL between GPUs, shared memory on a "
            "host, MPI between hosts"},
    {"allreduce_in_fp16", FLAG_BOOL, FLAG_NOWHERE, .initial = "true",
     .why = "gradients are summed in fp32"},
    {"use_adasum", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "gradients of the ranks are averaged"},
    {"use_fp16_moments", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "moments are fp32"},
    {"use_fp16_initializer", FLAG_BOOL, FLAG_NOWHERE, .initial = "true",
     .why = "the plan makes the 16-bit copies of weights"},
    {"use_profiler", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "it was for the profiler of ONNX Runtime"},
    {"max_profile_records", FLAG_INT, FLAG_NOWHERE, .initial = "0",
     .why = "it was for the profiler of ONNX Runtime"},
    {"iterations_per_loop", FLAG_INT, FLAG_NOWHERE, .initial = "1000",
     .why = "it has no effect in the original either"},
    {"histogram", FLAG_TEXT, FLAG_NOWHERE, .why = "tensors are not named by ONNX's numbers"},
    {"norm", FLAG_TEXT, FLAG_NOWHERE, .why = "tensors are not named by ONNX's numbers"},
    {"dump_convergence_metrics", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "the norm of the gradients is among the events anyway"},
    {"deepspeed_zero_stage", FLAG_INT, FLAG_NOWHERE, .initial = "0", .least = 0, .most = 1,
     .why = "every rank keeps the optimiser's state whole; results are the same"},
    {"partition_optimizer", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "every rank keeps the optimiser's state whole; results are the same"},
    {"weight_decay_mode", FLAG_INT, FLAG_NOWHERE, .initial = "0", .least = 0, .most = 0,
     .why = "0, decay as part of the step, is the only mode"},
    {"horizontal_parallel_size", FLAG_INT, FLAG_NOWHERE, .initial = "1", .least = 1, .most = 1,
     .why = "ranks share data, not the model"},
    {"pipeline_parallel_size", FLAG_INT, FLAG_NOWHERE, .initial = "1", .least = 1, .most = 1,
     .why = "ranks share data, not the model"},
    {"pipeline_stage_paths", FLAG_TEXT, FLAG_NOWHERE, .why = "ranks share data, not the model"},
    {"cut_group_info", FLAG_TEXT, FLAG_NOWHERE, .why = "ranks share data, not the model"},
    {"enable_gelu_approximation", FLAG_BOOL, FLAG_NOWHERE, .initial = "true",
     .why = "GELU is exact, by erf"},
    {"attn_dropout_checkpoint", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "masks of dropout are drawn again, never kept"},
    {"gelu_checkpoint", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "the memory plan decides what is kept"},
    {"use_invertible_layernorm_grad", FLAG_BOOL, FLAG_NOWHERE, .initial = "false",
     .why = "the memory plan decides what is kept"},
    {"ort_log_severity", FLAG_INT, FLAG_NOWHERE, .initial = "2",
     .why = "it was for the log of ONNX Runtime"},
    {"ort_vlog_level", FLAG_INT, FLAG_NOWHERE, .initial = "-1",
     .why = "it was for the log of ONNX Runtime"},

    {"backend", FLAG_WORD, AT(backend), .initial = "auto", .words = "auto|ref|onednn|cuda",
     .help = "what runs it", .is_ours = true},
    {"device", FLAG_WORD, AT(device), .words = "cpu|gpu|CPU|GPU",
     .help = "default: a GPU where there is one", .is_ours = true},
    {"precision", FLAG_WORD, AT(precision), .words = "fp32|tf32|bf16|fp16",
     .help = "instead of --use_mixed_precision", .is_ours = true},
    {"dropout", FLAG_REAL, AT(dropout), .least = 0, .most = 0.999,
     .help = "instead of the model's, 0.1 unless its name says Dp_...", .is_ours = true},
    {"init_weights", FLAG_TEXT, AT(init_weights), .initial = "",
     .help = "begin with the weights of this safetensors file: one of --output_dir, or "
             "PyTorch's",
     .is_ours = true},
    {"json", FLAG_TEXT, AT(json_file), .initial = "",
     .help = "every step's losses, rate and time into this file", .is_ours = true},
    {"num_threads", FLAG_INT, AT(num_threads), .initial = "0", .least = 0, .most = 4096,
     .help = "of a CPU; 0 = its cores, shared by the ranks of the host", .is_ours = true},
    {"gpu_indices", FLAG_TEXT, AT(gpu_indices), .initial = "",
     .help = "cards of the ranks of a host: 0,2", .is_ours = true},
    {"repeatable", FLAG_BOOL, AT(repeatable), .initial = "false",
     .help = "same seed, same bits, on GPUs too", .is_ours = true},
    {"profile", FLAG_BOOL, AT(profile), .initial = "false",
     .help = "where the time goes, op by op, as a table on stderr", .is_ours = true},
    {"trace_file", FLAG_TEXT, AT(trace_file), .initial = "",
     .help = "one batch on a time line, for chrome://tracing or Perfetto", .is_ours = true},
    {"graph_file", FLAG_TEXT, AT(graph_file), .initial = "",
     .help = "write the program of a step as text", .is_ours = true},
    {"plan_only", FLAG_BOOL, AT(plan_only), .initial = "false",
     .help = "say sizes, steps and work, and run nothing", .is_ours = true},
    {"help", FLAG_BOOL, AT(wants_help), .initial = "false", .help = "this text",
     .is_ours = true},
    {"helpfull", FLAG_BOOL, AT(wants_helpfull), .initial = "false",
     .help = "this text, and the flags that do nothing here", .is_ours = true},
    {"version", FLAG_BOOL, AT(wants_version), .initial = "false",
     .help = "the version and what it was built with", .is_ours = true},
};

/* Not absl's --noname: cxxopts does not know it. */
static const struct flag_table table = {.rows = rows, .count = ARRAY_SIZE(rows)};

static int check(const struct bert_flags *f, struct err *e)
{
    if (!f->model_name)
        return err_set(e, ERR_INVALID, "--model_name is needed; try bert-tiny");
    if (f->train_batch_size < 1 && !str_equal(f->mode, "validation"))
        return err_set(e, ERR_INVALID, "--train_batch_size is needed");
    if (f->ratio_max < f->ratio_min)
        return err_set(e, ERR_INVALID, "--ratio_max is below --ratio_min");
    if (f->use_mixed_precision && f->precision && !str_equal(f->precision, "fp16") &&
        !str_equal(f->precision, "bf16"))
        return err_set(e, ERR_INVALID, "--use_mixed_precision does not go with --precision %s",
                       f->precision);
    return 0;
}

int bert_flags_parse(
    struct bert_flags *flags, int count, char *const words[], struct str *notes, struct err *e)
{
    *flags = (struct bert_flags){0};
    flag_table_defaults(&table, flags);
    if (flag_table_parse(&table, flags, &flags->given, count, words, notes, e) < 0)
        return -1;
    if (flags->wants_help || flags->wants_helpfull || flags->wants_version)
        return 0;
    return check(flags, e);
}

bool bert_flags_given(const struct bert_flags *flags, const char *name)
{
    return flag_table_given(&table, &flags->given, name);
}

void bert_flags_print_help(FILE *out, const char *called, bool all)
{
    fprintf(out,
            "usage: %s --model_name NAME --train_batch_size N [--FLAG=VALUE]...\n"
            "\n"
            "Pre-trains BERT, or measures how fast it goes, with the flags and the output of\n"
            "onnxruntime_training_bert.\n"
            "\n"
            "Examples:\n"
            "  %s --model_name bert_L-24_H-1024_A-16_V_30528 --train_batch_size 4 \\\n"
            "          --mode perf --num_of_perf_samples 400\n"
            "      speed of BERT-large on this machine, with random data\n"
            "  mpirun -n 4 %s --model_name bert-base --train_batch_size 16 \\\n"
            "          --gradient_accumulation_steps 16 --mode perf --max_seq_length 128 \\\n"
            "          --max_predictions_per_seq 20 --use_mixed_precision\n"
            "      the same on four ranks, sixteen batches for each update\n"
            "  yardbench bert-data --help\n"
            "      makes training data from text\n"
            "  %s --model_name bert-tiny --train_batch_size 32 --train_data_dir data \\\n"
            "          --num_train_steps 1000 --learning_rate 1e-3 --warmup_mode Linear \\\n"
            "          --warmup_ratio 0.1 --checkpoints_dir out --log_dir out/events\n"
            "      train on them, with checkpoints to go on from and curves for TensorBoard\n"
            "  %s --model_name bert-tiny --mode validation --checkpoints_dir out \\\n"
            "          --test_data_dir data\n"
            "      losses of the newest checkpoint\n"
            "\n"
            "Flags take --name=value or --name value; booleans --name or --name=false.\n",
            called, called, called, called, called);
    flag_table_print(out, &table, "Flags of onnxruntime_training_bert:", false, false);
    flag_table_print(out, &table, "Flags of our own:", true, false);
    if (all)
        flag_table_print(
            out, &table,
            "Flags of onnxruntime_training_bert that do nothing here, and why:", false, true);
    else
        fputs("\nThe other flags of onnxruntime_training_bert are taken and do nothing here;\n"
              "--helpfull lists them with the reason.\n",
              out);
}
