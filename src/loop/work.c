/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/work.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct item {
    void (*fn)(void *arg);
    void *arg;
    struct item *next;
};

struct work_pool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    struct item *first, **tail;
    int running; /* items being run: they may submit more */
    bool stopping;
    int thread_count;
    pthread_t threads[];
};

/* NULL when stopping and nothing can come any more. */
static struct item *take(struct work_pool *pool)
{
    struct item *item;

    pthread_mutex_lock(&pool->lock);
    while (!pool->first && !(pool->stopping && pool->running == 0))
        pthread_cond_wait(&pool->wake, &pool->lock);
    item = pool->first;
    if (item) {
        pool->first = item->next;
        if (!pool->first)
            pool->tail = &pool->first;
        pool->running++;
    }
    pthread_mutex_unlock(&pool->lock);
    return item;
}

static void finish(struct work_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->running--;
    if (pool->stopping && pool->running == 0)
        pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker_main(void *arg)
{
    struct work_pool *pool = arg;
    struct item *item;

    pthread_setname_np(pthread_self(), "worker");
    while ((item = take(pool))) {
        item->fn(item->arg);
        free(item);
        finish(pool);
    }
    return NULL;
}

struct work_pool *work_pool_new(int threads)
{
    struct work_pool *pool;

    assert(threads > 0);
    pool = xcalloc(1, sizeof(*pool) + (size_t)threads * sizeof(pool->threads[0]));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->tail = &pool->first;
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&pool->threads[i], NULL, worker_main, pool) != 0)
            abort();
        pool->thread_count++;
    }
    return pool;
}

void work_submit(struct work_pool *pool, void (*fn)(void *arg), void *arg)
{
    struct item *item = xcalloc(1, sizeof(*item));

    item->fn = fn;
    item->arg = arg;
    pthread_mutex_lock(&pool->lock);
    *pool->tail = item;
    pool->tail = &item->next;
    pthread_cond_signal(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void work_pool_free(struct work_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    free(pool);
}
