/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/schedule.h"

#include <math.h>
#include <stdlib.h>

/* A number that ends at ';' or at the end of the text; moves *at behind it. */
static int take_number(const char **at, double *ret_number, struct err *e)
{
    char *end;
    double number = strtod(*at, &end);

    if (end == *at || !isfinite(number) || number < 0 || (*end && *end != ';'))
        return err_set(e, ERR_INVALID, "\"%.40s\" does not begin with a learning rate or epoch",
                       *at);
    *at = *end ? end + 1 : end;
    *ret_number = number;
    return 0;
}

int schedule_parse_pieces(struct schedule *schedule, const char *text, struct err *e)
{
    double rate[SCHEDULE_MOST_PIECES], epoch[SCHEDULE_MOST_PIECES] = {0};
    const char *at = text;
    int count = 0;

    if (take_number(&at, &rate[count++], e) < 0)
        return -1;
    while (*at) {
        if (count == SCHEDULE_MOST_PIECES)
            return err_set(e, ERR_INVALID, "more than %d learning rates", SCHEDULE_MOST_PIECES);
        if (take_number(&at, &epoch[count], e) < 0)
            return -1;
        if (!*at)
            return err_set(e, ERR_INVALID, "epoch %g has no learning rate behind it",
                           epoch[count]);
        if (take_number(&at, &rate[count], e) < 0)
            return -1;
        if (epoch[count] <= epoch[count - 1])
            return err_set(e, ERR_INVALID, "epoch %g does not come after epoch %g",
                           epoch[count], epoch[count - 1]);
        count++;
    }
    schedule->kind = SCHEDULE_PIECEWISE;
    schedule->rate = rate[0];
    schedule->pieces = count;
    for (int i = 0; i < count; i++) {
        schedule->piece_rate[i] = rate[i];
        schedule->piece_epoch[i] = epoch[i];
    }
    return 0;
}

/* The step an epoch begins with; cut, as the original cuts it. */
static int64_t step_of(const struct schedule *s, double epoch)
{
    return (int64_t)(epoch * s->steps_per_epoch);
}

static double piecewise(const struct schedule *s, int64_t step)
{
    int i = 0;

    while (i + 1 < s->pieces && step >= step_of(s, s->piece_epoch[i + 1]))
        i++;
    return s->piece_rate[i];
}

static double exponential(const struct schedule *s, int64_t step)
{
    int64_t stair = step_of(s, s->decay_epochs);
    double rate = s->rate * pow(s->factor, (double)(step / (stair > 0 ? stair : 1)));

    return rate > s->floor ? rate : s->floor;
}

/* How much of the way behind the warm-up is done, 0..1. */
static double progress(const struct schedule *s, int64_t step)
{
    int64_t begin = step_of(s, s->warmup_epochs);

    if (step <= begin || s->steps <= begin)
        return 0;
    return step >= s->steps ? 1 : (double)(step - begin) / (double)(s->steps - begin);
}

double schedule_rate(const struct schedule *s, int64_t step)
{
    int64_t warmup = step_of(s, s->warmup_epochs);

    if (step < warmup)
        return s->rate * (double)step / (double)warmup;
    switch (s->kind) {
    case SCHEDULE_PIECEWISE:
        return piecewise(s, step);
    case SCHEDULE_EXPONENTIAL:
        return exponential(s, step);
    case SCHEDULE_COSINE:
        return s->floor + (s->rate - s->floor) * (1 + cos(M_PI * progress(s, step))) / 2;
    case SCHEDULE_POLYNOMIAL:
        return s->floor + (s->rate - s->floor) * pow(1 - progress(s, step), s->power);
    case SCHEDULE_CONSTANT:
        break;
    }
    return s->rate;
}
