/* pool.h - readers for whoever has a question right now.
 *
 *     auto_reader r = {0};
 *     if (store_pool_take(pool, &r, e) < 0) ...
 *     store_find_resource(r.db, key, &resource, e);
 *
 * A connection is opened when none is free and kept for the next; there are as many as
 * questions were ever asked at once, which is the number of loop threads.
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POOL_H
#define STORE_POOL_H

#include "base/err.h"

struct db;
struct store_pool; /* opaque */

struct store_pool *store_pool_new(const char *path);
/* All readers must be back. */
void store_pool_free(struct store_pool *pool);

struct store_reader {
    struct db *db;
    struct store_pool *pool;
};

int store_pool_take(struct store_pool *pool, struct store_reader *ret_reader, struct err *e);
/* Back to the pool; a zeroed reader is fine. */
void store_reader_done(struct store_reader *reader);
#define auto_reader __attribute__((cleanup(store_reader_done))) struct store_reader

#endif
