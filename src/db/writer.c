/* SPDX-License-Identifier: Apache-2.0 */
#include "db/writer.h"

#include "base/clock.h"
#include "base/fault.h"
#include "db/db-internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct db_writer {
    struct db *db;
    struct db_writer_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    struct db_write *first, **tail;
    size_t waiting;  /* in that list */
    size_t expected; /* as many were about when the last group was told */
    bool stopping;
    struct db_writer_counts counts;
    int64_t commit_us; /* the last one; writer thread only, as is the next */
    bool is_broken;
    atomic_uint_least64_t generation;
};

enum {
    DEFAULT_MOST_PER_COMMIT = 256,
    SLOW_COMMIT_US = 1000, /* see gather() */
    /* About as long as it takes from a done() to the next request of the same client: see
     * room_for_late_comers(). */
    QUICK_COMMIT_US = 400,
    PATIENCE_SHARE =
        4, /* of the time a commit takes: beyond it waiting costs more than it saves */
};

/* Cut off at most so many of those that wait; NULL when none does.  With the lock held. */
static struct db_write *cut_off(struct db_writer *w, size_t most)
{
    struct db_write *group = w->first, *last = group;

    if (!group || most == 0)
        return NULL;
    w->waiting--;
    for (size_t i = 1; i < most && last->next; i++) {
        last = last->next;
        w->waiting--;
    }
    w->first = last->next;
    if (!w->first)
        w->tail = &w->first;
    last->next = NULL;
    return group;
}

/* Clients that were told a moment ago come back with their next request.  Without them a group
 * of half their number would commit while they wait for the next, and so on in turns: twice as
 * many commits as needed.  So wait a little, unless as many are here as there were.  Where the
 * disk is quick the turns are the better way: one half is written while the other half is on
 * its way, and the price is a cheap sync.  With the lock held. */
static void gather(struct db_writer *w)
{
    int64_t end_us = clock_mono_us() + w->commit_us / PATIENCE_SHARE;
    struct timespec end = {end_us / 1000000, end_us % 1000000 * 1000};

    while (w->waiting < w->expected && w->commit_us > SLOW_COMMIT_US && !w->stopping) {
        if (pthread_cond_clockwait(&w->wake, &w->lock, CLOCK_MONOTONIC, &end) != 0)
            return;
    }
}

/* Wait for work.  NULL when stopping and nothing is left. */
static struct db_write *next_group(struct db_writer *w)
{
    struct db_write *group;

    pthread_mutex_lock(&w->lock);
    while (!w->first && !w->stopping)
        pthread_cond_wait(&w->wake, &w->lock);
    gather(w);
    group = cut_off(w, w->config.most_per_commit);
    pthread_mutex_unlock(&w->lock);
    return group;
}

/* With all clients in one group nobody is on the way while it is written, and nothing is there
 * to be written while they are.  Where a commit takes less time than they do, two halves in
 * turns are better: the group takes in no more than makes it half of those about.  With the
 * lock held. */
static size_t room_for_late_comers(const struct db_writer *w, size_t count)
{
    size_t most = w->config.most_per_commit, half = (w->expected + 1) / 2;
    bool is_quick = w->commit_us > 0 && w->commit_us < w->config.quick_commit_us;

    if (is_quick && half < most)
        most = half;
    return most > count ? most - count : 0;
}

/* Those that came while the group was run, which has so many by now. */
static struct db_write *late_comers(struct db_writer *w, size_t count)
{
    struct db_write *late;

    pthread_mutex_lock(&w->lock);
    late = cut_off(w, room_for_late_comers(w, count));
    pthread_mutex_unlock(&w->lock);
    return late;
}

/* True when it was applied; else its outcome says why not. */
static bool apply_one(struct db_writer *w, struct db_write *write)
{
    struct err why = {.code = ERR_INTERNAL, .msg = "refused without a reason"};

    if (write->apply(write, w->db, &why) != 0) {
        write->outcome = why;
        return false;
    }
    /* Only what is looked at: an error is half a kilobyte, and most writes have none. */
    write->outcome.code = ERR_NONE;
    return true;
}

/* An error that broke the database, or made SQLite undo everything, is everybody's. */
static int look_for_loss(struct db_writer *w, const struct db_write *write, struct err *e)
{
    if (!db_is_broken(w->db) && db_in_transaction(w->db))
        return 0;
    *e = write->outcome;
    return -1;
}

/* Whatever the refused write changed is undone: let it record that it was refused. */
static int record_refusal(struct db_writer *w, struct db_write *write, struct err *e)
{
    if (write->refused && write->refused(write, w->db, &write->outcome) < 0)
        return db_failed(w->db, e, "record a refusal");
    return 0;
}

/* Run one write in its savepoint.  -1 only when the transaction as a whole is lost. */
static int run_guarded(struct db_writer *w, struct db_write *write, struct err *e)
{
    if (db_run(w->db, e, "SAVEPOINT one", "") < 0)
        return -1;
    if (!apply_one(w, write) &&
        (look_for_loss(w, write, e) < 0 || db_run(w->db, e, "ROLLBACK TO one", "") < 0 ||
         record_refusal(w, write, e) < 0))
        return -1;
    return db_run(w->db, e, "RELEASE one", "");
}

/* Run one write without.  1 when it was refused after it had changed something. */
static int run_bare(struct db_writer *w, struct db_write *write, struct err *e)
{
    int64_t changes = db_total_changes(w->db);

    if (apply_one(w, write))
        return 0;
    if (look_for_loss(w, write, e) < 0)
        return -1;
    return db_total_changes(w->db) != changes ? 1 : record_refusal(w, write, e);
}

