/* storage-move.h - single files and whole folders up and down, for the verbs of the storage
 * nouns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_MOVE_H
#define CLI_STORAGE_MOVE_H

#include "base/err.h"
#include "cli/transfer-side.h"

#include <jansson.h>

struct call;
struct storage_account;
struct table;
struct transfer_options;

/* A file up to container/path, or down from it.  *ret_is_kept is true when it was there already
 * and the options did not let it be replaced. */
struct storage_move {
    enum side_kind kind; /* of the remote side */
    const struct storage_account *account;
    const char *container;
    const char *path; /* there */
    const char *file; /* here */
    const struct transfer_options *options;
    bool is_quiet; /* draw no progress */
};
int storage_upload(struct call *call,
                   const struct storage_move *move,
                   bool *ret_is_kept,
                   struct err *e);
int storage_download(struct call *call,
                     const struct storage_move *move,
                     bool *ret_is_kept,
                     struct err *e);

/* Everything below path (there) and file (here, a folder), that fits the pattern.  The targets
 * that were found are added to targets. */
struct storage_batch {
    struct storage_move move;
    const char *pattern; /* NULL = all */
    bool is_dry;
    struct table *targets;
};
int storage_upload_all(struct call *call, const struct storage_batch *batch, struct err *e);
int storage_download_all(struct call *call, const struct storage_batch *batch, struct err *e);
int storage_remove_all(struct call *call, const struct storage_batch *batch, struct err *e);

/* The keys of a table in order, as an array of strings, each with what comes before it. */
json_t *storage_names(const struct table *targets, const char *before);

#endif
