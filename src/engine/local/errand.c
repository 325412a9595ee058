/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/errand.h"

#include "base/mem.h"
#include "loop/loop.h"
#include "loop/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct errands {
    struct loop *loop;
    struct work_pool *pool;
    struct loop_watch watch; /* of an eventfd: there are finished ones */
    atomic_bool is_stopping;
    pthread_mutex_t lock;         /* guards the two below */
    struct errand *first, **tail; /* finished, in order */
};

static struct errand *take_finished(struct errands *errands)
{
    struct errand *first;

    pthread_mutex_lock(&errands->lock);
    first = errands->first;
    errands->first = NULL;
    errands->tail = &errands->first;
    pthread_mutex_unlock(&errands->lock);
    return first;
}

static void on_finished(struct loop_watch *watch, uint32_t events)
{
    struct errands *errands = container_of(watch, struct errands, watch);
    struct errand *errand, *next;
    uint64_t count;

    (void)events;
    if (read(watch->fd, &count, sizeof(count)) < 0)
        return; /* somebody has taken them already */
    for (errand = take_finished(errands); errand; errand = next) {
        next = errand->next;
        errand->done(errand);
    }
}

int errands_new(struct loop *loop, int threads, struct errands **ret_errands, struct err *e)
{
    auto_close int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auto_free struct errands *errands = xcalloc(1, sizeof(*errands));

    if (fd < 0)
        return err_sys(e, errno, "could not make an eventfd");
    errands->loop = loop;
    errands->watch = (struct loop_watch){.fd = fd, .ready = on_finished};
    if (loop_watch(loop, &errands->watch, EPOLLIN, e) < 0)
        return -1;
    errands->tail = &errands->first;
    pthread_mutex_init(&errands->lock, NULL);
    errands->pool = work_pool_new(threads);
    take_fd(&fd);
    *ret_errands = take_ptr(&errands);
    return 0;
}

static void run(void *arg)
{
    struct errand *errand = arg;
    struct errands *errands = errand->errands;
    uint64_t one = 1;

    errand->work(errand);
    pthread_mutex_lock(&errands->lock);
    errand->next = NULL;
    *errands->tail = errand;
    errands->tail = &errand->next;
    pthread_mutex_unlock(&errands->lock);
    /* A full counter wakes as well. */
    if (write(errands->watch.fd, &one, sizeof(one)) < 0)
        return;
}

void errand_submit(struct errands *errands, struct errand *errand)
{
    errand->errands = errands;
    work_submit(errands->pool, run, errand);
}

bool errands_are_stopping(struct errands *errands)
{
    return atomic_load(&errands->is_stopping);
}

void errands_free(struct errands *errands)
{
    struct errand *errand, *next;

    if (!errands)
        return;
    atomic_store(&errands->is_stopping, true);
    work_pool_free(errands->pool);
    for (errand = take_finished(errands); errand; errand = next) {
        next = errand->next;
        free(errand);
    }
    loop_unwatch(&errands->watch);
    close(errands->watch.fd);
    pthread_mutex_destroy(&errands->lock);
    free(errands);
}
