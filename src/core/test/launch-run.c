/* launch-run.c - the commands of plans, really run by bash: with a stand-in for mpirun that
 * starts ranks as hosts elsewhere would get them (with the variables that were named and no
 * others), and with the real one where it is installed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/str.h"
#include "core/launch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Takes the arguments of both kinds; FAKE_MPI says which it is.  The last three are the rank.
 */
static const char fake_mpirun[] =
    "#!/bin/bash\n"
    "if [ \"$1\" = --version ]; then\n"
    "  [ \"$FAKE_MPI\" = open ] && echo 'mpirun (Open MPI) 4.1.4' || echo 'Intel(R) MPI "
    "Library'\n"
    "  exit 0\n"
    "fi\n"
    "printf '%s\\0' \"$@\" > \"$FAKE_OUT/argv\"\n"
    "names=() count=0\n"
    "while [ $# -gt 3 ]; do\n"
    "  case $1 in\n"
    "  -np | -n) count=$2; shift 2 ;;\n"
    "  -x) names+=(\"$2\"); shift 2 ;;\n"
    "  -genvlist) IFS=, read -r -a names <<< \"$2\"; shift 2 ;;\n"
    "  --hostfile | --host | --mca) [ \"$1\" = --mca ] && shift; shift 2 ;;\n"
    "  --map-by | --bind-to | -ppn | -hosts | -iface) shift 2 ;;\n"
    "  --allow-run-as-root) shift ;;\n"
    "  *) echo \"unknown option $1\" >&2; exit 99 ;;\n"
    "  esac\n"
    "done\n"
    "list=()\n"
    "for name in \"${names[@]}\"; do\n"
    "  [ -n \"${!name+x}\" ] || { echo \"$name is not set\" >&2; exit 98; }\n"
    "  list+=(\"$name=${!name}\")\n"
    "done\n"
    "rank=OMPI_COMM_WORLD_RANK; [ \"$FAKE_MPI\" = open ] || rank=PMI_RANK\n"
    "status=0\n"
    "for ((i = 0; i < count; i++)); do\n"
    "  env -i HOME=\"$HOME\" PATH=/usr/bin:/bin $rank=$i \"${list[@]}\" \"$@\" || status=$?\n"
    "done\n"
    "exit $status\n";

/* As distributions have it: what is not interactive leaves at once. */
static const char fake_rc[] = "[ -z \"$PS1\" ] && return\n"
                              "case $- in *i*) ;; *) return ;; esac\n"
                              "export FROM_RC=\"it's read\"\n"
                              "echo noise >&2\n";

static char folder[64]; /* with bin/mpirun and home/.bashrc */
static char *path;

static void write_file(const char *name, const char *text, mode_t mode)
{
    auto_free char *whole = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(whole, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(whole, mode);
}

static char *read_file(const char *name, size_t *ret_len)
{
    auto_free char *whole = xasprintf("%s/%s", folder, name);
    auto_str text = {0};
    FILE *file = fopen(whole, "r");
    int c;

    assert_non_null(file);
    while ((c = fgetc(file)) != EOF)
        str_add_char(&text, (char)c);
    fclose(file);
    if (ret_len)
        *ret_len = text.len;
    return str_take(&text);
}

static int set_up(void **state)
{
    static const char *const folders[] = {"bin", "home", "plain"};

    (void)state;
    strcpy(folder, "/tmp/yard-launch-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        auto_free char *whole = xasprintf("%s/%s", folder, folders[i]);

        mkdir(whole, 0700);
    }
    write_file("bin/mpirun", fake_mpirun, 0755);
    write_file("home/.bashrc", fake_rc, 0644);
    path = xasprintf("%s/bin:/usr/bin:/bin", folder);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = {"bin/mpirun", "home/.bashrc", "plain/bash",
                                        "argv",       "out",          "err"};
    static const char *const folders[] = {"bin", "home", "plain", "."};

    (void)state;
    free(path);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *whole = xasprintf("%s/%s", folder, files[i]);

        unlink(whole);
    }
    for (size_t i = 0; i < ARRAY_SIZE(folders) - 1; i++) {
        auto_free char *whole = xasprintf("%s/%s", folder, folders[i]);

        rmdir(whole);
    }
    return rmdir(folder);
}

