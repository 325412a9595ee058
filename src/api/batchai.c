/* Microsoft.BatchAI: what the provider can do, and how much there is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <unistd.h>

/* Resource, and what it is called; the verbs of each are in the table below. */
static const struct {
    const char *path, *one, *many;
    const char *actions[4]; /* besides read, write and delete */
} things[] = {
    {"workspaces", "workspace", "workspaces", {NULL}},
    {"workspaces/experiments", "experiment", "experiments", {NULL}},
    {"workspaces/clusters", "cluster", "clusters", {"listRemoteLoginInformation", NULL}},
    {"workspaces/fileservers", "file server", "file servers", {NULL}},
    {"workspaces/experiments/jobs",
     "job",
     "jobs",
     {"listOutputFiles", "listRemoteLoginInformation", "terminate", NULL}},
};

static void add_operation(
    json_t *value, const char *path, const char *verb, const char *text, const char *many)
{
    json_array_append_new(value,
                          json_pack("{s:o, s:s, s:{s:s, s:s, s:o, s:s}}", "name",
                                    json_sprintf("Microsoft.BatchAI/%s/%s", path, verb),
                                    "origin", "user,system", "display", "provider",
                                    "Microsoft Batch AI", "operation", text, "resource",
                                    json_sprintf("Batch AI %s", many), "description", text));
}

void handle_batchai_operations(struct call *call)
{
    json_t *value = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(things); i++) {
        const char *one = things[i].one, *many = things[i].many, *path = things[i].path;

        add_operation(value, path, "read",
                      arena_printf(call->arena, "List Batch AI %s or get one", many), many);
        add_operation(value, path, "write",
                      arena_printf(call->arena, "Create or update a Batch AI %s", one), many);
        add_operation(value, path, "delete",
                      arena_printf(call->arena, "Delete a Batch AI %s", one), many);
        for (const char *const *action = things[i].actions; *action; action++)
            add_operation(value, path, arena_printf(call->arena, "%s/action", *action),
                          arena_printf(call->arena, "%s of a Batch AI %s", *action, one), many);
    }
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}

static void add_usage(json_t *value, const char *name, const char *shown, long limit)
{
    json_array_append_new(value, json_pack("{s:s, s:i, s:I, s:{s:s, s:s}}", "unit", "Count",
                                           "currentValue", 0, "limit", (json_int_t)limit,
                                           "name", "value", name, "localizedValue", shown));
}

/* The limits are this machine's cores; nothing uses them until there are clusters. */
void handle_batchai_usages(struct call *call)
{
    static const char *const families[] = {"D", "Dv2", "NC", "NCv2", "NCv3", "ND", "NV"};
    static const char *const priorities[][2] = {{"Dedicated", "Dedicated"},
                                                {"LowPriority", "Low Priority"}};
    enum { MOST_CLUSTERS = 200 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    json_t *value = json_array();

    add_usage(value, "Clusters", "Clusters", MOST_CLUSTERS);
    for (size_t p = 0; p < ARRAY_SIZE(priorities); p++) {
        add_usage(
            value,
            arena_printf(call->arena, "Total Cluster %s Regional vCPUs", priorities[p][0]),
            arena_printf(call->arena, "Total Cluster %s Regional vCPUs", priorities[p][1]),
            cores);
        for (size_t f = 0; f < ARRAY_SIZE(families); f++)
            add_usage(value,
                      arena_printf(call->arena, "Standard %s Family Cluster %s vCPUs",
                                   families[f], priorities[p][0]),
                      arena_printf(call->arena, "Standard %s Family Cluster %s vCPUs",
                                   families[f], priorities[p][1]),
                      cores);
    }
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}
