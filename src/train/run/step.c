/* step.c - one step: its passes, its values, and what ranks tell each other about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/run/common.h"
#include "train/run/run-internal.h"

#include <inttypes.h>
#include <math.h>

/* Sums over the passes of a step. */
struct sums {
    double loss, top1, top5, examples;
};

static int one_pass(struct run *run, struct sums *sums, struct step_values *v, struct err *e)
{
    int64_t examples;

    if (run_pass(run, v, &examples, e) < 0)
        return -1;
    sums->loss += (double)v->value[VALUE_LOSS];
    sums->top1 += (double)v->value[VALUE_TOP1];
    sums->top5 += (double)v->value[VALUE_TOP5];
    sums->examples += (double)examples;
    return 0;
}

/* What each rank knows becomes what all know: whether to stop, and, where gradients are
 * averaged and one rank speaks for all, the means. */
static int share_result(struct run *run, struct run_result *r, struct err *e)
{
    double n = run->ranks->ranks;
    double values[] = {run_was_signalled(), r->base_loss, r->top1, r->top5};

    if (n > 1 && comm_sum(run->comm, values, (int)ARRAY_SIZE(values), e) < 0)
        return -1;
    if (values[0] > 0)
        run_stop_after(run, run->step + 1);
    r->wants_stop = run->step + 1 >= run->stop_at;
    if (n > 1 && run->spec.update == RUN_MEAN) {
        r->base_loss = values[1] / n;
        r->top1 = values[2] / n;
        r->top5 = values[3] / n;
    }
    return 0;
}

static double l2_of(const struct run *run, const struct step_values *values)
{
    double sum = (double)values->value[VALUE_L2];

    return isnan(sum) ? run->fixed_l2 : sum * run->flags->weight_decay;
}

static bool has_scale(const struct run *run)
{
    return run->spec.optim.loss_scale != 1 || run->spec.optim.has_dynamic_scale;
}

static int check_finite(struct run *run, const struct run_result *r, struct err *e)
{
    if (isfinite(r->base_loss)) {
        run->last_finite_loss = r->base_loss;
        return 0;
    }
    if (run->spec.optim.has_dynamic_scale)
        return 0;
    if (isnan(run->last_finite_loss))
        return err_set(e, ERR_RANGE,
                       "the loss is %s in step %" PRId64 ", the first one: try a smaller "
                       "--init_learning_rate",
                       isnan(r->base_loss) ? "not a number" : "infinite", run->step + 1);
    return err_set(e, ERR_RANGE,
                   "the loss is %s in step %" PRId64 " (with the warm-up); the last finite one "
                   "was %.6g: try a smaller --init_learning_rate",
                   isnan(r->base_loss) ? "not a number" : "infinite", run->step + 1,
                   run->last_finite_loss);
}

int run_step(struct run *run, struct run_result *ret_result, struct err *e)
{
    struct run_result r = {.scale = NAN};
    struct sums sums = {0};
    struct step_values values = {0};

    r.lr = schedule_rate(&run->spec.schedule, run->step);
    for (int pass = 0; pass < run->spec.passes; pass++)
        if (one_pass(run, &sums, &values, e) < 0)
            return -1;
    r.base_loss = sums.loss / (double)run->spec.passes;
    r.top1 = sums.top1 / sums.examples;
    r.top5 = sums.top5 / sums.examples;
    if (share_result(run, &r, e) < 0 || check_finite(run, &r, e) < 0)
        return -1;
    r.l2 = l2_of(run, &values);
    r.loss = r.base_loss;
    if (str_equal(run->flags->loss_type_to_report, "total_loss"))
        r.loss += r.l2;
    if (has_scale(run))
        r.scale = run->loss_scale = (double)values.value[VALUE_SCALE];
    run->step++;
    *ret_result = r;
    return 0;
}
