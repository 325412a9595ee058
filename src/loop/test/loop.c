/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* What happened, as letters in order. */
struct scene {
    struct loop *loop;
    struct str log;
};

struct named_timer {
    struct loop_timer timer;
    struct scene *scene;
    char name;
    bool ends;
    struct named_timer *cancels;
};

static void on_fired(struct loop_timer *timer)
{
    struct named_timer *t = container_of(timer, struct named_timer, timer);

    str_add_char(&t->scene->log, t->name);
    if (t->cancels)
        loop_timer_cancel(&t->cancels->timer);
    if (t->ends)
        loop_stop(t->scene->loop);
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));

    *state = scene;
    return loop_new(&scene->loop, NULL);
}

static int teardown(void **state)
{
    struct scene *scene = *state;

    loop_free(scene->loop);
    str_done(&scene->log);
    free(scene);
    return 0;
}

static void timers_fire_in_order_of_their_due_time(void **state)
{
    struct scene *scene = *state;
    struct named_timer timers[26] = {0};

    /* 7 is prime to 25, so that they are set in a scrambled order. */
    for (int i = 0; i < 25; i++) {
        struct named_timer *t = &timers[i * 7 % 25];

        *t = (struct named_timer){
            {.fired = on_fired}, scene, (char)('a' + i * 7 % 25), i * 7 % 25 == 24, NULL};
        loop_timer_set(scene->loop, &t->timer, 1 + 2 * (i * 7 % 25));
    }
    loop_run(scene->loop);
    assert_string_equal(str_text(&scene->log), "abcdefghijklmnopqrstuvwxy");
}

static void a_timer_can_be_moved_and_cancelled(void **state)
{
    struct scene *scene = *state;
    struct named_timer last = {{.fired = on_fired}, scene, 'z', true, NULL};
    struct named_timer never = {{.fired = on_fired}, scene, '!', false, NULL};
    struct named_timer first = {{.fired = on_fired}, scene, 'a', false, &never};
    struct named_timer moved = {{.fired = on_fired}, scene, 'm', false, NULL};

    loop_timer_cancel(&moved.timer); /* idle: fine */
    loop_timer_set(scene->loop, &moved.timer, 0);
    loop_timer_set(scene->loop, &never.timer, 10);
    loop_timer_set(scene->loop, &first.timer, 5);
    loop_timer_set(scene->loop, &last.timer, 30);
    loop_timer_set(scene->loop, &moved.timer, 20);
    loop_run(scene->loop);
    assert_string_equal(str_text(&scene->log), "amz");
    assert_null(never.timer.loop);
}

static void a_timer_does_not_fire_early(void **state)
{
    struct scene *scene = *state;
    struct named_timer timer = {{.fired = on_fired}, scene, 'x', true, NULL};
    int64_t start = clock_mono_ms();

    loop_timer_set(scene->loop, &timer.timer, 25);
    loop_run(scene->loop);
    assert_true(clock_mono_ms() - start >= 25);
}

static void on_restless(struct loop_timer *timer)
{
    struct named_timer *t = container_of(timer, struct named_timer, timer);

    if (t->scene->log.len < 1000)
        str_add_char(&t->scene->log, '.');
    loop_timer_set(t->scene->loop, timer, 0);
}

static void stop_loop(void *arg)
{
    loop_stop(arg);
}

static void a_timer_that_sets_itself_to_zero_does_not_starve_the_rest(void **state)
{
    struct scene *scene = *state;
    struct named_timer timer = {{.fired = on_restless}, scene, '.', false, NULL};

    loop_timer_set(scene->loop, &timer.timer, 0);
    loop_post(scene->loop, stop_loop, scene->loop);
    loop_run(scene->loop);
    assert_true(scene->log.len > 0);
    loop_timer_cancel(&timer.timer);
}

/* --- posts --- */

struct poster {
    struct loop *loop;
    int count;
    int next[4]; /* expected number of each thread */
    int done;
};

struct message {
    struct poster *poster;
    int thread, number;
};

enum { THREADS = 4, MESSAGES = 2000 };
static struct message messages[THREADS][MESSAGES];

static void on_message(void *arg)
{
    struct message *m = arg;

    assert_int_equal(m->number, m->poster->next[m->thread]);
    m->poster->next[m->thread]++;
    if (++m->poster->done == THREADS * MESSAGES)
        loop_stop(m->poster->loop);
}

static void *post_all(void *arg)
{
    struct message *mine = arg;

    for (int i = 0; i < MESSAGES; i++)
        loop_post(mine->poster->loop, on_message, &mine[i]);
    return NULL;
}

static void posts_of_many_threads_all_run_each_threads_own_in_order(void **state)
{
    struct scene *scene = *state;
    struct poster poster = {.loop = scene->loop};
    pthread_t threads[THREADS];

    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < MESSAGES; i++)
            messages[t][i] = (struct message){&poster, t, i};
        pthread_create(&threads[t], NULL, post_all, messages[t]);
    }
    loop_run(scene->loop);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(poster.done, THREADS * MESSAGES);
}

