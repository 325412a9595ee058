/* SPDX-License-Identifier: Apache-2.0 */
#include "core/launch.h"

#include "base/json.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROOT    "/mnt/batch/tasks/shared/LS_root"
#define JOB     ROOT "/jobs/ws/exp/train"
#define SEGMENT "sub/group/workspaces/ws/experiments/exp/jobs/train/uuid"
#define LOGS    JOB "/mounts/logs/" SEGMENT "/stdouterr"

static const struct launch_node nodes[] = {
    {"tvm-1-1", "10.0.0.4", ROOT, 12, 2, "0,1"},
    {"tvm-1-2", "10.0.0.5", ROOT, 12, 2, "2,3"},
    {"tvm-1-3", "10.0.0.6", ROOT, 12, 2, "4,5"},
};

/* A plan with what it needs. */
struct planned {
    struct arena *arena;
    json_t *job;
    struct launch_input input;
    struct launch_plan plan;
};

static void planned_done(struct planned *p)
{
    json_decref(p->job);
    arena_free(p->arena);
}
#define auto_planned __attribute__((cleanup(planned_done))) struct planned

/* The job of a text, with prefix and segment as above unless it has its own. */
static struct planned begin(const char *text, size_t node_count)
{
    struct planned p = {.arena = arena_new(), .job = json_loads(text, 0, NULL)};

    assert_non_null(p.job);
    if (!json_object_get(p.job, "stdOutErrPathPrefix"))
        json_object_set_new(p.job, "stdOutErrPathPrefix",
                            json_string("$AZ_BATCHAI_JOB_MOUNT_ROOT/logs"));
    p.input = (struct launch_input){
        .job = p.job,
        .workspace = "ws",
        .experiment = "exp",
        .name = "train",
        .cluster = "nc",
        .segment = SEGMENT,
        .nodes = nodes,
        .node_count = node_count,
        .has_ssh = true,
        .attempt = 1,
    };
    return p;
}

static void finish(struct planned *p)
{
    struct err e = {0};

    if (launch_plan(&p->input, p->arena, &p->plan, &e) < 0)
        fail_msg("%s", e.msg);
    if (!p->plan.tasks) /* the analyzer does not know that a plan has some */
        abort();
}

static const char *value(const struct launch_task *task, const char *name)
{
    size_t len = strlen(name);
    const char *found = NULL;

    for (const char *const *p = task->env; *p; p++) {
        if (strncmp(*p, name, len) == 0 && (*p)[len] == '=') {
            assert_null(found); /* each name once */
            found = *p + len + 1;
        }
    }
    return found;
}

