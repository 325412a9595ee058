/* Resource groups.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/shape.h"

#include <string.h>

static const char one[] = "/resourcegroups/{name}";

static const struct option_row name = {
    .names = "--name -n --resource-group -g",
    .help = "Name of the resource group.",
    .required = true,
    .default_key = "group",
};
static const struct option_row location = {
    .names = "--location -l",
    .help = "Location, for example eastus.",
    .required = true,
    .default_key = "location",
};
static const struct option_row tag = {
    .names = "--tag",
    .help = "Only groups with this tag: key or key=value.",
};

static const struct shape group_shape = {
    .members = "id location managedBy name properties tags type",
};
static const char group_table[] =
    "{Name: name, Location: location, Status: properties.provisioningState}";

static int group_create(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *body = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, one, ARM_RESOURCES, &path, e) < 0)
        return -1;
    body = json_pack("{s:s, s:o*}", "location", args_get(call->args, "location"), "tags",
                     arm_tags(call->args));
    return rest_call(rest, "PUT", path, body, ret_result, e);
}

static int group_show(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, one, ARM_RESOURCES, &path, e) < 0)
        return -1;
    return rest_call(rest, "GET", path, NULL, ret_result, e);
}

static int group_list(struct call *call, json_t **ret_result, struct err *e)
{
    const char *wanted = args_get(call->args, "tag");
    auto_free char *path = NULL, *key = NULL;
    auto_json json_t *all = NULL, *some = NULL;
    struct rest *rest;
    const char *equals;
    json_t *group;
    size_t i;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, "/resourcegroups", ARM_RESOURCES, &path, e) < 0 ||
        rest_list(rest, path, &all, e) < 0)
        return -1;
    if (!wanted) {
        *ret_result = take_ptr(&all);
        return 0;
    }
    some = json_array();
    equals = strchr(wanted, '=');
    key = xstrndup(wanted, strcspn(wanted, "="));
    json_array_foreach(all, i, group)
    {
        const char *value =
            json_string_value(json_object_get(json_object_get(group, "tags"), key));

        if (value && (!equals || str_equal(value, equals + 1)))
            json_array_append(some, group);
    }
    *ret_result = take_ptr(&some);
    return 0;
}

static int group_exists(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;
    bool exists;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, one, ARM_RESOURCES, &path, e) < 0 ||
        rest_exists(rest, path, &exists, e) < 0)
        return -1;
    *ret_result = json_boolean(exists);
    return 0;
}

static int group_update(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *body = json_pack("{s:o}", "tags", arm_tags(call->args));
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || arm_path(call, one, ARM_RESOURCES, &path, e) < 0)
        return -1;
    return rest_call(rest, "PATCH", path, body, ret_result, e);
}

static int group_delete(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    (void)ret_result;
    if (call_rest(call, &rest, e) < 0 || arm_path(call, one, ARM_RESOURCES, &path, e) < 0)
        return -1;
    return rest_long(rest, "DELETE", path, NULL, !args_flag(call->args, "no-wait"), NULL, e);
}

static const struct option_row new_tags = {
    .names = "--tags",
    .help = "Tags as key[=value], separated by spaces; they replace the ones there are.",
    .kind = OPTION_LIST,
    .required = true,
};

const struct command group_commands[] = {
    {
        .path = "group create",
        .summary = "Create a resource group.",
        .options = OPTIONS(&name, &location, &option_tags),
        .examples = {{"Make a group.", "yard group create -n recipes -l eastus"},
                     {"Make one with tags.",
                      "yard group create -n recipes -l eastus --tags team=vision cost=none"}},
        .run = group_create,
        .shape = &group_shape,
        .table = group_table,
    },
    {
        .path = "group show",
        .summary = "Show a resource group.",
        .options = OPTIONS(&name),
        .examples = {{"Show where a group is.",
                      "yard group show -n recipes --query location -o tsv"}},
        .run = group_show,
        .shape = &group_shape,
        .table = group_table,
    },
    {
        .path = "group list",
        .summary = "List the resource groups.",
        .options = OPTIONS(&tag),
        .examples = {{"List the groups as a table.", "yard group list -o table"},
                     {"List the groups of a team.", "yard group list --tag team=vision"}},
        .run = group_list,
        .shape = &group_shape,
        .table = group_table,
    },
    {
        .path = "group exists",
        .summary = "Say whether a resource group exists.",
        .options = OPTIONS(&name),
        .examples = {{"Print true or false.", "yard group exists -n recipes"}},
        .run = group_exists,
    },
    {
        .path = "group update",
        .summary = "Replace the tags of a resource group.",
        .options = OPTIONS(&name, &new_tags),
        .examples = {{"Set one tag.", "yard group update -n recipes --tags team=vision"},
                     {"Take all tags away.", "yard group update -n recipes --tags \"\""}},
        .run = group_update,
        .shape = &group_shape,
        .table = group_table,
    },
    {
        .path = "group delete",
        .summary = "Delete a resource group with everything in it.",
        .options = OPTIONS(&name, &option_no_wait),
        .examples = {{"Delete without being asked.", "yard group delete -n recipes -y"}},
        .run = group_delete,
        .confirms = true,
    },
    {0},
};
