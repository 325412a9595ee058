/* yard-bench.h - a mind on a bench: short ways to say what happens to it.  For tests.
 *
 * Every step checks the invariants; what changed is taken and counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_TEST_YARD_BENCH_H
#define CORE_TEST_YARD_BENCH_H

#include "base/str.h"
#include "core/yard-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    BENCH_MINUTE = 60 * 1000,
    BENCH_HOUR = 60 * BENCH_MINUTE,
    BENCH_BEGIN = 1000000,
};

static const struct yard_limits bench_limits = {.cores = 64, .gpus = 8, .most_nodes = 32};

static inline void bench_check(const struct yard *y)
{
    struct err e = {0};

    if (yard_check(y, &e) < 0)
        fail_msg("%s", e.msg);
}

/* What was said since the last time: "add 1, remove 2, start 1, stop 1". */
static inline const char *bench_actions(struct yard *y)
{
    static const char *const names[] = {"add", "remove", "start", "stop"};
    static char text[1024];
    struct yard_changes changes;
    size_t at = 0;

    bench_check(y);
    yard_take_changes(y, &changes);
    text[0] = '\0';
    for (size_t i = 0; i < changes.action_count && at < sizeof(text); i++)
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %lld", i > 0 ? ", " : "",
                             names[changes.actions[i].kind], (long long)changes.actions[i].id);
    return text;
}

#define assert_actions(y, wanted) assert_string_equal(bench_actions(y), wanted)

/* A cluster of a fixed size, number 1 unless changed afterwards. */
static inline struct yard_cluster bench_manual(int target)
{
    static char name[] = "nc6";

    return (struct yard_cluster){.id = 1, .name = name, .target = target, .cores = 1};
}

static inline struct yard_cluster bench_automatic(int least, int most)
{
    struct yard_cluster c = bench_manual(0);

    c.is_automatic = true;
    c.least = least;
    c.most = most;
    c.idle_ms = 5 * BENCH_MINUTE;
    return c;
}

/* Nodes first..last come up. */
static inline void bench_up(struct yard *y, int64_t first, int64_t last, int64_t now_ms)
{
    for (int64_t id = first; id <= last; id++)
        assert_int_equal(yard_node_up(y, id, now_ms, NULL), 0);
}

/* A yard with a cluster of so many idle nodes. */
static inline struct yard *bench_with(int nodes)
{
    struct yard *y = yard_new(&bench_limits);
    struct yard_cluster c = bench_manual(nodes);

    yard_put_cluster(y, &c, BENCH_BEGIN);
    bench_up(y, 1, nodes, BENCH_BEGIN);
    bench_actions(y);
    return y;
}

static inline struct yard_job bench_job(int64_t id, int node_count)
{
    return (struct yard_job){
        .id = id,
        .cluster_id = 1,
        .node_count = node_count,
        .priority = PRIORITY_NORMAL,
        .wall_ms = BENCH_HOUR,
        .most_attempts = 3,
    };
}

static inline void bench_submit(struct yard *y, int64_t id, int node_count, int64_t now_ms)
{
    struct yard_job job = bench_job(id, node_count);

    yard_put_job(y, &job, now_ms);
}

static inline void bench_terminate(struct yard *y, int64_t id, int64_t now_ms)
{
    struct yard_job job = bench_job(id, 1);

    job.is_unwanted = true;
    yard_put_job(y, &job, now_ms);
}

static inline struct attempt_result bench_result(enum attempt_end end, int exit_code)
{
    return (struct attempt_result){.end = end, .exit_code = exit_code, .rank = -1};
}

static inline int
bench_end(struct yard *y, int64_t attempt, enum attempt_end end, int exit_code, int64_t now_ms)
{
    struct attempt_result result = bench_result(end, exit_code);
    struct err e = {0};
    int rc = yard_attempt_ended(y, attempt, &result, 0, 0, now_ms, &e);

    assert_int_equal(e.code, rc < 0 ? ERR_CONFLICT : ERR_NONE);
    bench_check(y);
    return rc;
}

static inline const char *bench_state(const struct yard *y, int64_t job_id)
{
    return job_state_name(yard_job(y, job_id)->state);
}

/* "idle 1, running 2, preparing 0, unusable 0, leaving 0; steady" without the zeros. */
static inline const char *bench_nodes(const struct yard *y, int64_t cluster_id)
{
    static char text[256];
    struct node_counts n;
    auto_str out = {0};

    yard_count_nodes(y, cluster_id, &n);
    if (n.idle)
        str_addf(&out, "%d idle, ", n.idle);
    if (n.running)
        str_addf(&out, "%d running, ", n.running);
    if (n.preparing)
        str_addf(&out, "%d preparing, ", n.preparing);
    if (n.unusable)
        str_addf(&out, "%d unusable, ", n.unusable);
    if (n.leaving)
        str_addf(&out, "%d leaving, ", n.leaving);
    str_add(&out, yard_cluster(y, cluster_id)->is_steady ? "steady" : "resizing");
    snprintf(text, sizeof(text), "%s", str_text(&out));
    return text;
}

#define assert_nodes(y, cluster, wanted) assert_string_equal(bench_nodes(y, cluster), wanted)

#endif
