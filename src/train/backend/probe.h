/* probe.h - what a card really gives, measured by a backend that is loaded at run time.
 *
 * yardbench-cuda.so exports `const struct probe_ops *yardbench_probe(int abi)` beside its
 * backend; `yardbench preflight` asks it.  The table holds functions without judgement: what
 * the figures should be is the business of who asks.
 *
 * Threads: one at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_PROBE_H
#define TRAIN_BACKEND_PROBE_H

#include "base/err.h"

#include <stdint.h>

enum {
    PROBE_ABI = 1, /* grows with every change here */
    PROBE_ID_BYTES = 128,
    PROBE_BUS_BYTES = 32,
    PROBE_MOST_CARDS = 16, /* of one process */
};

struct probe_figures {
    char name[96];
    int64_t memory_bytes;
    bool is_bf16;             /* the products' type; cards without it multiply fp16 */
    double matrix_flops;      /* FLOP/s of large products of 16-bit numbers */
    bool is_right;            /* all products had the same bits, and the right ones */
    double copy_bytes_s;      /* within the card, bytes read and written */
    double to_card_bytes_s;   /* from pinned memory of the host */
    double from_card_bytes_s; /* to it */
};

/* The cards of this process among those of all processes that sum together. */
struct probe_gang {
    unsigned char id[PROBE_ID_BYTES]; /* of rank 0's gang_id(), the same everywhere */
    int ranks;                        /* cards of all processes */
    int first, count;                 /* this process has ranks first..first+count-1 */
    int cards[PROBE_MOST_CARDS];
};

struct probe_ops {
    int abi; /* PROBE_ABI */
    /* How many cards there are; 0 without a driver. */
    int (*cards)(void);
    /* Its PCI address, by which the driver's library knows it. */
    int (*bus)(int card, char ret_bus[PROBE_BUS_BYTES], struct err *e);
    /* All figures of one card, in about two seconds.  under_load, which may be NULL, is called
     * once while the card multiplies: the moment to look at clocks and temperature. */
    int (*measure)(int card,
                   void (*under_load)(void *arg),
                   void *arg,
                   struct probe_figures *ret_figures,
                   struct err *e);
    /* Rank 0, before all_reduce(): the name under which the cards meet. */
    int (*gang_id)(unsigned char ret_id[PROBE_ID_BYTES], struct err *e);
    /* Bus bandwidth of large sums over all cards: 2 (n-1)/n bytes over the time, as NCCL's own
     * tests count, so that it can be held against a link.  Collective; a wrong sum is an error.
     */
    int (*all_reduce)(const struct probe_gang *gang, double *ret_bytes_s, struct err *e);
};

typedef const struct probe_ops *probe_entry_fn(int abi);

#endif