/* Run "bash -c command" in a session of its own; its output is in "out" and "err".  The status,
 * or 128 and the signal. */
static int run(const char *command, const char *const *env)
{
    auto_free char *out = xasprintf("%s/out", folder), *err = xasprintf("%s/err", folder);
    char *const argv[] = {(char *)"bash", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int status;
    pid_t pid;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    assert_int_equal(
        posix_spawn(&pid, "/bin/bash", &files, &attributes, argv, (char *const *)env), 0);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- plans --- */

static const struct launch_node nodes[] = {
    {"tvm-1", "192.0.2.4", "/r", 2, 2, "0,1"}, /* nobody's address */
    {"tvm-2", "127.0.0.1", "/r", 2, 2, "2,3"}, /* ours */
};

struct planned {
    struct arena *arena;
    json_t *job;
    struct launch_plan plan;
};

static void planned_done(struct planned *p)
{
    json_decref(p->job);
    arena_free(p->arena);
}
#define auto_planned __attribute__((cleanup(planned_done))) struct planned

enum {
    WITH_SSH = 1,
    IN_CONTAINER = 2,
};

/* A job of one toolkit; fake is what the stand-in for mpirun plays, NULL = none of it. */
static struct planned
plan_job(const char *block, json_t *settings, const char *fake, size_t node_count, int flags)
{
    struct planned p = {.arena = arena_new()};
    auto_free char *home = xasprintf("%s/home", folder);
    struct launch_input input = {
        .workspace = "w",
        .experiment = "e",
        .name = "j",
        .cluster = "c",
        .segment = "s/u",
        .nodes = nodes,
        .node_count = node_count,
        .is_container = flags & IN_CONTAINER,
        .has_ssh = flags & WITH_SSH,
        .attempt = 1,
        .home = home,
    };
    struct err e = {0};

    p.job = json_pack("{so ss s[{ss ss} {ss ss} {ss ss} {ss ss}] s[{ss ss}]}", block, settings,
                      "stdOutErrPathPrefix", "/logs", "environmentVariables", "name", "PATH",
                      "value", fake ? path : "/usr/bin:/bin", "name", "FAKE_MPI", "value",
                      fake ? fake : "", "name", "FAKE_OUT", "value", folder, "name", "NASTY",
                      "value", "a 'b' \"c\" $d `e`\n\\f", "secrets", "name", "TOKEN", "value",
                      "s3cret");
    assert_non_null(p.job);
    input.job = p.job;
    if (launch_plan(&input, p.arena, &p.plan, &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

static json_t *mpi_settings(const char *command, int processes)
{
    return json_pack("{ss si}", "commandLine", command, "processCount", processes);
}

/* Commands that are easy to mangle. */
static const char *const nasty[] = {
    "echo plain",
    ":",
    "true",
    "exit 7",
    "false",
    "echo \"$NASTY\"; echo '$NASTY'; echo \"it's\"",
    "printf '<%s>\\n' a 'b c' \"d e\" f\\ g \"\" '' \"'\" '\"' \\\\ '\\' '\\\\n'",
    "echo `echo ticks` $(echo dollars) $((1 + 2)) ${NASTY%% *} ${#NASTY}",
    "echo one\necho two\n\necho three",
    "cat <<'END'\nhere $NASTY 'doc'\nEND\necho after",
    "cat <<END\nhere $(echo doc)\nEND",
    "if true; then echo yes; fi; for i in 1 2 3; do echo $i; done",
    "echo a # comment",
    "# only a comment",
    "echo * > /dev/null; echo !! !$ ^a^b",
    "echo $'tab\\tnew\\nline' $\"x\"",
    "echo err >&2; echo out",
    "(exit 3)",
    "kill -TERM $$",
    "set -e; false; echo no",
    "echo \xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80",
    "a=(1 2 3); echo \"${a[@]}\" | cat; [[ abc == a* ]] && echo glob",
    "echo -n; echo -e 'a\\nb'; echo --version -x -np : -- ::",
    "echo trailing \\",
    "echo {a,b}{1,2} ~ > /dev/null",
    "f() { echo \"in f: $1\"; }; f \"x y\"",
    "exec 3>&1; echo three >&3",
    "printf %s \"$AZ_BATCHAI_JOB_TEMP $TOKEN\"",
    "echo \"unfinished",
};

static void assert_same_output(const char *about, const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        fail_msg("%s\ngot:  %s\nwant: %s", about, got, want);
}

/* Run it as it is, then as planned: output and end must be the same. */
static void compare(const char *command, const struct launch_task *task)
{
    int want = run(command, task->env), got;
    auto_free char *out = read_file("out", NULL), *err = read_file("err", NULL);
    auto_free char *new_out = NULL, *new_err = NULL;

    got = run(task->command, task->env);
    new_out = read_file("out", NULL);
    new_err = read_file("err", NULL);
    if (want == 128 + SIGTERM) /* mpirun says it as a shell does */
        assert_true(got == want || got == 143);
    else if (got != want)
        fail_msg("%s: ended with %d, not %d: %s", command, got, want, new_err);
    assert_same_output(command, new_out, out);
    if (want != 128 + SIGTERM)
        assert_same_output(command, new_err, err);
}

static void commands_reach_bash_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
        auto_planned bare = plan_job("customToolkitSettings",
                                     json_pack("{ss}", "commandLine", nasty[i]), NULL, 1, 0);
        auto_planned boxed =
            plan_job("customToolkitSettings", json_pack("{ss}", "commandLine", nasty[i]), NULL,
                     1, IN_CONTAINER);

        assert_string_equal(bare.plan.tasks[0].command, nasty[i]);
        compare(nasty[i], &bare.plan.tasks[0]);
        compare(nasty[i], &boxed.plan.tasks[0]);
    }
}

static void ranks_get_the_command_as_it_is(void **state)
{
    static const char *const kinds[] = {"open", "intel"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
        for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
            auto_planned here = plan_job("customMpiSettings", mpi_settings(nasty[i], 1),
                                         kinds[kind], 1, WITH_SSH);
            auto_planned there = plan_job("customMpiSettings", mpi_settings(nasty[i], 1),
                                          kinds[kind], 2, WITH_SSH);

            /* Where ranks get all of the environment the stand-in cannot show it. */
            if (kind == 0)
                compare(nasty[i], &here.plan.tasks[0]);
            compare(nasty[i], &there.plan.tasks[0]);
        }
    }
}

static void assert_lines(const char *want)
{
    auto_free char *out = read_file("out", NULL), *err = read_file("err", NULL);

    if (strcmp(out, want) != 0)
        fail_msg("got:  %s\nwant: %s\nerr: %s", out, want, err);
}

static void ranks_know_their_node_by_its_address(void **state)
{
    static const char *const kinds[] = {"open", "intel"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        auto_planned p =
            plan_job("customMpiSettings",
                     mpi_settings("echo $AZ_BATCH_NODE_ID $AZ_BATCH_IS_CURRENT_NODE_MASTER "
                                  "$CUDA_VISIBLE_DEVICES $TOKEN \"$FROM_RC\" $YARD_NODES.",
                                  2),
                     kinds[i], 2, WITH_SSH);

        assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
        assert_lines("tvm-2 false 2,3 s3cret it's read .\n"
                     "tvm-2 false 2,3 s3cret it's read .\n");
    }
}

static void ranks_on_one_host_stand_for_their_nodes(void **state)
{
    auto_planned p = plan_job("customMpiSettings",
                              mpi_settings("echo $OMPI_COMM_WORLD_RANK $AZ_BATCH_NODE_ID "
                                           "$AZ_BATCH_IS_CURRENT_NODE_MASTER",
                                           4),
                              "open", 2, 0);

    (void)state;
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
    assert_lines("0 tvm-1 true\n1 tvm-1 true\n2 tvm-2 false\n3 tvm-2 false\n");
}

static void arguments_of_mpirun_have_no_secret(void **state)
{
    auto_planned p =
        plan_job("customMpiSettings", mpi_settings("true", 2), "open", 2, WITH_SSH);
    auto_free char *argv = NULL;
    size_t len;

    (void)state;
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
    argv = read_file("argv", &len);
    assert_non_null(memmem(argv, len, "TOKEN", 5));
    assert_null(memmem(argv, len, "s3cret", 6));
}

static void the_end_of_ranks_is_the_end_of_the_task(void **state)
{
    auto_planned p =
        plan_job("customMpiSettings", mpi_settings("exit 5", 2), "open", 2, WITH_SSH);

    (void)state;
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 5);
}

/* A PATH with bash alone. */
static void a_missing_mpirun_says_what_to_do(void **state)
{
    auto_planned p = plan_job("customMpiSettings", mpi_settings("true", 2), NULL, 1, 0);
    auto_free char *bash = xasprintf("%s/plain/bash", folder), *err = NULL;
    auto_free char *alone = xasprintf("PATH=%s/plain", folder);
    const char *env[] = {alone, NULL};

    (void)state;
    assert_int_equal(symlink("/bin/bash", bash), 0);
    assert_int_equal(run(p.plan.tasks[0].command, env), 127);
    err = read_file("err", NULL);
    assert_non_null(strstr(err, "mpirun was not found: bring Open MPI"));
    unlink(bash);
}

/* --- python --- */

static void scripts_get_their_arguments(void **state)
{
    auto_planned p = plan_job(
        "pyTorchSettings",
        json_pack("{ss ss ss si}", "pythonInterpreterPath", "/usr/bin/printf",
                  "pythonScriptFilePath", "<%s>", "commandLineArgs",
                  "a 'b c' \"$AZ_BATCHAI_TASK_INDEX $RANK\" \"$FROM_RC\"", "processCount", 2),
        NULL, 2, WITH_SSH);

    (void)state;
    assert_int_equal(run(p.plan.tasks[1].command, p.plan.tasks[1].env), 0);
    assert_lines("<a><b c><1 1><it's read>");
}

static void paths_are_expanded_and_not_split(void **state)
{
    auto_planned p =
        plan_job("chainerSettings",
                 json_pack("{ss ss ss si}", "pythonInterpreterPath", "/bin/echo",
                           "pythonScriptFilePath", "$AZ_BATCHAI_JOB_TEMP/a  b`\"\\.py",
                           "commandLineArgs", "c", "processCount", 1),
                 "open", 1, 0);

    (void)state;
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
    assert_lines("/r/jobs/w/e/j/a  b`\"\\.py c\n");
}

static void a_script_without_interpreter_finds_one(void **state)
{
    auto_planned p = plan_job("cntkSettings",
                              json_pack("{ss ss si}", "pythonScriptFilePath", "-c",
                                        "commandLineArgs", "'print(6 * 7)'", "processCount", 1),
                              NULL, 1, 0);

    (void)state;
    if (access("/usr/bin/python3", X_OK) < 0)
        skip();
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
    assert_lines("42\n");
}

/* --- the real thing --- */

static void real_ranks_start_on_this_host(void **state)
{
    auto_planned p =
        plan_job("customMpiSettings",
                 mpi_settings("[ \"$TOKEN\" = s3cret ] && echo "
                              "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} of "
                              "${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE} $AZ_BATCH_NODE_ID",
                              3),
                 NULL, 2, 0);
    auto_free char *out = NULL;

    (void)state;
    if (access("/usr/bin/mpirun", X_OK) < 0) {
        print_message("no mpirun here\n");
        skip();
    }
    assert_int_equal(run(p.plan.tasks[0].command, p.plan.tasks[0].env), 0);
    out = read_file("out", NULL);
    assert_non_null(strstr(out, "0 of 3 tvm-1\n"));
    assert_non_null(strstr(out, "1 of 3 tvm-1\n"));
    assert_non_null(strstr(out, "2 of 3 tvm-2\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_reach_bash_as_they_are),
        cmocka_unit_test(ranks_get_the_command_as_it_is),
        cmocka_unit_test(ranks_know_their_node_by_its_address),
        cmocka_unit_test(ranks_on_one_host_stand_for_their_nodes),
        cmocka_unit_test(arguments_of_mpirun_have_no_secret),
        cmocka_unit_test(the_end_of_ranks_is_the_end_of_the_task),
        cmocka_unit_test(a_missing_mpirun_says_what_to_do),
        cmocka_unit_test(scripts_get_their_arguments),
        cmocka_unit_test(paths_are_expanded_and_not_split),
        cmocka_unit_test(a_script_without_interpreter_finds_one),
        cmocka_unit_test(real_ranks_start_on_this_host),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
