/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "db/db.h"
#include "db/writer.h"
#include "loop/work.h"
#include "storage/entries.h"
#include "storage/row-cache.h"
#include "storage/syncs.h"
#include "store/blob.h"
#include "store/pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    HASHERS = 4, /* threads; each reckons some 600 MB/s, more than most disks take */
};

/* 100 ns between the years 1 and 1970. */
static const int64_t ticks_to_1970 = 621355968000000000;

int64_t tick_to_ms(int64_t tick)
{
    return (tick - ticks_to_1970) / 10000;
}

int64_t tick_of_ns(int64_t wall_ns)
{
    return ticks_to_1970 + wall_ns / 100;
}

int64_t blobs_tick(struct blobs *blobs)
{
    struct timespec now;
    int64_t tick, last = blobs->last_tick;

    clock_gettime(CLOCK_REALTIME, &now);
    tick = ticks_to_1970 + (int64_t)now.tv_sec * 10000000 + now.tv_nsec / 100;
    do {
        if (tick <= last)
            tick = last + 1;
    } while (!atomic_compare_exchange_weak(&blobs->last_tick, &last, tick));
    return tick;
}

void etag_format(char etag[ETAG_BYTES], int64_t tick)
{
    snprintf(etag, ETAG_BYTES, "0x%llX", (unsigned long long)tick);
}

void facts_etag(const struct facts *facts, char etag[ETAG_BYTES])
{
    /* Size and inode take part, for clocks that tick slower than files change. */
    uint64_t mix = (facts->inode * 0x9e3779b97f4a7c15ull) ^
                   ((uint64_t)facts->size_bytes * 0xff51afd7ed558ccdull);

    snprintf(etag, ETAG_BYTES, "0x%llX%06X",
             (unsigned long long)(ticks_to_1970 + facts->mtime_ns / 100),
             (unsigned int)(mix >> 40));
}

static_assert(NAME_LOCKS == 1 << (64 - 52), "the shift in name_lock gives as many");

pthread_mutex_t *name_lock(struct blobs *blobs, const struct folder *folder, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ (uint64_t)folder->id; /* FNV-1a */
    pthread_mutex_t *lock;

    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        hash = (hash ^ *p) * 0x100000001b3ull;
    /* Names that differ in their last letters alone differ in few bits of it: mix them, or an
     * upload of numbered files waits in line for one lock. */
    hash ^= hash >> 32;
    lock = &blobs->name_locks[hash * 0x9e3779b97f4a7c15ull >> 52];
    pthread_mutex_lock(lock);
    return lock;
}

void name_unlock(pthread_mutex_t **lock)
{
    if (*lock)
        pthread_mutex_unlock(*lock);
}

/* --- writing rows --- */

static int apply_waiting(struct db_write *write, struct db *db, struct err *e)
{
    struct row_wait *w = container_of(write, struct row_wait, write);

    return w->apply(w->context, db, e);
}

static void wake_waiting(struct db_write *write, const struct err *why)
{
    struct row_wait *w = container_of(write, struct row_wait, write);

    w->outcome = *why;
    sem_post(&w->wake);
}

void blobs_write_begin(struct blobs *blobs,
                       int (*apply)(void *context, struct db *db, struct err *e),
                       void *context,
                       struct row_wait *w)
{
    w->write = (struct db_write){.apply = apply_waiting, .done = wake_waiting};
    w->apply = apply;
    w->context = context;
    sem_init(&w->wake, 0, 0);
    pthread_mutex_lock(&blobs->settle_lock);
    settle_submit(blobs);
    db_writer_submit(blobs->writer, &w->write);
    pthread_mutex_unlock(&blobs->settle_lock);
}

int blobs_write_end(struct row_wait *w, struct err *e)
{
    while (sem_wait(&w->wake) < 0 && errno == EINTR)
        continue;
    sem_destroy(&w->wake);
    if (w->outcome.code == ERR_NONE)
        return 0;
    if (e)
        *e = w->outcome;
    return -1;
}

int blobs_write(struct blobs *blobs,
                int (*apply)(void *context, struct db *db, struct err *e),
                void *context,
                struct err *e)
{
    struct row_wait w;

