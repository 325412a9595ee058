/* storage-batch.h - what the batch verbs of blobs and of files share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_BATCH_H
#define CLI_STORAGE_BATCH_H

#include "base/err.h"
#include "cli/storage-headers.h"
#include "cli/storage-move.h"
#include "cli/storage-verb.h"
#include "cli/transfer-options.h"

struct batch {
    struct storage_link link;
    enum side_kind kind;
    char *container, *path; /* never NULL */
    struct transfer_options options;
    struct headers headers;
    struct table *targets;
};
void batch_close(struct batch *batch);
#define auto_batch __attribute__((cleanup(batch_close))) struct batch

/* Read what the verbs have in common.  key: the option that names the container or share, as
 * "name", "name/folder" or a URL. */
int batch_open(struct call *call,
               enum side_kind kind,
               const char *key,
               struct batch *ret_batch,
               struct err *e);

/* What to do.  folder: the local one; NULL = none. */
void batch_todo(struct call *call,
                const struct batch *batch,
                const char *folder,
                struct storage_batch *ret_todo);

#endif
