/* Which job starts, on which nodes; and that nobody delays the first of the queue.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/schedule.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST = 64,
    RANDOM_CASES = 4000,
    RANDOM_RUNS = 300,
};

/* A cluster with its jobs, in fixed arrays. */
struct bench {
    struct ordered queue, idle, holds;
    struct schedule_job jobs[MOST];
    struct ordered_link nodes[MOST]; /* index = id */
    struct schedule_hold hold[MOST]; /* index = job's index */
    int64_t hold_nodes[MOST][MOST];
    int held;
    size_t job_count;
};

static struct schedule_view view_of(const struct bench *b, int64_t now_ms, int coming)
{
    return (struct schedule_view){
        .now_ms = now_ms,
        .queue = &b->queue,
        .idle = &b->idle,
        .holds = &b->holds,
        .held = b->held,
        .coming = coming,
    };
}

static void add_idle(struct bench *b, int64_t first, int count)
{
    for (int64_t id = first; id < first + count; id++)
        ordered_add(&b->idle, &b->nodes[id], 0, id);
}

static struct schedule_job *
add_job(struct bench *b, int node_count, int64_t wall_ms, int priority)
{
    struct schedule_job *job = &b->jobs[b->job_count++];

    job->id = (int64_t)b->job_count;
    job->node_count = node_count;
    job->wall_ms = wall_ms;
    job->priority = priority;
    schedule_add_job(&b->queue, job);
    return job;
}

/* Nodes first .. first + count - 1 are held until then. */
static void add_hold(struct bench *b, size_t at, int64_t first, size_t count, int64_t until_ms)
{
    for (size_t i = 0; i < count; i++)
        b->hold_nodes[at][i] = first + (int64_t)i;
    b->hold[at].nodes = b->hold_nodes[at];
    b->hold[at].node_count = count;
    b->held += (int)count;
    ordered_add(&b->holds, &b->hold[at].link, until_ms, (int64_t)at);
}

/* Take the start that was named. */
static void start(struct bench *b, const struct schedule_view *view, struct schedule_job *job)
{
    size_t at = (size_t)job->id - 1;

    schedule_nodes(view, job, b->hold_nodes[at]);
    for (int i = 0; i < job->node_count; i++) {
        int64_t id = b->hold_nodes[at][i];

        assert_ptr_equal(b->nodes[id].set, &b->idle); /* idle, and not twice */
        assert_int_equal(schedule_count_excluded(job, &id, 1), 0);
        ordered_remove(&b->idle, &b->nodes[id]);
    }
    ordered_remove(&b->queue, &job->link);
    b->hold[at].nodes = b->hold_nodes[at];
    b->hold[at].node_count = (size_t)job->node_count;
    b->held += job->node_count;
    ordered_add(&b->holds, &b->hold[at].link, schedule_add_ms(view->now_ms, job->wall_ms),
                (int64_t)at);
}

static int64_t next_id(struct bench *b, int coming)
{
    struct schedule_view view = view_of(b, 0, coming);
    struct schedule_job *job = schedule_next(&view);

    if (!job)
        return 0;
    start(b, &view, job);
    return job->id;
}

/* --- by hand --- */

static void higher_priority_goes_first_then_who_came_first(void **state)
{
    auto_free struct bench *b = xcalloc(1, sizeof(*b));

    (void)state;
    add_idle(b, 1, 4);
    add_job(b, 1, 100, 0);
    add_job(b, 1, 100, 1);
    add_job(b, 1, 100, 2);
    add_job(b, 1, 100, 2);
    assert_int_equal(next_id(b, 0), 3);
    assert_int_equal(next_id(b, 0), 4);
    assert_int_equal(next_id(b, 0), 2);
    assert_int_equal(next_id(b, 0), 1);
    assert_int_equal(next_id(b, 0), 0);
}

static void a_gang_starts_whole_or_not_at_all(void **state)
{
    auto_free struct bench *b = xcalloc(1, sizeof(*b));

    (void)state;
    add_idle(b, 1, 3);
    add_hold(b, 40, 10, 1, 50);
    add_job(b, 4, 100, 1);
    assert_int_equal(next_id(b, 0), 0);
    ordered_add(&b->idle, &b->nodes[10], 0, 10);
    assert_int_equal(next_id(b, 0), 1);
    assert_int_equal(ordered_count(&b->idle), 0);
}

/* Four nodes: two idle, two held until 50; the first wants all four. */
static struct bench *waiting_head(void)
{
    struct bench *b = xcalloc(1, sizeof(*b));

