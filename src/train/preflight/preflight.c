/* preflight.c - see preflight.h: ranks together, from the command line to the exit status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/preflight.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/backend/probe.h"
#include "train/comm/comm.h"
#include "train/preflight/preflight-internal.h"

#include <stdio.h>
#include <string.h>

enum {
    STATUS_GOOD = 0,
    STATUS_BAD = 1,
    STATUS_NO_CARDS = 2,
    STATUS_USAGE = 2,
};

struct flight {
    const struct preflight_options *options;
    struct comm *comm;
    const struct comm_facts *ranks;
    struct checks mine;
    struct check *rows; /* of all ranks; rank 0's alone are shown */
    int row_count;
};

/* All ranks' rows in order of rank; each sends as many as the longest list has. */
static int gather(struct flight *f, struct err *e)
{
    size_t ranks = (size_t)f->ranks->ranks, most;
    double count = f->mine.count;
    auto_free struct check *padded = NULL, *all = NULL;

    if (comm_most(f->comm, &count, 1, e) < 0)
        return -1;
    most = (size_t)count;
    if (most == 0)
        return 0;
    padded = xcalloc(most, sizeof *padded);
    all = xcalloc(ranks * most, sizeof *all);
    if (f->mine.count > 0)
        memcpy(padded, f->mine.all, (size_t)f->mine.count * sizeof *padded);
    if (comm_gather(f->comm, padded, most * sizeof *padded, all, e) < 0)
        return -1;
    for (size_t i = 0; i < ranks * most; i++) /* close the gaps */
        if (all[i].name[0])
            all[f->row_count++] = all[i];
    f->rows = take_ptr(&all);
    return 0;
}

/* Are there cards on every rank that was asked for some?  Says which have none. */
static int
need_cards(struct flight *f, int cards, const char *why, bool *ret_has, struct err *e)
{
    double missing = cards == 0;

    if (missing > 0 && f->options->device == PREFLIGHT_GPU)
        fprintf(stderr, "yardbench: %s: no GPU for rank %d: %s\n", f->ranks->host_name,
                f->ranks->rank, why);
    if (comm_sum(f->comm, &missing, 1, e) < 0)
        return -1;
    *ret_has = missing == 0 || f->options->device != PREFLIGHT_GPU;
    return 0;
}

static const char *reason_for_none(const struct probe_ops *probe, const struct err *why)
{
    if (!probe)
        return why->msg;
    return probe->cards() > 0 ? "there are fewer than ranks, or --cards leaves too few"
                              : "CUDA finds none; is the driver there?";
}

static int fly(struct flight *f, preflight_find_fn *find, bool *ret_has_cards, struct err *e)
{
    const struct probe_ops *probe = NULL;
    struct err why = {0};
    int cards = 0;

    *ret_has_cards = true;
    if (f->options->device != PREFLIGHT_GPU &&
        preflight_host(f->comm, f->options, &f->mine, e) < 0)
        return -1;
    if (f->options->device == PREFLIGHT_CPU)
        return 0;
    if (find(&probe, &why) < 0)
        probe = NULL;
    if (preflight_cards(f->comm, f->options, probe, why.msg, &f->mine, &cards, e) < 0)
        return -1;
    return need_cards(f, cards, reason_for_none(probe, &why), ret_has_cards, e);
}

/* A launcher gives its ranks a terminal of their own, whatever its own output is. */
static bool wants_colour(const struct flight *f)
{
    return str_equal(f->ranks->way, "alone") && preflight_is_coloured(stdout);
}

static int
run(struct flight *f, preflight_find_fn *find, int64_t begun_ms, int *ret_status, struct err *e)
{
    double seconds;
    bool has_cards;

    if (fly(f, find, &has_cards, e) < 0 || gather(f, e) < 0)
        return -1;
    seconds = (double)(clock_mono_ms() - begun_ms) / 1e3;
    if (has_cards && f->ranks->rank == 0) {
        if (f->options->is_json)
            preflight_print_json(f->rows, f->row_count, seconds, stdout);
        else
            preflight_print(f->rows, f->row_count, seconds, wants_colour(f), stdout);
        fflush(stdout);
    }
    *ret_status = !has_cards                                              ? STATUS_NO_CARDS
                  : preflight_worst(f->rows, f->row_count) == VERDICT_BAD ? STATUS_BAD
                                                                          : STATUS_GOOD;
    return 0;
}

int preflight_main(
    int count, char *const words[], preflight_find_fn *find, int *ret_status, struct err *e)
{
    int64_t begun_ms = clock_mono_ms();
    struct preflight_options options;
    struct flight f = {.options = &options};
    int rc;

    if (preflight_parse(count, words, &options, e) < 0) {
        fprintf(stderr, "yardbench: %s\n", e ? e->msg : "a wrong command line");
        *ret_status = STATUS_USAGE; /* not what the error's code would say */
        return 0;
    }
    if (options.wants_help) {
        fputs(preflight_help, stdout);
        *ret_status = STATUS_GOOD;
        return 0;
    }
    if (comm_open(&f.comm, e) < 0)
        return -1;
    f.ranks = comm_facts(f.comm);
    rc = run(&f, find, begun_ms, ret_status, e);
    if (rc < 0 && f.ranks->ranks > 1)
        comm_abort(f.comm, e);
    comm_free(f.comm);
    checks_done(&f.mine);
    free(f.rows);
    return rc;
}
