/* reader.h - gives parts of files, and fetches ahead of those who read in order.
 *
 * A small file is fetched whole with one request.  A large one is fetched in blocks: what is
 * asked for at once, by the asking thread, and, the longer somebody has read on without a
 * jump, the more beyond it by threads of the reader's own.  So at most twice of what was wanted
 * is fetched for nothing.
 *
 * What the kernel has got of a large file is dropped here: the kernel keeps it, or has better
 * use for its memory.
 *
 * Threads: any.  Calls tree functions without holding its own lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_READER_H
#define MOUNT_READER_H

#include "base/err.h"
#include "base/mem.h"
#include "mount/blocks.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct node;
struct tree;
struct reader; /* opaque */

enum {
    READER_SMALL_BYTES = 1024 * 1024,
    READER_MOST_BYTES = 1024 * 1024, /* of one question */
    READER_MOST_PARTS = READER_MOST_BYTES / BLOCK_BYTES + 1,
};

/* Takes bytes in order; -1: no more. */
typedef int reader_take(void *context, const void *bytes, size_t len);

struct reader_config {
    struct tree *tree;
    size_t most_bytes; /* of blocks in memory */
    int threads;       /* that fetch ahead */
    /* Bytes count only when fetch succeeded; otherwise each block as soon as it is whole. */
    bool is_judged_at_end;
    /* Give the bytes [first, first + len) of the node's content, which must be the version, to
     * take.  A failure's meaning is remote_errno's. */
    int (*fetch)(void *context,
                 struct node *node,
                 uint64_t version,
                 int64_t first,
                 int64_t len,
                 reader_take *take,
                 void *take_context,
                 struct err *e);
    void *context;
};

/* The threads start with the first need. */
struct reader *reader_new(const struct reader_config *config);
/* End the threads: what they wait for must have been made to fail. */
void reader_stop(struct reader *reader);
void reader_free(struct reader *reader); /* after its nodes */
DEFINE_AUTOPTR(reader)

/* Which part of what; size_bytes is that of the whole file. */
struct reader_ask {
    struct node *node;
    uint64_t version;
    int64_t size_bytes;
    int64_t offset;
    size_t len;
};

struct reader_parts {
    struct iovec iov[READER_MOST_PARTS];
    struct block *blocks[READER_MOST_PARTS];
    int count;
    bool is_large;
};

/* Less than was asked for only at the end of the file.  Give the parts back with reader_done.
 * On failure *ret_errno is what to tell the kernel. */
int reader_read(struct reader *reader,
                const struct reader_ask *ask,
                struct reader_parts *ret_parts,
                int *ret_errno);
void reader_done(struct reader *reader, struct reader_parts *parts);

/* Fetch a small file before anybody asks for it. */
void reader_prefetch(struct reader *reader,
                     struct node *node,
                     uint64_t version,
                     int64_t size_bytes);

/* Has the beginning been fetched, and is it still here? */
bool reader_has_start(struct reader *reader, struct node *node, uint64_t version);

/* The content is another now, or the node ends. */
void reader_drop(struct reader *reader, struct node *node);

#endif
