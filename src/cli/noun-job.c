/* Jobs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-spec.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/job-wait.h"
#include "cli/rest.h"

#include <limits.h>

#define JOB BATCHAI_JOBS "/{name}"

static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the job.",
    .required = true,
};
static const struct option_row cluster = {
    .names = "--cluster -c",
    .help = "Name or id of the cluster to run on.",
    .required = true,
};
static const struct option_row config_file = {
    .names = "--config-file -f",
    .help = "File with the parameters as JSON.",
    .required = true,
};
static const struct option_row interval = {
    .names = "--interval",
    .help = "Seconds between two looks.",
    .default_text = "1",
};

/* The id of the cluster, as the yard writes it. */
static int find_cluster(struct call *call, char **ret_id, struct err *e)
{
    const char *text = args_get(call->args, "cluster");
    auto_free char *path = NULL;
    auto_json json_t *found = NULL;
    const char *id;
    struct rest *rest;

    if (batchai_is_id(text))
        path = xasprintf("%s?api-version=%s", text, ARM_BATCHAI);
    else if (arm_path(call, BATCHAI_CLUSTERS "/{cluster}", ARM_BATCHAI, &path, e) < 0)
        return -1;
    if (call_rest(call, &rest, e) < 0 || rest_call(rest, "GET", path, NULL, &found, e) < 0 ||
        json_get_string(found, "id", &id, e) < 0)
        return -1;
    if (!id)
        return err_set(e, ERR_INTERNAL, "the cluster has no id");
    *ret_id = xstrdup(id);
    return 0;
}

static int create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = NULL;
    auto_free char *cluster_id = NULL;
    json_t *properties;

    if (batchai_read_config(call, &body, e) < 0 ||
        batchai_need_new(call, JOB, "a job", e) < 0 || find_cluster(call, &cluster_id, e) < 0)
        return -1;
    properties = json_object_get(body, "properties");
    json_object_set_new(properties, "cluster", json_pack("{s:s}", "id", cluster_id));
    if (batchai_set_volumes(call, properties, e) < 0)
        return -1;
    return batchai_act(call, JOB, "PUT", body, true, ret_result, e);
}

static int show(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, JOB, "GET", NULL, false, ret_result, e);
}

static int list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_list(call, BATCHAI_JOBS, ret_result, e);
}

static int delete (struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, JOB, "DELETE", NULL, !args_flag(call->args, "no-wait"), NULL, e);
}

static int terminate(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, JOB "/terminate", "POST", NULL, !args_flag(call->args, "no-wait"),
                       NULL, e);
}

static int wait_for(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    long seconds = 1;

    (void)ret_result;
    if (batchai_number(call, "interval", 1, 3600, &seconds, e) < 0 ||
        arm_path(call, JOB, ARM_BATCHAI, &path, e) < 0)
        return -1;
    return job_wait(call, path, seconds, e);
}

static const char ids[] =
    "resourceGroups=resource-group workspaces=workspace experiments=experiment jobs=name";

const struct command job_commands[] = {
    {
        .path = "batchai job create",
        .summary = "Submit a job.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           &cluster,
                           &config_file,
                           BATCHAI_STORAGE_OPTIONS),
        .examples =
            {{"With a storage account for the placeholders of the file.",
              "yard batchai job create -c nc24r -n bench -g recipes -w vision -e horovod "
              "-f job.json --storage-account-name labdata"},
             {"With a share and a file server mounted for it.",
              "yard batchai job create -c nc24r -n bench -g recipes -w vision -e horovod "
              "-f job.json --storage-account-name labdata --afs-name logs --nfs "
              "datasets"}},
        .run = create,
        .shape = &batchai_job_shape,
        .table = batchai_job_table,
    },
    {
        .path = "batchai job show",
        .summary = "Show a job.",
        .options =
            OPTIONS(&name, &option_resource_group, &batchai_workspace, &batchai_experiment),
        .examples =
            {{"Show a job.",
              "yard batchai job show -n bench -g recipes -w vision -e horovod -o table"},
             {"Where its output lies.",
              "yard batchai job show -n bench -g recipes -w vision -e horovod --query "
              "jobOutputDirectoryPathSegment"}},
        .run = show,
        .shape = &batchai_job_shape,
        .table = batchai_job_table,
        .ids = ids,
    },
    {
        .path = "batchai job list",
        .summary = "List the jobs of an experiment.",
        .options = OPTIONS(&option_resource_group, &batchai_workspace, &batchai_experiment),
        .examples = {{"As a table.",
                      "yard batchai job list -g recipes -w vision -e horovod -o table"}},
        .run = list,
        .shape = &batchai_job_shape,
        .table = batchai_job_table,
    },
    {
        .path = "batchai job delete",
        .summary = "Delete a job; a running one is ended first. Its output stays.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           &option_no_wait),
        .examples = {{"Without being asked.",
                      "yard batchai job delete -n bench -g recipes -w vision -e horovod -y"}},
        .run = delete,
        .ids = ids,
        .confirms = true,
    },
    {
        .path = "batchai job terminate",
        .summary = "End a job.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_experiment,
                           &option_no_wait),
        .examples =
            {{"Without being asked.",
              "yard batchai job terminate -n bench -g recipes -w vision -e horovod -y"}},
        .run = terminate,
        .ids = ids,
        .confirms = true,
    },
    {
        .path = "batchai job wait",
        .summary = "Wait for the end of a job, and exit with its exit code.",
        .options = OPTIONS(
            &name, &option_resource_group, &batchai_workspace, &batchai_experiment, &interval),
        .examples = {{"Wait for a job.",
                      "yard batchai job wait -n bench -g recipes -w vision -e horovod"}},
        .run = wait_for,
        .ids = ids,
    },
    {0},
};
