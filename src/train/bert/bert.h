/* bert.h - BERT's pre-training from flags to figures: what `yardbench bert` does, and the
 * program of the name onnxruntime_training_bert.
 *
 * Modes: train on data files (bert-data/bert-data.h), in one phase or two; perf with random
 * data, made once, behind a warm-up; validation of a checkpoint.
 *
 * On stdout, as the original prints it, from rank 0, figures of that rank:
 *   Round 0, Step: 3, epoch: 0, batch: 2/100, shard_iteration: 1/1, time: 812.41 ms,
 * throughput: 4.92 ex/sec                                         (one line), for each batch,
 * and Training data range: [8 - 11) Step: 0, #examples: 4, total_loss: 11.0832,
 * mlm_loss: 10.3901, nsp_loss: 0.6931 with an empty line behind it, every --display_loss_steps
 * updates; not with perf and at the end of a phase the block of Round, Batch size, Number of
 * Batches, Gradient Accumulation Steps, Weight Update Steps, Total Running Time, Average
 * Running Time Per Batch, Throughput, Stabilized Throughput (the last 128 batches), EndToEnd
 * Throughput (with all that lies between batches, from the 129th on; 0 before), Average Step
 * Time, Average Step Throughput.  All else is on stderr.  --perf_output_dir gets
 * onnxruntime_perf_metrics_<model>.onnx_bert_<fp16|fp32>_<seq>_<optimizer>.json.
 *
 * Gradients are averaged over ranks and over the batches of an update.  A checkpoint is written
 * between updates only; a run that goes on from one gives the same bits as one that was not
 * interrupted, with the same ranks and threads.  SIGINT and SIGTERM end a run after the current
 * update, with a checkpoint where there is a folder for it, and status 128 + n.
 *
 * Status: as run/run.h has them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BERT_BERT_H
#define TRAIN_BERT_BERT_H

#include "base/err.h"

struct bert_flags;
struct comm;

/* *ret_signal: the one that ended the run early, else 0. */
int bert_train(const struct bert_flags *flags,
               struct comm *comm,
               int *ret_signal,
               struct err *e);

#endif
