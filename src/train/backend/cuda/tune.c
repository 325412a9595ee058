/* tune.c - see tune.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/cuda/tune.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/backend/cuda/plan.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_FILE = 16 << 20,
    MOST_CANDIDATES = 64,
    ROUNDS = 3,
    RUNS = 3, /* of a candidate in a round: launches overlap, as they do in a step */
};

struct remembered {
    char *key;
    int choice;
    int64_t nanoseconds;
};

struct tune {
    char *dir, *path; /* NULL: nowhere */
    struct remembered *all;
    int count;
    bool is_new; /* something to write */
};

static struct remembered *find(const struct tune *tune, const char *key)
{
    for (int i = 0; i < tune->count; i++)
        if (str_equal(tune->all[i].key, key))
            return &tune->all[i];
    return NULL;
}

static void keep(struct tune *tune, const char *key, int choice, int64_t nanoseconds)
{
    struct remembered *at = find(tune, key);

    if (!at) {
        tune->all = xreallocarray(tune->all, (size_t)tune->count + 1, sizeof *tune->all);
        at = &tune->all[tune->count++];
        at->key = xstrdup(key);
    }
    at->choice = choice;
    at->nanoseconds = nanoseconds;
}

static void read_line(struct tune *tune, char *line)
{
    char *end, *key;
    long choice = strtol(line, &end, 10);
    long long nanoseconds;

    if (end == line || *end != ' ' || choice < 0 || choice >= MOST_CANDIDATES)
        return;
    nanoseconds = strtoll(end, &key, 10);
    if (key == end || *key != ' ' || nanoseconds < 0 || key[1] == '\0')
        return;
    keep(tune, key + 1, (int)choice, nanoseconds);
}

static void read_file(struct tune *tune)
{
    auto_str text = {0};
    char *line, *next;

    if (fs_read(tune->path, MOST_FILE, &text, NULL) < 0 || text.len == 0)
        return;
    for (line = text.data; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        read_line(tune, line);
    }
}

struct tune *tune_open(const char *dir, const char *name)
{
    struct tune *tune = xcalloc(1, sizeof *tune);

    if (!dir)
        return tune;
    tune->dir = xstrdup(dir);
    tune->path = xasprintf("%s/%s", dir, name);
    read_file(tune);
    return tune;
}

int tune_save(struct tune *tune, struct err *e)
{
    auto_str text = {0};

    if (!tune->path || !tune->is_new)
        return 0;
    for (int i = 0; i < tune->count; i++)
        str_addf(&text, "%d %" PRId64 " %s\n", tune->all[i].choice, tune->all[i].nanoseconds,
                 tune->all[i].key);
    if (fs_make_folders(tune->dir, 0755, e) < 0 ||
        fs_write_durably(tune->path, str_text(&text), text.len, 0644, e) < 0)
        return -1;
    tune->is_new = false;
    return 0;
}

void tune_free(struct tune *tune)
{
    if (!tune)
        return;
    for (int i = 0; i < tune->count; i++)
        free(tune->all[i].key);
    free(tune->all);
    free(tune->dir);
    free(tune->path);
    free(tune);
}

int tune_find(const struct tune *tune, const char *key, int count, int *ret_choice)
{
    const struct remembered *at = find(tune, key);

    if (!at || at->choice >= count)
        return -1;
    *ret_choice = at->choice;
    return 0;
}

void tune_put(struct tune *tune, const char *key, int choice, int64_t nanoseconds)
{
    keep(tune, key, choice, nanoseconds);
    tune->is_new = true;
}

struct timing {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    tune_run_fn *run;
    void *context;
};

/* Once, waited for: what cannot run is out.  An error that stays is not the candidate's own
 * affair any more, and the next call of anybody reports it. */
static bool can_run(const struct timing *t, int i)
{
    bool is_good = t->run(t->context, i, t->stream) == 0;

    is_good &= cudaStreamSynchronize(t->stream) == cudaSuccess;
    is_good &= cudaGetLastError() == cudaSuccess;
    return is_good;
}

