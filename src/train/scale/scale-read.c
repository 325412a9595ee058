/* scale-read.c - a run's report becomes figures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/num/stats.h"
#include "train/record/json-plain.h"
#include "train/scale/scale-internal.h"

#include <math.h>
#include <stdlib.h>

void scale_run_done(struct scale_run *run)
{
    free(run->buckets);
    run->buckets = NULL;
    run->bucket_count = 0;
}

/* NaN when it is not there. */
static double number(const struct jsonr *root, const char *group, const char *key)
{
    const struct jsonr *inner = group ? jsonr_get(root, group) : root;
    const struct jsonr *value = inner ? jsonr_get(inner, key) : NULL;

    return value && value->type == JSONR_NUMBER ? value->number : NAN;
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

/* " <ready>:<bytes>"; NULL when it is not that. */
static const char *read_bucket(const char *text, struct predict_bucket *bucket)
{
    char *end;

    if (*text++ != ' ')
        return NULL;
    bucket->ready_s = strtod(text, &end);
    if (end == text || *end != ':')
        return NULL;
    text = end + 1;
    bucket->bytes = strtod(text, &end);
    return end == text ? NULL : end;
}

int scale_read_pace(const char *text, struct scale_run *run, struct err *e)
{
    char *end;

    run->buckets = xcalloc(SCALE_MOST_BUCKETS, sizeof *run->buckets);
    run->backward_end_s = strtod(text, &end);
    text = end;
    while (text && *text && run->bucket_count < SCALE_MOST_BUCKETS)
        text = read_bucket(text, &run->buckets[run->bucket_count++]);
    if (text && !*text && run->bucket_count > 0)
        return 0;
    scale_run_done(run);
    return err_set(e, ERR_INVALID, "the report's \"buckets\" cannot be read");
}

/* Seconds of the steps; the caller frees them. */
static double *step_seconds(const struct jsonr *root, int *ret_count)
{
    const struct jsonr *steps = jsonr_get(root, "steps");
    double *seconds;
    int count = 0;

    for (const struct jsonr *s = steps ? steps->first : NULL; s; s = s->next)
        count++;
    seconds = xcalloc((size_t)count + 1, sizeof(*seconds));
    *ret_count = 0;
    for (const struct jsonr *s = steps ? steps->first : NULL; s; s = s->next)
        seconds[(*ret_count)++] = or_zero(number(s, NULL, "seconds"));
    return seconds;
}

static void read_steps(struct scale_run *run, const double *seconds, int count)
{
    if (count == 0)
        return;
    run->step_s = stats_mean(seconds, (size_t)count);
    run->typical_s = stats_median(seconds, (size_t)count);
}

int scale_read_report(const char *text, size_t len, struct scale_run *ret_run, struct err *e)
{
    autoptr(arena) arena = arena_new();
    const struct jsonr *root, *pace;
    struct scale_run run = {0};
    auto_free double *seconds = NULL;
    int steps;

    if (jsonr_parse(arena, text, len, &root, e) < 0)
        return err_wrap(e, "the run's report");
    seconds = step_seconds(root, &steps);
    read_steps(&run, seconds, steps);
    run.ranks = (int)or_zero(number(root, NULL, "ranks"));
    run.batch = (int64_t)or_zero(number(root, NULL, "batch"));
    run.params = (int64_t)or_zero(number(root, NULL, "params"));
    run.images_per_s = number(root, "images_per_second", "total");
    if (run.ranks < 1 || isnan(run.images_per_s) || !(run.step_s > 0))
        return err_set(e, ERR_INVALID, "the run's report has no speed in it");
    run.exposed_s = or_zero(number(root, "seconds", "exposed_communication")) / steps;
    run.busy_s = or_zero(number(root, "seconds", "communication")) / steps;
    run.bytes = or_zero(number(root, "communication", "bytes")) / steps;
    pace = jsonr_get(root, "buckets");
    if (pace && pace->type == JSONR_TEXT && scale_read_pace(pace->text, &run, e) < 0)
        return -1;
    *ret_run = run;
    return 0;
}
