/* loop.c - one turn: due timers, tasks, then whatever epoll has; posted calls arrive through an
 * eventfd.
 *
 * Events of one epoll_wait are kept in the loop while they are handed out, so that loop_unwatch
 * can strike out the ones that have not had their turn: their owner may be freed memory by
 * then.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    MOST_EVENTS = 128, /* per turn: a few kilobytes, and timers are never far behind */
};

struct post {
    void (*fn)(void *arg);
    void *arg;
};

struct posts {
    struct post *rows;
    size_t count, room;
};

struct loop {
    int epoll_fd;
    struct loop_watch wake; /* the eventfd */
    atomic_bool is_stopped;

    pthread_mutex_t lock; /* guards incoming */
    struct posts incoming;
    struct posts running; /* swapped with incoming, so that rows are reused */

    struct slot { /* the due time is copied, so that sifting stays within the array */
        int64_t due_ms;
        struct loop_timer *timer;
    } * heap;
    size_t heap_count, heap_room;

    struct loop_task tasks;     /* ring, as are the next ones: head only */
    struct loop_task tasks_now; /* those of the present turn */

    struct epoll_event events[MOST_EVENTS];
    int event_count, event_next; /* those from event_next on are still to be handed out */
};

/* --- posted calls --- */

static void wake_up(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t n;

    do
        n = write(loop->wake.fd, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
}

void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg)
{
    struct posts *posts = &loop->incoming;
    bool is_first;

    pthread_mutex_lock(&loop->lock);
    is_first = posts->count == 0;
    if (posts->count == posts->room) {
        posts->room = posts->room ? posts->room * 2 : 16;
        posts->rows = xreallocarray(posts->rows, posts->room, sizeof(posts->rows[0]));
    }
    posts->rows[posts->count++] = (struct post){fn, arg};
    pthread_mutex_unlock(&loop->lock);
    if (is_first)
        wake_up(loop);
}

static void run_posts(struct loop_watch *wake, uint32_t events)
{
    struct loop *loop = container_of(wake, struct loop, wake);
    struct posts swap;
    uint64_t count;

    (void)events;
    if (read(wake->fd, &count, sizeof(count)) < 0 && errno == EAGAIN)
        return;
    pthread_mutex_lock(&loop->lock);
    swap = loop->incoming;
    loop->incoming = loop->running;
    loop->incoming.count = 0;
    loop->running = swap;
    pthread_mutex_unlock(&loop->lock);
    for (size_t i = 0; i < loop->running.count; i++)
        loop->running.rows[i].fn(loop->running.rows[i].arg);
    loop->running.count = 0;
}

/* --- descriptors --- */

int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events, struct err *e)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int op = watch->loop ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    assert(events && watch->ready && (!watch->loop || watch->loop == loop));
    if (watch->loop && watch->events == events)
        return 0;
    if (epoll_ctl(loop->epoll_fd, op, watch->fd, &event) < 0)
        return err_sys(e, errno, "could not watch descriptor %d", watch->fd);
    watch->loop = loop;
    watch->events = events;
    return 0;
}

void loop_unwatch(struct loop_watch *watch)
{
    struct loop *loop = watch->loop;

    if (!loop)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = loop->event_next; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
    watch->loop = NULL;
    watch->events = 0;
}

static void run_events(struct loop *loop, int timeout_ms)
{
    int n = epoll_wait(loop->epoll_fd, loop->events, MOST_EVENTS, timeout_ms);

    loop->event_count = n < 0 ? 0 : n;
    for (loop->event_next = 0; loop->event_next < loop->event_count;) {
        struct epoll_event *event = &loop->events[loop->event_next++];
        struct loop_watch *watch = event->data.ptr;

        if (watch)
            watch->ready(watch, event->events);
    }
    loop->event_count = loop->event_next = 0;
}

/* --- timers: a binary heap, least due first, each timer knowing its place --- */

static void heap_put(struct loop *loop, size_t index, struct slot slot)
{
    loop->heap[index] = slot;
    slot.timer->heap_index = index;
}

static void heap_up(struct loop *loop, size_t index)
{
    struct slot slot = loop->heap[index];

    for (; index; index = (index - 1) / 2) {
        struct slot parent = loop->heap[(index - 1) / 2];

        if (parent.due_ms <= slot.due_ms)
            break;
        heap_put(loop, index, parent);
    }
    heap_put(loop, index, slot);
}