static void a_stop_before_the_run_counts(void **state)
{
    struct scene *scene = *state;

    loop_stop(scene->loop);
    loop_run(scene->loop);
}

/* --- tasks --- */

struct named_task {
    struct loop_task task;
    struct scene *scene;
    char name;
    struct named_task *adds, *cancels;
};

static void on_task(struct loop_task *task)
{
    struct named_task *t = container_of(task, struct named_task, task);

    str_add_char(&t->scene->log, t->name);
    if (t->adds)
        loop_task_add(t->scene->loop, &t->adds->task);
    if (t->cancels)
        loop_task_cancel(&t->cancels->task);
    if (t->name == 'z')
        loop_stop(t->scene->loop);
}

static void tasks_run_once_in_order_and_added_ones_in_the_next_turn(void **state)
{
    struct scene *scene = *state;
    struct named_task z = {{.run = on_task}, scene, 'z', NULL, NULL};
    struct named_task never = {{.run = on_task}, scene, '!', NULL, NULL};
    struct named_task b = {{.run = on_task}, scene, 'b', NULL, NULL};
    struct named_task a = {{.run = on_task}, scene, 'a', &z, &never};

    loop_task_add(scene->loop, &a.task);
    loop_task_add(scene->loop, &a.task);
    loop_task_add(scene->loop, &never.task);
    loop_task_add(scene->loop, &b.task);
    loop_run(scene->loop);
    assert_string_equal(str_text(&scene->log), "abz");
}

/* --- descriptors --- */

struct pair {
    struct loop_watch watch;
    struct scene *scene;
    struct pair *other;
    int far_end;
};

static struct pair *pair_new(struct scene *scene,
                             void (*ready)(struct loop_watch *watch, uint32_t events))
{
    struct pair *pair = xcalloc(1, sizeof(*pair));
    int fds[2];

    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pair->scene = scene;
    pair->watch.fd = fds[0];
    pair->watch.ready = ready;
    pair->far_end = fds[1];
    assert_int_equal(loop_watch(scene->loop, &pair->watch, EPOLLIN, NULL), 0);
    return pair;
}

static void pair_free(struct pair *pair)
{
    loop_unwatch(&pair->watch);
    close(pair->watch.fd);
    close(pair->far_end);
    free(pair);
}

/* Whoever comes first frees the other, which has its event waiting in the same batch. */
static void on_deadly(struct loop_watch *watch, uint32_t events)
{
    struct pair *pair = container_of(watch, struct pair, watch);
    struct scene *scene = pair->scene;

    (void)events;
    str_add_char(&scene->log, 'x');
    pair_free(pair->other);
    pair_free(pair);
    loop_post(scene->loop, stop_loop, scene->loop);
}

static void a_callback_may_free_the_owner_of_an_event_that_waits(void **state)
{
    struct scene *scene = *state;
    struct pair *a = pair_new(scene, on_deadly), *b = pair_new(scene, on_deadly);

    a->other = b;
    b->other = a;
    assert_int_equal(write(a->far_end, "x", 1), 1);
    assert_int_equal(write(b->far_end, "x", 1), 1);
    loop_run(scene->loop);
    assert_string_equal(str_text(&scene->log), "x");
}

static void on_readable_then_writable(struct loop_watch *watch, uint32_t events)
{
    struct pair *pair = container_of(watch, struct pair, watch);

    if (events & EPOLLIN) {
        str_add_char(&pair->scene->log, 'r');
        assert_int_equal(loop_watch(pair->scene->loop, watch, EPOLLOUT, NULL), 0);
    } else if (events & EPOLLOUT) {
        str_add_char(&pair->scene->log, 'w');
        loop_stop(pair->scene->loop);
    }
}

static void what_is_watched_can_be_changed(void **state)
{
    struct scene *scene = *state;
    struct pair *pair = pair_new(scene, on_readable_then_writable);

    assert_int_equal(write(pair->far_end, "x", 1), 1);
    loop_run(scene->loop);
    assert_string_equal(str_text(&scene->log), "rw");
    pair_free(pair);
}

static void watching_a_closed_descriptor_fails(void **state)
{
    struct scene *scene = *state;
    struct loop_watch watch = {.fd = 9999, .ready = on_deadly};
    struct err e;

    assert_int_equal(loop_watch(scene->loop, &watch, EPOLLIN, &e), -1);
    assert_null(watch.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_in_order_of_their_due_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_timer_can_be_moved_and_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(a_timer_does_not_fire_early, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_timer_that_sets_itself_to_zero_does_not_starve_the_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(posts_of_many_threads_all_run_each_threads_own_in_order,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_before_the_run_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(tasks_run_once_in_order_and_added_ones_in_the_next_turn,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_callback_may_free_the_owner_of_an_event_that_waits,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_watched_can_be_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(watching_a_closed_descriptor_fails, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
