/* show.c - what a run prints, to the letter as the original prints it, and its events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

/* Batches of an epoch, for this rank. */
static int64_t batches_of_epoch(const struct bert_run *run)
{
    const struct bert_data_facts *facts = bert_source_facts(run->source);
    int64_t each = run->shape.batch * run->ranks->ranks;

    if (!facts)
        return bert_phase_of(run)->steps;
    return (facts->records + each - 1) / each;
}

/* Where a batch stands: the original counts batches within a shard, here an epoch is one. */
void bert_show_batch(const struct bert_run *run, const struct bert_batch *batch, double seconds)
{
    int64_t number = run->step - run->spec.warmup, of = batches_of_epoch(run);
    int64_t at = of > 0 ? (number - 1) % of : 0;
    int64_t done = run->step - run->first_step, size = run->shape.batch;

    if (!bert_speaks(run) || number < 1)
        return;
    printf("Round %d, Step: %" PRId64 ", epoch: %" PRId64 ", batch: %" PRId64 "/%" PRId64
           ", shard_iteration: 1/1, time: %.2f ms, throughput: %.2f ex/sec \n"
           "Training data range: [%" PRId64 " - %" PRId64 ")\n",
           run->round, number, batch->epoch, at, of, seconds * 1000,
           (double)(size * done) / run->times.batches_s, at * size, (at + 1) * size - 1);
    fflush(stdout);
}

static int add_events(struct bert_run *run,
                      const char *tag,
                      const struct bert_losses *l,
                      double lr,
                      struct err *e)
{
    auto_free char *total = xasprintf("%s/total_loss", tag);
    auto_free char *mlm = xasprintf("%s/mlm_loss", tag);
    auto_free char *nsp = xasprintf("%s/nsp_loss", tag);
    auto_free char *rate = xasprintf("%s/Learning_Rate", tag);
    auto_free char *scale = xasprintf("%s/loss_scale", tag);
    bool has_scale = run->precision == PRECISION_FP16 && !isnan(lr);
    const struct events_scalar scalars[] = {
        {total, (float)l->total},
        {mlm, (float)l->mlm},
        {nsp, (float)l->nsp},
        {rate, (float)lr},
        {scale, has_scale ? (float)run->loss_scale : NAN},
    };

    if (!run->events)
        return 0;
    return events_add(run->events, run->updates, scalars, (int)ARRAY_SIZE(scalars), e);
}

int bert_show_losses(struct bert_run *run,
                     const char *tag,
                     int64_t examples,
                     const struct bert_losses *l,
                     double lr,
                     struct err *e)
{
    if (!bert_speaks(run))
        return 0;
    printf("Step: %" PRId64 ", #examples: %" PRId64
           ", total_loss: %0.4f, mlm_loss: %0.4f, nsp_loss: %0.4f \n\n",
           run->updates, examples, l->total, l->mlm, l->nsp);
    if (run->losses) {
        fprintf(run->losses, "%" PRId64 ",%.9g,%.9g,%.9g\n", run->updates, l->total, l->mlm,
                l->nsp);
        if (fflush(run->losses) != 0)
            return err_sys(e, errno, "could not write \"%.200s\"",
                           run->flags->convergence_test_output_file);
    }
    return add_events(run, tag, l, lr, e);
}

void bert_show_summary(const struct bert_run *run)
{
    struct bert_figures f;

    bert_figures(run, &f);
    if (!bert_speaks(run))
        return;
    printf("Round: %d\n"
           "Batch size: %" PRId64 "\n"
           "Number of Batches: %" PRId64 "\n"
           "Gradient Accumulation Steps: %" PRId64 "\n"
           "Weight Update Steps: %" PRId64 "\n"
           "Total Running Time: %g Seconds \n"
           "Average Running Time Per Batch: %g ms\n"
           "Throughput: %g Examples / Second\n"
           "Stabilized Throughput: %g Examples / Second\n"
           "EndToEnd Throughput: %g Examples / Second\n"
           "Average Step Time: %g Second\n"
           "Average Step Throughput: %g Examples / Second\n",
           run->round, run->shape.batch, f.batches, f.accumulations, f.updates,
           run->times.batches_s, f.per_batch_ms, f.throughput, f.stable, f.end_to_end, f.step_s,
           f.step_throughput);
}