    add_idle(b, 1, 2);
    add_hold(b, 40, 10, 2, 50000);
    add_job(b, 4, 100000, 1);
    return b;
}

static void what_ends_before_the_first_could_start_goes_before_it(void **state)
{
    auto_free struct bench *b = waiting_head();

    (void)state;
    add_job(b, 1, 50001, 1); /* ends too late */
    add_job(b, 1, 50000, 1); /* just in time */
    assert_int_equal(next_id(b, 0), 3);
    assert_int_equal(next_id(b, 0), 0);
}

static void what_the_first_will_not_need_is_free_for_all(void **state)
{
    auto_free struct bench *b = waiting_head();

    (void)state;
    add_hold(b, 41, 20, 1, 50000); /* a fifth, at the same time */
    add_job(b, 1, INT64_MAX, 1);
    add_job(b, 1, INT64_MAX, 1);
    assert_int_equal(next_id(b, 0), 2);
    assert_int_equal(next_id(b, 0), 0);
}

static void nodes_that_are_coming_are_kept_for_the_first(void **state)
{
    auto_free struct bench *b = xcalloc(1, sizeof(*b));

    (void)state;
    add_idle(b, 1, 2);
    add_job(b, 4, 100, 1);
    add_job(b, 1, 1, 1);
    assert_int_equal(next_id(b, 2), 0); /* they may be up any moment */
    assert_int_equal(next_id(b, 3), 2); /* one more than it needs */
}

static void a_job_that_the_cluster_cannot_serve_holds_up_nobody(void **state)
{
    auto_free struct bench *b = xcalloc(1, sizeof(*b));
    int64_t start_ms;
    struct schedule_view view;

    (void)state;
    add_idle(b, 1, 2);
    add_job(b, 3, 100, 2);
    add_job(b, 2, 100, 0);
    view = view_of(b, 0, 0);
    assert_int_equal(schedule_head(&view, &start_ms)->id, 2);
    assert_int_equal(next_id(b, 0), 2);
    assert_int_equal(next_id(b, 0), 0);
}

static void a_bad_node_is_not_given_again_and_goes_to_others_first(void **state)
{
    static const int64_t bad[] = {1};
    auto_free struct bench *b = xcalloc(1, sizeof(*b));
    struct schedule_job *first;

    (void)state;
    add_idle(b, 1, 2);
    add_hold(b, 40, 10, 1, 50000);
    first = add_job(b, 2, 100000, 1); /* has to wait for node 10 */
    first->excluded = bad;
    first->excluded_count = 1;
    add_job(b, 1, INT64_MAX, 1);
    assert_int_equal(next_id(b, 0), 2);
    assert_int_equal(b->hold_nodes[1][0], 1);
    assert_int_equal(next_id(b, 0), 0);
}

static void the_first_knows_when_it_starts_at_the_latest(void **state)
{
    auto_free struct bench *b = waiting_head();
    struct schedule_view view = view_of(b, 7, 0);
    int64_t start_ms;

    (void)state;
    assert_int_equal(schedule_head(&view, &start_ms)->id, 1);
    assert_int_equal(start_ms, 50000);
    view.coming = 2; /* perhaps sooner, but nobody knows */
    schedule_head(&view, &start_ms);
    assert_int_equal(start_ms, 50000);
    view.queue = &(struct ordered){0};
    assert_null(schedule_head(&view, &start_ms));
}

/* --- at random --- */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t roll(uint64_t *state, int64_t below)
{
    return (int64_t)(next(state) % (uint64_t)below);
}

/* Counted anew, node by node: when could this job start, if nothing else were started? */
static int64_t earliest(const struct bench *b, const struct schedule_job *job)
{
    for (int64_t t = 0; t <= 300; t++) {
        int nodes = 0;

        for (int64_t id = 1; id < MOST; id++)
            nodes += b->nodes[id].set != NULL && schedule_count_excluded(job, &id, 1) == 0;
        for (size_t i = 0; i < MOST; i++)
            if (b->hold[i].link.set && b->hold[i].link.major <= t * 1000)
                nodes += (int)(b->hold[i].node_count -
                               schedule_count_excluded(job, b->hold[i].nodes,
                                                       b->hold[i].node_count));
        if (nodes >= job->node_count)
            return t * 1000;
    }
    return INT64_MAX;
}

