/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cache.h"

#include "api/api-internal.h"

#include <pthread.h>
#include <string.h>

enum {
    PLACES = 1024, /* with bodies of MOST_BYTES: 4 MB at the very most */
    LOCKS = 64,    /* many more than threads that ask at once */
    MOST_BYTES = 4096,
};

struct cache {
    pthread_mutex_t locks[LOCKS]; /* of the places with the same remainder */
    struct wire *places[PLACES];
};

struct wire *
wire_new(const struct resource *r, const char *body, const char *key, uint64_t generation)
{
    size_t len = strlen(body);
    struct wire *wire = xmalloc(sizeof(*wire) + len + 1 + strlen(key) + 1);

    atomic_init(&wire->refs, 1);
    wire->generation = generation;
    resource_etag(r, wire->etag);
    clock_format_http(r->modified_ms, wire->modified);
    wire->len = len;
    wire->is_moving = r->kind == RESOURCE_CLUSTER || r->kind == RESOURCE_JOB;
    wire->key = wire->body + len + 1;
    memcpy(wire->body, body, len + 1);
    memcpy(wire->key, key, strlen(key) + 1);
    return wire;
}

void wire_unref(struct wire *wire)
{
    if (wire && atomic_fetch_sub(&wire->refs, 1) == 1)
        free(wire);
}

struct cache *cache_new(void)
{
    struct cache *cache = xcalloc(1, sizeof(*cache));

    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_init(&cache->locks[i], NULL);
    return cache;
}

void cache_free(struct cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < PLACES; i++)
        wire_unref(cache->places[i]);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&cache->locks[i]);
    free(cache);
}

/* FNV-1a. */
static size_t place_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32) % PLACES;
}

struct wire *cache_find(struct cache *cache, const char *key, uint64_t generation)
{
    size_t place = place_of(key);
    struct wire *found;

    pthread_mutex_lock(&cache->locks[place % LOCKS]);
    found = cache->places[place];
    if (found && found->generation == generation && str_equal(found->key, key))
        atomic_fetch_add(&found->refs, 1);
    else
        found = NULL;
    pthread_mutex_unlock(&cache->locks[place % LOCKS]);
    return found;
}

void cache_keep(struct cache *cache, struct wire *wire)
{
    size_t place = place_of(wire->key);
    struct wire *old;

    /* Odd: a commit was under way, before or after which the row may have been read. */
    if (wire->generation % 2 == 1 || wire->len > MOST_BYTES)
        return;
    atomic_fetch_add(&wire->refs, 1);
    pthread_mutex_lock(&cache->locks[place % LOCKS]);
    old = cache->places[place];
    cache->places[place] = wire;
    pthread_mutex_unlock(&cache->locks[place % LOCKS]);
    wire_unref(old);
}
