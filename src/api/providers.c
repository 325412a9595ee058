/* Microsoft.Resources: resource providers, which are always registered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

static const struct provider {
    const char *name;
    const char *types[8];
    const char *versions[8];
} providers[] = {
    {"Microsoft.BatchAI",
     {"operations", "locations/usages", "locations/operationresults",
      "locations/operationstatuses", "workspaces", "workspaces/experiments", NULL},
     {"2018-05-01", "2018-03-01", "2017-09-01-preview", NULL}},
    {"Microsoft.Resources",
     {"resourceGroups", "subscriptions", "tenants", "providers", NULL},
     {"2022-09-01", "2021-04-01", "2019-10-01", "2018-05-01", NULL}},
    {"Microsoft.Storage",
     {"storageAccounts", "checkNameAvailability", NULL},
     {"2022-09-01", "2021-09-01", "2021-01-01", "2019-06-01", "2018-02-01", NULL}},
};

static json_t *strings(const char *const *list)
{
    json_t *out = json_array();

    for (; *list; list++)
        json_array_append_new(out, json_string(*list));
    return out;
}

static json_t *shape(struct call *call, const struct provider *p)
{
    static const char *const locations[] = {"East US", "North Europe", "West US 2", NULL};
    json_t *types = json_array();

    for (const char *const *type = p->types; *type; type++)
        json_array_append_new(types, json_pack("{s:s, s:o, s:o, s:s}", "resourceType", *type,
                                               "locations", strings(locations), "apiVersions",
                                               strings(p->versions), "capabilities", "None"));
    return json_pack("{s:o, s:s, s:s, s:s, s:o}", "id",
                     json_sprintf("/subscriptions/%s/providers/%s",
                                  call_param(call, "subscriptionId"), p->name),
                     "namespace", p->name, "registrationState", "Registered",
                     "registrationPolicy", "RegistrationRequired", "resourceTypes", types);
}

void handle_providers(struct call *call)
{
    json_t *value = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(providers); i++)
        json_array_append_new(value, shape(call, &providers[i]));
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}

void handle_provider(struct call *call)
{
    const char *name = call_param(call, "resourceProviderNamespace");
    struct err e = {0};

    for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
        if (str_equal_nocase(name, providers[i].name)) {
            reply_json(call, 200, shape(call, &providers[i]));
            return;
        }
    }
    err_set(&e, ERR_NOT_FOUND,
            "The resource namespace '%.100s' is invalid; this yard has Microsoft.BatchAI, "
            "Microsoft.Resources and Microsoft.Storage",
            name);
    err_reason(&e, "InvalidResourceNamespace");
    reply_error(call, &e);
}

/* They are registered already: the answer is the state, and nothing changes. */
void handle_provider_register(struct call *call)
{
    handle_provider(call);
}
