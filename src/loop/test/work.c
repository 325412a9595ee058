/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/work.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
    ITEMS = 2000,
};

static atomic_int ran;

static void count_one(void *arg)
{
    (void)arg;
    ran++;
}

static void freeing_runs_all_that_was_submitted(void **state)
{
    struct work_pool *pool = work_pool_new(4);

    (void)state;
    ran = 0;
    for (int i = 0; i < ITEMS; i++)
        work_submit(pool, count_one, NULL);
    work_pool_free(pool);
    assert_int_equal(ran, ITEMS);
}

struct chain {
    struct work_pool *pool;
    int left;
};

static void submit_next(void *arg)
{
    struct chain *chain = arg;

    ran++;
    if (--chain->left > 0)
        work_submit(chain->pool, submit_next, chain);
}

static void freeing_waits_for_work_that_submits_work(void **state)
{
    struct chain chain = {.pool = work_pool_new(3), .left = ITEMS};

    (void)state;
    ran = 0;
    work_submit(chain.pool, submit_next, &chain);
    work_pool_free(chain.pool);
    assert_int_equal(ran, ITEMS);
}

struct order {
    int next;
    bool is_right;
};

struct numbered {
    struct order *order;
    int number;
};

static void note_order(void *arg)
{
    struct numbered *n = arg;

    n->order->is_right = n->order->is_right && n->order->next++ == n->number;
}

static void one_thread_runs_in_order(void **state)
{
    struct order order = {0, true};
    struct numbered items[ITEMS];
    struct work_pool *pool = work_pool_new(1);

    (void)state;
    for (int i = 0; i < ITEMS; i++) {
        items[i] = (struct numbered){&order, i};
        work_submit(pool, note_order, &items[i]);
    }
    work_pool_free(pool);
    assert_true(order.is_right);
    assert_int_equal(order.next, ITEMS);
}

struct meeting {
    pthread_barrier_t both;
};

static void meet(void *arg)
{
    struct meeting *meeting = arg;

    pthread_barrier_wait(&meeting->both);
}

static void two_threads_run_at_the_same_time(void **state)
{
    struct meeting meeting;
    struct work_pool *pool = work_pool_new(2);

    (void)state;
    pthread_barrier_init(&meeting.both, NULL, 2);
    work_submit(pool, meet, &meeting);
    work_submit(pool, meet, &meeting);
    work_pool_free(pool); /* hangs until the time-out if they do not meet */
    pthread_barrier_destroy(&meeting.both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_runs_all_that_was_submitted),
        cmocka_unit_test(freeing_waits_for_work_that_submits_work),
        cmocka_unit_test(one_thread_runs_in_order),
        cmocka_unit_test(two_threads_run_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
