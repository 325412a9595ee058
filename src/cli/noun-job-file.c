/* What jobs write, and the nodes they run on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-nodes.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/job-find.h"
#include "cli/job-stream.h"
#include "cli/rest.h"

#include <stdio.h>
#include <string.h>

#define JOB BATCHAI_JOBS "/{job}"

static const struct option_row job = {
    .names = "--job -j",
    .help = "Name of the job.",
    .required = true,
};
static const struct option_row directory = {
    .names = "--output-directory-id -d",
    .help = "Id of one of its output directories; stdouterr is where the logs are.",
    .default_text = "stdouterr",
};
static const struct option_row file_name = {
    .names = "--file-name -f",
    .help = "Name of the file.",
    .required = true,
};

static int file_list(struct call *call, json_t **ret_result, struct err *e)
{
    auto_str more = {0};
    long minutes = 60;

    if (batchai_number(call, "expiry", 5, 600, &minutes, e) < 0)
        return -1;
    str_add(&more, "&outputdirectoryid=");
    text_percent(&more, args_get(call->args, "output-directory-id"));
    str_add(&more, "&directory=");
    text_percent(&more, args_get(call->args, "path"));
    str_addf(&more, "&linkexpiryinminutes=%ld", minutes);
    return batchai_post_list(call, JOB "/listOutputFiles", str_text(&more), ret_result, e);
}

static int file_stream(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *found = NULL;
    auto_free char *line = NULL;
    struct job_stream stream = {
        .call = call,
        .file = args_get(call->args, "file-name"),
        .directory = args_get(call->args, "output-directory-id"),
        .path = args_get(call->args, "path"),
        .follows = true,
        .out = stdout,
    };

    (void)ret_result;
    if (batchai_act(call, JOB, "GET", NULL, false, &found, e) < 0)
        return -1;
    stream.job_id = job_id(found);
    line = xasprintf("The job goes on. Come back with: yard logs -f %s --file %s",
                     job_name(found), stream.file);
    job_leave_on_interrupt(line);
    return job_stream(&stream, e);
}

static int node_list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_post_list(call, JOB "/listRemoteLoginInformation", "", ret_result, e);
}

static int node_exec(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *found = NULL, *cluster = NULL, *nodes = NULL;
    auto_free char *path = NULL;
    const char *id;
    struct rest *rest;

    (void)ret_result;
    if (call_rest(call, &rest, e) < 0 ||
        batchai_act(call, JOB, "GET", NULL, false, &found, e) < 0 ||
        node_list(call, &nodes, e) < 0)
        return -1;
    id = json_string_value(json_object_get(
        json_object_get(json_object_get(found, "properties"), "cluster"), "id"));
    path = xasprintf("%s?api-version=%s", id ? id : "", ARM_BATCHAI);
    if (rest_call(rest, "GET", path, NULL, &cluster, e) < 0)
        return -1;
    return batchai_node_exec(call, cluster, nodes, e);
}

const struct command job_file_commands[] = {
    {
        .path = "batchai job file list",
        .summary = "List files that a job has written, with links to them.",
        .options = OPTIONS(&job,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           &directory,
                           &batchai_path,
                           &batchai_expiry),
        .examples = {{"Its logs.",
                      "yard batchai job file list -j bench -g recipes -w vision -e horovod -o "
                      "table"},
                     {"A folder of its models.",
                      "yard batchai job file list -j bench -g recipes -w vision -e horovod -d "
                      "MODEL -p checkpoints"}},
        .run = file_list,
        .shape = &batchai_file_shape,
        .table = batchai_file_table,
    },
    {
        .path = "batchai job file stream",
        .summary = "Show a file that a job writes, as it is written, until the job ends.",
        .options = OPTIONS(&job,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           &file_name,
                           &directory,
                           &batchai_path),
        .examples =
            {{"Its output.",
              "yard batchai job file stream -j bench -g recipes -w vision -e horovod -f "
              "stdout.txt"}},
        .run = file_stream,
    },
    {
        .path = "batchai job node list",
        .summary = "List how to log in to the nodes of a job.",
        .options =
            OPTIONS(&job, &option_resource_group, &batchai_workspace, &batchai_experiment),
        .examples = {{"As a table.",
                      "yard batchai job node list -j bench -g recipes -w vision -e horovod -o "
                      "table"}},
        .run = node_list,
        .table = batchai_node_table,
    },
    {
        .path = "batchai job node exec",
        .summary = "Run a command on a node of a job, or lead ports to it, by SSH.",
        .options = OPTIONS(&job,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           BATCHAI_NODE_OPTIONS),
        .examples = {{"See what runs.",
                      "yard batchai job node exec -j bench -g recipes -w vision -e horovod "
                      "--exec 'ps -ef'"}},
        .run = node_exec,
    },
    {0},
};
