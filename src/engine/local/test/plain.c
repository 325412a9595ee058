/* Nodes that are folders: what works without root.  SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

static int set_up(void **state)
{
    struct rig *rig = rig_new(true);

    rig_open(rig);
    *state = rig;
    return 0;
}

static int set_up_closed(void **state)
{
    *state = rig_new(true);
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

static void open_with_limit(struct rig *rig, const char *setup, int64_t start_ms)
{
    json_object_set_new(rig->cluster_spec, "nodeSetup",
                        json_pack("{s:{s:s,s:s}}", "setupTask", "commandLine", setup,
                                  "stdOutErrPathPrefix", "$AZ_BATCHAI_MOUNT_ROOT/out"));
    rig->start_ms = start_ms;
    rig_open(rig);
}

static void node_that_never_comes_up_is_told(void **state)
{
    struct rig *rig = *state;

    open_with_limit(rig, "echo still at it >&2; sleep 98768", 1500);
    rig_add(rig, 1);
    rig_until(rig, rig->failure[1][0]);
    assert_string_equal(rig->failure[1], "NodeStartTimedOut");
    assert_string_equal(rig->info[1], "still at it");
    rig_remove_all(rig, 1);
    assert_int_equal(rig_count_processes("sleep 98768"), 0);
}

static void node_that_came_up_in_time_stays(void **state)
{
    struct rig *rig = *state;

    open_with_limit(rig, "true", 3000);
    rig_add_up(rig, 1);
    rig_pause(rig, 3500);
    assert_string_equal(rig->failure[1], "");
    assert_int_equal(rig_run(rig, 1, "true"), 0);
}

/* Each node writes which processors it has. */
static void nodes_have_processors_of_their_own(void **state)
{
    struct rig *rig = *state;
    auto_json json_t *spec =
        rig_job("cd $AZ_BATCHAI_SHARED_JOB_TEMP; nproc; cat cpus-* | sort -u "
                "| wc -l; /usr/bin/python3 -c 'import os; "
                "print(\"sees\", len(os.sched_getaffinity(0)))'");

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    json_object_set_new(spec, "jobPreparation",
                        json_pack("{s:s}", "commandLine",
                                  "grep Cpus_allowed_list /proc/self/status > "
                                  "$AZ_BATCHAI_SHARED_JOB_TEMP/cpus-$$"));
    rig->cores = 1;
    rig_add_up(rig, 2);
    rig_submit_full(rig, 2, spec, NULL, NULL, 0);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 0);
    rig_expect_log(rig, 1, "stdout.txt", "1\n2\nsees 1\n");
}

static void job_that_asks_for_more_than_the_node_has_is_told(void **state)
{
    struct rig *rig = *state;
    auto_json json_t *spec =
        json_pack("{s:s,s:{s:s,s:i}}", "stdOutErrPathPrefix", "$AZ_BATCHAI_MOUNT_ROOT/out",
                  "customMpiSettings", "commandLine", "true", "processCount", 3);

    rig->cores = 1;
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, NULL, 0);
    rig_until(rig, rig->ended);
    rig_expect_log(rig, 1, "execution.log", "processors of tvm-1-1: ");
    rig_expect_log(rig, 1, "execution.log",
                   "note: 3 processes share the 1 processors of the node\n");
}

static void mount_command_has_nothing_of_the_daemons_environment(void **state)
{
    struct rig *rig = *state;
    struct engine_volume volume = {.volume = {.kind = VOLUME_UNMANAGED,
                                              .path = "mine",
                                              .command = "e() { env > \"$1/env\"; }; e"}};
    auto_json json_t *spec = rig_job("cat $AZ_BATCHAI_JOB_MOUNT_ROOT/mine/env");
    auto_free char *log = NULL;

    setenv("YARD_TEST_TOKEN", "hush", 1);
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, &volume, 1);
    rig_until(rig, rig->ended);
    unsetenv("YARD_TEST_TOKEN");
    assert_int_equal(rig->result.exit_code, 0);
    rig_expect_log(rig, 1, "stdout.txt", "PATH=/usr/local/sbin:");
    log = rig_log(rig, 1, "stdout.txt");
    assert_null(strstr(log, "YARD_TEST_TOKEN"));
}

/* A job has put links where the next one's files are written, and its own mounts removed, by
 * the daemon. */
static void planted_links_are_not_followed(void **state)
{
    struct rig *rig = *state;
    auto_free char *elsewhere = xasprintf("%s/elsewhere", rig->home);
    auto_free char *job = xasprintf("%s/w/e/j", elsewhere);
    auto_free char *victim = xasprintf("%s/mounts", job);
    auto_free char *command =
        xasprintf("cd $AZ_BATCHAI_MOUNT_ROOT/..; rm -rf jobs; ln -s %s jobs", elsewhere);

    assert_int_equal(folder_make(victim, 0755, NULL), 0);
    rig_add_up(rig, 1);
    assert_int_equal(rig_run(rig, 1, command), 0);
    assert_int_equal(rig_run(rig, 1, "echo fine"), 0);
    rig_expect_log(rig, 1, "stdout.txt", "fine\n");
    assert_int_equal(rmdir(victim), 0); /* still there, and nothing beside it */
    assert_int_equal(rmdir(job), 0);
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
        cmocka_unit_test_setup_teardown(node_that_never_comes_up_is_told, set_up_closed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(node_that_came_up_in_time_stays, set_up_closed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nodes_have_processors_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_that_asks_for_more_than_the_node_has_is_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(mount_command_has_nothing_of_the_daemons_environment,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(planted_links_are_not_followed, set_up, tear_down),
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
