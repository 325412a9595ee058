/* eval.c - losses over the test data, every rank with its share of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"

#include <math.h>

/* Sums over words and over sequences, since batches have different numbers of them. */
struct tally {
    double mlm, words, nsp, sequences;
    int64_t batches;
};

/* 1 = done, 0 = there is no more. */
static int one_batch(struct bert_run *run, struct tally *tally, struct err *e)
{
    struct step step = {.number = (uint64_t)tally->batches};
    struct step_values values;
    struct bert_batch batch;

    if (bert_source_next(run->test, &batch, &step, e) < 0)
        return -1;
    if (!batch.examples)
        return 0;
    if (plan_step(run->eval_plan, &step, &values, e) < 0)
        return -1;
    tally->mlm += (double)values.value[VALUE_MLM_LOSS] * (double)batch.masked;
    tally->nsp += (double)values.value[VALUE_NSP_LOSS] * (double)batch.examples;
    tally->words += (double)batch.masked;
    tally->sequences += (double)batch.examples;
    tally->batches++;
    return 1;
}

/* An evaluation begins where all others do. */
static int begin(struct bert_run *run, struct err *e)
{
    struct bert_loader_options o = {
        .batch = run->eval_shape.batch,
        .sequence = run->eval_shape.sequence,
        .predictions = run->eval_shape.predictions,
        .seed = run->spec.seed,
        .rank = run->ranks->rank,
        .ranks = run->ranks->ranks,
        .is_once = true,
    };

    bert_source_free(run->test);
    run->test = NULL;
    if (bert_source_open(bert_phase_of(run)->test_dir, &run->test, e) < 0)
        return -1;
    return bert_source_begin(run->test, &o, run->spec.size.vocabulary, e);
}

int bert_evaluate(struct bert_run *run, struct err *e)
{
    struct tally t = {0};
    struct bert_losses losses;
    double sums[4];
    int got = 1;

    if (begin(run, e) < 0)
        return -1;
    while (got > 0 && t.batches < run->flags->max_eval_steps)
        got = one_batch(run, &t, e);
    if (got < 0)
        return -1;
    sums[0] = t.mlm;
    sums[1] = t.words;
    sums[2] = t.nsp;
    sums[3] = t.sequences;
    if (run->ranks->ranks > 1 && comm_sum(run->comm, sums, 4, e) < 0)
        return -1;
    if (sums[3] <= 0)
        return err_set(e, ERR_NOT_FOUND, "there was no sequence to evaluate");
    losses.mlm = sums[0] / fmax(sums[1], 1);
    losses.nsp = sums[2] / sums[3];
    losses.total = losses.mlm + losses.nsp;
    return bert_show_losses(run, "test", (int64_t)sums[3], &losses, NAN, e);
}

int bert_validate(struct bert_run *run, struct err *e)
{
    if (bert_open_phase(run, e) < 0 || bert_begin_with(run, e) < 0)
        return -1;
    return bert_evaluate(run, e);
}