/* Milliseconds of one run; INFINITY when it failed. */
static double time_of(const struct timing *t, int i)
{
    float ms = 0;
    bool is_good = cudaEventRecord(t->begin, t->stream) == cudaSuccess;

    for (int j = 0; j < RUNS; j++)
        is_good &= t->run(t->context, i, t->stream) == 0;
    is_good &= cudaEventRecord(t->end, t->stream) == cudaSuccess;
    is_good &= cudaEventSynchronize(t->end) == cudaSuccess;
    is_good &= cudaGetLastError() == cudaSuccess;
    is_good &= cudaEventElapsedTime(&ms, t->begin, t->end) == cudaSuccess;
    return is_good ? (double)ms / RUNS : INFINITY;
}

static int best_of(const double *best, int count)
{
    int choice = -1;

    for (int i = 0; i < count; i++)
        if (!isinf(best[i]) && (choice < 0 || best[i] < best[choice]))
            choice = i;
    return choice;
}

/* In turns, so that a clock that moves touches all alike; those far behind after a round are
 * measured no more. */
static int measure(const struct timing *t, int count, double *ret_ms)
{
    double best[MOST_CANDIDATES];
    int choice;

    for (int i = 0; i < count; i++)
        best[i] = can_run(t, i) ? (double)FLT_MAX : INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        choice = best_of(best, count);
        double limit = round == 0 || choice < 0 ? INFINITY : best[choice] * 1.5;

        for (int i = 0; i < count; i++)
            if (!isinf(best[i]) && best[i] <= limit) {
                double ms = time_of(t, i);

                best[i] = isinf(ms) || ms < best[i] ? ms : best[i];
            }
    }
    choice = best_of(best, count);
    *ret_ms = choice < 0 ? 0 : best[choice];
    return choice;
}

static int
choose(struct cuda_plan *p, const char *key, struct timing *t, int count, struct err *e)
{
    double ms = 0;
    cudaError_t status = cudaEventCreate(&t->begin);
    int choice = -1;

    if (status == cudaSuccess)
        status = cudaEventCreate(&t->end);
    if (status == cudaSuccess)
        choice = measure(t, count, &ms);
    if (t->begin)
        cudaEventDestroy(t->begin);
    if (t->end)
        cudaEventDestroy(t->end);
    if (status != cudaSuccess)
        return cuda_fail(e, status, "measuring");
    if (choice < 0)
        return err_set(e, ERR_METHOD, "none of %d kernels runs for %.200s", count, key);
    tune_put(p->tune, key, choice, (int64_t)(ms * 1e6));
    return choice;
}

/* A measured choice may be another the next time, with other bits. */
static int first_that_runs(const struct timing *t, const char *key, int count, struct err *e)
{
    for (int i = 0; i < count; i++)
        if (can_run(t, i))
            return i;
    return err_set(e, ERR_METHOD, "no kernel here can do %.200s", key);
}

int tune_choose(struct cuda_plan *p,
                const char *key,
                int count,
                tune_run_fn *run,
                void *context,
                int *ret_choice,
                struct err *e)
{
    struct timing t = {.stream = p->device->stream, .run = run, .context = context};
    int choice;

    if (count > MOST_CANDIDATES)
        count = MOST_CANDIDATES;
    if (count < 1)
        return err_set(e, ERR_METHOD, "there is no kernel for %.200s", key);
    if (count == 1) {
        *ret_choice = 0;
        return 0;
    }
    if (p->options.is_repeatable)
        choice = first_that_runs(&t, key, count, e);
    /* What is remembered is tried once: files can be wrong. */
    else if (tune_find(p->tune, key, count, &choice) < 0 || !can_run(&t, choice))
        choice = choose(p, key, &t, count, e);
    if (choice < 0)
        return -1;
    *ret_choice = choice;
    return 0;
}
