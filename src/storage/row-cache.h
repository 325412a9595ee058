/* row-cache.h - rows of blobs, kept as long as nothing is committed.
 *
 * Training reads the same blobs again and again while nobody writes; each look into the
 * database costs locks that all its readers in the process share.  An entry is made at a
 * generation of the database (db/writer.h) and holds at that one only, so whoever writes has
 * nothing to invalidate. That a file has no row is kept too.
 *
 * Bounded: a fixed number of places, of which each row has one; long rows are not kept.
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_ROW_CACHE_H
#define STORAGE_ROW_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct blob_key;
struct blob_row;
struct facts;
struct row_cache; /* opaque */

struct row_cache *row_cache_new(void);
void row_cache_free(struct row_cache *cache);
/* Is the answer known, at that generation and for the file as it is now?  Then *ret_row is a
 * copy for the caller to free, NULL when there is no row. */
bool row_cache_find(struct row_cache *cache,
                    const struct blob_key *key,
                    const struct facts *facts,
                    uint64_t generation,
                    struct blob_row **ret_row);
/* Keep what was read after that generation was asked for; row: copied, NULL = there is none.
 * Nothing is kept at a generation that says nothing. */
void row_cache_keep(struct row_cache *cache,
                    const struct blob_key *key,
                    const struct facts *facts,
                    uint64_t generation,
                    const struct blob_row *row);

#endif
