/* The subscription that commands act on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/config.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/shape.h"

static const struct option_row wanted = {
    .names = "--name -n -s",
    .help = "Name or id of the subscription; --subscription does as well.",
};

static const char account_table[] =
    "{Name: name, SubscriptionId: id, TenantId: tenantId, State: state, IsDefault: isDefault}";
static const char location_table[] = "{DisplayName: displayName, Name: name}";

/* A subscription of the wire, in the words of `az account`. */
static json_t *describe(struct call *call, const json_t *wire, const char *chosen)
{
    const char *id = json_string_value(json_object_get(wire, "subscriptionId"));
    const char *tenant = json_string_value(json_object_get(wire, "tenantId"));

    if (!tenant && call->place)
        tenant = call->place->tenant_id;
    return json_pack("{s:s, s:s?, s:s?, s:b, s:[], s:O?, s:O?, s:s?, s:n}", "environmentName",
                     "Trainyard", "homeTenantId", tenant, "id", id, "isDefault",
                     id && str_equal_nocase(id, chosen), "managedByTenants", "name",
                     json_object_get(wire, "displayName"), "state",
                     json_object_get(wire, "state"), "tenantId", tenant, "user");
}

static int account_show(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    auto_json json_t *wire = NULL;
    const char *chosen;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || call_subscription(call, &chosen, e) < 0 ||
        arm_path(call, "", "2021-01-01", &path, e) < 0 ||
        rest_call(rest, "GET", path, NULL, &wire, e) < 0)
        return -1;
    *ret_result = describe(call, wire, chosen);
    return 0;
}

static int account_list(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *all = NULL, *shown = json_array();
    const char *chosen;
    struct rest *rest;
    json_t *wire;
    size_t i;

    if (call_rest(call, &rest, e) < 0 || call_subscription(call, &chosen, e) < 0 ||
        rest_list(rest, "/subscriptions?api-version=2021-01-01", &all, e) < 0)
        return -1;
    json_array_foreach(all, i, wire) json_array_append_new(shown, describe(call, wire, chosen));
    *ret_result = take_ptr(&shown);
    return 0;
}

static int account_locations(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 ||
        arm_path(call, "/locations", "2021-01-01", &path, e) < 0)
        return -1;
    return rest_list(rest, path, ret_result, e);
}

static int account_set(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = NULL;
    struct rest *rest;
    const char *id;

    (void)ret_result;
    if (args_has(call->args, "name"))
        args_set(call->args, "subscription", args_get(call->args, "name"));
    if (!args_has(call->args, "subscription"))
        return args_fail(e, "--name", "the following arguments are required: --name/-n/-s");
    /* Asking for it makes sure that it is there before it is remembered. */
    if (call_rest(call, &rest, e) < 0 || call_subscription(call, &id, e) < 0 ||
        arm_path(call, "", "2021-01-01", &path, e) < 0 ||
        rest_call(rest, "GET", path, NULL, NULL, e) < 0 ||
        config_set(call->config, "account", "subscription", id, e) < 0)
        return -1;
    return config_save(call->config, e);
}

const struct command account_commands[] = {
    {
        .path = "account show",
        .summary = "Show the subscription.",
        .examples = {{"Print its id.", "yard account show --query id -o tsv"}},
        .run = account_show,
        .table = account_table,
    },
    {
        .path = "account list",
        .summary = "List the subscriptions.",
        .examples = {{"As a table.", "yard account list -o table"}},
        .run = account_list,
        .table = account_table,
    },
    {
        .path = "account list-locations",
        .summary = "List the locations that resources can name.",
        .examples = {{"As a table.", "yard account list-locations -o table"}},
        .run = account_locations,
        .table = location_table,
    },
    {
        .path = "account set",
        .summary = "Choose the subscription that commands act on.",
        .options = OPTIONS(&wanted),
        .examples = {{"Choose by name.", "yard account set --name Trainyard"}},
        .run = account_set,
    },
    {0},
};
