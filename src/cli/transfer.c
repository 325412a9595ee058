/* The queue and the threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include "base/str.h"
#include "cli/transfer-internal.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    QUEUE_ROOM = 4096,
    MOST_FAILURES = 200, /* remembered by name; the journal has them all */
};

/* --- failures --- */

static bool is_hopeless(enum err_code code)
{
    return code == ERR_UNAUTHORIZED || code == ERR_FORBIDDEN || code == ERR_BUSY ||
           code == ERR_TIMEOUT || code == ERR_NO_SPACE;
}

void transfer_note_failed(struct transfer *t, const struct item *item, const struct err *e)
{
    int most = 2 * t->thread_count > 32 ? 2 * t->thread_count : 32;

    if (atomic_load(&t->stop)) /* broken off: it will be done by the next run */
        return;
    atomic_fetch_add(&t->failed, 1);
    if (t->config.journal)
        journal_note_failed(t->config.journal, item->target, e->msg);
    pthread_mutex_lock(&t->lock);
    if (t->failure_count < MOST_FAILURES) {
        t->failures = xreallocarray(t->failures, t->failure_count + 1, sizeof(*t->failures));
        t->failures[t->failure_count++] = (struct failure){xstrdup(item->target), *e};
    }
    if (++t->in_a_row >= most && is_hopeless(e->code) && !t->gave_up[0]) {
        snprintf(t->gave_up, sizeof(t->gave_up), "%s", e->msg);
        atomic_store(&t->stop, true);
        pthread_cond_broadcast(&t->more);
        pthread_cond_broadcast(&t->room);
    }
    pthread_mutex_unlock(&t->lock);
}

void transfer_note_success(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    t->in_a_row = 0;
    pthread_mutex_unlock(&t->lock);
}

bool transfer_failure(const struct transfer *t,
                      size_t index,
                      const char **ret_target,
                      const struct err **ret_error)
{
    if (index >= t->failure_count)
        return false;
    *ret_target = t->failures[index].target;
    *ret_error = &t->failures[index].e;
    return true;
}

const char *transfer_gave_up(const struct transfer *t)
{
    return t->gave_up[0] ? t->gave_up : NULL;
}

/* --- threads --- */

/* What a thread takes next: a piece of something begun, else a new item. */
struct task {
    struct work *work;
    size_t index;
    struct item *item;
};

static bool take_piece(struct transfer *t, struct task *task)
{
    for (struct work *work = t->works; work; work = work->after) {
        struct parts *parts = &work->parts;

        if (work->failed)
            continue;
        if (work->must_hash) {
            work->must_hash = false;
            *task = (struct task){.work = work, .index = parts->count};
            return true;
        }
        while (work->next < parts->count && parts->is_done[work->next])
            work->next++;
        if (work->next < parts->count) {
            *task = (struct task){.work = work, .index = work->next++};
            return true;
        }
    }
    return false;
}

static bool take_item(struct transfer *t, struct task *task)
{
    if (!t->count)
        return false;
    *task = (struct task){.item = t->queue[t->head]};
    t->head = (t->head + 1) % QUEUE_ROOM;
    t->count--;
    t->busy++;
    pthread_cond_signal(&t->room);
    return true;
}

