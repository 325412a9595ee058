/* Batch AI: workspaces, experiments, usages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/shape.h"

#define EXPERIMENT BATCHAI_EXPERIMENTS "/{name}"

static const struct option_row workspace_name = {
    .names = "--workspace -n --name -w",
    .help = "Name of the workspace.",
    .required = true,
    .default_key = "workspace",
};
static const struct option_row experiment_name = {
    .names = "--name -n --experiment -e",
    .help = "Name of the experiment.",
    .required = true,
};
static const struct option_row usages_location = {
    .names = "--location -l",
    .help = "Location, for example eastus.",
    .required = true,
    .default_key = "location",
};

static const struct shape workspace_shape = {
    .flat = true,
    .members = "creationTime id location name provisioningState "
               "provisioningStateTransitionTime resourceGroup tags type",
    .times = "creationTime provisioningStateTransitionTime",
};
static const struct shape experiment_shape = {
    .flat = true,
    .members = "creationTime id name provisioningState provisioningStateTransitionTime "
               "resourceGroup type",
    .times = "creationTime provisioningStateTransitionTime",
};
static const char workspace_table[] = "{Name: name, \"Resource Group\": resourceGroup, "
                                      "Location: location, State: provisioningState}";
/* An experiment names its workspace in its id only; see output.h for idParts. */
static const char experiment_table[] =
    "{Name: name, \"Resource Group\": resourceGroup, "
    "Workspace: idParts.workspaces, State: provisioningState}";
static const char usage_table[] =
    "{Value: name.localizedValue || name.value, Usage: currentValue, Limit: limit}";

static int workspace_create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = NULL, *group = NULL;
    auto_free char *path = NULL;
    const char *location = args_get(call->args, "location");
    struct rest *rest;

    if (!location) {
        if (call_rest(call, &rest, e) < 0 ||
            arm_path(call, "/resourcegroups/{resource-group}", ARM_RESOURCES, &path, e) < 0 ||
            rest_call(rest, "GET", path, NULL, &group, e) < 0 ||
            json_get_string(group, "location", &location, e) < 0)
            return -1;
        if (!location)
            return err_set(e, ERR_INTERNAL,
                           "the resource group has no location; use --location");
    }
    body = json_pack("{s:s, s:o*}", "location", location, "tags", arm_tags(call->args));
    return batchai_act(call, BATCHAI_WORKSPACE, "PUT", body, true, ret_result, e);
}

static int workspace_show(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, BATCHAI_WORKSPACE, "GET", NULL, false, ret_result, e);
}

static int workspace_list(struct call *call, json_t **ret_result, struct err *e)
{
    bool all = !args_has(call->args, "resource-group");

    return batchai_list(call, all ? BATCHAI_PROVIDER "/workspaces" : BATCHAI_WORKSPACES,
                        ret_result, e);
}

static int workspace_update(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *body = json_pack("{s:o}", "tags", arm_tags(call->args));

    return batchai_act(call, BATCHAI_WORKSPACE, "PATCH", body, false, ret_result, e);
}

static int workspace_delete(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, BATCHAI_WORKSPACE, "DELETE", NULL,
                       !args_flag(call->args, "no-wait"), NULL, e);
}

static int experiment_create(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, EXPERIMENT, "PUT", NULL, true, ret_result, e);
}

static int experiment_show(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_act(call, EXPERIMENT, "GET", NULL, false, ret_result, e);
}

static int experiment_list(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_list(call, BATCHAI_EXPERIMENTS, ret_result, e);
}

static int experiment_delete(struct call *call, json_t **ret_result, struct err *e)
{
    (void)ret_result;
    return batchai_act(call, EXPERIMENT, "DELETE", NULL, !args_flag(call->args, "no-wait"),
                       NULL, e);
}

static int list_usages(struct call *call, json_t **ret_result, struct err *e)
{
    return batchai_list(call, BATCHAI_PROVIDER "/locations/{location}/usages", ret_result, e);
}

static const struct option_row new_tags = {
    .names = "--tags",
    .help = "Tags as key[=value], separated by spaces; they replace the ones there are.",
    .kind = OPTION_LIST,
    .required = true,
};