static void assert_value(const struct launch_task *task, const char *name, const char *want)
{
    const char *got = value(task, name);

    if (!str_equal(got, want))
        fail_msg("%s: %s is %s, not %s", task->name, name, got, want);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void assert_env(const struct launch_task *task, const char *const *want)
{
    size_t i = 0;

    for (; want[i]; i++) {
        if (!str_equal(task->env[i], want[i]))
            fail_msg("%s: variable %zu is %s, not %s", task->name, i, task->env[i], want[i]);
    }
    if (task->env[i])
        fail_msg("%s: also has %s", task->name, task->env[i]);
}

/* --- folders, logs, variables --- */

static const char custom[] =
    "{\"customToolkitSettings\": {\"commandLine\": \"./train $X\"},"
    "\"jobPreparation\": {\"commandLine\": \"make\"},"
    "\"inputDirectories\": [{\"id\": \"IN\", \"path\": \"$AZ_BATCHAI_MOUNT_ROOT/data\"},"
    "  {\"id\": \"SUB\", \"path\": \"$AZ_BATCHAI_INPUT_IN/sub\"}],"
    "\"outputDirectories\": [{\"id\": \"M\", \"pathPrefix\": "
    "\"$AZ_BATCHAI_JOB_MOUNT_ROOT/out/\","
    "  \"pathSuffix\": \"models\"}, {\"id\": \"T\", \"pathPrefix\": \"/tmp\"}],"
    "\"environmentVariables\": [{\"name\": \"X\", \"value\": \"${AZ_BATCHAI_INPUT_IN}/$PATH "
    "$1$\"},"
    "  {\"name\": \"TMPDIR\", \"value\": \"/scratch\"}],"
    "\"secrets\": [{\"name\": \"S\", \"value\": \"pa$$w0rd\"}]}";

static void a_custom_job_has_every_variable_once(void **state)
{
    static const char *const want[] = {
        "AZ_BATCHAI_ROOT=" ROOT,
        "AZ_BATCHAI_MOUNT_ROOT=" ROOT "/mounts",
        "AZ_BATCHAI_JOB_TEMP_DIR=" ROOT "/jobs",
        "AZ_BATCHAI_JOB_TEMP=" JOB,
        "AZ_BATCHAI_JOB_WORK_DIR=" JOB "/wd",
        "AZ_BATCHAI_SHARED_JOB_TEMP=" JOB "/shared",
        "AZ_BATCHAI_JOB_MOUNT_ROOT=" JOB "/mounts",
        "AZ_BATCHAI_MPI_HOST_FILE=" JOB "/hostfile",
        "AZ_BATCH_HOST_LIST=10.0.0.4,10.0.0.5",
        "AZ_BATCH_MASTER_NODE=10.0.0.4:6000",
        "AZ_BATCHAI_JOB_MASTER_NODE_IP=10.0.0.4",
        "AZ_BATCH_IS_CURRENT_NODE_MASTER=true",
        "AZ_BATCH_NODE_ID=tvm-1-1",
        "AZ_BATCHAI_CLUSTER_NAME=nc",
        "AZ_BATCHAI_NUM_GPUS=2",
        "AZ_BATCHAI_NUM_GPUS_PER_NODE=2",
        "AZ_BATCHAI_STDOUTERR_DIR=" LOGS,
        "AZ_BATCHAI_INPUT_IN=" ROOT "/mounts/data",
        "AZ_BATCHAI_INPUT_SUB=" ROOT "/mounts/data/sub",
        "AZ_BATCHAI_OUTPUT_M=" JOB "/mounts/out/" SEGMENT "/outputs/models",
        "AZ_BATCHAI_PREV_OUTPUT_M=",
        "AZ_BATCHAI_OUTPUT_T=/tmp/" SEGMENT "/outputs",
        "AZ_BATCHAI_PREV_OUTPUT_T=",
        "TMPDIR=/scratch",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "CUDA_VISIBLE_DEVICES=0,1",
        "X=" ROOT "/mounts/data/$PATH $1$",
        "S=pa$$w0rd",
        NULL,
    };
    auto_planned p = begin(custom, 2);

    (void)state;
    p.input.home = "/root";
    finish(&p);
    assert_int_equal(p.plan.task_count, 1);
    assert_env(&p.plan.tasks[0], want);
    assert_env(&p.plan.preparations[0], want);
    assert_value(&p.plan.preparations[1], "AZ_BATCH_NODE_ID", "tvm-1-2");
    assert_value(&p.plan.preparations[1], "AZ_BATCH_IS_CURRENT_NODE_MASTER", "false");
    assert_value(&p.plan.preparations[1], "CUDA_VISIBLE_DEVICES", "2,3");
}

static void a_second_attempt_knows_the_outputs_of_the_first(void **state)
{
    auto_planned p = begin(custom, 1);

    (void)state;
    p.input.attempt = 2;
    finish(&p);
    assert_value(&p.plan.tasks[0], "AZ_BATCHAI_PREV_OUTPUT_T", "/tmp/" SEGMENT "/outputs");
}

static void a_container_keeps_its_own_path_and_home(void **state)
{
    auto_planned p = begin(custom, 1);

    (void)state;
    p.input.is_container = true;
    p.input.home = "/root";
    finish(&p);
    assert_value(&p.plan.tasks[0], "PATH", NULL);
    assert_value(&p.plan.tasks[0], "HOME", NULL);
    assert_value(&p.plan.tasks[0], "TMPDIR", "/scratch");
}

static void folders_are_those_of_the_service(void **state)
{
    static const char *const folders[] = {
        "jobs",
        "jobs/ws",
        "jobs/ws/exp",
        "jobs/ws/exp/train",
        "jobs/ws/exp/train/config",
        "jobs/ws/exp/train/wd",
        "jobs/ws/exp/train/mounts",
        NULL,
    };
    auto_planned p = begin(custom, 2);

    (void)state;
    finish(&p);
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
        assert_true(str_equal(p.plan.folders[i], folders[i]));
    assert_string_equal(p.plan.work_folder, "jobs/ws/exp/train/wd");
    assert_string_equal(p.plan.shared_folder, "jobs/ws/exp/train/shared");
    assert_string_equal(p.plan.stdouterr_folder, LOGS);
    assert_string_equal(p.plan.output_folders[0], LOGS);
    assert_string_equal(p.plan.output_folders[1], JOB "/mounts/out/" SEGMENT "/outputs/models");
    assert_string_equal(p.plan.output_folders[2], "/tmp/" SEGMENT "/outputs");
    assert_null(p.plan.output_folders[3]);
    assert_string_equal(p.plan.hostfile_path, "jobs/ws/exp/train/hostfile");
}

static void logs_have_the_names_of_the_service(void **state)
{
    auto_planned one = begin(custom, 1), two = begin(custom, 2);

    (void)state;
    finish(&one);
    finish(&two);
    assert_string_equal(one.plan.tasks[0].stdout_path, LOGS "/stdout.txt");
    assert_string_equal(one.plan.tasks[0].stderr_path, LOGS "/stderr.txt");
    assert_int_equal(one.plan.preparation_count, 1);
    assert_string_equal(one.plan.preparations[0].stdout_path, LOGS "/stdout-job_prep.txt");
    assert_string_equal(one.plan.preparations[0].stderr_path, LOGS "/stderr-job_prep.txt");
    assert_string_equal(one.plan.preparations[0].command, "make");
    assert_int_equal(two.plan.preparation_count, 2);
    assert_string_equal(two.plan.preparations[1].stdout_path,
                        LOGS "/stdout-job_prep-tvm-1-2.txt");
    assert_int_equal(two.plan.preparations[1].node, 1);
    assert_string_not_equal(two.plan.preparations[0].name, two.plan.preparations[1].name);
    assert_string_equal(launch_execution_log(&one.input, 0, one.arena), "execution.log");
    assert_string_equal(launch_execution_log(&two.input, 1, two.arena),
                        "execution-tvm-1-2.log");
}

static void nodes_without_a_common_root_have_their_own_paths(void **state)
{
    const struct launch_node folders[] = {
        {"a", "127.0.0.1", "/data/nodes/a/root", 2, 0, NULL},
        {"b", "127.0.0.1", "/data/nodes/b/root", 2, 0, NULL},
    };
    auto_planned p = begin("{\"caffe2Settings\": {\"pythonScriptFilePath\": \"x.py\"}}", 2);

    (void)state;
    p.input.nodes = folders;
    p.input.has_ssh = false;
    finish(&p);
    assert_int_equal(p.plan.task_count, 2);
    assert_string_equal(p.plan.tasks[1].stdout_path,
                        "/data/nodes/b/root/jobs/ws/exp/train/mounts/logs/" SEGMENT
                        "/stdouterr/stdout-1.txt");
    assert_value(&p.plan.tasks[1], "CUDA_VISIBLE_DEVICES", NULL);
    assert_value(&p.plan.tasks[1], "AZ_BATCHAI_TASK_INDEX", "1");
}

static void a_path_that_leads_nowhere_is_refused(void **state)
{
    static const char *const jobs[] = {
        "{\"customToolkitSettings\": {}, \"stdOutErrPathPrefix\": "
        "\"$AZ_BATCHAI_INPUT_X/logs\"}",
        "{\"customToolkitSettings\": {}, \"inputDirectories\": [{\"id\": \"A\", \"path\": "
        "\"$AZ_BATCHAI_INPUT_X/y\"}]}",
        "{\"customToolkitSettings\": {}, \"outputDirectories\": [{\"id\": \"A\", "
        "\"pathPrefix\": \"$AZ_BATCHAI_NOTHING\"}]}",
        "{}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
        auto_planned p = begin(jobs[i], 1);
        struct err e = {0};

        assert_int_equal(launch_plan(&p.input, p.arena, &p.plan, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void variables_are_expanded_where_they_are_known(void **state)
{
    static const char *const env[] = {"A=1", "AB=2", "EMPTY=", "D=$A", NULL};
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ""},        {"plain", "plain"}, {"$A", "1"},          {"$AB$A", "21"},
        {"${A}B", "1B"}, {"$ABC", "$ABC"},   {"${ABC}", "${ABC}"}, {"x$EMPTY-y", "x-y"},
        {"$D", "$A"}, /* once */
        {"$", "$"},      {"$$A", "$1"},      {"${A", "${A"},       {"${}", "${}"},
        {"$1", "$1"},    {"\\$A", "\\1"},
    };
    autoptr(arena) arena = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(launch_expand(rows[i].text, env, arena), rows[i].want);
}

/* --- MPI --- */

#define SCRIPT "\"pythonScriptFilePath\": \"$AZ_BATCHAI_JOB_TEMP/x.py\""

static const char *const mpi_jobs[] = {
    "{\"customMpiSettings\": {\"commandLine\": \"run me\", \"processCount\": 5}}",
    "{\"horovodSettings\": {" SCRIPT ", \"processCount\": 5}}",
    "{\"chainerSettings\": {" SCRIPT ", \"processCount\": 5}}",
    "{\"cntkSettings\": {" SCRIPT ", \"processCount\": 5}}",
    "{\"cntkSettings\": {\"configFilePath\": \"c.cntk\", \"processCount\": 5}}",
    "{\"caffeSettings\": {" SCRIPT ", \"processCount\": 5}}",
    "{\"caffeSettings\": {\"configFilePath\": \"solver\", \"processCount\": 5}}",
    "{\"pyTorchSettings\": {" SCRIPT
    ", \"communicationBackend\": \"MPI\", \"processCount\": 5}}",
};

static void mpi_jobs_are_one_mpirun_on_the_first_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(mpi_jobs); i++) {
        auto_planned p = begin(mpi_jobs[i], 2);
        const struct launch_task *task;

        finish(&p);
        task = &p.plan.tasks[0];
        assert_int_equal(p.plan.task_count, 1);
        assert_string_equal(task->name, "main");
        assert_int_equal(task->node, 0);
        assert_int_equal(task->role, LAUNCH_MASTER);
        assert_string_equal(task->stdout_path, LOGS "/stdout.txt");
        assert_has(task->command, "-np 5 --hostfile \"$AZ_BATCHAI_MPI_HOST_FILE\"");
        assert_has(task->command, "--map-by ppr:3:node");
        assert_has(task->command, "btl_tcp_if_include eth0");
        assert_has(task->command, "-n 5 -ppn 3 -hosts \"$AZ_BATCH_HOST_LIST\"");
        assert_has(task->command, " -x AZ_BATCHAI_JOB_TEMP ");
        assert_null(strstr(task->command, "-p 23"));
        assert_string_equal(p.plan.hostfile, "10.0.0.4 slots=3 max-slots=12\n"
                                             "10.0.0.5 slots=3 max-slots=12\n");
    }
}

static void containers_are_reached_on_their_own_port(void **state)
{
    auto_planned p = begin(mpi_jobs[0], 2);

    (void)state;
    p.input.is_container = true;
    finish(&p);
    assert_has(p.plan.tasks[0].command, "--mca plm_rsh_args '\\''-p 23'\\''");
    assert_has(p.plan.tasks[0].command, "HYDRA_LAUNCHER_EXTRA_ARGS='\\''-p 23'\\''");
}

static void without_ssh_all_ranks_start_here(void **state)
{
    auto_planned p = begin(mpi_jobs[1], 2), one = begin(mpi_jobs[1], 1);

    (void)state;
    p.input.has_ssh = false;
    finish(&p);
    assert_has(p.plan.tasks[0].command, "-np 5 --host localhost:5");
    assert_has(p.plan.tasks[0].command, "-n 5 -ppn 5 -hosts localhost");
    assert_null(strstr(p.plan.tasks[0].command, "eth0"));
    assert_value(&p.plan.tasks[0], "AZ_BATCH_HOST_LIST", "127.0.0.1,127.0.0.1");
    assert_value(&p.plan.tasks[0], "CUDA_VISIBLE_DEVICES", "0,1,2,3");
    assert_string_equal(p.plan.hostfile, "localhost slots=6 max-slots=24\n");
    /* Nor does a job of one node need it. */
    finish(&one);
    assert_has(one.plan.tasks[0].command, "-np 5 --host localhost:5");
    assert_string_equal(one.plan.hostfile, "10.0.0.4 slots=5 max-slots=12\n");
}

static void secrets_are_named_and_never_valued(void **state)
{
    auto_planned p =
        begin("{\"customMpiSettings\": {\"commandLine\": \"x\", \"processCount\": 2},"
              "\"environmentVariables\": [{\"name\": \"OPEN\", \"value\": \"o-val\"}],"
              "\"secrets\": [{\"name\": \"TOKEN\", \"value\": \"s-val\"}]}",
              2);
    const char *command;

    (void)state;
    finish(&p);
    command = p.plan.tasks[0].command;
    assert_has(command, " -x OPEN -x TOKEN ");
    assert_has(command, ",OPEN,TOKEN ");
    assert_null(strstr(command, "s-val"));
    assert_null(strstr(command, "o-val"));
    assert_value(&p.plan.tasks[0], "TOKEN", "s-val");
    /* What belongs to one node is not handed to others. */
    assert_null(strstr(command, "-x AZ_BATCH_NODE_ID"));
    assert_null(strstr(command, "-x CUDA_VISIBLE_DEVICES"));
    assert_null(strstr(command, "-x PATH"));
}

static void one_process_needs_no_mpi_where_the_tool_can_do_without(void **state)
{
    static const struct {
        const char *job, *part;
    } rows[] = {
        {"{\"cntkSettings\": {" SCRIPT ", \"processCount\": 1, \"commandLineArgs\": \"-n 5\"}}",
         "\"$AZ_BATCHAI_JOB_TEMP/x.py\" -n 5"},
        {"{\"cntkSettings\": {\"configFilePath\": \"$C/a b.cntk\", \"processCount\": 1}}",
         "cntk configFile=\"$C/a b.cntk\""},
        {"{\"caffeSettings\": {\"configFilePath\": \"s\", \"processCount\": 1, "
         "\"commandLineArgs\": \"-gpu all\"}}",
         "caffe train --solver=\"s\" -gpu all"},
        {"{\"caffeSettings\": {" SCRIPT ", \"processCount\": 1}}", "x.py"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_planned p = begin(rows[i].job, 1);

        finish(&p);
        assert_int_equal(p.plan.task_count, 1);
        assert_has(p.plan.tasks[0].command, rows[i].part);
        assert_null(strstr(p.plan.tasks[0].command, "mpirun"));
        assert_string_equal(p.plan.tasks[0].stdout_path, LOGS "/stdout.txt");
    }
}

/* --- a task for each process --- */

static void pytorch_has_a_task_for_each_process(void **state)
{
    auto_planned p = begin("{\"pyTorchSettings\": {" SCRIPT ", \"processCount\": 4, "
                           "\"communicationBackend\": \"NCCL\"}}",
                           2);
    const struct launch_task *last;

    (void)state;
    finish(&p);
    assert_int_equal(p.plan.task_count, 4);
    last = &p.plan.tasks[3];
    assert_string_equal(last->name, "3");
    assert_int_equal(last->rank, 3);
    assert_int_equal(last->node, 1);
    assert_int_equal(last->role, LAUNCH_WORKER);
    assert_int_equal(p.plan.tasks[0].role, LAUNCH_MASTER);
    assert_int_equal(p.plan.tasks[1].node, 0);
    assert_string_equal(last->stderr_path, LOGS "/stderr-3.txt");
    assert_value(last, "AZ_BATCHAI_TASK_INDEX", "3");
    assert_value(last, "AZ_BATCHAI_PYTORCH_INIT_METHOD",
                 "file://" JOB "/shared/pytorch-init-1");
    assert_value(last, "AZ_BATCHAI_PYTORCH_BACKEND", "nccl");
    assert_value(last, "MASTER_ADDR", "10.0.0.4");
    assert_value(last, "MASTER_PORT", "2222");
    assert_value(last, "WORLD_SIZE", "4");
    assert_value(last, "RANK", "3");
    assert_value(last, "LOCAL_RANK", "1");
    assert_value(last, "CUDA_VISIBLE_DEVICES", "2,3");
}

static void without_ssh_tasks_meet_on_this_host(void **state)
{
    auto_planned p = begin("{\"pyTorchSettings\": {" SCRIPT ", \"processCount\": 2}}", 2);
    auto_planned again = begin("{\"pyTorchSettings\": {" SCRIPT ", \"processCount\": 2}}", 2);
    int port;

    (void)state;
    p.input.has_ssh = again.input.has_ssh = false;
    again.input.attempt = 2;
    finish(&p);
    finish(&again);
    assert_value(&p.plan.tasks[1], "MASTER_ADDR", "127.0.0.1");
    assert_value(&p.plan.tasks[1], "AZ_BATCHAI_PYTORCH_BACKEND", "gloo");
    port = atoi(value(&p.plan.tasks[1], "MASTER_PORT"));
    assert_in_range(port, 20000, 32000);
    /* Not the file of the attempt before. */
    assert_string_not_equal(value(&p.plan.tasks[0], "AZ_BATCHAI_PYTORCH_INIT_METHOD"),
                            value(&again.plan.tasks[0], "AZ_BATCHAI_PYTORCH_INIT_METHOD"));
}

/* --- TensorFlow --- */

static void assert_config(const struct launch_task *task, const char *name, const char *want)
{
    auto_json json_t *got = json_loads(value(task, name), 0, NULL), *wanted = NULL;

    wanted = json_loads(want, 0, NULL);
    assert_non_null(got);
    assert_non_null(wanted);
    if (!json_equal(got, wanted))
        fail_msg("%s: %s is %s", task->name, name, value(task, name));
}

static const char tensorflow[] =
    "{\"tensorFlowSettings\": {" SCRIPT ", \"workerCount\": 2, \"parameterServerCount\": 1,"
    "\"masterCommandLineArgs\": \"--master\", \"workerCommandLineArgs\": \"--worker\","
    "\"parameterServerCommandLineArgs\": \"--server\"}}";

static void tensorflow_has_workers_and_servers(void **state)
{
    auto_planned p = begin(tensorflow, 2);
    const struct launch_task *t;

    (void)state;
    finish(&p);
    t = p.plan.tasks;
    assert_int_equal(p.plan.task_count, 3);
    assert_string_equal(t[0].name, "wk-0");
    assert_string_equal(t[1].name, "wk-1");
    assert_string_equal(t[2].name, "ps-0");
    assert_int_equal(t[0].role, LAUNCH_MASTER);
    assert_int_equal(t[1].role, LAUNCH_WORKER);
    assert_int_equal(t[2].role, LAUNCH_SERVER);
    assert_int_equal(t[1].node, 1);
    assert_int_equal(t[2].node, 0);
    assert_has(t[0].command, "--master");
    assert_has(t[1].command, "--worker");
    assert_has(t[2].command, "--server");
    assert_string_equal(t[0].stdout_path, LOGS "/stdout-wk-0.txt");
    assert_string_equal(t[2].stderr_path, LOGS "/stderr-ps-0.txt");
    for (int i = 0; i < 3; i++) {
        assert_value(&t[i], "AZ_BATCHAI_PS_HOSTS", "10.0.0.4:2222");
        assert_value(&t[i], "AZ_BATCHAI_WORKER_HOSTS", "10.0.0.4:2223,10.0.0.5:2222");
        assert_value(&t[i], "KERAS_BACKEND", "tensorflow");
    }
    assert_value(&t[0], "AZ_BATCHAI_TASK_TYPE", "master");
    assert_value(&t[1], "AZ_BATCHAI_TASK_TYPE", "worker");
    assert_value(&t[1], "AZ_BATCHAI_TASK_INDEX", "1");
    assert_value(&t[2], "AZ_BATCHAI_TASK_TYPE", "ps");
    assert_value(&t[2], "CUDA_VISIBLE_DEVICES", "");
    assert_value(&t[0], "CUDA_VISIBLE_DEVICES", "0,1");
}

#define HOSTS                                                                                  \
    "\"cluster\": {\"ps\": [\"10.0.0.4:2222\"], "                                              \
    "\"worker\": [\"10.0.0.4:2223\", \"10.0.0.5:2222\"]}, \"environment\": \"cloud\""
#define CHIEFS                                                                                 \
    "\"cluster\": {\"ps\": [\"10.0.0.4:2222\"], \"chief\": [\"10.0.0.4:2223\"], "              \
    "\"worker\": [\"10.0.0.5:2222\"]}, \"environment\": \"cloud\""

static void tf_config_has_both_forms(void **state)
{
    auto_planned p = begin(tensorflow, 2);
    const struct launch_task *t;

    (void)state;
    finish(&p);
    t = p.plan.tasks;
    assert_config(&t[0], "TF_CONFIG",
                  "{" HOSTS ", \"task\": {\"type\": \"master\", \"index\": 0}}");
    assert_config(&t[1], "TF_CONFIG",
                  "{" HOSTS ", \"task\": {\"type\": \"worker\", \"index\": 1}}");
    assert_config(&t[2], "TF_CONFIG",
                  "{" HOSTS ", \"task\": {\"type\": \"ps\", \"index\": 0}}");
    assert_config(&t[0], "YARD_TF_CONFIG",
                  "{" CHIEFS ", \"task\": {\"type\": \"chief\", \"index\": 0}}");
    assert_config(&t[1], "YARD_TF_CONFIG",
                  "{" CHIEFS ", \"task\": {\"type\": \"worker\", \"index\": 0}}");
    assert_config(&t[2], "YARD_TF_CONFIG",
                  "{" CHIEFS ", \"task\": {\"type\": \"ps\", \"index\": 0}}");
}

static void workers_of_a_node_part_its_gpus(void **state)
{
    auto_planned p = begin("{\"tensorFlowSettings\": {" SCRIPT ", \"workerCount\": 5, "
                           "\"parameterServerCount\": 2}}",
                           3);
    const struct launch_task *t;

    (void)state;
    finish(&p);
    t = p.plan.tasks;
    assert_int_equal(p.plan.task_count, 7);
    assert_value(&t[0], "CUDA_VISIBLE_DEVICES", "0");
    assert_value(&t[1], "CUDA_VISIBLE_DEVICES", "1");
    assert_value(&t[3], "CUDA_VISIBLE_DEVICES", "3");
    assert_int_equal(t[4].node, 2);
    assert_value(&t[4], "CUDA_VISIBLE_DEVICES", "4,5");
    assert_value(&t[0], "AZ_BATCHAI_PS_HOSTS", "10.0.0.4:2222,10.0.0.5:2222");
    assert_value(&t[0], "AZ_BATCHAI_WORKER_HOSTS",
                 "10.0.0.4:2223,10.0.0.4:2224,10.0.0.5:2223,10.0.0.5:2224,10.0.0.6:2222");
}

static void tensorflow_on_this_host_has_ports_of_its_own(void **state)
{
    auto_planned p = begin(tensorflow, 2);
    const char *servers, *workers;
    auto_free char *want = NULL;
    int port;

    (void)state;
    p.input.has_ssh = false;
    finish(&p);
    servers = value(&p.plan.tasks[0], "AZ_BATCHAI_PS_HOSTS");
    workers = value(&p.plan.tasks[0], "AZ_BATCHAI_WORKER_HOSTS");
    assert_true(str_starts(servers, "127.0.0.1:"));
    port = atoi(servers + strlen("127.0.0.1:"));
    want = xasprintf("127.0.0.1:%d,127.0.0.1:%d", port + 1, port + 2);
    assert_string_equal(workers, want);
}

static void tensorflow_on_one_node_is_one_worker(void **state)
{
    auto_planned p =
        begin("{\"tensorFlowSettings\": {" SCRIPT ", \"masterCommandLineArgs\": \"-a\"}}", 1);

    (void)state;
    finish(&p);
    assert_int_equal(p.plan.task_count, 1);
    assert_string_equal(p.plan.tasks[0].stdout_path, LOGS "/stdout-wk-0.txt");
    assert_has(p.plan.tasks[0].command, "x.py\" -a");
    assert_value(&p.plan.tasks[0], "TF_CONFIG", NULL);
    assert_value(&p.plan.tasks[0], "YARD_TF_CONFIG", NULL);
    assert_value(&p.plan.tasks[0], "AZ_BATCHAI_PS_HOSTS", "");
    assert_value(&p.plan.tasks[0], "CUDA_VISIBLE_DEVICES", "0,1");
}

/* --- a node's own set-up --- */

static void a_node_is_set_up_with_its_own_logs(void **state)
{
    static const char *const want[] = {
        "AZ_BATCHAI_ROOT=" ROOT,
        "AZ_BATCHAI_MOUNT_ROOT=" ROOT "/mounts",
        "AZ_BATCHAI_STDOUTERR_DIR=" ROOT "/mounts/logs/s/u",
        "AZ_BATCHAI_CLUSTER_NAME=nc",
        "AZ_BATCH_NODE_ID=tvm-1-1",
        "AZ_BATCHAI_NUM_GPUS=2",
        "AZ_BATCHAI_NUM_GPUS_PER_NODE=2",
        "TMPDIR=/tmp",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "CUDA_VISIBLE_DEVICES=0,1",
        "G=" ROOT "/mounts",
        "H=hush",
        NULL,
    };
    auto_json json_t *cluster =
        json_loads("{\"nodeSetup\": {\"setupTask\": {\"commandLine\": \"echo $G\","
                   "\"stdOutErrPathPrefix\": \"$AZ_BATCHAI_MOUNT_ROOT/logs/\","
                   "\"environmentVariables\": [{\"name\": \"G\", \"value\": "
                   "\"$AZ_BATCHAI_MOUNT_ROOT\"}],"
                   "\"secrets\": [{\"name\": \"H\", \"value\": \"hush\"}]}}}",
                   0, NULL);
    auto_json json_t *plain = json_object();
    autoptr(arena) arena = arena_new();
    struct launch_task task;

    (void)state;
    assert_int_equal(launch_setup_task(cluster, "nc", "s/u", &nodes[0], arena, &task, NULL), 0);
    assert_string_equal(task.command, "echo $G");
    assert_env(&task, want);
    assert_string_equal(task.stdout_path, ROOT "/mounts/logs/s/u/stdout-tvm-1-1.txt");
    assert_string_equal(task.stderr_path, ROOT "/mounts/logs/s/u/stderr-tvm-1-1.txt");
    assert_int_equal(launch_setup_task(plain, "nc", "s/u", &nodes[0], arena, &task, NULL), 0);
    assert_null(task.command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_custom_job_has_every_variable_once),
        cmocka_unit_test(a_second_attempt_knows_the_outputs_of_the_first),
        cmocka_unit_test(a_container_keeps_its_own_path_and_home),
        cmocka_unit_test(folders_are_those_of_the_service),
        cmocka_unit_test(logs_have_the_names_of_the_service),
        cmocka_unit_test(nodes_without_a_common_root_have_their_own_paths),
        cmocka_unit_test(a_path_that_leads_nowhere_is_refused),
        cmocka_unit_test(variables_are_expanded_where_they_are_known),
        cmocka_unit_test(mpi_jobs_are_one_mpirun_on_the_first_node),
        cmocka_unit_test(containers_are_reached_on_their_own_port),
        cmocka_unit_test(without_ssh_all_ranks_start_here),
        cmocka_unit_test(secrets_are_named_and_never_valued),
        cmocka_unit_test(one_process_needs_no_mpi_where_the_tool_can_do_without),
        cmocka_unit_test(pytorch_has_a_task_for_each_process),
        cmocka_unit_test(without_ssh_tasks_meet_on_this_host),
        cmocka_unit_test(tensorflow_has_workers_and_servers),
        cmocka_unit_test(tf_config_has_both_forms),
        cmocka_unit_test(workers_of_a_node_part_its_gpus),
        cmocka_unit_test(tensorflow_on_this_host_has_ports_of_its_own),
        cmocka_unit_test(tensorflow_on_one_node_is_one_worker),
        cmocka_unit_test(a_node_is_set_up_with_its_own_logs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