/* Wait for something to do; false when there will be nothing more. */
static bool take(struct transfer *t, struct task *task)
{
    bool found = false;

    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->stop) && !(found = take_piece(t, task) || take_item(t, task))) {
        if (t->is_ended && !t->busy && !t->works)
            break;
        pthread_cond_wait(&t->more, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

static void unlink_work(struct transfer *t, struct work *work)
{
    struct work **p = &t->works;

    while (*p != work)
        p = &(*p)->after;
    *p = work->after;
}

static void run_piece(struct worker *worker, const struct task *task)
{
    struct transfer *t = worker->transfer;
    struct work *work = task->work;
    struct err e = {0};
    int rc = worker_piece(worker, work, task->index, &e);
    bool is_last;

    pthread_mutex_lock(&t->lock);
    if (rc < 0 && !work->failed) {
        work->failed = true;
        work->e = e;
    }
    if (work->failed) {
        /* Those that nobody has taken will not be. */
        while (work->next < work->parts.count)
            work->left -= !work->parts.is_done[work->next++];
        work->left -= work->must_hash;
        work->must_hash = false;
    }
    if (rc == 0 && task->index < work->parts.count)
        work->parts.is_done[task->index] = 1;
    is_last = --work->left == 0;
    if (is_last) {
        unlink_work(t, work);
        t->busy++; /* until it is finished, all is not over */
    }
    pthread_mutex_unlock(&t->lock);
    if (!is_last)
        return;
    worker_finish(worker, work);
    work_free(work);
    pthread_mutex_lock(&t->lock);
    t->busy--;
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
}

static void run_item(struct worker *worker, struct item *item)
{
    struct transfer *t = worker->transfer;
    struct work *work = NULL;

    worker_item(worker, item, &work);
    if (work && work->left == 0) { /* an earlier run has brought all of it */
        worker_finish(worker, work);
        work_free(work);
        work = NULL;
    }
    pthread_mutex_lock(&t->lock);
    t->busy--;
    if (work) {
        struct work **last = &t->works;

        while (*last)
            last = &(*last)->after;
        *last = work;
    }
    if (work || !t->busy)
        pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
}

static void *run_worker(void *context)
{
    struct worker worker = {.transfer = context};
    struct transfer *t = context;
    struct task task;

    while (take(t, &task)) {
        if (task.work)
            run_piece(&worker, &task);
        else
            run_item(&worker, task.item);
    }
    port_close(&worker.source);
    port_close(&worker.destination);
    free(worker.buf);
    return NULL;
}

static void *run_all(void *context)
{
    struct transfer *t = context;
    uint64_t one = 1;

    for (int i = 1; i < t->thread_count; i++)
        pthread_join(t->threads[i], NULL);
    pthread_mutex_lock(&t->lock);
    t->is_over = true;
    pthread_mutex_unlock(&t->lock);
    if (write(t->over_fd, &one, sizeof(one)) < 0)
        return NULL; /* cannot be: the counter is empty */
    return NULL;
}

/* --- life --- */

static int start(struct transfer *t, struct err *e)
{
    int wanted = t->options->parallel > 0 ? t->options->parallel : 1;

    /* The first thread waits for the others: then it tells that all is over. */
    t->threads = xcalloc((size_t)wanted + 1, sizeof(*t->threads));
    for (t->thread_count = 1; t->thread_count <= wanted; t->thread_count++) {
        int rc = pthread_create(&t->threads[t->thread_count], NULL, run_worker, t);

        if (rc != 0 && t->thread_count > 1)
            break; /* fewer will do */
        if (rc != 0)
            return err_sys(e, rc, "could not start a thread");
    }
    if (pthread_create(&t->threads[0], NULL, run_all, t) != 0)
        return err_set(e, ERR_INTERNAL, "could not start a thread");
    return 0;
}

int transfer_new(const struct transfer_config *config,
                 struct transfer **ret_transfer,
                 struct err *e)
{
    struct transfer *t = xcalloc(1, sizeof(*t));

    t->config = *config;
    t->options = config->options;
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->ask_lock, NULL);
    pthread_mutex_init(&t->pace_lock, NULL);
    pthread_cond_init(&t->more, NULL);
    pthread_cond_init(&t->room, NULL);
    t->queue = xcalloc(QUEUE_ROOM, sizeof(struct item *));
    t->over_fd = eventfd(0, EFD_CLOEXEC);
    if (t->over_fd < 0 || start(t, e) < 0)
        return t->over_fd < 0 ? err_sys(e, errno, "could not make an event") : -1;
    *ret_transfer = t;
    return 0;
}

void transfer_free(struct transfer *t)
{
    if (!t)
        return;
    transfer_stop(t);
    pthread_join(t->threads[0], NULL);
    for (; t->count; t->count--, t->head = (t->head + 1) % QUEUE_ROOM)
        item_free(t->queue[t->head]);
    for (struct work *work = t->works, *after; work; work = after) {
        after = work->after;
        work_free(work);
    }
    for (size_t i = 0; i < t->failure_count; i++)
        free(t->failures[i].target);
    free(t->failures);
    free(t->queue);
    free(t->threads);
    close(t->over_fd);
    pthread_cond_destroy(&t->more);
    pthread_cond_destroy(&t->room);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->ask_lock);
    pthread_mutex_destroy(&t->pace_lock);
    free(t);
}

bool transfer_add(struct transfer *t, struct item *item)
{
    bool is_taken;

    if (item->what == ITEM_COPY) {
        atomic_fetch_add(&t->found_files, 1);
        atomic_fetch_add(&t->found_bytes, item->facts.size_bytes);
    }
    pthread_mutex_lock(&t->lock);
    while (t->count == QUEUE_ROOM && !atomic_load(&t->stop))
        pthread_cond_wait(&t->room, &t->lock);
    is_taken = !atomic_load(&t->stop);
    if (is_taken) {
        t->queue[(t->head + t->count++) % QUEUE_ROOM] = item;
        pthread_cond_signal(&t->more);
    }
    pthread_mutex_unlock(&t->lock);
    if (!is_taken)
        item_free(item);
    return is_taken;
}

void transfer_no_more(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_ended = true;
    pthread_cond_broadcast(&t->more);
    pthread_mutex_unlock(&t->lock);
}

void transfer_stop(struct transfer *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->more);
    pthread_cond_broadcast(&t->room);
    pthread_mutex_unlock(&t->lock);
}

const atomic_bool *transfer_stop_flag(const struct transfer *t)
{
    return &t->stop;
}

int transfer_fd(const struct transfer *t)
{
    return t->over_fd;
}

bool transfer_is_over(struct transfer *t)
{
    bool is_over;

    pthread_mutex_lock(&t->lock);
    is_over = t->is_over;
    pthread_mutex_unlock(&t->lock);
    return is_over;
}

void transfer_totals(struct transfer *t, struct transfer_totals *ret)
{
    pthread_mutex_lock(&t->lock);
    ret->is_all_found = t->is_ended;
    pthread_mutex_unlock(&t->lock);
    ret->found_files = atomic_load(&t->found_files);
    ret->found_bytes = atomic_load(&t->found_bytes);
    ret->files = atomic_load(&t->files);
    ret->bytes = atomic_load(&t->bytes);
    ret->removed = atomic_load(&t->removed);
    ret->before = atomic_load(&t->before);
    ret->skipped = atomic_load(&t->skipped);
    ret->failed = atomic_load(&t->failed);
    ret->moved_bytes = atomic_load(&t->moved);
}
