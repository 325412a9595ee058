/* Real shims, real processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/task.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "engine/local/errand.h"
#include "engine/local/leftover.h"
#include "loop/loop.h"
#include "shim/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    LONG_MS = 60 * 1000, /* a sanitized build on a busy machine */
};

struct scene {
    struct loop *loop;
    struct errands *errands;
    struct tasks *tasks;
    struct task *task;
    char base[64];
    char *folder, *out;
    struct task_report report;
    int reports;
    bool is_late;
};

/* --- the scene --- */

static char *find_shim(void)
{
    char path[PATH_MAX] = "";
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    assert_true(len > 0);
    *strrchr(path, '/') = '\0';
    return xasprintf("%s/../bin/yard-shim", path);
}

static int setup(void **state)
{
    struct scene *scene = xcalloc(1, sizeof(*scene));
    auto_free char *shim = find_shim();

    snprintf(scene->base, sizeof(scene->base), "/tmp/yard-task-XXXXXX");
    assert_non_null(mkdtemp(scene->base));
    scene->folder = xasprintf("%s/a/run", scene->base);
    scene->out = xasprintf("%s/log/stdout.txt", scene->base);
    assert_int_equal(loop_new(&scene->loop, NULL), 0);
    assert_int_equal(errands_new(scene->loop, 1, &scene->errands, NULL), 0);
    scene->tasks = tasks_new(scene->loop, scene->errands, shim);
    *state = scene;
    return 0;
}

static void remove_tree(const char *path)
{
    char *argv[] = {(char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf",
                    (char *)(uintptr_t)path, NULL};
    pid_t pid;

    assert_int_equal(posix_spawn(&pid, "/bin/rm", NULL, NULL, argv, environ), 0);
    waitpid(pid, NULL, 0);
}

static int teardown(void **state)
{
    struct scene *scene = *state;

    task_free(scene->task);
    tasks_free(scene->tasks);
    errands_free(scene->errands);
    loop_free(scene->loop);
    remove_tree(scene->base);
    free(scene->folder);
    free(scene->out);
    free(scene);
    return 0;
}

static void on_ended(void *context, const struct task_report *report)
{
    struct scene *scene = context;

    scene->report = *report;
    scene->reports++;
    loop_stop(scene->loop);
}

struct clock_timer {
    struct loop_timer timer;
    struct scene *scene;
};

static void on_late(struct loop_timer *timer)
{
    struct scene *scene = container_of(timer, struct clock_timer, timer)->scene;

    scene->is_late = true;
    loop_stop(scene->loop);
}

/* Run the loop until the report, or for so long. */
static void run_for(struct scene *scene, int64_t ms)
{
    struct clock_timer clock = {.timer.fired = on_late, .scene = scene};

    scene->is_late = false;
    loop_timer_set(scene->loop, &clock.timer, ms);
    loop_run(scene->loop);
    loop_timer_cancel(&clock.timer);
}

static void expect_report(struct scene *scene)
{
    run_for(scene, LONG_MS);
    assert_false(scene->is_late);
    assert_int_equal(scene->reports, 1);
}

static struct shim_spec spec_of(struct scene *scene, const char **argv)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", NULL};

    return (struct shim_spec){
        .argv = argv,
        .env = env,
        .cwd = "/tmp",
        .stdout_path = scene->out,
        .stderr_path = scene->out,
        .grace_ms = LONG_MS,
        .umask = SHIM_UMASK,
    };
}

static int try_start(struct scene *scene, const char *script, struct err *e)
{
    const char *argv[] = {"bash", "-c", script, NULL};
    struct shim_spec spec = spec_of(scene, argv);

    return task_start(scene->tasks, scene->folder, &spec, on_ended, scene, &scene->task, e);
}

static void start(struct scene *scene, const char *script)
{
    struct err e;

    if (try_start(scene, script, &e) < 0)
        fail_msg("%s", e.msg);
}

/* As a daemon that was restarted: the old handle is gone. */
static void let_go(struct scene *scene)
{
    task_free(take_ptr(&scene->task));
}

static void read_out(struct scene *scene, struct str *out)
{
    assert_int_equal(fs_read(scene->out, 1 << 20, out, NULL), 0);
}

static void wait_for_out(struct scene *scene, const char *text)
{
    for (int tries = 0; tries < LONG_MS / 10; tries++) {
        auto_str out = {0};

        if (fs_read(scene->out, 1 << 20, &out, NULL) == 0 && strstr(str_text(&out), text))
            return;
        usleep(10 * 1000);
    }
    fail_msg("\"%s\" was not written", text);
}

