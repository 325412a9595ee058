/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pool.h"

#include "db/db.h"

#include <pthread.h>

enum {
    MOST_KEPT = 64, /* beyond any number of loop threads; more are closed on return */
};

struct store_pool {
    char *path;
    pthread_mutex_t lock;
    struct db *free[MOST_KEPT];
    size_t count;
};

struct store_pool *store_pool_new(const char *path)
{
    struct store_pool *pool = xcalloc(1, sizeof(*pool));

    pool->path = xstrdup(path);
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void store_pool_free(struct store_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->count; i++)
        db_free(pool->free[i]);
    pthread_mutex_destroy(&pool->lock);
    free(pool->path);
    free(pool);
}

int store_pool_take(struct store_pool *pool, struct store_reader *ret_reader, struct err *e)
{
    struct db *db = NULL;

    pthread_mutex_lock(&pool->lock);
    if (pool->count > 0)
        db = pool->free[--pool->count];
    pthread_mutex_unlock(&pool->lock);
    if (!db && db_open(pool->path, DB_READER, &db, e) < 0)
        return -1;
    *ret_reader = (struct store_reader){db, pool};
    return 0;
}

void store_reader_done(struct store_reader *r)
{
    struct db *spare = r->db;

    if (!r->db)
        return;
    pthread_mutex_lock(&r->pool->lock);
    if (r->pool->count < MOST_KEPT) {
        r->pool->free[r->pool->count++] = r->db;
        spare = NULL;
    }
    pthread_mutex_unlock(&r->pool->lock);
    db_free(spare);
    *r = (struct store_reader){0};
}
