/* Nodes that are namespaces: needs root.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/net.h"
#include "rig.h"
#include "shim/node.h"

#include <net/if.h>

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

/* Whatever a test left standing goes, and with it the bridge. */
static int tear_down(void **state)
{
    struct rig *rig = *state;
    struct net *net = NULL;
    unsigned bridge;

    rig_remove_all(rig, RIG_NODES);
    rig_close(rig);
    assert_int_equal(net_new(rig->home, NULL, &net, NULL), 0);
    bridge = if_nametoindex(net_bridge(net));
    net_free(net);
    assert_int_equal(bridge, 0);
    rig_free(rig);
    return 0;
}

static void read_keeper(struct rig *rig, int node, struct shim_keeper *ret)
{
    auto_free char *folder = xasprintf("%s/nodes/tvm-1-%d", rig->home, node);
    struct err e = {0};

    if (shim_keeper_read(folder, ret, &e) < 0)
        fail_msg("%s", e.msg);
}

static void node_is_a_host_of_its_own(void **state)
{
    struct rig *rig = *state;
    struct engine_login login;
    auto_free char *address = NULL;

    rig_add_up(rig, 2);
    assert_int_equal(rig->engine->ops->node_login(rig->engine, 2, &login, NULL), 0);
    assert_int_equal(login.port, 22);
    assert_int_equal(rig_run(rig, 1, "hostname; cat /etc/hosts; ip -o -4 addr show eth0"), 0);
    rig_expect_log(rig, 1, "stdout.txt", "tvm-1-1\n");
    address = xasprintf("%s\ttvm-1-2\n", login.address);
    rig_expect_log(rig, 1, "stdout.txt", address);
}

static void data_folder_is_hidden(void **state)
{
    struct rig *rig = *state;
    auto_free char *command =
        xasprintf("ls -A %s | wc -l; touch %s/x || echo ro", rig->home, rig->home);

    rig_add_up(rig, 1);
    assert_int_equal(rig_run(rig, 1, command), 0);
    rig_expect_log(rig, 1, "stdout.txt", "0\nro\n");
}

static void nodes_reach_each_other_by_ssh(void **state)
{
    struct rig *rig = *state;
    struct engine_login login;
    auto_free char *command = NULL;

    rig_add_up(rig, 2);
    assert_int_equal(rig->engine->ops->node_login(rig->engine, 2, &login, NULL), 0);
    command =
        xasprintf("ssh %s hostname && ssh tvm-1-1 hostname && ssh tvm-1-2 'echo $SSH_CLIENT'",
                  login.address);
    assert_int_equal(rig_run(rig, 2, command), 0);
    rig_expect_log(rig, 1, "stdout.txt", "tvm-1-2\ntvm-1-1\n");
    rig_expect_log(rig, 1, "execution-tvm-1-1.log", "job: exit code 0\n");
}

/* By ssh too, and no task can take more than its node has where the kernel sees to it. */
static void nodes_have_processors_of_their_own(void **state)
{
    struct rig *rig = *state;
    bool is_strict = access("/sys/fs/cgroup/cpuset/cpuset.cpus", W_OK) == 0;

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    rig->cores = 1;
    rig_add_up(rig, 2);
    assert_int_equal(
        rig_run(rig, 2,
                "list='grep Cpus_allowed_list /proc/self/status'; nproc; ssh tvm-1-2 nproc; "
                "[ \"$($list)\" != \"$(ssh tvm-1-2 $list)\" ] && echo apart; "
                "taskset -c 0-1 nproc"),
        0);
    rig_expect_log(rig, 1, "stdout.txt", is_strict ? "1\n1\napart\n1\n" : "1\n1\napart\n");
}

