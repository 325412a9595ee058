/* Nodes that are folders: what works without root.  SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

static int set_up(void **state)
{
    struct rig *rig = rig_new(true);

    rig_open(rig);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    rig_remove_all(rig, RIG_NODES);
    rig_close(rig);
    rig_free(rig);
    return 0;
}

static void node_comes_and_goes(void **state)
{
    struct rig *rig = *state;
    auto_free char *folder = xasprintf("%s/nodes/tvm-1-1", rig->home);
    struct stat st;

    rig_add_up(rig, 1);
    assert_int_equal(stat(folder, &st), 0);
    rig_remove_all(rig, 1);
    assert_int_equal(stat(folder, &st), -1);
}

static void job_runs_to_its_end(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    assert_int_equal(rig_run(rig, 1, "echo out; echo err >&2; pwd; exit 3"), 3);
    assert_int_equal(rig->result.end, ENDED_EXITED);
    assert_int_equal(rig->running, 1);
    assert_string_equal(rig->result.tail, "err");
    assert_string_equal(rig->result.node, "tvm-1-1");
    rig_expect_log(rig, 1, "stdout.txt", "out\n");
    rig_expect_log(rig, 1, "stdout.txt", "/jobs/w/e/j/wd\n");
    rig_expect_log(rig, 1, "stderr.txt", "err\n");
    rig_expect_log(rig, 1, "execution.log", "job: exit code 3\n");
    assert_true(rig->started_ms > 0 && rig->ended_ms >= rig->started_ms);
}

static void failing_preparation_ends_the_job(void **state)
{
    struct rig *rig = *state;
    auto_json json_t *spec = rig_job("echo never");
    auto_free char *log = NULL;

    json_object_set_new(spec, "jobPreparation",
                        json_pack("{s:s}", "commandLine", "echo too bad >&2; exit 9"));
    rig_add_up(rig, 2);
    rig_submit_full(rig, 2, spec, NULL, NULL, 0);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_PREPARATION);
    assert_int_equal(rig->result.exit_code, 9);
    assert_string_equal(rig->result.tail, "too bad");
    assert_int_equal(rig->running, 0);
    log = rig_log(rig, 1, "stdout.txt");
    assert_string_equal(log, "");
}

static void told_to_stop_it_stops(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    rig_submit(rig, 1, "trap '' TERM; while :; do sleep 0.05; done");
    rig_until(rig, rig->running);
    rig_pause(rig, 200);
    rig->engine->ops->attempt_stop(rig->engine, 7);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
    assert_int_equal(rig->result.exit_code, -1);
}

static void unknown_attempt_can_be_stopped(void **state)
{
    struct rig *rig = *state;

    rig->engine->ops->attempt_stop(rig->engine, 7);
    assert_int_equal(rig->ended, 0);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
}

static void nothing_is_left_alive(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    assert_int_equal(
        rig_run(rig, 1, "(setsid sleep 98761 >/dev/null 2>&1 &); setsid -f sleep 98761; true"),
        0);
    assert_int_equal(rig_count_processes("sleep 98761"), 0);
}

static void volume_is_a_link(void **state)
{
    struct rig *rig = *state;
    auto_free char *source = xasprintf("%s/share", rig->home);
    auto_free char *file = xasprintf("%s/file", source);
    struct engine_volume volume = {.volume = {.kind = VOLUME_FILE_SHARE, .path = "afs"},
                                   .source = source};
    auto_json json_t *spec = rig_job("echo hello > $AZ_BATCHAI_JOB_MOUNT_ROOT/afs/file");
    auto_str text = {0};

    assert_int_equal(mkdir(source, 0755), 0);
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, &volume, 1);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 0);
    assert_int_equal(fs_read(file, 100, &text, NULL), 0);
    assert_string_equal(str_text(&text), "hello\n");
    /* The next job does not see it. */
    assert_int_not_equal(rig_run(rig, 1, "ls $AZ_BATCHAI_JOB_MOUNT_ROOT/afs"), 0);
}