    blobs_write_begin(blobs, apply, context, &w);
    return blobs_write_end(&w, e);
}

/* --- opening --- */

static void tell_broken(const struct err *why, void *context)
{
    struct blobs *blobs = context;

    pthread_mutex_lock(&blobs->broken_lock);
    if (blobs->broken)
        blobs->broken(why, blobs->broken_context);
    pthread_mutex_unlock(&blobs->broken_lock);
}

void blobs_when_broken(struct blobs *blobs,
                       void (*broken)(const struct err *why, void *context),
                       void *context)
{
    pthread_mutex_lock(&blobs->broken_lock);
    blobs->broken = broken;
    blobs->broken_context = context;
    pthread_mutex_unlock(&blobs->broken_lock);
}

static int open_database(struct blobs *blobs, const char *path, struct err *e)
{
    autoptr(db) db = NULL;
    const struct db_writer_config config = {.broken = tell_broken, .context = blobs};

    if (store_open_storage(path, &db, e) < 0)
        return -1;
    if (db_writer_new(db, &config, &blobs->writer, e) < 0)
        return -1;
    take_ptr(&db);
    blobs->readers = store_pool_new(path);
    return 0;
}

static struct blobs *blobs_new(const char *root)
{
    struct blobs *blobs = xcalloc(1, sizeof(*blobs));

    blobs->root = xstrdup(root);
    blobs->root_fd = -1;
    pthread_mutex_init(&blobs->folders_lock, NULL);
    pthread_mutex_init(&blobs->settle_lock, NULL);
    pthread_mutex_init(&blobs->broken_lock, NULL);
    blobs->settles_tail = &blobs->settles;
    for (size_t i = 0; i < NAME_LOCKS; i++)
        pthread_mutex_init(&blobs->name_locks[i], NULL);
    blobs->entries = entries_cache_new(ENTRIES_MOST_BYTES);
    blobs->rows = row_cache_new();
    blobs->staging = staging_new();
    blobs->syncs = syncs_new();
    return blobs;
}

DEFINE_AUTOPTR(blobs)

int blobs_open(const char *root, const char *db_path, struct blobs **ret_blobs, struct err *e)
{
    autoptr(blobs) blobs = blobs_new(root);

    if (fs_make_folders(root, 0777, e) < 0)
        return -1;
    blobs->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (blobs->root_fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", root);
    if (open_database(blobs, db_path, e) < 0)
        return -1;
    blobs->cleaner = work_pool_new(1);
    blobs->hashers = work_pool_new(HASHERS);
    if (containers_reconcile(blobs, e) < 0 || settle_all(blobs, e) < 0)
        return err_wrap(e, "\"%s\"", root);
    trash_empty_later(blobs);
    *ret_blobs = take_ptr(&blobs);
    return 0;
}

void blobs_free(struct blobs *blobs)
{
    if (!blobs)
        return;
    blobs->is_stopping = true;
    work_pool_free(blobs->cleaner);
    work_pool_free(blobs->hashers);
    if (blobs->writer) {
        pthread_mutex_lock(&blobs->settle_lock);
        settle_submit(blobs);
        pthread_mutex_unlock(&blobs->settle_lock);
    }
    db_writer_free(blobs->writer);
    store_pool_free(blobs->readers);
    folders_done(blobs);
    entries_cache_free(blobs->entries);
    row_cache_free(blobs->rows);
    staging_free(blobs->staging);
    syncs_free(blobs->syncs);
    mem_close_fd(&blobs->root_fd);
    for (size_t i = 0; i < NAME_LOCKS; i++)
        pthread_mutex_destroy(&blobs->name_locks[i]);
    pthread_mutex_destroy(&blobs->folders_lock);
    pthread_mutex_destroy(&blobs->settle_lock);
    pthread_mutex_destroy(&blobs->broken_lock);
    free(blobs->root);
    free(blobs);
}

char *blobs_tree_path(struct blobs *blobs, const char *account, const char *container)
{
    return xasprintf("%s/%s/blob/%s/tree", blobs->root, account, container);
}