/* Two ranks on a node of one processor: it has to share, and does not fail. */
static void ranks_share_the_processors_of_a_node(void **state)
{
    struct rig *rig = *state;
    auto_json json_t *spec =
        json_pack("{s:s,s:{s:s,s:i}}", "stdOutErrPathPrefix", "$AZ_BATCHAI_MOUNT_ROOT/out",
                  "customMpiSettings", "commandLine", "echo rank on $(hostname) of $(nproc)",
                  "processCount", 4);

    rig->cores = 1;
    rig_add_up(rig, 2);
    rig_submit_full(rig, 2, spec, NULL, NULL, 0);
    rig_until(rig, rig->ended);
    if (rig->result.exit_code != 0)
        fail_msg("%s", rig->result.tail);
    rig_expect_log(rig, 1, "stdout.txt", "rank on tvm-1-1 of 1\n");
    rig_expect_log(rig, 1, "stdout.txt", "rank on tvm-1-2 of 1\n");
}

/* Not the user's: a shell that is killed there must not stand in the way of his own. */
static void each_node_has_a_home(void **state)
{
    struct rig *rig = *state;
    struct engine_login login;
    char command[256];

    rig_add_up(rig, 2);
    assert_int_equal(rig->engine->ops->node_login(rig->engine, 2, &login, NULL), 0);
    snprintf(command, sizeof(command),
             "echo mine > ~/here; echo $HOME; ssh %s 'pwd; ls -A; echo end'", login.address);
    assert_int_equal(rig_run(rig, 2, command), 0);
    rig_expect_log(rig, 1, "stdout.txt", "/mnt/batch/home\n/mnt/batch/home\nend\n");
}

static void admin_logs_in_with_his_key(void **state)
{
    struct rig *rig = *state;
    auto_free char *key = xasprintf("%s/key", rig->home);
    auto_free char *public = xasprintf("%s/key.pub", rig->home);
    auto_str target = {0};
    const char *keygen[] = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, NULL};
    const char *ssh[] = {"ssh",
                         "-i",
                         key,
                         "-o",
                         "StrictHostKeyChecking=no",
                         "-o",
                         "UserKnownHostsFile=/dev/null",
                         "-o",
                         "BatchMode=yes",
                         NULL,
                         "id -un; hostname",
                         NULL};
    auto_outcome outcome = {0};
    struct engine_login login;
    auto_str text = {0};

    assert_int_equal(command_must(&(struct command){.argv = keygen, .timeout_ms = 10000}, NULL),
                     0);
    assert_int_equal(fs_read(public, 4096, &text, NULL), 0);
    text.data[text.len - 1] = '\0';
    json_object_set_new(json_object_get(rig->cluster_spec, "userAccountSettings"),
                        "adminUserSshPublicKey", json_string(text.data));
    rig_add_up(rig, 1);
    assert_int_equal(rig->engine->ops->node_login(rig->engine, 1, &login, NULL), 0);
    str_addf(&target, "tester@%s", login.address);
    ssh[9] = str_text(&target);
    assert_int_equal(
        command_run(&(struct command){.argv = ssh, .timeout_ms = RIG_LONG_MS}, &outcome, NULL),
        0);
    assert_int_equal(outcome.code, 0);
    assert_non_null(strstr(str_text(&outcome.out), "tvm-1-1\n"));
}

static void ranks_run_on_all_nodes(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 2);
    assert_int_equal(rig_run(rig, 2,
                             "mpirun --allow-run-as-root --oversubscribe -np 2 --map-by node "
                             "--hostfile $AZ_BATCHAI_MPI_HOST_FILE hostname"),
                     0);
    rig_expect_log(rig, 1, "stdout.txt", "tvm-1-1\n");
    rig_expect_log(rig, 1, "stdout.txt", "tvm-1-2\n");
}