static void missing_volume_is_told(void **state)
{
    struct rig *rig = *state;
    struct engine_volume volume = {
        .volume = {.kind = VOLUME_BLOBS, .path = "bfs"},
        .error_code = "BFSMountError",
        .error_message = "unable to mount blob fuse file system",
        .error_info = "no such account",
    };
    auto_json json_t *spec = rig_job("true");

    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, &volume, 1);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_string_equal(rig->result.code, "BFSMountError");
    assert_string_equal(rig->result.info, "bfs: no such account");
}

static void setup_task_runs_on_the_node(void **state)
{
    struct rig *rig = *state;

    json_object_set_new(rig->cluster_spec, "nodeSetup",
                        json_pack("{s:{s:s,s:s}}", "setupTask", "commandLine",
                                  "echo broken tap >&2; exit 4", "stdOutErrPathPrefix",
                                  "$AZ_BATCHAI_MOUNT_ROOT/out"));
    rig_add(rig, 1);
    rig_until(rig, rig->failure[1][0]);
    assert_string_equal(rig->failure[1], "NodeSetupFailed");
    assert_string_equal(rig->info[1], "broken tap");
    /* Said again, it is told again, and not run again. */
    rig->failure[1][0] = '\0';
    rig_add(rig, 1);
    rig_until(rig, rig->failure[1][0]);
}

/* A runtime of our own making in front of the others; the caller frees the PATH of before. */
static char *fake_podman(struct rig *rig, const char *script)
{
    char *before = xstrdup(getenv("PATH"));
    auto_free char *folder = xasprintf("%s/bin", rig->home);
    auto_free char *program = xasprintf("%s/podman", folder);

    assert_int_equal(mkdir(folder, 0755), 0);
    if (script)
        assert_int_equal(folder_write(program, script, strlen(script), 0755, NULL), 0);
    assert_int_equal(setenv("PATH", folder, 1), 0);
    return before;
}

static void run_in_image(struct rig *rig, int64_t stop_after_ms)
{
    auto_json json_t *spec = rig_job("true");

    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, "far.example/away:1", NULL, 0);
    if (stop_after_ms) {
        rig_pause(rig, stop_after_ms);
        rig->engine->ops->attempt_stop(rig->engine, 7);
    }
    rig_until(rig, rig->ended);
}

static void missing_runtime_is_told(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(rig, NULL);

    run_in_image(rig, 0);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_string_equal(rig->result.code, "FailedStartingContainer");
    assert_non_null(strstr(rig->result.info, "neither podman nor docker"));
}

static void missing_image_is_told(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(
        rig, "#!/bin/sh\ncase $* in *pull*) echo manifest unknown >&2;; esac\nexit 1\n");

    run_in_image(rig, 0);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_non_null(strstr(rig->result.info, "the registry has no such image"));
}

static void hanging_registry_does_not_hold_a_job(void **state)
{
    struct rig *rig = *state;
    auto_free char *before = fake_podman(
        rig, "#!/bin/sh\ncase $* in *pull*) /bin/sleep 98767;; *rm*) exit 0;; esac\nexit 1\n");
    int64_t began_ms = clock_mono_ms();

    run_in_image(rig, 300);
    setenv("PATH", before, 1);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
    assert_true(clock_mono_ms() - began_ms < 20000);
    assert_int_equal(rig_count_processes("sleep 98767"), 0);
}

/* In a process of its own, which dies as a daemon does. */
static void run_and_die(struct rig *rig, const char *command)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid > 0) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        return;
    }
    rig->is_child = true;
    rig_open(rig);
    rig_add_up(rig, 1);
    rig_submit(rig, 1, command);
    rig_until(rig, rig->running);
    rig_pause(rig, 200);
    raise(SIGKILL);
}

static int set_up_closed(void **state)
{
    *state = rig_new(true);
    return 0;
}

