/* SPDX-License-Identifier: Apache-2.0 */
#include "api/follow.h"

#include "base/log.h"
#include "base/mem.h"
#include "http/request.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum {
    BUCKETS = 256,
    REST_NS = 2 * 1000 * 1000, /* a file written to line by line is read every 2 ms, not for
                                  every line */
};

struct follows {
    pthread_mutex_t lock;              /* of all below, and of the followers' members */
    struct follower *all;              /* those without a watch */
    struct follower *buckets[BUCKETS]; /* by watch */
    int inotify_fd, stop_fd;
    pthread_t thread;
    bool is_running, is_cut;
};

/* --- lists; under the lock --- */

static void link_in(struct follower **list, struct follower *f)
{
    f->at = list;
    f->next = *list;
    if (f->next)
        f->next->at = &f->next;
    *list = f;
}

static void link_out(struct follower *f)
{
    *f->at = f->next;
    if (f->next)
        f->next->at = f->at;
}

static struct follower **bucket(struct follows *follows, int watch)
{
    return watch < 0 ? &follows->all : &follows->buckets[watch % BUCKETS];
}

/* Followers of the same file share a watch: the kernel gives the same number. */
static void drop_watch(struct follows *follows, struct follower *f)
{
    int watch = f->watch;

    link_out(f);
    f->watch = -1;
    link_in(&follows->all, f);
    if (watch < 0)
        return;
    for (struct follower *other = *bucket(follows, watch); other; other = other->next) {
        if (other->watch == watch)
            return;
    }
    inotify_rm_watch(follows->inotify_fd, watch);
}

/* --- telling --- */

static void on_told(struct http_req *req, void *arg)
{
    struct follower *f = arg;

    (void)req;
    pthread_mutex_lock(&f->follows->lock);
    f->is_told = false;
    pthread_mutex_unlock(&f->follows->lock);
    f->told(f);
}

/* Under the lock.  What matters more than bytes is told to the quiet ones too. */
static void tell(struct follower *f)
{
    if (f->is_told || f->is_leaving || (f->is_quiet && !f->is_cut))
        return;
    f->is_told = true;
    http_req_post(f->req, on_told, f);
}

static void tell_list(struct follower *list)
{
    for (struct follower *f = list; f; f = f->next)
        tell(f);
}

static void tell_all(struct follows *follows)
{
    tell_list(follows->all);
    for (size_t i = 0; i < BUCKETS; i++)
        tell_list(follows->buckets[i]);
}

static void take_event(struct follows *follows, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) { /* some went unsaid: everybody has a look */
        tell_all(follows);
        return;
    }
    for (struct follower *f = *bucket(follows, event->wd); f; f = f->next) {
        if (f->watch == event->wd)
            tell(f);
    }
}

