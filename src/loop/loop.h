/* loop.h - an epoll loop: descriptors, timers, tasks, posted calls.
 *
 * One thread runs a loop (loop_run); everything below is for that thread alone, except
 * loop_post and loop_stop, which any thread may call.  Callbacks run one at a time and must not
 * block.
 *
 * A watch, timer or task is embedded in its owner's struct; a zeroed one is idle.  Removing an
 * idle one is fine.  A callback may remove any of them, its own too, and free its owner.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct loop; /* opaque */

int loop_new(struct loop **ret_loop, struct err *e);
/* Posted calls that have not run are dropped; watches must be gone. */
void loop_free(struct loop *loop);
/* Returns after loop_stop; a stop before the run counts. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Run fn(arg) on the loop's thread, in order of posting. */
void loop_post(struct loop *loop, void (*fn)(void *arg), void *arg);

struct loop_watch {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT, ... as set; 0 = not watched */
    void (*ready)(struct loop_watch *watch, uint32_t events);
    struct loop *loop; /* NULL while idle */
};

/* Start watching, or change what is watched.  fd and ready are set by the caller before.
 * EPOLLET and EPOLLEXCLUSIVE pass through to the kernel. */
int loop_watch(struct loop *loop, struct loop_watch *watch, uint32_t events, struct err *e);
void loop_unwatch(struct loop_watch *watch);

struct loop_timer {
    int64_t due_ms; /* monotonic */
    void (*fired)(struct loop_timer *timer);
    struct loop *loop; /* NULL while idle */
    size_t heap_index; /* private */
};

/* Fire once, delay_ms from now.  Setting a running timer moves it. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t delay_ms);
void loop_timer_cancel(struct loop_timer *timer);

/* A call put off until the callbacks of this turn are over: for work that must not happen
 * inside a caller's stack.  A task added by a task runs in the next turn, so that descriptors
 * get theirs. */
struct loop_task {
    void (*run)(struct loop_task *task);
    struct loop *loop;             /* NULL while idle */
    struct loop_task *next, *prev; /* private */
};

/* Adding a waiting task changes nothing. */
void loop_task_add(struct loop *loop, struct loop_task *task);
void loop_task_cancel(struct loop_task *task);

#endif
