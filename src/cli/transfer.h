/* transfer.h - many files on their way at once.
 *
 * A pool of threads, each with its own connections, takes items from a queue.  A small file is
 * read whole and put whole by one thread.  A large one is cut into pieces, which all threads
 * take before they begin something new; the one that brings the last piece finishes the file.
 *
 * Calling sequence: transfer_new(), transfer_add() for each item as it is found (it waits while
 * the queue is full), transfer_no_more(), then transfer_wait() until it says that all is over.
 *
 * A file that fails does not stop the others.  When nothing succeeds any more (the server is
 * gone, the credential is bad, the disk is full) it gives up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_H
#define CLI_TRANSFER_H

#include "base/err.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct item;
struct journal;
struct side;
struct transfer; /* opaque */
struct transfer_options;

struct transfer_config {
    const struct side *source, *destination; /* borrowed, like all here */
    const struct transfer_options *options;
    struct journal *journal; /* NULL = none */
    void (*trace)(const char *line);
    /* Asked from any thread before something is replaced, one question at a time:
     * OVERWRITE_PROMPT.
     */
    bool (*may_replace)(void *context, const char *target);
    void *context;
};

int transfer_new(const struct transfer_config *config,
                 struct transfer **ret_transfer,
                 struct err *e);
/* Stops what runs, and waits for it. */
void transfer_free(struct transfer *transfer);
DEFINE_AUTOPTR(transfer)

/* Takes ownership of the item.  False when it was stopped: then no more is wanted. */
bool transfer_add(struct transfer *transfer, struct item *item);
void transfer_no_more(struct transfer *transfer);
/* Break everything off.  From any thread. */
void transfer_stop(struct transfer *transfer);
/* Set when it was stopped: for others to see. */
const atomic_bool *transfer_stop_flag(const struct transfer *transfer);
/* Readable when all is over: to wait for along with other things. */
int transfer_fd(const struct transfer *transfer);
/* True when all is over. */
bool transfer_is_over(struct transfer *transfer);

struct transfer_totals {
    int64_t found_files, found_bytes;
    bool is_all_found;
    int64_t files, bytes; /* copied */
    int64_t removed;
    int64_t before; /* files of an earlier run */
    int64_t skipped, failed;
    int64_t moved_bytes; /* with those on their way, and those of an earlier run */
};
void transfer_totals(struct transfer *transfer, struct transfer_totals *ret_totals);

/* The failures, at most some hundred of them: index from 0, false at the end.  When all is
 * over. */
bool transfer_failure(const struct transfer *transfer,
                      size_t index,
                      const char **ret_target,
                      const struct err **ret_error);
/* Why it gave up; NULL when it did not. */
const char *transfer_gave_up(const struct transfer *transfer);

#endif
