/* Clusters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/batchai-cluster.h"
#include "cli/batchai-nodes.h"
#include "cli/batchai-setup.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"

#include <limits.h>

#define CLUSTER BATCHAI_CLUSTERS "/{name}"

static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the cluster.",
    .required = true,
};
static const struct option_row cluster = {
    .names = "--cluster -c",
    .help = "Name of the cluster.",
    .required = true,
};
static const struct option_row vm_size = {
    .names = "--vm-size -s",
    .help = "Size of its machines, for example Standard_NC6; \"host\" is this machine itself.",
};
static const struct option_row target = {
    .names = "--target -t",
    .help = "How many nodes; with --min and --max the number to begin with.",
};
static const struct option_row new_target = {
    .names = "--target -t",
    .help = "How many nodes.",
    .required = true,
};
static const struct option_row min = {
    .names = "--min",
    .help = "Fewest nodes of automatic scale.",
};
static const struct option_row max = {
    .names = "--max",
    .help = "Most nodes of automatic scale.",
};
static const struct option_row new_min = {
    .names = "--min",
    .help = "Fewest nodes of automatic scale.",
    .required = true,
};
static const struct option_row new_max = {
    .names = "--max",
    .help = "Most nodes of automatic scale.",
    .required = true,
};
static const struct option_row vm_priority = {
    .names = "--vm-priority",
    .help = "Whether its nodes may be taken away.",
    .choices = "dedicated lowpriority",
};
static const struct option_row image = {
    .names = "--image -i",
    .help = "Image of its machines: UbuntuLTS, UbuntuDSVM or publisher:offer:sku:version. Kept "
            "and shown; nodes are this machine's own system.",
};
static const struct option_row custom_image = {
    .names = "--custom-image",
    .help = "Id of an image of your own, beside --image. Kept and shown.",
};
static const struct option_row auto_storage = {
    .names = "--use-auto-storage",
    .help = "Mount a share at autoafs and a container at autobfs, made in the group "
            "batchaiautostorage when they are missing.",
    .kind = OPTION_FLAG,
};
static const struct option_row setup_task = {
    .names = "--setup-task",
    .help = "Command that runs on each new node.",
};
static const struct option_row setup_task_output = {
    .names = "--setup-task-output",
    .help = "Where the output of the set-up task goes, on a mounted file system.",
};
static const struct option_row subnet = {
    .names = "--subnet",
    .help = "Id of a subnet. Kept and shown.",
};

static int create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = NULL;

    if (batchai_need_new(call, CLUSTER, "a cluster", e) < 0 ||
        batchai_cluster_body(call, &body, e) < 0)
        return -1;
    return batchai_act(call, CLUSTER, "PUT", body, true, ret_result, e);
}

static int show(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, CLUSTER, "GET", NULL, false, ret_result, e);
}

static int list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_list(call, BATCHAI_CLUSTERS, ret_result, e);
}

static int delete (struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, CLUSTER, "DELETE", NULL, !args_flag(call->args, "no-wait"), NULL,
                       e);
}

static int patch_scale(struct call *call, json_t *scale, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = json_pack("{s:{s:o}}", "properties", "scaleSettings", scale);

    return batchai_act(call, CLUSTER, "PATCH", body, false, ret_result, e);
}

static int resize(struct call *call, json_t **ret_result, struct err *e)
{
    long count = 0;

    if (batchai_number(call, "target", 0, INT_MAX, &count, e) < 0)
        return -1;
    return patch_scale(call,
                       json_pack("{s:{s:I}}", "manual", "targetNodeCount", (json_int_t)count),
                       ret_result, e);
}

static int auto_scale(struct call *call, json_t **ret_result, struct err *e)
{
    long least = 0, most = 0;

    if (batchai_number(call, "min", 0, INT_MAX, &least, e) < 0 ||
        batchai_number(call, "max", 0, INT_MAX, &most, e) < 0)
        return -1;
    if (least > most)
        return args_fail(e, "--min", "--min is greater than --max");
    return patch_scale(call,
                       json_pack("{s:{s:I, s:I}}", "autoScale", "minimumNodeCount",
                                 (json_int_t)least, "maximumNodeCount", (json_int_t)most),
                       ret_result, e);
}

static int node_list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_post_list(call, BATCHAI_CLUSTERS "/{cluster}/listRemoteLoginInformation", "",
                             ret_result, e);
}

static int node_exec(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *found = NULL, *nodes = NULL;

    (void)ret_result;
    if (batchai_act(call, BATCHAI_CLUSTERS "/{cluster}", "GET", NULL, false, &found, e) < 0 ||
        node_list(call, &nodes, e) < 0)
        return -1;
    return batchai_node_exec(call, found, nodes, e);
}

static int file_list(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *found = NULL;

    if (batchai_act(call, BATCHAI_CLUSTERS "/{cluster}", "GET", NULL, false, &found, e) < 0)
        return -1;
    return batchai_setup_files(call, found, ret_result, e);
}

static const char ids[] = "resourceGroups=resource-group workspaces=workspace clusters=name";

const struct command cluster_commands[] = {
    {
        .path = "batchai cluster create",
        .summary = "Create a cluster.",
        .options = OPTIONS(&name,
                           &option_resource_group,
                           &batchai_workspace,
                           &vm_size,
                           &target,
                           &min,
                           &max,
                           &vm_priority,
                           &image,
                           &custom_image,
                           BATCHAI_USER_OPTIONS,
                           BATCHAI_STORAGE_OPTIONS,
                           &auto_storage,
                           &setup_task,
                           &setup_task_output,
                           &subnet,
                           &batchai_config_file),
        .examples =
            {{"Two nodes.", "yard batchai cluster create -n nc24r -g recipes -w vision -s "
                            "Standard_NC24R -t 2 --generate-ssh-keys"},
             {"Nodes as jobs need them, with a share and a container mounted.",
              "yard batchai cluster create -n auto -g recipes -w vision -s host --min 0 --max "
              "4 "
              "--use-auto-storage"},
             {"From a file.", "yard batchai cluster create -n mine -g recipes -w vision -f "
                              "cluster.json -u demo "
                              "-k id_rsa.pub"},
             {"With a set-up task.",
              "yard batchai cluster create -n set -g recipes -w vision -s host -t 1 "
              "--storage-account-name labdata --afs-name logs --setup-task 'apt-get -y install "
              "mc' --setup-task-output '$AZ_BATCHAI_MOUNT_ROOT/afs'"}},
        .run = create,
        .shape = &batchai_cluster_shape,
        .table = batchai_cluster_table,
    },
    {
        .path = "batchai cluster show",
        .summary = "Show a cluster.",
        .options = OPTIONS(&name, &option_resource_group, &batchai_workspace),
        .examples = {{"As a table.",
                      "yard batchai cluster show -n nc24r -g recipes -w vision -o table"}},
        .run = show,
        .shape = &batchai_cluster_shape,
        .table = batchai_cluster_table,
        .ids = ids,
    },
    {
        .path = "batchai cluster list",
        .summary = "List the clusters of a workspace.",
        .options = OPTIONS(&option_resource_group, &batchai_workspace),
        .examples = {{"As a table.",
                      "yard batchai cluster list -g recipes -w vision -o table"}},
        .run = list,
        .shape = &batchai_cluster_shape,
        .table = batchai_cluster_table,
    },
    {
        .path = "batchai cluster delete",
        .summary = "Delete a cluster; the jobs that ran on it stay.",
        .options = OPTIONS(&name, &option_resource_group, &batchai_workspace, &option_no_wait),
        .examples = {{"Without being asked.",
                      "yard batchai cluster delete -n nc24r -g recipes -w vision -y"}},
        .run = delete,
        .ids = ids,
        .confirms = true,
    },
    {
        .path = "batchai cluster resize",
        .summary = "Give a cluster a fixed number of nodes.",
        .options = OPTIONS(&name, &option_resource_group, &batchai_workspace, &new_target),
        .examples = {{"Give up all nodes.",
                      "yard batchai cluster resize -n nc24r -g recipes -w vision -t 0"}},
        .run = resize,
        .shape = &batchai_cluster_shape,
        .table = batchai_cluster_table,
        .ids = ids,
    },
    {
        .path = "batchai cluster auto-scale",
        .summary = "Let a cluster have as many nodes as its jobs need.",
        .options =
            OPTIONS(&name, &option_resource_group, &batchai_workspace, &new_min, &new_max),
        .examples = {{"None to four.", "yard batchai cluster auto-scale -n nc24r -g recipes -w "
                                       "vision --min 0 --max 4"}},
        .run = auto_scale,
        .shape = &batchai_cluster_shape,
        .table = batchai_cluster_table,
        .ids = ids,
    },
    {
        .path = "batchai cluster node list",
        .summary = "List how to log in to the nodes of a cluster.",
        .options = OPTIONS(&cluster, &option_resource_group, &batchai_workspace),
        .examples = {{"As a table.",
                      "yard batchai cluster node list -c nc24r -g recipes -w vision -o table"}},
        .run = node_list,
        .table = batchai_node_table,
    },
    {
        .path = "batchai cluster node exec",
        .summary = "Run a command on a node of a cluster, or lead ports to it, by SSH.",
        .options =
            OPTIONS(&cluster, &option_resource_group, &batchai_workspace, BATCHAI_NODE_OPTIONS),
        .examples =
            {{"Look at the first node.",
              "yard batchai cluster node exec -c nc24r -g recipes -w vision --exec 'df -h'"},
             {"Reach a page that it serves.",
              "yard batchai cluster node exec -c nc24r -g recipes -w vision -L "
              "8888:localhost:8888"}},
        .run = node_exec,
    },
    {
        .path = "batchai cluster file list",
        .summary = "List what the set-up task of a cluster's nodes has written.",
        .options = OPTIONS(&cluster,
                           &option_resource_group,
                           &batchai_workspace,
                           &batchai_path,
                           &batchai_expiry),
        .examples = {{"As a table.",
                      "yard batchai cluster file list -c set -g recipes -w vision -o table"}},
        .run = file_list,
        .table = "{Name: name, \"Is directory\": isDirectory, Size: size}",
    },
    {0},
};