static const char workspace_ids[] = "resourceGroups=resource-group workspaces=workspace";
static const char experiment_ids[] =
    "resourceGroups=resource-group workspaces=workspace experiments=name";

const struct command batchai_commands[] = {
    {
        .path = "batchai workspace create",
        .summary = "Create a workspace.",
        .options =
            OPTIONS(&workspace_name, &option_resource_group, &option_location, &option_tags),
        .examples = {{"Make a workspace.",
                      "yard batchai workspace create -g recipes -n vision -l eastus"}},
        .run = workspace_create,
        .shape = &workspace_shape,
        .table = workspace_table,
    },
    {
        .path = "batchai workspace show",
        .summary = "Show a workspace.",
        .options = OPTIONS(&workspace_name, &option_resource_group),
        .examples = {{"Show a workspace.", "yard batchai workspace show -g recipes -n vision"}},
        .run = workspace_show,
        .shape = &workspace_shape,
        .table = workspace_table,
        .ids = workspace_ids,
    },
    {
        .path = "batchai workspace list",
        .summary = "List the workspaces.",
        .options = OPTIONS(&option_resource_group_optional),
        .examples = {{"List all of them.", "yard batchai workspace list -o table"}},
        .run = workspace_list,
        .shape = &workspace_shape,
        .table = workspace_table,
    },
    {
        .path = "batchai workspace update",
        .summary = "Replace the tags of a workspace.",
        .options = OPTIONS(&workspace_name, &option_resource_group, &new_tags),
        .examples = {{"Set one tag.",
                      "yard batchai workspace update -g recipes -n vision --tags team=a"}},
        .run = workspace_update,
        .shape = &workspace_shape,
        .table = workspace_table,
        .ids = workspace_ids,
    },
    {
        .path = "batchai workspace delete",
        .summary = "Delete a workspace with everything in it.",
        .options = OPTIONS(&workspace_name, &option_resource_group, &option_no_wait),
        .examples = {{"Delete without being asked.",
                      "yard batchai workspace delete -g recipes -n vision -y"}},
        .run = workspace_delete,
        .ids = workspace_ids,
        .confirms = true,
    },
    {
        .path = "batchai experiment create",
        .summary = "Create an experiment.",
        .options = OPTIONS(&experiment_name, &batchai_workspace, &option_resource_group),
        .examples = {{"Make an experiment.",
                      "yard batchai experiment create -g recipes -w vision -n horovod"}},
        .run = experiment_create,
        .shape = &experiment_shape,
        .table = experiment_table,
    },
    {
        .path = "batchai experiment show",
        .summary = "Show an experiment.",
        .options = OPTIONS(&experiment_name, &batchai_workspace, &option_resource_group),
        .examples = {{"Show an experiment.",
                      "yard batchai experiment show -g recipes -w vision -n horovod"}},
        .run = experiment_show,
        .shape = &experiment_shape,
        .table = experiment_table,
        .ids = experiment_ids,
    },
    {
        .path = "batchai experiment list",
        .summary = "List the experiments of a workspace.",
        .options = OPTIONS(&batchai_workspace, &option_resource_group),
        .examples = {{"List them as a table.",
                      "yard batchai experiment list -g recipes -w vision -o table"}},
        .run = experiment_list,
        .shape = &experiment_shape,
        .table = experiment_table,
    },
    {
        .path = "batchai experiment delete",
        .summary = "Delete an experiment with its jobs.",
        .options = OPTIONS(
            &experiment_name, &batchai_workspace, &option_resource_group, &option_no_wait),
        .examples = {{"Delete without being asked.",
                      "yard batchai experiment delete -g recipes -w vision -n horovod -y"}},
        .run = experiment_delete,
        .ids = experiment_ids,
        .confirms = true,
    },
    {
        .path = "batchai list-usages",
        .summary = "List what is used of what there is, in a location.",
        .options = OPTIONS(&usages_location),
        .examples = {{"As a table.", "yard batchai list-usages -l eastus -o table"}},
        .run = list_usages,
        .table = usage_table,
    },
    {0},
};
