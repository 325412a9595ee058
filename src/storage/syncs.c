/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/syncs.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STRIPES = 64, /* folders that do not meet in one lock */
};

/* A folder somebody waits for.  A failure is everybody's: the kernel tells it only once. */
struct waited {
    dev_t device;
    ino_t inode;
    uint64_t begun, ended;
    bool is_running;
    int error; /* errno of a failed one, 0 = none */
    int refs;
    struct waited *next;
};

struct stripe {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct waited *first;
};

struct syncs {
    struct stripe stripes[STRIPES];
};

struct syncs *syncs_new(void)
{
    struct syncs *syncs = xcalloc(1, sizeof(*syncs));

    for (size_t i = 0; i < STRIPES; i++) {
        pthread_mutex_init(&syncs->stripes[i].lock, NULL);
        pthread_cond_init(&syncs->stripes[i].wake, NULL);
    }
    return syncs;
}

void syncs_free(struct syncs *syncs)
{
    if (!syncs)
        return;
    for (size_t i = 0; i < STRIPES; i++) {
        pthread_mutex_destroy(&syncs->stripes[i].lock);
        pthread_cond_destroy(&syncs->stripes[i].wake);
    }
    free(syncs);
}

static struct waited *take(struct stripe *stripe, const struct stat *st)
{
    struct waited *w = stripe->first;

    while (w && (w->inode != st->st_ino || w->device != st->st_dev))
        w = w->next;
    if (!w) {
        w = xcalloc(1, sizeof(*w));
        w->device = st->st_dev;
        w->inode = st->st_ino;
        w->next = stripe->first;
        stripe->first = w;
    }
    w->refs++;
    return w;
}

static void drop(struct stripe *stripe, struct waited *w)
{
    struct waited **p = &stripe->first;

    if (--w->refs > 0)
        return;
    while (*p != w)
        p = &(*p)->next;
    *p = w->next;
    free(w);
}

static void run_one(struct stripe *stripe, struct waited *w, int fd)
{
    uint64_t number = ++w->begun;
    int error;

    w->is_running = true;
    pthread_mutex_unlock(&stripe->lock);
    error = fsync(fd) < 0 ? errno : 0;
    pthread_mutex_lock(&stripe->lock);
    w->is_running = false;
    w->ended = number;
    if (error)
        w->error = error;
    pthread_cond_broadcast(&stripe->wake);
}

int syncs_wait(struct syncs *syncs, int fd, struct err *e)
{
    struct stripe *stripe;
    struct waited *w;
    struct stat st;
    uint64_t mine;
    int error;

    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not sync a folder");
    stripe = &syncs->stripes[(uint64_t)st.st_ino * 0x9e3779b97f4a7c15ull >> 58];
    pthread_mutex_lock(&stripe->lock);
    w = take(stripe, &st);
    mine = w->begun + 1;
    while (w->ended < mine) {
        if (w->is_running)
            pthread_cond_wait(&stripe->wake, &stripe->lock);
        else
            run_one(stripe, w, fd);
    }
    error = w->error;
    drop(stripe, w);
    pthread_mutex_unlock(&stripe->lock);
    return error ? err_sys(e, error, "could not sync a folder") : 0;
}
