/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/child.h"

#include "base/mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
    struct loop *loop;
    struct loop_child child;
    int status, calls;
};

static void on_ended(struct loop_child *child, int wait_status)
{
    struct scene *scene = container_of(child, struct scene, child);

    scene->status = wait_status;
    scene->calls++;
    loop_stop(scene->loop);
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));

    scene->child.ended = on_ended;
    *state = scene;
    return loop_new(&scene->loop, NULL);
}

static int teardown(void **state)
{
    struct scene *scene = *state;

    loop_free(scene->loop);
    free(scene);
    return 0;
}

static pid_t spawn(int exit_status)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (exit_status < 0)
            pause();
        _exit(exit_status);
    }
    return pid;
}

static void the_exit_status_is_told_and_the_child_reaped(void **state)
{
    struct scene *scene = *state;
    pid_t pid = spawn(7);

    assert_int_equal(loop_child_watch(scene->loop, &scene->child, pid, NULL), 0);
    loop_run(scene->loop);
    assert_true(WIFEXITED(scene->status));
    assert_int_equal(WEXITSTATUS(scene->status), 7);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(loop_child_signal(&scene->child, SIGTERM, NULL), -1);
}

static void a_death_by_signal_is_told(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(loop_child_watch(scene->loop, &scene->child, spawn(-1), NULL), 0);
    assert_int_equal(loop_child_signal(&scene->child, SIGKILL, NULL), 0);
    loop_run(scene->loop);
    assert_true(WIFSIGNALED(scene->status));
    assert_int_equal(WTERMSIG(scene->status), SIGKILL);
}

/* The grandchild is not ours to wait for: its status is unknown, never a made-up 0. */
static void the_status_of_a_stranger_is_unknown(void **state)
{
    struct scene *scene = *state;
    int to_us[2], to_it[2];
    pid_t stranger, middle;

    assert_return_code(pipe(to_us), 0);
    assert_return_code(pipe(to_it), 0);
    middle = fork();
    if (middle == 0) {
        pid_t pid = fork();
        char c;

        if (pid == 0) {
            close(to_it[1]);
            _exit(read(to_it[0], &c, 1) < 0);
        }
        _exit(write(to_us[1], &pid, sizeof(pid)) < 0);
    }
    assert_int_equal(read(to_us[0], &stranger, sizeof(stranger)), sizeof(stranger));
    waitpid(middle, NULL, 0);
    assert_int_equal(loop_child_watch(scene->loop, &scene->child, stranger, NULL), 0);
    close(to_it[1]);
    loop_run(scene->loop);
    assert_int_equal(scene->status, LOOP_STATUS_UNKNOWN);
    close(to_it[0]);
    close(to_us[0]);
    close(to_us[1]);
}

static void a_process_that_is_not_there_is_refused(void **state)
{
    struct scene *scene = *state;
    struct err e;
    pid_t pid = spawn(0);

    waitpid(pid, NULL, 0);
    assert_int_equal(loop_child_watch(scene->loop, &scene->child, pid, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void an_unwatched_child_is_not_told(void **state)
{
    struct scene *scene = *state;
    pid_t pid = spawn(0);

    assert_int_equal(loop_child_watch(scene->loop, &scene->child, pid, NULL), 0);
    loop_child_unwatch(&scene->child);
    waitpid(pid, NULL, 0);
    loop_stop(scene->loop);
    loop_run(scene->loop);
    assert_int_equal(scene->calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_exit_status_is_told_and_the_child_reaped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_death_by_signal_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_status_of_a_stranger_is_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_is_not_there_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_unwatched_child_is_not_told, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