static void volume_is_a_mount_without_devices(void **state)
{
    struct rig *rig = *state;
    auto_free char *source = xasprintf("%s/share", rig->home);
    auto_free char *inner = xasprintf("%s/share/a/b", rig->home);
    struct engine_volume volumes[] = {
        {.volume =
             {.kind = VOLUME_FILE_SERVER, .path = "nfs", .folder = "a/b", .options = "ro"},
         .source = source},
        {.volume = {.kind = VOLUME_FILE_SHARE, .path = "deep/afs"}, .source = source},
        {.volume = {.kind = VOLUME_UNMANAGED,
                    .path = "mine",
                    .command = "mount -t tmpfs none"}},
    };
    auto_json json_t *spec =
        rig_job("cd $AZ_BATCHAI_JOB_MOUNT_ROOT; touch deep/afs/a/b/file; ls nfs; "
                "touch nfs/x || echo ro; findmnt -no OPTIONS deep/afs; "
                "findmnt -no FSTYPE mine; touch mine/y");
    auto_free char *job =
        xasprintf("%s/nodes/tvm-1-1/root/jobs/w/e/j/mounts/deep/afs/a", rig->home);

    assert_int_equal(folder_make(inner, 0755, NULL), 0);
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, volumes, ARRAY_SIZE(volumes));
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 0);
    rig_expect_log(rig, 1, "stdout.txt", "file\nro\n");
    rig_expect_log(rig, 1, "stdout.txt", "nosuid,nodev");
    rig_expect_log(rig, 1, "stdout.txt", "tmpfs\n");
    /* The host has never seen it, and the next job does not. */
    assert_int_equal(access(job, F_OK), -1);
    assert_int_equal(
        rig_run(rig, 1, "findmnt -rno TARGET | grep -c LS_root/jobs/w/e/j/mounts; true"), 0);
    rig_expect_log(rig, 1, "stdout.txt", "0\n");
    assert_int_equal(access(inner, F_OK), 0);
}

static void planted_link_leads_nowhere(void **state)
{
    struct rig *rig = *state;
    auto_free char *source = xasprintf("%s/share", rig->home);
    auto_free char *link = xasprintf("%s/share/out", rig->home);
    struct engine_volume volumes[] = {
        {.volume = {.kind = VOLUME_FILE_SHARE, .path = "afs"}, .source = source},
        {.volume = {.kind = VOLUME_BLOBS, .path = "afs/out/etc"}, .source = source},
    };
    auto_json json_t *spec = rig_job("true");

    assert_int_equal(mkdir(source, 0755), 0);
    assert_int_equal(symlink("/", link), 0);
    rig_add_up(rig, 1);
    rig_submit_full(rig, 1, spec, NULL, volumes, ARRAY_SIZE(volumes));
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_SETUP);
    assert_string_equal(rig->result.code, "BFSMountError");
}

static void nothing_is_left_alive(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 2);
    assert_int_equal(rig_run(rig, 2,
                             "setsid -f sleep 98762; "
                             "ssh tvm-1-2 'setsid -f env -i sleep 98762 >/dev/null 2>&1'"),
                     0);
    assert_int_equal(rig_count_processes("sleep 98762"), 0);
    /* Those who keep the node are still there. */
    assert_int_equal(rig_run(rig, 2, "ssh tvm-1-2 true"), 0);
}

static void fork_bomb_is_contained(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    rig_submit(rig, 1, "bomb() { bomb | bomb & }; bomb; sleep 98763");
    rig_until(rig, rig->running);
    rig_pause(rig, 1500);
    rig->engine->ops->attempt_stop(rig->engine, 7);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_STOPPED);
    assert_int_equal(rig_count_processes("bomb"), 0);
    assert_int_equal(rig_run(rig, 1, "true"), 0);
}

static void want_of_memory_is_told(void **state)
{
    struct rig *rig = *state;

    rig_add_up(rig, 1);
    rig_run(rig, 1, "exec /usr/bin/python3 -c 'x = bytearray(2 << 30); print(len(x))'");
    assert_int_equal(rig->result.end, ENDED_EXITED);
    assert_int_equal(rig->result.signal, SIGKILL);
    assert_true(rig->result.out_of_memory);
}