static void wait_until_absent(pid_t pid)
{
    uint64_t start_ticks;

    for (int tries = 0; tries < LONG_MS / 10; tries++) {
        if (shim_process_start(pid, &start_ticks, NULL) < 0)
            return;
        usleep(10 * 1000);
    }
    fail_msg("process %d is alive", (int)pid);
}

static pid_t shim_pid(struct scene *scene)
{
    struct shim_identity shim = {0};
    auto_close int fd = -1;

    assert_int_equal(shim_folder_open(scene->folder, &fd, NULL), 0);
    assert_int_equal(shim_folder_get_shim(fd, &shim, NULL), 0);
    return shim.pid;
}

/* The numbers that the script wrote, one a line, after "pids". */
static size_t pids_of(struct scene *scene, pid_t *pids, size_t room)
{
    auto_str out = {0};
    size_t count = 0;
    const char *p;

    read_out(scene, &out);
    for (p = str_text(&out); p && *p && count < room; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, "pid ", 4) == 0)
            pids[count++] = atoi(p + 4);
    }
    return count;
}

/* --- ends --- */

static void the_exit_code_is_reported(void **state)
{
    struct scene *scene = *state;
    auto_str out = {0};

    start(scene, "echo out; echo err >&2; exit 7");
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 7);
    assert_int_equal(scene->report.record.signal, 0);
    assert_false(scene->report.record.was_stopped);
    assert_true(scene->report.started_ms > 0);
    assert_string_equal(scene->report.error, "");
    read_out(scene, &out);
    assert_string_equal(str_text(&out), "out\nerr\n");
}

static void a_command_that_is_not_there_has_a_reason(void **state)
{
    struct scene *scene = *state;
    const char *argv[] = {"yard-no-such-program", NULL};
    struct shim_spec spec = spec_of(scene, argv);

    assert_int_equal(
        task_start(scene->tasks, scene->folder, &spec, on_ended, scene, &scene->task, NULL), 0);
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 127);
    assert_non_null(strstr(scene->report.error, "yard-no-such-program"));
}

static void a_missing_shim_is_refused(void **state)
{
    struct scene *scene = *state;
    autoptr(tasks) none = tasks_new(scene->loop, scene->errands, "/no/yard-shim");
    const char *argv[] = {"true", NULL};
    struct shim_spec spec = spec_of(scene, argv);
    struct err e;

    assert_int_equal(task_start(none, scene->folder, &spec, on_ended, scene, &scene->task, &e),
                     -1);
    assert_non_null(strstr(e.msg, "/no/yard-shim"));
}

/* A node that is gone: nothing is started, and the reason is told. */
static void what_cannot_start_is_reported_with_its_reason(void **state)
{
    struct scene *scene = *state;
    const char *argv[] = {"true", NULL};
    struct shim_spec spec = spec_of(scene, argv);

    spec.enter_pid = getpid();
    spec.enter_start = 1; /* of another process */
    spec.namespaces = "u";
    assert_int_equal(
        task_start(scene->tasks, scene->folder, &spec, on_ended, scene, &scene->task, NULL), 0);
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_NOT_STARTED);
    assert_non_null(strstr(scene->report.error, "the node is gone"));
}

/* --- again --- */

static void what_has_ended_is_reported_again_and_not_run_again(void **state)
{
    struct scene *scene = *state;
    auto_str out = {0};

    start(scene, "echo once; exit 3");
    expect_report(scene);
    let_go(scene);
    scene->reports = 0;
    start(scene, "echo twice");
    assert_int_equal(scene->reports, 0); /* never from within the call */
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 3);
    read_out(scene, &out);
    assert_string_equal(str_text(&out), "once\n");
}

static void what_runs_is_taken_up(void **state)
{
    struct scene *scene = *state;

    start(scene, "echo begun; sleep 0.5; exit 9");
    wait_for_out(scene, "begun");
    let_go(scene);
    assert_int_equal(
        task_adopt(scene->tasks, scene->folder, on_ended, scene, &scene->task, NULL), 0);
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 9);
}

/* The start may be said again before the shim has even written its name. */
static void a_start_said_again_at_once_runs_it_once(void **state)
{
    struct scene *scene = *state;
    auto_str out = {0};

    start(scene, "echo once; sleep 0.3");
    let_go(scene);
    start(scene, "echo once; sleep 0.3");
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 0);
    read_out(scene, &out);
    assert_string_equal(str_text(&out), "once\n");
}

