/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/row-cache.h"

#include "storage/storage-internal.h"
#include "store/blob.h"

#include <string.h>

enum {
    PLACES = 4096,      /* some 2 MB when all are taken */
    STRIPES = 64,       /* far more than loop threads */
    MOST_METADATA = 512 /* bytes; what is longer is read anew each time */
};

struct place {
    uint64_t generation;
    int64_t container_id;
    struct facts facts;
    char *name, *snapshot; /* NULL = the place is free */
    struct blob_row *row;
};

struct row_cache {
    pthread_mutex_t locks[STRIPES];
    struct place places[PLACES];
};

struct row_cache *row_cache_new(void)
{
    struct row_cache *cache = xcalloc(1, sizeof(*cache));

    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&cache->locks[i], NULL);
    return cache;
}

static void clear(struct place *place)
{
    free(place->name);
    free(place->snapshot);
    blob_row_free(place->row);
    *place = (struct place){0};
}

void row_cache_free(struct row_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < PLACES; i++)
        clear(&cache->places[i]);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&cache->locks[i]);
    free(cache);
}

static size_t place_of(const struct blob_key *key)
{
    uint64_t mix = key->inode * 0x9e3779b97f4a7c15ull ^ (uint64_t)key->born_ns;

    return (mix * 0xff51afd7ed558ccdull >> 32) % PLACES;
}

/* Size and mtime too: a row may be found by them alone. */
static bool is_same(const struct facts *a, const struct facts *b)
{
    return a->inode == b->inode && a->born_ns == b->born_ns && a->mtime_ns == b->mtime_ns &&
           a->size_bytes == b->size_bytes;
}

/* An inode may have had other names. */
static bool
is_of(const struct place *place, const struct blob_key *key, const struct facts *facts)
{
    return place->container_id == key->container_id && is_same(&place->facts, facts) &&
           strcmp(place->name, key->name) == 0 && strcmp(place->snapshot, key->snapshot) == 0;
}

bool row_cache_find(struct row_cache *cache,
                    const struct blob_key *key,
                    const struct facts *facts,
                    uint64_t generation,
                    struct blob_row **ret_row)
{
    size_t at = place_of(key);
    const struct place *place = &cache->places[at];
    bool is_known;

    pthread_mutex_lock(&cache->locks[at % STRIPES]);
    is_known = place->name && place->generation == generation && is_of(place, key, facts);
    if (is_known)
        *ret_row = place->row ? row_dup(place->row) : NULL;
    pthread_mutex_unlock(&cache->locks[at % STRIPES]);
    return is_known;
}

static bool is_short(const struct blob_row *row)
{
    return (!row->metadata || strlen(row->metadata) < MOST_METADATA) &&
           (!row->tags || strlen(row->tags) < MOST_METADATA);
}

void row_cache_keep(struct row_cache *cache,
                    const struct blob_key *key,
                    const struct facts *facts,
                    uint64_t generation,
                    const struct blob_row *row)
{
    size_t at = place_of(key);
    struct place *place = &cache->places[at];

    if (generation % 2 != 0 || (row && !is_short(row)))
        return;
    pthread_mutex_lock(&cache->locks[at % STRIPES]);
    clear(place);
    *place = (struct place){
        .generation = generation,
        .container_id = key->container_id,
        .facts = *facts,
        .name = xstrdup(key->name),
        .snapshot = xstrdup(key->snapshot),
        .row = row ? row_dup(row) : NULL,
    };
    pthread_mutex_unlock(&cache->locks[at % STRIPES]);
}