static void dead_keeper_is_a_lost_node(void **state)
{
    struct rig *rig = *state;
    struct shim_keeper keeper;
    int64_t began_ms;

    rig_add_up(rig, 2);
    rig_submit(rig, 2, "ssh tvm-1-2 sleep 98764");
    rig_until(rig, rig->running);
    rig_pause(rig, 500);
    read_keeper(rig, 2, &keeper);
    kill(keeper.identity.pid, SIGKILL);
    began_ms = clock_mono_ms();
    rig_until(rig, rig->failure[2][0]);
    assert_true(clock_mono_ms() - began_ms < 2000);
    assert_string_equal(rig->failure[2], "NodeLost");
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.end, ENDED_NODE_LOST);
    assert_int_equal(rig->result.bad_node, 2);
    assert_int_equal(rig_count_processes("sleep 98764"), 0);
    /* The other one is as good as before. */
    assert_int_equal(rig_run(rig, 1, "true"), 0);
}

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
    rig_add_up(rig, 2);
    rig_submit(rig, 2, command);
    rig_until(rig, rig->running);
    rig_pause(rig, 300);
    raise(SIGKILL);
}

static void node_and_job_are_taken_up_after_a_crash(void **state)
{
    struct rig *rig = *state;
    struct shim_keeper before, after;
    static const char command[] = "sleep 1; ssh tvm-1-2 hostname; exit 5";

    run_and_die(rig, command);
    read_keeper(rig, 1, &before);
    rig_open(rig);
    rig_submit(rig, 2, command); /* nodes and jobs in any order of coming up */
    rig_add(rig, 1);
    rig_add(rig, 2);
    rig_until(rig, rig->ended);
    assert_int_equal(rig->result.exit_code, 5);
    rig_expect_log(rig, 1, "stdout.txt", "tvm-1-2\n");
    read_keeper(rig, 1, &after);
    assert_int_equal(before.identity.pid, after.identity.pid);
}

static void node_that_was_lost_meanwhile_is_told(void **state)
{
    struct rig *rig = *state;
    struct shim_keeper keeper;

    run_and_die(rig, "sleep 98765");
    read_keeper(rig, 1, &keeper);
    kill(keeper.identity.pid, SIGKILL);
    rig_open(rig);
    rig_add(rig, 1);
    rig_add(rig, 2);
    rig_submit(rig, 2, "sleep 98765");
    rig_until(rig, rig->ended);
    assert_string_equal(rig->failure[1], "NodeLost");
    assert_int_equal(rig->result.end, ENDED_NODE_LOST);
    assert_int_equal(rig->result.bad_node, 1);
    assert_int_equal(rig_count_processes("sleep 98765"), 0);
}

static void node_of_before_can_be_removed(void **state)
{
    struct rig *rig = *state;

    run_and_die(rig, "sleep 98766");
    rig_open(rig);
    rig_remove_all(rig, 2);
    assert_int_equal(rig_count_processes("sleep 98766"), 0);
}

/* The daemon died while the node was being made, and its keeper went on. */
static void node_that_is_being_made_is_taken_up_after_a_crash(void **state)
{
    struct rig *rig = *state;
    pid_t pid;
    int status;

    rig->is_slow = true;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        rig->is_child = true;
        rig_open(rig);
        rig_add(rig, 1);
        rig_pause(rig, 200);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rig_open(rig);
    rig_add_up(rig, 1);
    assert_int_equal(rig_run(rig, 1, "exit 4"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(node_is_a_host_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(data_folder_is_hidden, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_reach_each_other_by_ssh, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nodes_have_processors_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_share_the_processors_of_a_node, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_node_has_a_home, set_up, tear_down),
        cmocka_unit_test_setup_teardown(admin_logs_in_with_his_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_run_on_all_nodes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(volume_is_a_mount_without_devices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(planted_link_leads_nowhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_left_alive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fork_bomb_is_contained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(want_of_memory_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dead_keeper_is_a_lost_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(node_and_job_are_taken_up_after_a_crash, set_up_closed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(node_that_was_lost_meanwhile_is_told, set_up_closed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(node_of_before_can_be_removed, set_up_closed,
                                        tear_down),
        cmocka_unit_test_setup_teardown(node_that_is_being_made_is_taken_up_after_a_crash,
                                        set_up_closed, tear_down),
    };

    if (geteuid() != 0) {
        puts("skipped: namespaces need root");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