/* All of the group, and those that come meanwhile.  1 when it must be run again, guarded. */
static int run_writes(struct db_writer *w, struct db_write *group, bool guarded, struct err *e)
{
    size_t count = 0;

    if (db_run(w->db, e, "BEGIN IMMEDIATE", "") < 0)
        return -1;
    for (struct db_write *write = group; write; write = write->next) {
        int rc;

        guarded = guarded || !write->is_repeatable;
        rc = guarded ? run_guarded(w, write, e) : run_bare(w, write, e);
        if (rc != 0)
            return rc;
        count++;
        if (!write->next)
            write->next = late_comers(w, count);
    }
    return 0;
}

/* A savepoint keeps a copy of every page that is touched within it, a tenth of what a small
 * write costs, and hardly any write needs it: most succeed, and most refusals come before
 * anything was changed.  So writes that can be repeated go without; should one of them be
 * refused after all, the whole group is undone and run again with savepoints. */
static int run_carefully(struct db_writer *w, struct db_write *group, struct err *e)
{
    int rc = run_writes(w, group, false, e);

    if (rc <= 0)
        return rc;
    w->generation += 2; /* what was seen within the transaction holds no more */
    if (db_run(w->db, e, "ROLLBACK", "") < 0)
        return -1;
    return run_writes(w, group, true, e);
}

static int run_group(struct db_writer *w, struct db_write *group, struct err *e)
{
    int64_t began_us;
    int rc;

    if (run_carefully(w, group, e) < 0)
        return -1;
    FAULT("writer.before-commit");
    began_us = clock_mono_us();
    w->generation++;
    rc = db_run(w->db, e, "COMMIT", "");
    w->generation++;
    w->commit_us = clock_mono_us() - began_us;
    FAULT("writer.after-commit");
    return rc;
}

static void look_for_breakage(struct db_writer *w, const struct err *why)
{
    if (w->is_broken || !db_is_broken(w->db))
        return;
    w->is_broken = true;
    if (w->config.broken)
        w->config.broken(why, w->config.context);
}

static void fail_group(struct db_writer *w, struct db_write *group, const struct err *why)
{
    db_run(w->db, NULL, "ROLLBACK", "");
    w->generation += 2;
    for (struct db_write *write = group; write; write = write->next)
        write->outcome = *why;
    look_for_breakage(w, why);
}

static void count(struct db_writer *w, struct db_write *group, bool is_committed)
{
    pthread_mutex_lock(&w->lock);
    w->expected = w->waiting;
    w->counts.commits += is_committed;
    for (struct db_write *write = group; write; write = write->next) {
        w->expected++;
        w->counts.writes++;
        w->counts.refused += write->outcome.code != ERR_NONE;
    }
    if (w->expected > w->config.most_per_commit)
        w->expected = w->config.most_per_commit;
    pthread_mutex_unlock(&w->lock);
}

static void tell(struct db_write *group)
{
    static const struct err ok;

    for (struct db_write *write = group, *next; write; write = next) {
        struct err why;

        next = write->next; /* done() may free the write */
        if (write->outcome.code == ERR_NONE) {
            write->done(write, &ok);
            continue;
        }
        why = write->outcome;
        write->done(write, &why);
    }
}

/* One group from BEGIN to the last done(). */
static void serve_group(struct db_writer *w, struct db_write *group)
{
    struct err e = {0};
    bool is_committed = false;

    if (w->is_broken)
        err_set(&e, ERR_BUSY,
                "the database cannot be written after an I/O error; restart the daemon");
    else
        is_committed = run_group(w, group, &e) == 0;
    if (!is_committed)
        fail_group(w, group, &e);
    count(w, group, is_committed);
    tell(group);
    FAULT("writer.after-telling");
}

static void *writer_main(void *arg)
{
    struct db_writer *w = arg;
    struct db_write *group;

    pthread_setname_np(pthread_self(), "db-writer");
    while ((group = next_group(w))) {
        struct err e = {0};

        serve_group(w, group);
        /* A full disk is no harm here: the log stays, and the next group's turn tries again. */
        if (!w->is_broken && db_checkpoint_when_due(w->db, &e) < 0)
            look_for_breakage(w, &e);
    }
    return NULL;
}

int db_writer_new(struct db *db,
                  const struct db_writer_config *config,
                  struct db_writer **ret_writer,
                  struct err *e)
{
    struct db_writer *w = xcalloc(1, sizeof(*w));
    int rc;

    w->db = db;
    w->config = *config;
    if (w->config.most_per_commit == 0)
        w->config.most_per_commit = DEFAULT_MOST_PER_COMMIT;
    if (w->config.quick_commit_us == 0)
        w->config.quick_commit_us = QUICK_COMMIT_US;
    w->tail = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    rc = pthread_create(&w->thread, NULL, writer_main, w);
    if (rc != 0) {
        free(w);
        return err_sys(e, rc, "could not start the writer thread");
    }
    *ret_writer = w;
    return 0;
}

void db_writer_submit(struct db_writer *w, struct db_write *write)
{
    bool late;

    write->next = NULL;
    pthread_mutex_lock(&w->lock);
    late = w->stopping;
    if (!late) {
        *w->tail = write;
        w->tail = &write->next;
        w->waiting++;
        if (w->waiting == 1 || w->waiting >= w->expected)
            pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    if (late) {
        struct err why;

        err_set(&why, ERR_BUSY, "the service is stopping; try again");
        write->done(write, &why);
    }
}

void db_writer_free(struct db_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->wake);
    db_free(w->db);
    free(w);
}

void db_writer_counts(struct db_writer *w, struct db_writer_counts *ret_counts)
{
    pthread_mutex_lock(&w->lock);
    *ret_counts = w->counts;
    pthread_mutex_unlock(&w->lock);
}

uint64_t db_writer_generation(struct db_writer *w)
{
    return w->generation;
}
