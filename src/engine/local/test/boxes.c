/* Jobs in containers: needs root, podman and a static busybox.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <glob.h>

/* Of this run alone: others may run at the same time. */
static char image[64];

static void must(const char *const *argv)
{
    struct err e = {0};

    if (command_must(&(struct command){.argv = argv, .timeout_ms = RIG_LONG_MS}, &e) < 0)
        fail_msg("%s", e.msg);
}

/* An image of busybox and this machine's bash, made here: there is no registry in a test. */
static int make_image(void **state)
{
    char folder[] = "/tmp/yard-image-XXXXXX";
    auto_free char *script = NULL;
    const char *argv[] = {"bash", "-ec", NULL, NULL};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(image, sizeof(image), "localhost/yard-test-%d:1", (int)getpid());
    script =
        xasprintf("cd %s; mkdir -p bin etc tmp root; cp /bin/busybox bin/; "
                  "for a in sh sleep ls cat echo hostname touch env true kill mkdir; do "
                  "ln -s busybox bin/$a; done; "
                  "echo root:x:0:0:root:/root:/bin/sh > etc/passwd; "
                  "cp /bin/bash bin/; cp --parents -L $(ldd /bin/bash | grep -o '/[^ ]*') .; "
                  "tar cf image.tar --exclude=image.tar *; podman import -q image.tar %s",
                  folder, image);
    argv[2] = script;
    must(argv);
    folder_remove(folder, NULL);
    return 0;
}

static int remove_image(void **state)
{
    const char *argv[] = {"podman", "rmi", "--force", image, NULL};

    (void)state;
    must(argv);
    return 0;
}

static int set_up(void **state)
{
    struct rig *rig = rig_new(false);

    rig_open(rig);
    *state = rig;
    return 0;
}

static int set_up_closed(void **state)
{
    *state = rig_new(false);
    return 0;
}

static void expect_no_container(const struct rig *rig)
{
    auto_free char *filter = xasprintf("name=%s", rig->uuid);
    const char *argv[] = {"podman", "ps", "-a", "-q", "--filter", filter, NULL};
    auto_outcome outcome = {0};

    assert_int_equal(
        command_run(&(struct command){.argv = argv, .timeout_ms = RIG_LONG_MS}, &outcome, NULL),
        0);
    assert_string_equal(str_text(&outcome.out), "");
}

/* The runtime makes groups in trees that the yard does not use. */
static void expect_no_group(const struct rig *rig)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_free char *pattern = NULL;
    glob_t found;

    crypt_sha256(rig->home, strlen(rig->home), digest);
    pattern = xasprintf("/sys/fs/cgroup/*/yard-%02x%02x%02x%02x", digest[0], digest[1],
                        digest[2], digest[3]);
    if (glob(pattern, 0, NULL, &found) == 0)
        fail_msg("%zu groups are left, such as %s", found.gl_pathc, found.gl_pathv[0]);
    globfree(&found);
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    expect_no_container(rig);
    rig_remove_all(rig, RIG_NODES);
    rig_close(rig);
    expect_no_group(rig);
    rig_free(rig);
    return 0;
}

static void run_in(struct rig *rig, int nodes, const char *command, const char *preparation)
{
    auto_json json_t *spec = rig_job(command);
    int before = rig->ended;

    if (preparation)
        json_object_set_new(spec, "jobPreparation",
                            json_pack("{s:s}", "commandLine", preparation));
    json_object_set_new(
        spec, "containerSettings",
        json_pack("{s:{s:s},s:s}", "imageSourceRegistry", "image", image, "shmSize", "64m"));
    json_object_set_new(spec, "secrets",
                        json_pack("[{s:s,s:s}]", "name", "WORD", "value", "it's $HOME\nnow"));
    rig_submit_full(rig, nodes, spec, image, NULL, 0);
    rig_until(rig, rig->ended > before);
}

static void expect_code(const struct rig *rig, int code)
{
    if (rig->result.end != ENDED_EXITED || rig->result.exit_code != code)
        fail_msg("end %d code %d signal %d oom %d: %s %s %s", rig->result.end,
                 rig->result.exit_code, rig->result.signal, rig->result.out_of_memory,
                 rig->result.message, rig->result.info, rig->result.tail);
}

static void preparation_and_job_share_a_container(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    run_in(rig, 1, "cat /prepared; hostname; echo \"$WORD\"; echo $PWD; exit 3",
           "echo prepared > /prepared");
    expect_code(rig, 3);
    rig_expect_log(rig, 1, "stdout.txt", "prepared\ntvm-1-1\nit's $HOME\nnow\n");
    rig_expect_log(rig, 1, "stdout.txt", "/mnt/batch/tasks/shared/LS_root/jobs/w/e/j/wd\n");
}

