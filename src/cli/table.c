/* Open addressing with linear probing; removed places are marked and swept when it grows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdint.h>
#include <string.h>

enum {
    FIRST_ROOM = 64, /* a power of two, like all that follow */
};

struct place {
    char *key; /* NULL = never used, or with a gone value removed */
    void *value;
    uint64_t hash;
    bool is_gone;
};

struct table {
    struct place *places;
    size_t room, used, count; /* used: with those that are gone */
    void (*free_value)(void *value);
};

/* FNV-1a. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3ull;
    return hash;
}

struct table *table_new(void (*free_value)(void *value))
{
    struct table *table = xcalloc(1, sizeof(*table));

    table->free_value = free_value;
    table->room = FIRST_ROOM;
    table->places = xcalloc(table->room, sizeof(*table->places));
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->room; i++) {
        if (table->places[i].key && table->free_value)
            table->free_value(table->places[i].value);
        free(table->places[i].key);
    }
    free(table->places);
    free(table);
}

/* The key's place, or the free one where it would go. */
static struct place *find(const struct table *table, const char *key, uint64_t hash)
{
    size_t mask = table->room - 1;
    size_t at = (size_t)hash & mask;

    for (;; at = (at + 1) & mask) {
        struct place *place = &table->places[at];

        if (!place->key && !place->is_gone)
            return place;
        if (place->key && place->hash == hash && strcmp(place->key, key) == 0)
            return place;
    }
}

static void grow(struct table *table)
{
    struct place *old = table->places;
    size_t old_room = table->room;

    if (table->count * 2 >= table->room)
        table->room *= 2;
    table->places = xcalloc(table->room, sizeof(*table->places));
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].key)
            *find(table, old[i].key, old[i].hash) = old[i];
    }
    table->used = table->count;
    free(old);
}

void *table_get(const struct table *table, const char *key)
{
    const struct place *place = find(table, key, hash_of(key));

    return place->key ? place->value : NULL;
}

void table_set(struct table *table, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct place *place;

    if ((table->used + 1) * 4 > table->room * 3)
        grow(table);
    place = find(table, key, hash);
    if (place->key) {
        if (table->free_value)
            table->free_value(place->value);
        place->value = value;
        return;
    }
    *place = (struct place){.key = xstrdup(key), .value = value, .hash = hash};
    table->used++;
    table->count++;
}

bool table_remove(struct table *table, const char *key)
{
    struct place *place = find(table, key, hash_of(key));

    if (!place->key)
        return false;
    if (table->free_value)
        table->free_value(place->value);
    free(place->key);
    *place = (struct place){.is_gone = true};
    table->count--;
    return true;
}

size_t table_count(const struct table *table)
{
    return table->count;
}

bool table_next(const struct table *table, size_t *at, const char **ret_key, void **ret_value)
{
    for (; *at < table->room; ++*at) {
        const struct place *place = &table->places[*at];

        if (place->key) {
            *ret_key = place->key;
            *ret_value = place->value;
            ++*at;
            return true;
        }
    }
    return false;
}