/* A shim of a former daemon holds the lock and has not got round to anything else. */
static void a_folder_that_is_held_is_waited_for(void **state)
{
    struct scene *scene = *state;
    auto_free char *path = xasprintf("%s/lock", scene->folder);
    int fd;

    assert_int_equal(fs_make_folders(scene->folder, 0700, NULL), 0);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    start(scene, "exit 4");
    run_for(scene, 200);
    assert_int_equal(scene->reports, 0);
    close(fd);
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_ENDED);
    assert_int_equal(scene->report.record.code, 4);
}

static void nothing_started_cannot_be_adopted(void **state)
{
    struct scene *scene = *state;
    struct err e;

    assert_int_equal(task_adopt(scene->tasks, scene->folder, on_ended, scene, &scene->task, &e),
                     -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

/* --- stops --- */

static void a_stop_asks_first(void **state)
{
    struct scene *scene = *state;

    start(scene, "trap 'echo asked; exit 5' TERM; echo begun; while :; do sleep 0.05; done");
    wait_for_out(scene, "begun");
    task_stop(scene->task, -1);
    task_stop(scene->task, -1); /* again: changes nothing */
    expect_report(scene);
    assert_int_equal(scene->report.record.code, 5);
    assert_true(scene->report.record.was_stopped);
    wait_for_out(scene, "asked");
}

static void the_grace_time_is_the_callers(void **state)
{
    struct scene *scene = *state;
    int64_t begun_ms = clock_mono_ms();

    start(scene, "trap '' TERM; echo begun; while :; do sleep 0.05; done");
    wait_for_out(scene, "begun");
    task_stop(scene->task, 200);
    expect_report(scene);
    assert_int_equal(scene->report.record.code, -1);
    assert_int_equal(scene->report.record.signal, SIGKILL);
    assert_true(scene->report.record.was_stopped);
    assert_true(clock_mono_ms() - begun_ms >= 200);
}

static void a_kill_does_not_wait(void **state)
{
    struct scene *scene = *state;

    start(scene, "trap '' TERM; echo begun; while :; do sleep 0.05; done");
    wait_for_out(scene, "begun");
    task_kill(scene->task);
    expect_report(scene);
    assert_int_equal(scene->report.record.signal, SIGKILL);
}

static void a_stopped_shim_hears_a_stop(void **state)
{
    struct scene *scene = *state;

    start(scene, "echo begun; exec sleep 1000");
    wait_for_out(scene, "begun");
    kill(shim_pid(scene), SIGSTOP);
    task_stop(scene->task, -1);
    expect_report(scene);
    assert_int_equal(scene->report.record.signal, SIGTERM);
    assert_true(scene->report.record.was_stopped);
}

/* At whatever moment: it ends, and what is reported happened. */
static void a_stop_at_once_ends_it(void **state)
{
    struct scene *scene = *state;

    start(scene, "exec sleep 1000");
    task_stop(scene->task, -1);
    expect_report(scene);
    if (scene->report.end == TASK_ENDED) {
        assert_true(scene->report.record.was_stopped);
        assert_int_equal(scene->report.record.code, -1);
    } else {
        assert_int_equal(scene->report.end, TASK_NOT_STARTED);
    }
}

/* --- a shim that is killed --- */

static const char tree[] =
    "setsid sleep 1001 & echo pid $!; sleep 1002 & echo pid $!; "
    "(exec setsid env -i sleep 1003) & echo pid $!; "
    "setsid bash -c 'sleep 1004 & echo pid $!; echo pid $$; env -i sleep 1005 & echo pid $!; "
    "wait' & sleep 0.3; echo begun; wait";

static void expect_lost(struct scene *scene)
{
    expect_report(scene);
    assert_int_equal(scene->report.end, TASK_LOST);
    assert_true(scene->report.started_ms > 0);
}

static void a_killed_shim_is_noticed_and_its_tree_killed(void **state)
{
    struct scene *scene = *state;
    pid_t pids[8] = {0};
    size_t count;
    int64_t killed_ms;

    start(scene, tree);
    wait_for_out(scene, "begun");
    count = pids_of(scene, pids, ARRAY_SIZE(pids));
    assert_int_equal(count, 6);
    killed_ms = clock_mono_ms();
    kill(shim_pid(scene), SIGKILL);
    expect_lost(scene);
    assert_true(clock_mono_ms() - killed_ms < 10 * 1000); /* 2 s, on a machine that is free */
    for (size_t i = 0; i < count; i++) {
        uint64_t start_ticks;

        assert_int_equal(shim_process_start(pids[i], &start_ticks, NULL), -1);
    }
}

/* The daemon was away when the shim died. */
static void a_shim_killed_meanwhile_is_noticed_at_the_next_start(void **state)
{
    struct scene *scene = *state;
    pid_t pids[8] = {0}, shim;

    start(scene, "setsid sleep 1001 & echo pid $!; echo begun; wait");
    wait_for_out(scene, "begun");
    assert_int_equal(pids_of(scene, pids, ARRAY_SIZE(pids)), 1);
    shim = shim_pid(scene);
    let_go(scene);
    kill(shim, SIGKILL);
    wait_until_absent(shim);
    start(scene, "echo twice");
    expect_lost(scene);
    wait_until_absent(pids[0]);
}

/* Another task's processes are not touched, nor those with a longer word. */
static void strangers_are_spared(void **state)
{
    struct scene *scene = *state;
    auto_free char *word = xasprintf(TASK_WORD "%s2", scene->folder);
    char *argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL};
    char *env[] = {word, NULL};
    int status;
    pid_t stranger;

    assert_int_equal(posix_spawn(&stranger, "/bin/sleep", NULL, NULL, argv, env), 0);
    start(scene, "echo begun; exec sleep 1000");
    wait_for_out(scene, "begun");
    kill(shim_pid(scene), SIGKILL);
    expect_lost(scene);
    assert_int_equal(waitpid(stranger, &status, WNOHANG), 0);
    kill(stranger, SIGKILL);
    waitpid(stranger, &status, 0);
}

static void a_number_of_another_boot_is_not_signalled(void **state)
{
    struct scene *scene = *state;
    struct shim_identity other = {0};
    auto_close int fd = -1;
    pid_t bystander = fork();
    int status;

    if (bystander == 0) {
        setsid();
        for (;;)
            pause();
    }
    assert_int_equal(fs_make_folders(scene->folder, 0700, NULL), 0);
    assert_int_equal(shim_folder_open(scene->folder, &fd, NULL), 0);
    assert_int_equal(shim_identity_read(bystander, &other, NULL), 0);
    other.boot_id[0] ^= 1;
    assert_int_equal(shim_folder_put_shim(fd, &other, NULL), 0);
    assert_int_equal(shim_folder_put_started(fd, &other, 5, NULL), 0);
    start(scene, "echo twice");
    task_stop(scene->task, 0);
    expect_lost(scene);
    assert_int_equal(waitpid(bystander, &status, WNOHANG), 0);
    kill(bystander, SIGKILL);
    waitpid(bystander, &status, 0);
}

/* A handle that is freed during the sweep is not told. */
static void a_sweep_outlives_its_task(void **state)
{
    struct scene *scene = *state;

    start(scene, "echo begun; exec sleep 1000");
    wait_for_out(scene, "begun");
    let_go(scene);
    kill(shim_pid(scene), SIGKILL);
    wait_until_absent(shim_pid(scene));
    start(scene, "echo twice");
    run_for(scene, 1); /* the errand is under way, or about to be */
    if (!scene->reports) {
        let_go(scene);
        run_for(scene, 100);
        assert_int_equal(scene->reports, 0);
    }
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(the_exit_code_is_reported),
        SCENE(a_command_that_is_not_there_has_a_reason),
        SCENE(a_missing_shim_is_refused),
        SCENE(what_cannot_start_is_reported_with_its_reason),
        SCENE(what_has_ended_is_reported_again_and_not_run_again),
        SCENE(what_runs_is_taken_up),
        SCENE(a_start_said_again_at_once_runs_it_once),
        SCENE(a_folder_that_is_held_is_waited_for),
        SCENE(nothing_started_cannot_be_adopted),
        SCENE(a_stop_asks_first),
        SCENE(the_grace_time_is_the_callers),
        SCENE(a_kill_does_not_wait),
        SCENE(a_stopped_shim_hears_a_stop),
        SCENE(a_stop_at_once_ends_it),
        SCENE(a_killed_shim_is_noticed_and_its_tree_killed),
        SCENE(a_shim_killed_meanwhile_is_noticed_at_the_next_start),
        SCENE(strangers_are_spared),
        SCENE(a_number_of_another_boot_is_not_signalled),
        SCENE(a_sweep_outlives_its_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