static void ssh_of_port_23_ends_in_the_container(void **state)
{
    struct rig *rig = *state;
    struct engine_login login;
    auto_str target = {0};
    auto_outcome outcome = {0};
    auto_free char *key = xasprintf("%s/clusters/1/ssh/yard_key", rig->home);
    const char *argv[] = {"ssh",
                          "-p",
                          "23",
                          "-i",
                          key,
                          "-o",
                          "StrictHostKeyChecking=no",
                          "-o",
                          "UserKnownHostsFile=/dev/null",
                          "-o",
                          "LogLevel=ERROR",
                          NULL,
                          "cat /prepared; hostname; exit 7",
                          NULL};
    struct err e = {0};
    auto_json json_t *spec = rig_job("touch /prepared; sleep 20");

    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, image, NULL, 0);
    rig_until(rig, rig->running);
    rig_pause(rig, 1500);
    assert_int_equal(rig->engine->ops->node_login(rig->engine, 1, &login, NULL), 0);
    str_addf(&target, "root@%s", login.address);
    argv[11] = str_text(&target);
    if (command_run(&(struct command){.argv = argv, .timeout_ms = RIG_LONG_MS}, &outcome, &e) <
        0)
        fail_msg("%s", e.msg);
    if (outcome.code != 7)
        fail_msg("ssh: %d: %s", outcome.code, str_text(&outcome.errors));
    assert_string_equal(str_text(&outcome.out), "tvm-1-1\n");
    rig->engine->ops->attempt_stop(rig->engine, 7);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
}

/* The kernel holds what is in the container to the node's processors. */
static void container_has_the_processors_of_its_node(void **state)
{
    struct rig *rig = *state;

    if (access("/sys/fs/cgroup/cpuset/cpuset.cpus", W_OK) < 0 ||
        sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    rig->cores = 1;
    rig_add_up(rig, 1);
    run_in(rig, 1,
           "while read -r key list; do [ $key = Cpus_allowed_list: ] && echo on $list; "
           "done < /proc/self/status; true",
           NULL);
    expect_code(rig, 0);
    rig_expect_log(rig, 1, "stdout.txt", "on 0\n");
}

static int set_up_plain(void **state)
{
    struct rig *rig = rig_new(true);

    rig_open(rig);
    *state = rig;
    return 0;
}

/* Without namespaces volumes are links, which lead nowhere in a container. */
static void volumes_are_seen_where_nodes_are_folders(void **state)
{
    struct rig *rig = *state;
    auto_free char *server = xasprintf("%s/server", rig->home);
    auto_free char *inner = xasprintf("%s/server/a/b", rig->home);
    auto_free char *share = xasprintf("%s/share", rig->home);
    auto_free char *file = xasprintf("%s/file", inner);
    struct engine_volume volumes[] = {
        {.volume =
             {.kind = VOLUME_FILE_SERVER, .path = "nfs", .folder = "a/b", .options = "ro"},
         .source = server},
        {.volume = {.kind = VOLUME_FILE_SHARE, .path = "afs"}, .source = share},
    };
    auto_json json_t *spec = rig_job("cd $AZ_BATCHAI_JOB_MOUNT_ROOT; cat nfs/file > afs/copy; "
                                     "cat afs/copy; touch nfs/file 2>/dev/null || echo ro");

    assert_int_equal(folder_make(inner, 0755, NULL), 0);
    assert_int_equal(mkdir(share, 0755), 0);
    assert_int_equal(folder_write(file, "hello\n", 6, 0644, NULL), 0);
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, image, volumes, ARRAY_SIZE(volumes));
    rig_until(rig, rig->ended);
    expect_code(rig, 0);
    rig_expect_log(rig, 1, "stdout.txt", "hello\nro\n");
}

static void want_of_memory_is_told(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    run_in(rig, 1, "x=0123456789abcdef; while :; do x=$x$x; done", NULL);
    assert_int_equal(rig->result.end, ENDED_EXITED);
    assert_int_equal(rig->result.exit_code, 128 + SIGKILL);
    assert_true(rig->result.out_of_memory);
}

static void unknown_image_is_told(void **state)
{
    struct rig *rig = *state;
    auto_json json_t *spec = rig_job("true");

    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, "127.0.0.1:9/no/such:1", NULL, 0);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_string_equal(rig->result.code, "FailedStartingContainer");
    assert_non_null(strstr(rig->result.info, "the registry cannot be reached"));
}

static void job_is_taken_up_after_a_crash(void **state)
{
    struct rig *rig = *state;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        auto_json json_t *spec = rig_job("sleep 2; cat /prepared; exit 4");

        json_object_set_new(spec, "jobPreparation",
                            json_pack("{s:s}", "commandLine", "echo prepared > /prepared"));
        rig->is_child = true;
        rig_open(rig);
        rig_add_up(rig, 1);
        rig_submit_full(rig, 1, spec, image, NULL, 0);
        rig_until(rig, rig->running);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rig_open(rig);
    rig_add(rig, 1);
    run_in(rig, 1, "sleep 2; cat /prepared; exit 4", "echo prepared > /prepared");
    expect_code(rig, 4);
    rig_expect_log(rig, 1, "stdout.txt", "prepared\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(preparation_and_job_share_a_container, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ssh_of_port_23_ends_in_the_container, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(container_has_the_processors_of_its_node, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(volumes_are_seen_where_nodes_are_folders, set_up_plain,
                                        tear_down),
        cmocka_unit_test_setup_teardown(want_of_memory_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_image_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_is_taken_up_after_a_crash, set_up_closed,
                                        tear_down),
    };

    if (geteuid() != 0 || access("/usr/bin/podman", X_OK) < 0 ||
        access("/bin/busybox", X_OK) < 0) {
        puts("skipped: needs root, podman and busybox-static");
        return 0;
    }
    return cmocka_run_group_tests(tests, make_image, remove_image);
}
