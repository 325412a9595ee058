/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/blocks.h"

#include <assert.h>

enum {
    BUCKETS = 16 * 1024,
    MOST_SPARE = 64, /* buffers kept for the next blocks: fresh memory costs a fault a page */
    PAGE = 4096,
};

struct blocks {
    struct block *buckets[BUCKETS];
    struct block ring; /* ring.older is the newest */
    size_t bytes, most_bytes;
    char *spare[MOST_SPARE];
    size_t spare_count;
};

struct blocks *blocks_new(size_t most_bytes)
{
    struct blocks *blocks = xcalloc(1, sizeof(*blocks));

    blocks->most_bytes = most_bytes;
    blocks->ring.older = blocks->ring.newer = &blocks->ring;
    return blocks;
}

static struct block **
bucket(struct blocks *blocks, const struct block_owner *owner, int64_t index)
{
    uint64_t mix = (uint64_t)(uintptr_t)owner * 0x9e3779b97f4a7c15u +
                   (uint64_t)index * 0xc2b2ae3d27d4eb4fu;

    return &blocks->buckets[(mix >> 32) % BUCKETS];
}

struct block *blocks_find(struct blocks *blocks,
                          const struct block_owner *owner,
                          uint64_t version,
                          int64_t index)
{
    for (struct block *b = *bucket(blocks, owner, index); b; b = b->hash_next) {
        if (b->owner == owner && b->index == index && b->version == version)
            return b;
    }
    return NULL;
}

static char *take_buffer(struct blocks *blocks, size_t len)
{
    void *data = NULL;

    if (len != BLOCK_BYTES)
        return xmalloc(len ? len : 1);
    if (blocks->spare_count)
        return blocks->spare[--blocks->spare_count];
    if (posix_memalign(&data, PAGE, BLOCK_BYTES) != 0)
        abort();
    return data;
}

static void give_buffer(struct blocks *blocks, char *data, size_t len)
{
    if (len == BLOCK_BYTES && blocks->spare_count < MOST_SPARE)
        blocks->spare[blocks->spare_count++] = data;
    else
        free(data);
}

static void ring_out(struct block *b)
{
    b->newer->older = b->older;
    b->older->newer = b->newer;
}

static void ring_in(struct blocks *blocks, struct block *b)
{
    b->newer = &blocks->ring;
    b->older = blocks->ring.older;
    b->older->newer = b;
    blocks->ring.older = b;
}

void blocks_touch(struct blocks *blocks, struct block *block)
{
    if (!block->owner)
        return;
    ring_out(block);
    ring_in(blocks, block);
}

static void block_free(struct blocks *blocks, struct block *b)
{
    give_buffer(blocks, b->data, b->len);
    free(b);
}

void blocks_drop(struct blocks *blocks, struct block *b)
{
    struct block **at;

    if (!b->owner)
        return;
    for (at = bucket(blocks, b->owner, b->index); *at != b; at = &(*at)->hash_next)
        assert(*at);
    *at = b->hash_next;
    if (b->owner_prev)
        b->owner_prev->owner_next = b->owner_next;
    else
        b->owner->first = b->owner_next;
    if (b->owner_next)
        b->owner_next->owner_prev = b->owner_prev;
    ring_out(b);
    b->owner = NULL;
    blocks->bytes -= b->len;
    if (!b->pins)
        block_free(blocks, b);
}

void blocks_drop_all(struct blocks *blocks, struct block_owner *owner)
{
    while (owner->first)
        blocks_drop(blocks, owner->first);
}

static void make_room(struct blocks *blocks)
{
    struct block *b = blocks->ring.newer;

    while (blocks->bytes > blocks->most_bytes && b != &blocks->ring) {
        struct block *next = b->newer;

        if (!b->pins)
            blocks_drop(blocks, b);
        b = next;
    }
}

struct block *blocks_add(struct blocks *blocks,
                         struct block_owner *owner,
                         uint64_t version,
                         int64_t index,
                         size_t len)
{
    struct block **at = bucket(blocks, owner, index);
    struct block *b = xcalloc(1, sizeof(*b));

    b->owner = owner;
    b->version = version;
    b->index = index;
    b->len = len;
    b->pins = 1;
    b->hash_next = *at;
    *at = b;
    b->owner_next = owner->first;
    if (owner->first)
        owner->first->owner_prev = b;
    owner->first = b;
    ring_in(blocks, b);
    blocks->bytes += len;
    make_room(blocks);
    b->data = take_buffer(blocks, len);
    return b;
}

void block_pin(struct block *block)
{
    block->pins++;
}

void blocks_unpin(struct blocks *blocks, struct block *block)
{
    assert(block->pins > 0);
    if (--block->pins == 0 && !block->owner)
        block_free(blocks, block);
}

size_t blocks_bytes(const struct blocks *blocks)
{
    return blocks->bytes;
}

void blocks_free(struct blocks *blocks)
{
    if (!blocks)
        return;
    while (blocks->ring.newer != &blocks->ring)
        blocks_drop(blocks, blocks->ring.newer);
    while (blocks->spare_count)
        free(blocks->spare[--blocks->spare_count]);
    free(blocks);
}
