/* cache.h - the wire form of resources, kept as long as nothing is committed.
 *
 * Clients poll: between two changes the same resource is asked for again and again.  An entry
 * is made at a generation of the database (control.h) and holds at that one only.  So a reader
 * is never told less than what was acknowledged to anybody before it asked, and whoever writes
 * has nothing to invalidate.
 *
 * Bounded: a fixed number of places, of which each key has one; long forms are not kept.
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef API_CACHE_H
#define API_CACHE_H

#include "base/clock.h"
#include "base/mem.h"
#include "core/resource.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cache; /* opaque */

/* An answer about one resource.  Never changed once it is kept. */
struct wire {
    atomic_uint refs;
    uint64_t generation;
    char etag[RESOURCE_ETAG_BYTES], modified[CLOCK_HTTP_BYTES];
    size_t len;
    bool is_moving; /* its form changes while its ETag stays: a state of its own */
    char *key;      /* behind the body */
    char body[];
};

/* body is its wire form. */
struct wire *wire_new(const struct resource *resource,
                      const char *body,
                      const char *key,
                      uint64_t generation);
void wire_unref(struct wire *wire);

struct cache *cache_new(void);
void cache_free(struct cache *cache);
/* The answer for a key if it holds at that generation, else NULL.  The caller unrefs it. */
struct wire *cache_find(struct cache *cache, const char *key, uint64_t generation);
/* Keep an answer for others, unless its generation is one that says nothing. */
void cache_keep(struct cache *cache, struct wire *wire);

#endif
