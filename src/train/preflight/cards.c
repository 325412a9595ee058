/* cards.c - the cards of a rank, one after another, and the sums over all of them.
 *
 * What fails on one card is a bad check of that card, not the end of the run: the others are
 * still to be looked at.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/backend/probe.h"
#include "train/comm/comm.h"
#include "train/preflight/card.h"
#include "train/preflight/nvml.h"
#include "train/preflight/preflight-internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct desk {
    struct comm *comm;
    const struct comm_facts *ranks;
    const struct preflight_options *options;
    const struct probe_ops *probe; /* NULL = cards can be asked after, not measured */
    const char *why;
    struct nvml *nvml; /* NULL = the driver does not answer */
    struct checks *checks;
    int count, cards[PROBE_MOST_CARDS];
    char names[PROBE_MOST_CARDS][96];
    bool is_fit; /* all of this rank's cards could be measured */
};

int preflight_deal(int count, uint64_t allowed, int local, int locals, int *cards)
{
    int place = 0, mine = 0;

    for (int card = 0; card < count && card < 64; card++) {
        if (allowed && !(allowed >> card & 1))
            continue;
        if (place++ % locals == local && mine < PROBE_MOST_CARDS)
            cards[mine++] = card;
    }
    return mine;
}

/* --- one card --------------------------------------------------------------------------------
 */

struct look { /* at a card, while it is busy */
    struct nvml *nvml;
    const char *bus; /* NULL = by number */
    int card;
    bool has_seen;
    struct nvml_state state;
};

static void look_under_load(void *arg)
{
    struct look *look = arg;

    look->has_seen =
        look->nvml && nvml_read(look->nvml, look->bus, look->card, &look->state, NULL) == 0;
}

static void name_card(struct desk *d, int place, const char *name, const struct nvml_state *s)
{
    auto_str device = {0};

    str_add(&device, name[0] ? name : "a GPU without a name");
    if (s->driver[0])
        str_addf(&device, ", driver %s", s->driver);
    snprintf(d->names[place], sizeof d->names[place], "%s", name);
    if (d->ranks->ranks > 1)
        checks_subject(d->checks, str_text(&device), "%s gpu %d, rank %d", d->ranks->host_name,
                       d->cards[place], d->ranks->rank);
    else
        checks_subject(d->checks, str_text(&device), "%s gpu %d", d->ranks->host_name,
                       d->cards[place]);
}

static void check_driver(struct desk *d,
                         const char *name,
                         const struct nvml_state *idle,
                         const struct look *look)
{
    if (d->nvml && idle->driver[0])
        card_judge_state(d->checks, name, idle, look->has_seen ? &look->state : NULL);
    else
        checks_add(d->checks, VERDICT_UNKNOWN, "state", NAN, "",
                   "the driver's library does not answer: no word on errors and clocks");
}

/* By PCI address: CUDA may have been told to hide some cards, which the driver counts. */
static void look_idle(struct desk *d,
                      struct look *look,
                      char bus[PROBE_BUS_BYTES],
                      struct nvml_state *ret_idle)
{
    nvml_unknown(ret_idle);
    if (d->probe && d->probe->bus(look->card, bus, NULL) == 0)
        look->bus = bus;
    if (d->nvml && nvml_read(d->nvml, look->bus, look->card, ret_idle, NULL) < 0)
        nvml_unknown(ret_idle);
}

static void check_card(struct desk *d, int place)
{
    struct look look = {.nvml = d->nvml, .card = d->cards[place]};
    struct probe_figures figures = {0};
    char bus[PROBE_BUS_BYTES];
    struct nvml_state idle;
    struct err e = {0};
    int rc = -1;

    look_idle(d, &look, bus, &idle);
    if (d->probe)
        rc = d->probe->measure(look.card, look_under_load, &look, &figures, &e);
    name_card(d, place, rc == 0 ? figures.name : idle.name, &idle);
    if (rc == 0)
        card_judge_figures(d->checks, &figures);
    else if (d->probe)
        checks_add(d->checks, VERDICT_BAD, "matrix", NAN, "", "%.150s", e.msg);
    else
        checks_add(d->checks, VERDICT_UNKNOWN, "matrix", NAN, "", "%.150s", d->why);
    d->is_fit = d->is_fit && rc == 0;
    check_driver(d, d->names[place], &idle, &look);
}

