/* preflight-internal.h - what the parts of preflight share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_PREFLIGHT_INTERNAL_H
#define TRAIN_PREFLIGHT_PREFLIGHT_INTERNAL_H

#include "base/err.h"
#include "train/preflight/check.h"
#include "train/scale/predict.h"

#include <stdint.h>
#include <stdio.h>

struct comm;
struct probe_ops;

enum preflight_device {
    PREFLIGHT_AUTO, /* the processor, and the cards where there are some */
    PREFLIGHT_CPU,
    PREFLIGHT_GPU, /* cards alone, and there must be some */
};

struct preflight_options {
    enum preflight_device device;
    int threads;      /* 0 = this rank's share of the cores */
    uint64_t cards;   /* bits of those that may be used; 0 = all */
    bool has_network; /* what lies between hosts was told */
    struct predict_network network;
    bool is_json;
    bool wants_help;
};

/* options.c */
int preflight_parse(int count,
                    char *const words[],
                    struct preflight_options *ret_options,
                    struct err *e);
extern const char preflight_help[];

/* host.c: the processor of this rank.  Collective. */
int preflight_host(struct comm *comm,
                   const struct preflight_options *options,
                   struct checks *checks,
                   struct err *e);

/* cards.c: the cards of this rank; probe may be NULL, with the reason in `why`.  *ret_count is
 * how many this rank has.  Collective. */
int preflight_cards(struct comm *comm,
                    const struct preflight_options *options,
                    const struct probe_ops *probe,
                    const char *why,
                    struct checks *checks,
                    int *ret_count,
                    struct err *e);
/* Which of a host's cards belong to rank `local` of `locals`: every locals-th, of those that
 * may be used.  Returns how many; cards has room for PROBE_MOST_CARDS. */
int preflight_deal(int count, uint64_t allowed, int local, int locals, int *cards);

/* show.c: the rows of all ranks; returns the worst verdict. */
enum verdict preflight_worst(const struct check *rows, int count);
void preflight_print(
    const struct check *rows, int count, double seconds, bool has_colour, FILE *out);
bool preflight_is_coloured(FILE *out);
void preflight_print_json(const struct check *rows, int count, double seconds, FILE *out);

#endif