static void job_is_taken_up_after_a_crash(void **state)
{
    struct rig *rig = *state;

    run_and_die(rig, "echo begun; sleep 1; echo done; exit 5");
    rig_open(rig);
    rig_add(rig, 1);
    rig_submit(rig, 1, "echo begun; sleep 1; echo done; exit 5");
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 5);
    rig_expect_log(rig, 1, "stdout.txt", "begun\ndone\n");
    /* Said again although it was told: the same end, and no second run. */
    rig_submit(rig, 1, "echo begun; sleep 1; echo done; exit 5");
    rig_until(rig, rig->ended == 2);
    assert_int_equal(rig->result.exit_code, 5);
    rig_expect_log(rig, 1, "stdout.txt", "begun\ndone\n");
}

static void job_that_ended_meanwhile_is_told(void **state)
{
    struct rig *rig = *state;

    run_and_die(rig, "sleep 0.3; exit 6");
    usleep(600 * 1000);
    rig_open(rig);
    rig_add(rig, 1);
    rig_submit(rig, 1, "sleep 0.3; exit 6");
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 6);
    assert_true(rig->ended_ms - rig->started_ms >= 250);
}

/* While the daemon was away, the job's time was up as well: what it did before counts. */
static void end_that_came_before_the_stop_is_told(void **state)
{
    static const char *const commands[] = {"sleep 0.3; exit 6", "sleep 0.3; exit 0"};
    static const int codes[] = {6, 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        struct rig *rig = rig_new(true);

        run_and_die(rig, commands[i]);
        usleep(600 * 1000);
        rig_open(rig);
        rig_add(rig, 1);
        rig_submit(rig, 1, commands[i]);
        rig->engine->ops->attempt_stop(rig->engine, 7);
        rig_until(rig, rig->ended);
        assert_int_equal(rig->result.end, ENDED_EXITED);
        assert_int_equal(rig->result.exit_code, codes[i]);
        tear_down((void **)&rig);
    }
}

static void stop_after_a_crash_stops_it(void **state)
{
    struct rig *rig = *state;

    run_and_die(rig, "trap 'exit 0' TERM; sleep 60 & wait");
    rig_open(rig);
    rig_add(rig, 1);
    rig_submit(rig, 1, "trap 'exit 0' TERM; sleep 60 & wait");
    rig->engine->ops->attempt_stop(rig->engine, 7);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
}

#ifdef YARD_FAULTS
/* A daemon that dies at a named place, then one that takes up what it finds. */
static void crash_at(struct rig *rig, const char *place)
{
    static const char command[] = "echo once; sleep 0.1; exit 8";
    auto_free char *fault = xasprintf("%s:1", place);
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("YARD_FAULT", fault, 1);
        rig->is_child = true;
        rig_open(rig);
        rig_add_up(rig, 1);
        rig_submit(rig, 1, command);
        rig_until(rig, rig->ended);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("nobody passes %s", place);
    rig_open(rig);
    rig_add(rig, 1);
    rig_submit(rig, 1, command);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 8);
    rig_expect_log(rig, 1, "stdout.txt", "once\n");
}

static void crash_at_any_step_changes_nothing(void **state)
{
    static const char *const places[] = {"node.made",     "attempt.looked", "attempt.set-up",
                                         "attempt.tasks", "attempt.ending", "attempt.cleaning",
                                         "attempt.ended"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        struct rig *rig = rig_new(true);
        auto_free char *log = NULL;

        crash_at(rig, places[i]);
        log = rig_log(rig, 1, "stdout.txt");
        assert_string_equal(log, "once\n");
        tear_down((void **)&rig);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(node_comes_and_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_runs_to_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failing_preparation_ends_the_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(told_to_stop_it_stops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_attempt_can_be_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_left_alive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(volume_is_a_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_volume_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(setup_task_runs_on_the_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_runtime_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_image_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hanging_registry_does_not_hold_a_job, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(job_is_taken_up_after_a_crash, set_up_closed,
                                        tear_down),
#ifdef YARD_FAULTS
        cmocka_unit_test(crash_at_any_step_changes_nothing),
#endif
        cmocka_unit_test_setup_teardown(job_that_ended_meanwhile_is_told, set_up_closed,
                                        tear_down),
        cmocka_unit_test(end_that_came_before_the_stop_is_told),
        cmocka_unit_test_setup_teardown(stop_after_a_crash_stops_it, set_up_closed, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
