/* transfer-run.h - a transfer from its beginning to its summary, with a person watching.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_RUN_H
#define CLI_TRANSFER_RUN_H

#include "base/err.h"

#include <jansson.h>

struct call;
struct item;
struct journal;
struct run; /* what a finder is given: opaque */
struct side;
struct transfer_options;
struct transfer_totals;

struct run_config {
    struct call *call;
    bool has_summary;          /* one line at the end */
    const struct side *source; /* NULL when things are only removed */
    const struct side *destination;
    const struct transfer_options *options;
    struct journal *journal; /* NULL = none */
    bool is_dry;             /* say what would be done, do nothing */
    bool is_quiet;           /* draw no progress */
    bool is_single;          /* one file: its failure is the failure of all */
    /* Finds the items, in a thread of its own, and hands each to run_add. */
    int (*find)(struct run *run, void *context, struct err *e);
    void *context;
};

/* Hand over an item, which is owned from then on.  1 = stop finding, well; -1 never. */
int run_add(struct run *run, struct item *item);
/* Something found that is not taken, and why; said with --verbose. */
void run_pass(struct run *run, const char *path, const char *why);
/* How a finder opens its own port on a side. */
struct port_config;
void run_port_config(const struct run *run, struct port_config *ret_config);

/* How it ended. */
struct run_result {
    json_t *totals; /* the caller owns it */
    const char *state;
    bool is_well; /* nothing has failed */
};

/* Do it all: threads, progress on a terminal, Ctrl-C, naming what failed.  Fails when it could
 * not be begun, the finding failed, or it was broken off; single files that fail are told and
 * make is_well false. */
int run_transfer(const struct run_config *config, struct run_result *ret_result, struct err *e);

/* The same, with the verb's last words: the summary as text or as the result, and the exit
 * status. */
int run_and_tell(const struct run_config *config, json_t **ret_result, struct err *e);

#endif
