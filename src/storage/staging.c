/* What is known of uncommitted blocks while they come: how many a name has, how long their ids
 * are. Forgetting it costs one reading of the name's folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include <stdio.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MOST_SESSIONS = 16384, /* then all are forgotten */
};

struct session {
    int64_t container_id;
    char hash[NAME_HASH_BYTES];
    struct staged_count known;
    struct session *next;
};

struct staging {
    pthread_mutex_t lock;
    struct session *buckets[BUCKETS];
    size_t count;
};

struct staging *staging_new(void)
{
    struct staging *staging = xcalloc(1, sizeof(*staging));

    pthread_mutex_init(&staging->lock, NULL);
    return staging;
}

static void forget_all(struct staging *staging)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        struct session *next;

        for (struct session *s = staging->buckets[i]; s; s = next) {
            next = s->next;
            free(s);
        }
        staging->buckets[i] = NULL;
    }
    staging->count = 0;
}

void staging_free(struct staging *staging)
{
    if (!staging)
        return;
    forget_all(staging);
    pthread_mutex_destroy(&staging->lock);
    free(staging);
}

static struct session **find(struct staging *staging, int64_t container_id, const char *hash)
{
    unsigned int at = 0;
    struct session **p;

    sscanf(hash, "%4x", &at);
    p = &staging->buckets[at % BUCKETS];
    while (*p && ((*p)->container_id != container_id || strcmp((*p)->hash, hash) != 0))
        p = &(*p)->next;
    return p;
}

bool staging_find(struct staging *staging,
                  int64_t container_id,
                  const char *hash,
                  struct staged_count *ret_known)
{
    struct session *s;

    pthread_mutex_lock(&staging->lock);
    s = *find(staging, container_id, hash);
    if (s)
        *ret_known = s->known;
    pthread_mutex_unlock(&staging->lock);
    return s != NULL;
}

void staging_begin(struct staging *staging,
                   int64_t container_id,
                   const char *hash,
                   const struct staged_count *known)
{
    struct session **p;

    pthread_mutex_lock(&staging->lock);
    if (staging->count >= MOST_SESSIONS)
        forget_all(staging);
    p = find(staging, container_id, hash);
    if (!*p) {
        *p = xcalloc(1, sizeof(**p));
        (*p)->container_id = container_id;
        snprintf((*p)->hash, sizeof((*p)->hash), "%s", hash);
        (*p)->known = *known;
        staging->count++;
    }
    pthread_mutex_unlock(&staging->lock);
}

void staging_add(struct staging *staging, int64_t container_id, const char *hash, size_t id_len)
{
    struct session *s;

    pthread_mutex_lock(&staging->lock);
    s = *find(staging, container_id, hash);
    if (s) {
        s->known.count++;
        s->known.id_len = id_len;
    }
    pthread_mutex_unlock(&staging->lock);
}

void staging_forget(struct staging *staging, int64_t container_id, const char *hash)
{
    struct session **p, *s;

    pthread_mutex_lock(&staging->lock);
    p = find(staging, container_id, hash);
    s = *p;
    if (s) {
        *p = s->next;
        staging->count--;
        free(s);
    }
    pthread_mutex_unlock(&staging->lock);
}
