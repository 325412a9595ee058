/* Microsoft.BatchAI: what the provider can do, and how much there is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/vmsize.h"
#include "store/work.h"

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

/* --- usages --- */

/* Cores of nodes by family and priority; the last family is all of them. */
static const char *const families[] = {"D", "Dv2", "NC", "NCv2", "NCv3", "ND", "NV"};
enum {
    FAMILIES = ARRAY_SIZE(families),
    PAGE = 500,
};

struct usage {
    int64_t clusters;
    int64_t cores[2][FAMILIES + 1]; /* dedicated, low priority */
};

static void count_cluster(struct usage *usage,
                          const struct vmsizes *sizes,
                          const struct resource *r,
                          const struct node_counts *n)
{
    const json_t *properties = r->properties;
    const char *priority = json_string_value(json_object_get(properties, "vmPriority"));
    const char *name = json_string_value(json_object_get(properties, "vmSize"));
    bool is_low = priority && str_equal_nocase(priority, "lowpriority");
    const struct vmsize *size;
    int64_t cores;

    usage->clusters++;
    if (!name || vmsizes_find(sizes, name, &size, NULL) < 0)
        return;
    cores =
        (int64_t)size->cores * (n->idle + n->running + n->preparing + n->unusable + n->leaving);
    usage->cores[is_low][FAMILIES] += cores;
    for (size_t f = 0; f < FAMILIES; f++) {
        if (str_equal(size->family, families[f]))
            usage->cores[is_low][f] += cores;
    }
}

static int count_usage(struct call *call, struct usage *usage, struct err *e)
{
    const struct vmsizes *sizes = control_sizes(call->api->config.control);
    struct store_filter filter = {.kind = RESOURCE_CLUSTER, .most = PAGE};
    auto_reader reader = {0};
    bool more = true;

    if (store_pool_take(call->api->config.pool, &reader, e) < 0)
        return -1;
    while (more) {
        auto_resource_list list = {0};

        if (store_list_resources(reader.db, &filter, &list, e) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++) {
            struct cluster_work work = {0};
            bool found;

            if (store_find_cluster_work(reader.db, list.items[i]->id, &work, &found, e) < 0)
                return -1;
            count_cluster(usage, sizes, list.items[i], &work.nodes);
            filter.after_id = list.items[i]->id;
        }
        more = list.more;
    }
    return 0;
}

static void
add_usage(json_t *value, const char *name, const char *shown, int64_t used, int64_t limit)
{
    json_array_append_new(value, json_pack("{s:s, s:I, s:I, s:{s:s, s:s}}", "unit", "Count",
                                           "currentValue", (json_int_t)used, "limit",
                                           (json_int_t)limit, "name", "value", name,
                                           "localizedValue", shown));
}

/* The limit is what the machine has; nodes may share its cores, so more may be in use. */
void handle_batchai_usages(struct call *call)
{
    static const char *const priorities[][2] = {{"Dedicated", "Dedicated"},
                                                {"LowPriority", "Low Priority"}};
    enum { MOST_CLUSTERS = 200 };
    const struct vmsizes *sizes = control_sizes(call->api->config.control);
    int64_t cores = vmsizes_at(sizes, 0)->cores; /* "host" */
    struct usage usage = {0};
    struct err e = {0};
    json_t *value;

    if (count_usage(call, &usage, &e) < 0) {
        reply_error(call, &e);
        return;
    }
    value = json_array();
    add_usage(value, "Clusters", "Clusters", usage.clusters, MOST_CLUSTERS);
    for (size_t p = 0; p < ARRAY_SIZE(priorities); p++) {
        add_usage(
            value,
            arena_printf(call->arena, "Total Cluster %s Regional vCPUs", priorities[p][0]),
            arena_printf(call->arena, "Total Cluster %s Regional vCPUs", priorities[p][1]),
            usage.cores[p][FAMILIES], cores);
        for (size_t f = 0; f < FAMILIES; f++)
            add_usage(value,
                      arena_printf(call->arena, "Standard %s Family Cluster %s vCPUs",
                                   families[f], priorities[p][0]),
                      arena_printf(call->arena, "Standard %s Family Cluster %s vCPUs",
                                   families[f], priorities[p][1]),
                      usage.cores[p][f], cores);
    }
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}
