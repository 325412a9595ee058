/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/process.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Two generations below this process, each with a word in its environment. */
struct scene {
    pid_t child, grandchild;
    int ends[2]; /* they live while it is open */
};

static void exec_sleeper(const char *word)
{
    char *argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "100", NULL};
    char *env[] = {(char *)(uintptr_t) "A=b", (char *)(uintptr_t)word, NULL};

    execve("/bin/sleep", argv, env);
    _exit(127);
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    int told[2];

    assert_return_code(pipe(told), 0);
    scene->child = fork();
    if (scene->child == 0) {
        pid_t pid;

        setsid();
        pid = fork();
        if (pid == 0)
            exec_sleeper("YARD_TASK=one/two");
        if (write(told[1], &pid, sizeof(pid)) < 0)
            _exit(1);
        prctl(PR_SET_NAME, ") Z 1 2 (");
        for (;;)
            pause();
    }
    assert_int_equal(read(told[0], &scene->grandchild, sizeof(pid_t)), sizeof(pid_t));
    close(told[0]);
    close(told[1]);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;

    kill(scene->grandchild, SIGKILL);
    kill(scene->child, SIGKILL);
    waitpid(scene->child, NULL, 0);
    free(scene);
    return 0;
}

static bool is_marked(const struct shim_processes *all, pid_t pid)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].pid == pid)
            return all->list[i].is_marked;
    }
    return false;
}

static size_t count_marked(const struct shim_processes *all)
{
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++)
        count += all->list[i].is_marked;
    return count;
}

/* A process may call itself what it likes. */
static void a_hostile_name_does_not_confuse(void **state)
{
    struct scene *scene = *state;
    struct shim_process process;

    assert_int_equal(shim_process_read(scene->child, &process, NULL), 0);
    assert_int_equal(process.parent, getpid());
    assert_int_equal(process.session, scene->child);
    assert_false(process.is_dead);
    assert_true(process.start > 0);
}

static void descendants_are_marked_and_nobody_else(void **state)
{
    struct scene *scene = *state;
    auto_processes all = {0};

    assert_int_equal(shim_processes_read(&all, NULL), 0);
    shim_mark_descendants(&all, getpid());
    assert_true(is_marked(&all, scene->child));
    assert_true(is_marked(&all, scene->grandchild));
    assert_int_equal(count_marked(&all), 2);
}

static void a_session_is_marked(void **state)
{
    struct scene *scene = *state;
    auto_processes all = {0};

    assert_int_equal(shim_processes_read(&all, NULL), 0);
    shim_mark_session(&all, scene->child);
    assert_true(is_marked(&all, scene->child));
    assert_true(is_marked(&all, scene->grandchild));
    assert_int_equal(count_marked(&all), 2);
}

/* Until the exec is done, the environment is this program's. */
static void read_with_word(struct shim_processes *all, const char *word, pid_t wanted)
{
    for (int tries = 0; tries < 500; tries++) {
        shim_processes_done(all);
        assert_int_equal(shim_processes_read(all, NULL), 0);
        shim_mark_environment(all, word);
        if (!wanted || is_marked(all, wanted))
            return;
        usleep(10 * 1000);
    }
}

static void a_word_in_the_environment_is_matched_whole(void **state)
{
    static const char *const others[] = {"YARD_TASK=one/tw", "YARD_TASK=one/two3",
                                         "ARD_TASK=one/two", "YARD_TASK=", "=b"};
    struct scene *scene = *state;
    auto_processes all = {0};

    read_with_word(&all, "YARD_TASK=one/two", scene->grandchild);
    assert_true(is_marked(&all, scene->grandchild));
    assert_int_equal(count_marked(&all), 1);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        read_with_word(&all, others[i], 0);
        assert_false(is_marked(&all, scene->grandchild));
    }
}

static void signals_reach_the_marked(void **state)
{
    struct scene *scene = *state;
    auto_processes all = {0};
    size_t refused = 7;
    int status;

    assert_int_equal(shim_processes_read(&all, NULL), 0);
    shim_mark_descendants(&all, getpid());
    assert_int_equal(shim_signal_marked(&all, SIGKILL, &refused), 2);
    assert_int_equal(refused, 0);
    assert_int_equal(waitpid(scene->child, &status, 0), scene->child);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    for (int tries = 0; tries < 500 && shim_signal_marked(&all, 0, NULL); tries++)
        usleep(10 * 1000);
    assert_int_equal(shim_signal_marked(&all, 0, NULL), 0);
}

/* The table says another start: the number is somebody else's by now. */
static void a_number_used_again_gets_no_signal(void **state)
{
    struct scene *scene = *state;
    auto_processes all = {0};

    assert_int_equal(shim_processes_read(&all, NULL), 0);
    shim_mark_descendants(&all, getpid());
    for (size_t i = 0; i < all.count; i++)
        all.list[i].start++;
    assert_int_equal(shim_signal_marked(&all, SIGKILL, NULL), 0);
    usleep(20 * 1000);
    assert_int_equal(waitpid(scene->child, NULL, WNOHANG), 0);
}

static void a_cgroup_that_is_not_there_is_empty(void **state)
{
    struct err e;

    (void)state;
    assert_true(shim_cgroup_is_empty("/sys/fs/cgroup/yard-no-such"));
    assert_int_equal(shim_cgroup_kill("/sys/fs/cgroup/yard-no-such", &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

static void who_is_not_there_is_not_found(void **state)
{
    struct shim_process process;
    struct err e;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(shim_process_read(pid, &process, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_hostile_name_does_not_confuse),
        SCENE(descendants_are_marked_and_nobody_else),
        SCENE(a_session_is_marked),
        SCENE(a_word_in_the_environment_is_matched_whole),
        SCENE(signals_reach_the_marked),
        SCENE(a_number_used_again_gets_no_signal),
        cmocka_unit_test(a_cgroup_that_is_not_there_is_empty),
        cmocka_unit_test(who_is_not_there_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