/* --- all cards together ----------------------------------------------------------------------
 */

/* Where this rank's cards stand among all, and how many there are. */
static int number_cards(struct desk *d, struct probe_gang *gang, struct err *e)
{
    auto_free double *counts = xcalloc((size_t)d->ranks->ranks, sizeof *counts);
    double mine = d->count;

    if (comm_gather(d->comm, &mine, sizeof mine, counts, e) < 0)
        return -1;
    gang->count = d->count;
    memcpy(gang->cards, d->cards, sizeof gang->cards);
    for (int r = 0; r < d->ranks->ranks; r++) {
        gang->ranks += (int)counts[r];
        gang->first += r < d->ranks->rank ? (int)counts[r] : 0;
    }
    return 0;
}

static double sum_floor(const struct desk *d)
{
    const struct preflight_options *o = d->options;

    if (d->ranks->hosts == 1)
        return card_sum_floor(d->names[0]);
    return o->has_network ? 0.5 * o->network.bytes_per_s : NAN;
}

static void judge_sums(struct desk *d, const struct probe_gang *gang, double bytes_s)
{
    checks_least(d->checks, "all_reduce", bytes_s / 1e9, sum_floor(d) / 1e9, "GB/s",
                 "NCCL, bus bandwidth over %d cards on %d host%s", gang->ranks, d->ranks->hosts,
                 d->ranks->hosts > 1 ? "s" : "");
}

/* Collective: either all ranks go on, or none. */
static int check_sums(struct desk *d, struct err *e)
{
    struct probe_gang gang = {0};
    struct err why = {0};
    double unfit = !d->probe || !d->is_fit || d->count == 0, rate = NAN, failed;

    if (number_cards(d, &gang, e) < 0)
        return -1;
    if (gang.ranks < 2)
        return 0;
    if (d->probe && unfit == 0) /* rank 0's counts; the others' shows that they could join */
        unfit = d->probe->gang_id(gang.id, &why) < 0;
    if (comm_broadcast(d->comm, gang.id, sizeof gang.id, 0, e) < 0 ||
        comm_sum(d->comm, &unfit, 1, e) < 0)
        return -1;
    failed = d->probe && unfit == 0 ? d->probe->all_reduce(&gang, &rate, &why) < 0 : 0;
    if (d->count == 0)
        return 0;
    checks_subject(d->checks, "all of them together", "%s gpus, rank %d", d->ranks->host_name,
                   d->ranks->rank);
    if (unfit > 0)
        checks_add(d->checks, VERDICT_UNKNOWN, "all_reduce", NAN, "", "%.140s",
                   why.msg[0] ? why.msg : "some cards could not be measured");
    else if (failed > 0)
        checks_add(d->checks, VERDICT_BAD, "all_reduce", NAN, "", "%.150s", why.msg);
    else
        judge_sums(d, &gang, rate);
    return 0;
}

int preflight_cards(struct comm *comm,
                    const struct preflight_options *options,
                    const struct probe_ops *probe,
                    const char *why,
                    struct checks *checks,
                    int *ret_count,
                    struct err *e)
{
    struct desk d = {.comm = comm,
                     .ranks = comm_facts(comm),
                     .options = options,
                     .probe = probe,
                     .why = why,
                     .checks = checks,
                     .is_fit = true};
    int all, rc;

    if (nvml_open(NULL, &d.nvml, NULL) < 0)
        d.nvml = NULL;
    all = probe ? probe->cards() : d.nvml ? nvml_count(d.nvml) : 0;
    d.count =
        preflight_deal(all, options->cards, d.ranks->local_rank, d.ranks->local_ranks, d.cards);
    for (int i = 0; i < d.count; i++)
        check_card(&d, i);
    *ret_count = d.count;
    rc = check_sums(&d, e);
    nvml_free(d.nvml);
    return rc;
}
