/* blocks.h - parts of files in memory, found by owner and place, the longest unused dropped
 * first.
 *
 * A block belongs to one version of one file.  It is born empty, is filled by whoever made it,
 * and may be read once it is whole.  Pinned blocks stay; the sum of the others is bounded.
 *
 * Threads: none; the reader locks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_BLOCKS_H
#define MOUNT_BLOCKS_H

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

enum {
    /* Small enough for reads here and there, large enough that a system call per block is
     * nothing. */
    BLOCK_BYTES = 256 * 1024,
};

enum block_state {
    BLOCK_FETCHING,
    BLOCK_READY,
    BLOCK_FAILED,
};

struct block;

/* Embedded in what blocks belong to. */
struct block_owner {
    struct block *first;
};

struct block {
    struct block_owner *owner; /* NULL: dropped, and freed with the last pin */
    uint64_t version;
    int64_t index; /* in units of BLOCK_BYTES */
    enum block_state state;
    int errno_value; /* of BLOCK_FAILED */
    char *data;
    size_t len; /* of the content; short at the end of a file */
    size_t filled;
    size_t served; /* bytes given to the kernel, counted with repetition */
    int pins;
    struct block *hash_next;
    struct block *owner_prev, *owner_next;
    struct block *older, *newer;
};

struct blocks; /* opaque */

struct blocks *blocks_new(size_t most_bytes);
void blocks_free(struct blocks *blocks);
DEFINE_AUTOPTR(blocks)

/* Borrowed; pin it before the lock is let go. */
struct block *blocks_find(struct blocks *blocks,
                          const struct block_owner *owner,
                          uint64_t version,
                          int64_t index);
/* A new one, pinned, BLOCK_FETCHING.  There must be none of that place. */
struct block *blocks_add(struct blocks *blocks,
                         struct block_owner *owner,
                         uint64_t version,
                         int64_t index,
                         size_t len);
void block_pin(struct block *block);
void blocks_unpin(struct blocks *blocks, struct block *block);
/* It was used: it is dropped last. */
void blocks_touch(struct blocks *blocks, struct block *block);
/* Nobody finds it any more. */
void blocks_drop(struct blocks *blocks, struct block *block);
void blocks_drop_all(struct blocks *blocks, struct block_owner *owner);

size_t blocks_bytes(const struct blocks *blocks);

#endif