static void invent(struct bench *b, uint64_t *random, int64_t *excluded)
{
    int idle = (int)roll(random, 6);
    int64_t node = 1 + idle;
    size_t jobs = 1 + (size_t)roll(random, 12);

    add_idle(b, 1, idle);
    for (size_t i = 40; i < 46; i++) {
        size_t count = 1 + (size_t)roll(random, 3);

        add_hold(b, i, node, count, 1000 * (1 + roll(random, 100)));
        node += (int64_t)count;
    }
    for (size_t i = 0; i < jobs; i++) {
        struct schedule_job *job = add_job(
            b, 1 + (int)roll(random, 10), 1000 * (1 + roll(random, 120)), (int)roll(random, 3));

        excluded[i] = 1 + roll(random, node);
        job->excluded = &excluded[i];
        job->excluded_count = roll(random, 3) == 0;
    }
}

static void no_start_moves_the_first_away(void **state)
{
    uint64_t random = 42;
    int backfilled = 0;

    (void)state;
    for (int i = 0; i < RANDOM_CASES; i++) {
        auto_free struct bench *b = xcalloc(1, sizeof(*b));
        int64_t excluded[MOST];
        struct schedule_view view;
        struct schedule_job *job, *head;
        int64_t promised;

        invent(b, &random, excluded);
        for (view = view_of(b, 0, 0); (job = schedule_next(&view)); view = view_of(b, 0, 0)) {
            head = schedule_head(&view, &promised);
            if (head)
                assert_int_equal(promised, earliest(b, head));
            start(b, &view, job);
            if (head && head != job) {
                assert_true(earliest(b, head) <= promised);
                backfilled++;
            }
        }
        head = schedule_head(&view, &promised);
        assert_true(!head || earliest(b, head) > 0); /* else it had started */
    }
    assert_true(backfilled > RANDOM_CASES / 10);
}

/* Whole runs: jobs end early, as they do; nobody starts later than was promised when it was
 * first, unless somebody of higher priority came. */
static void a_promise_is_kept_though_jobs_end_early(void **state)
{
    uint64_t random = 4711;

    (void)state;
    for (int i = 0; i < RANDOM_RUNS; i++) {
        auto_free struct bench *b = xcalloc(1, sizeof(*b));
        int64_t ends[MOST] = {0}, promise = INT64_MAX, promised_to = 0;

        add_idle(b, 1, 8);
        for (int j = 0; j < 30; j++)
            add_job(b, 1 + (int)roll(&random, 8), 1000 * (1 + roll(&random, 50)), 1);
        for (int64_t now = 0; ordered_count(&b->queue) > 0; now += 1000) {
            struct schedule_view view;
            struct schedule_job *job;
            const struct schedule_job *head;
            int64_t start_ms;

            for (size_t j = 0; j < 30; j++) {
                if (!b->hold[j].link.set || ends[j] > now)
                    continue;
                ordered_remove(&b->holds, &b->hold[j].link);
                b->held -= (int)b->hold[j].node_count;
                for (size_t n = 0; n < b->hold[j].node_count; n++)
                    ordered_add(&b->idle, &b->nodes[b->hold_nodes[j][n]], 0,
                                b->hold_nodes[j][n]);
            }
            for (view = view_of(b, now, 0); (job = schedule_next(&view));
                 view = view_of(b, now, 0)) {
                if (job->id == promised_to)
                    assert_true(now <= promise);
                start(b, &view, job);
                ends[job->id - 1] = now + 1 + roll(&random, job->wall_ms);
            }
            head = schedule_head(&view, &start_ms);
            if (head && head->id != promised_to) {
                promised_to = head->id;
                promise = start_ms;
            }
            assert_true(!head || start_ms <= promise);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(higher_priority_goes_first_then_who_came_first),
        cmocka_unit_test(a_gang_starts_whole_or_not_at_all),
        cmocka_unit_test(what_ends_before_the_first_could_start_goes_before_it),
        cmocka_unit_test(what_the_first_will_not_need_is_free_for_all),
        cmocka_unit_test(nodes_that_are_coming_are_kept_for_the_first),
        cmocka_unit_test(a_job_that_the_cluster_cannot_serve_holds_up_nobody),
        cmocka_unit_test(a_bad_node_is_not_given_again_and_goes_to_others_first),
        cmocka_unit_test(the_first_knows_when_it_starts_at_the_latest),
        cmocka_unit_test(no_start_moves_the_first_away),
        cmocka_unit_test(a_promise_is_kept_though_jobs_end_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
