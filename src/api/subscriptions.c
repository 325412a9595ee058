/* Microsoft.Resources: tenants, subscriptions, locations.
 *
 * A yard has one tenant and a subscription of its own.  A subscription is only a name space
 * here: recipes and scripts come with the ids of their authors, so every well-formed one is
 * taken, and is listed once there is a group in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <string.h>

void handle_tenants(struct call *call)
{
    const char *id = call->api->config.tenant_id;

    reply_json(call, 200,
               json_pack("{s:[{s:s+, s:s, s:s, s:s}]}", "value", "id", "/tenants/", id,
                         "tenantId", id, "displayName", "Trainyard", "tenantCategory", "Home"));
}

static json_t *shape_subscription(const struct call *call, const char *id)
{
    bool own = str_equal_nocase(id, call->api->config.subscription_id);

    return json_pack(
        "{s:s+, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "id", "/subscriptions/", id,
        "subscriptionId", id, "tenantId", call->api->config.tenant_id, "displayName",
        own ? "Trainyard" : "Trainyard (foreign id)", "state", "Enabled", "authorizationSource",
        "RoleBased", "subscriptionPolicies", "locationPlacementId", "Public_2014-09-01",
        "quotaId", "PayAsYouGo_2014-09-01", "spendingLimit", "Off");
}

struct listing {
    struct call *call;
    json_t *value;
};

static void add_foreign(const char *id, void *context)
{
    struct listing *listing = context;

    if (!str_equal_nocase(id, listing->call->api->config.subscription_id))
        json_array_append_new(listing->value, shape_subscription(listing->call, id));
}

void handle_subscriptions(struct call *call)
{
    struct listing listing = {call, json_array()};
    auto_reader reader = {0};
    struct err e = {0};

    json_array_append_new(listing.value,
                          shape_subscription(call, call->api->config.subscription_id));
    if (store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        store_each_subscription(reader.db, call->who.scope, add_foreign, &listing, &e) < 0) {
        json_decref(listing.value);
        reply_error(call, &e);
        return;
    }
    reply_json(call, 200, json_pack("{s:o}", "value", listing.value));
}

void handle_subscription(struct call *call)
{
    reply_json(call, 200, shape_subscription(call, call_param(call, "subscriptionId")));
}

/* Places that recipes name.  A yard is where it is: any other name is taken as well. */
static const char *const locations[][2] = {
    {"local", "This yard"},
    {"eastus", "East US"},
    {"eastus2", "East US 2"},
    {"centralus", "Central US"},
    {"northcentralus", "North Central US"},
    {"southcentralus", "South Central US"},
    {"westcentralus", "West Central US"},
    {"westus", "West US"},
    {"westus2", "West US 2"},
    {"canadacentral", "Canada Central"},
    {"northeurope", "North Europe"},
    {"westeurope", "West Europe"},
    {"uksouth", "UK South"},
    {"francecentral", "France Central"},
    {"germanywestcentral", "Germany West Central"},
    {"southeastasia", "Southeast Asia"},
    {"eastasia", "East Asia"},
    {"japaneast", "Japan East"},
    {"koreacentral", "Korea Central"},
    {"australiaeast", "Australia East"},
    {"centralindia", "Central India"},
    {"brazilsouth", "Brazil South"},
};

void handle_locations(struct call *call)
{
    const char *subscription = call_param(call, "subscriptionId");
    json_t *value = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(locations); i++)
        json_array_append_new(value, json_pack("{s:o, s:s, s:s, s:s}", "id",
                                               json_sprintf("/subscriptions/%s/locations/%s",
                                                            subscription, locations[i][0]),
                                               "name", locations[i][0], "displayName",
                                               locations[i][1], "type", "Region"));
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}