static void heap_down(struct loop *loop, size_t index)
{
    struct slot slot = loop->heap[index];
    size_t child;

    while ((child = 2 * index + 1) < loop->heap_count) {
        if (child + 1 < loop->heap_count &&
            loop->heap[child + 1].due_ms < loop->heap[child].due_ms)
            child++;
        if (slot.due_ms <= loop->heap[child].due_ms)
            break;
        heap_put(loop, index, loop->heap[child]);
        index = child;
    }
    heap_put(loop, index, slot);
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t delay_ms)
{
    assert(timer->fired && (!timer->loop || timer->loop == loop));
    timer->due_ms = clock_mono_ms() + (delay_ms > 0 ? delay_ms : 0);
    if (!timer->loop) {
        if (loop->heap_count == loop->heap_room) {
            loop->heap_room = loop->heap_room ? loop->heap_room * 2 : 64;
            loop->heap = xreallocarray(loop->heap, loop->heap_room, sizeof(loop->heap[0]));
        }
        timer->loop = loop;
        timer->heap_index = loop->heap_count++;
    }
    heap_put(loop, timer->heap_index, (struct slot){timer->due_ms, timer});
    heap_up(loop, timer->heap_index);
    heap_down(loop, timer->heap_index);
}

void loop_timer_cancel(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    struct slot last;

    if (!loop)
        return;
    last = loop->heap[--loop->heap_count];
    if (last.timer != timer) {
        heap_put(loop, timer->heap_index, last);
        heap_up(loop, last.timer->heap_index);
        heap_down(loop, last.timer->heap_index);
    }
    timer->loop = NULL;
}

/* At most as many as there are now: a timer that sets itself to zero must not keep the others
 * waiting. */
static void run_timers(struct loop *loop)
{
    int64_t now = loop->heap_count ? clock_mono_ms() : 0;

    for (size_t most = loop->heap_count; most && loop->heap_count; most--) {
        struct loop_timer *timer = loop->heap[0].timer;

        if (loop->heap[0].due_ms > now)
            return;
        loop_timer_cancel(timer);
        timer->fired(timer);
    }
}

/* How long epoll may sleep. */
static int sleep_ms(const struct loop *loop)
{
    int64_t left;

    if (loop->tasks.next != &loop->tasks)
        return 0;
    if (!loop->heap_count)
        return -1;
    left = loop->heap[0].due_ms - clock_mono_ms();
    if (left < 0)
        return 0;
    return left < INT_MAX ? (int)left : INT_MAX;
}

/* --- tasks --- */

static void ring_init(struct loop_task *ring)
{
    ring->next = ring->prev = ring;
}

void loop_task_add(struct loop *loop, struct loop_task *task)
{
    assert(task->run && (!task->loop || task->loop == loop));
    if (task->loop)
        return;
    task->loop = loop;
    task->next = &loop->tasks;
    task->prev = loop->tasks.prev;
    task->prev->next = task->next->prev = task;
}

void loop_task_cancel(struct loop_task *task)
{
    if (!task->loop)
        return;
    task->prev->next = task->next;
    task->next->prev = task->prev;
    task->loop = NULL;
}

static void run_tasks(struct loop *loop)
{
    struct loop_task *now = &loop->tasks_now;

    if (loop->tasks.next == &loop->tasks)
        return;
    *now = loop->tasks;
    now->next->prev = now->prev->next = now;
    ring_init(&loop->tasks);
    while (now->next != now) {
        struct loop_task *task = now->next;

        loop_task_cancel(task);
        task->run(task);
    }
}

/* --- the loop --- */

int loop_new(struct loop **ret_loop, struct err *e)
{
    struct loop *loop = xcalloc(1, sizeof(*loop));

    pthread_mutex_init(&loop->lock, NULL);
    ring_init(&loop->tasks);
    ring_init(&loop->tasks_now);
    loop->wake.ready = run_posts;
    loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->wake.fd < 0 || loop->epoll_fd < 0) {
        err_sys(e, errno, "could not make an event loop");
        loop_free(loop);
        return -1;
    }
    if (loop_watch(loop, &loop->wake, EPOLLIN, e) < 0) {
        loop_free(loop);
        return -1;
    }
    *ret_loop = loop;
    return 0;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    mem_close_fd(&loop->wake.fd);
    mem_close_fd(&loop->epoll_fd);
    pthread_mutex_destroy(&loop->lock);
    free(loop->incoming.rows);
    free(loop->running.rows);
    free(loop->heap);
    free(loop);
}

void loop_run(struct loop *loop)
{
    while (!atomic_load_explicit(&loop->is_stopped, memory_order_acquire)) {
        run_timers(loop);
        run_tasks(loop);
        run_events(loop, sleep_ms(loop));
    }
    atomic_store(&loop->is_stopped, false);
}

void loop_stop(struct loop *loop)
{
    atomic_store_explicit(&loop->is_stopped, true, memory_order_release);
    wake_up(loop);
}