static void read_events(struct follows *follows)
{
    char bytes[16 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len = read(follows->inotify_fd, bytes, sizeof(bytes));

    pthread_mutex_lock(&follows->lock);
    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *event = (const void *)(bytes + at);

        take_event(follows, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    pthread_mutex_unlock(&follows->lock);
}

static void *follow_main(void *arg)
{
    struct follows *follows = arg;
    struct pollfd fds[] = {{.fd = follows->stop_fd, .events = POLLIN},
                           {.fd = follows->inotify_fd, .events = POLLIN}};

    pthread_setname_np(pthread_self(), "follow");
    for (;;) {
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        read_events(follows);
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    }
}

/* --- life --- */

struct follows *follows_new(void)
{
    struct follows *follows = xcalloc(1, sizeof(*follows));

    pthread_mutex_init(&follows->lock, NULL);
    follows->inotify_fd = follows->stop_fd = -1;
    return follows;
}

/* The thread begins with the first follower: most yards have none most of the time.  Under the
 * lock. */
static int start(struct follows *follows, struct err *e)
{
    int rc;

    if (follows->is_running)
        return 0;
    if (follows->inotify_fd < 0)
        follows->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (follows->stop_fd < 0)
        follows->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (follows->inotify_fd < 0 || follows->stop_fd < 0)
        return err_sys(e, errno, "could not watch files");
    rc = pthread_create(&follows->thread, NULL, follow_main, follows);
    if (rc != 0)
        return err_sys(e, rc, "could not start a thread");
    follows->is_running = true;
    return 0;
}

void follows_free(struct follows *follows)
{
    if (!follows)
        return;
    if (follows->is_running) {
        if (write(follows->stop_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
            log_error("event=follow error=\"could not stop\"");
        pthread_join(follows->thread, NULL);
    }
    mem_close_fd(&follows->inotify_fd);
    mem_close_fd(&follows->stop_fd);
    pthread_mutex_destroy(&follows->lock);
    free(follows);
}

void follows_cut(struct follows *follows)
{
    pthread_mutex_lock(&follows->lock);
    follows->is_cut = true;
    for (size_t i = 0; i <= BUCKETS; i++) {
        for (struct follower *f = i < BUCKETS ? follows->buckets[i] : follows->all; f;
             f = f->next) {
            f->is_cut = true;
            tell(f);
        }
    }
    pthread_mutex_unlock(&follows->lock);
}

void follows_job_ended(struct follows *follows, int64_t job_id)
{
    pthread_mutex_lock(&follows->lock);
    for (size_t i = 0; i <= BUCKETS; i++) {
        for (struct follower *f = i < BUCKETS ? follows->buckets[i] : follows->all; f;
             f = f->next) {
            if (f->job_id != job_id)
                continue;
            f->is_ended = true;
            tell(f);
        }
    }
    pthread_mutex_unlock(&follows->lock);
}

/* --- one follower --- */

int follow_add(struct follows *follows, struct follower *f, struct err *e)
{
    int rc = 0;

    pthread_mutex_lock(&follows->lock);
    if (follows->is_cut)
        rc = err_set(e, ERR_BUSY, "the yard is closing; ask again");
    else
        rc = start(follows, e);
    if (rc == 0) {
        f->follows = follows;
        f->watch = -1;
        link_in(&follows->all, f);
    }
    pthread_mutex_unlock(&follows->lock);
    return rc;
}

int follow_watch(struct follower *f, int fd, enum follow_what what, struct err *e)
{
    static const uint32_t masks[] = {
        [FOLLOW_FILE] = IN_MODIFY,
        [FOLLOW_FOLDER] = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF,
    };
    struct follows *follows = f->follows;
    char path[64];
    int watch, why;

    /* The descriptor says which file it is, whatever becomes of its name. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    pthread_mutex_lock(&follows->lock);
    watch = inotify_add_watch(follows->inotify_fd, path, masks[what]);
    why = errno;
    if (watch >= 0 && watch != f->watch) {
        drop_watch(follows, f);
        link_out(f);
        f->watch = watch;
        link_in(bucket(follows, watch), f);
    }
    pthread_mutex_unlock(&follows->lock);
    return watch < 0 ? err_sys(e, why, "could not watch a file") : 0;
}

void follow_set_quiet(struct follower *f, bool is_quiet)
{
    pthread_mutex_lock(&f->follows->lock);
    f->is_quiet = is_quiet;
    pthread_mutex_unlock(&f->follows->lock);
}

void follow_state(struct follower *f, bool *ret_is_ended, bool *ret_is_cut)
{
    pthread_mutex_lock(&f->follows->lock);
    *ret_is_ended = f->is_ended;
    *ret_is_cut = f->is_cut;
    pthread_mutex_unlock(&f->follows->lock);
}

bool follow_remove(struct follower *f)
{
    bool is_told;

    if (!f->follows)
        return true;
    pthread_mutex_lock(&f->follows->lock);
    is_told = f->is_told;
    f->is_leaving = true;
    pthread_mutex_unlock(&f->follows->lock);
    if (!is_told)
        follow_drop(f);
    return !is_told;
}

void follow_drop(struct follower *f)
{
    struct follows *follows = f->follows;

    if (!follows)
        return;
    pthread_mutex_lock(&follows->lock);
    drop_watch(follows, f);
    link_out(f);
    pthread_mutex_unlock(&follows->lock);
    f->follows = NULL;
}
