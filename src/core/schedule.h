/* schedule.h - which queued job of one cluster starts now.  Pure.
 *
 * Higher priority first, then who came first.  A job starts when all its nodes are there at
 * once (a gang), never in part.  While the first of the queue has to wait, a later one may go
 * before it only if that cannot delay it: it ends (by its wall-clock limit) before the first
 * could start, or it takes nodes that the first will not need then.  So the time at which the
 * first starts at the latest (schedule_head) never moves away because of it.
 *
 * "The first" is the first that the nodes there are could ever serve: a job that needs more
 * than the cluster has and is making, its bad nodes left out, holds up nobody.  It has its
 * turn, by priority and age, when the cluster has grown.
 *
 * One start at a time: schedule_next names a job, schedule_nodes its nodes; the caller takes
 * it out of the queue, its nodes out of the idle ones, adds its hold, and asks again.  Nothing
 * is walked that does not have to be: not the queue (ordered_seek passes over jobs that do not
 * fit), and the holds only while the first waits and nodes are idle.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SCHEDULE_H
#define CORE_SCHEDULE_H

#include "core/ordered.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A queued job. */
struct schedule_job {
    struct ordered_link link; /* in the queue: set by schedule_add_job */
    struct ordered_weights weights;
    int64_t id;   /* of the same priority, lower ones first */
    int priority; /* more is sooner */
    int node_count;
    int64_t wall_ms;         /* from its start to the last of its nodes being free again */
    const int64_t *excluded; /* nodes it must not get */
    size_t excluded_count;
};

/* An attempt that holds nodes. */
struct schedule_hold {
    struct ordered_link link; /* in the holds: major = until when at the latest */
    const int64_t *nodes;     /* those that will be free again */
    size_t node_count;
};

/* One cluster as it is now. */
struct schedule_view {
    int64_t now_ms;
    const struct ordered *queue; /* of schedule_job */
    const struct ordered *idle;  /* links whose minor is a node's id, major 0 */
    const struct ordered *holds; /* of schedule_hold */
    int held;                    /* the sum of their nodes */
    int coming;                  /* nodes that are being made */
};

void schedule_add_job(struct ordered *queue, struct schedule_job *job);

/* The first job after `after` (NULL: of all) that needs at most so many nodes. */
struct schedule_job *
schedule_seek(const struct ordered *queue, const struct schedule_job *after, int most_nodes);

/* The job that starts now, NULL = none. */
struct schedule_job *schedule_next(const struct schedule_view *view);

/* Its nodes, job->node_count of them: lower ids first, but those first of all that the first
 * of the queue must not get.  Only for what schedule_next has just named. */
void schedule_nodes(const struct schedule_view *view,
                    const struct schedule_job *job,
                    int64_t *ret_nodes);

/* The first of the queue that the cluster can serve, NULL = none, and when it starts at the
 * latest: INT64_MAX when that hangs on nodes that are still being made. */
struct schedule_job *schedule_head(const struct schedule_view *view, int64_t *ret_start_ms);

/* How many of these nodes the job must not get. */
size_t
schedule_count_excluded(const struct schedule_job *job, const int64_t *nodes, size_t count);

/* a + b, at most INT64_MAX; for times that lie ahead. */
int64_t schedule_add_ms(int64_t a, int64_t b);

#endif
