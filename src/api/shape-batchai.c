/* Clusters, jobs and file servers as the wire has them: what their clients said, with what
 * became of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/batchai.h"
#include "store/work.h"

#include <arpa/inet.h>
#include <string.h>

static void add_int(struct str *out, const char *name, int64_t value)
{
    str_addf(out, ",\"%s\":%lld", name, (long long)value);
}

/* The first member; the others have a comma before them. */
static void open_properties(struct str *out, const struct resource *r)
{
    shape_add_envelope(out, r);
    str_addf(out, ",\"properties\":{\"provisioningState\":\"%s\"",
             r->state == RESOURCE_DELETING ? "deleting" : "succeeded");
    shape_add_time(out, "creationTime", r->created_ms);
    shape_add_time(out, "provisioningStateTransitionTime", r->state_ms);
}

/* code, message and details, those that say something. */
static json_t *
shape_error(const char *code, const char *message, const char *node, const char *info)
{
    json_t *error = json_pack("{s:s, s:s}", "code", code, "message", message ? message : "");
    json_t *details = json_array();

    if (node)
        json_array_append_new(details,
                              json_pack("{s:s, s:s}", "name", "NodeId", "value", node));
    if (info && *info)
        json_array_append_new(details, json_pack("{s:s, s:s}", "name", "Info", "value", info));
    if (json_array_size(details) > 0)
        json_object_set(error, "details", details);
    json_decref(details);
    return error;
}

/* All nodes and file servers of a yard are on the one network that it makes for them. */
static json_t *shape_subnet(const struct resource *r)
{
    return json_pack("{s:o}", "id",
                     json_sprintf("%.*s/providers/Microsoft.Network/virtualNetworks/yard/"
                                  "subnets/nodes",
                                  (int)resource_group_span(r->arm_id), r->arm_id));
}

/* --- clusters --- */

static void add_node_error(const struct yard_node *node, void *context)
{
    if (node->error_code[0])
        json_array_append_new(context, shape_error(node->error_code, node->error_message,
                                                   node->name, node->error_info));
}

static int add_cluster_errors(struct str *out,
                              struct db *db,
                              const struct yard_cluster *cluster,
                              struct err *e)
{
    auto_json json_t *errors = json_array();

    if (cluster->error_code[0])
        json_array_append_new(
            errors, shape_error(cluster->error_code, cluster->error_message, NULL, NULL));
    if (store_each_node(db, cluster->id, add_node_error, errors, e) < 0)
        return -1;
    if (json_array_size(errors) > 0)
        shape_add_value(out, "errors", errors);
    return 0;
}

/* A new size that nobody has looked at yet is on its way all the same. */
static bool is_steady(const struct cluster_work *work, const json_t *kept)
{
    struct yard_cluster wish = {0};

    batchai_fill_cluster(kept, &wish);
    return work->cluster.is_steady && (wish.is_automatic || work->cluster.error_code[0] ||
                                       wish.target == work->cluster.wanted);
}

static void add_nodes(struct str *out, const struct node_counts *n)
{
    add_int(out, "currentNodeCount",
            n->idle + n->running + n->preparing + n->unusable + n->leaving);
    str_addf(out,
             ",\"nodeStateCounts\":{\"runningNodeCount\":%d,\"idleNodeCount\":%d,"
             "\"unusableNodeCount\":%d,\"preparingNodeCount\":%d,\"leavingNodeCount\":%d}",
             n->running, n->idle, n->unusable, n->preparing, n->leaving);
}

/* With the place of the set-up task's output. */
static json_t *shape_node_setup(const json_t *kept, const struct resource *r, const char *uuid)
{
    autoptr(arena) arena = arena_new();
    json_t *setup = json_deep_copy(kept);
    json_t *task = json_object_get(setup, "setupTask");

    if (task)
        json_object_set_new(task, "stdOutErrPathSuffix",
                            json_string(resource_output_segment(arena, r->arm_id, uuid)));
    return setup;
}

static void add_cluster_kept(struct str *out, const struct resource *r, const char *uuid)
{
    const json_t *setup = json_object_get(r->properties, "nodeSetup");
    const json_t *volumes = json_object_get(setup, "mountVolumes");
    const char *key;
    json_t *value;

    json_object_foreach(r->properties, key, value)
    {
        auto_json json_t *shown =
            value == setup ? shape_node_setup(value, r, uuid) : json_incref(value);

        shape_add_value(out, key, shown);
    }
    if (json_object_get(volumes, "fileServers") && !json_object_get(r->properties, "subnet")) {
        auto_json json_t *subnet = shape_subnet(r);

        shape_add_value(out, "subnet", subnet);
    }
}

int shape_cluster(struct str *out, struct db *db, const struct resource *r, struct err *e)
{
    struct cluster_work work = {0};
    bool found;

    if (store_find_cluster_work(db, r->id, &work, &found, e) < 0)
        return -1;
    open_properties(out, r);
    shape_add(out, "allocationState", is_steady(&work, r->properties) ? "steady" : "resizing");
    shape_add_time(out, "allocationStateTransitionTime",
                   work.cluster.steady_ms ? work.cluster.steady_ms : r->created_ms);
    add_nodes(out, &work.nodes);
    if (found && add_cluster_errors(out, db, &work.cluster, e) < 0)
        return -1;
    add_cluster_kept(out, r, work.uuid);
    str_add(out, "}}");
    return 0;
}

/* --- jobs --- */

/* Nothing while it waits; when it began; when and how it ended. */
static void add_execution(struct str *out, const struct yard_job *job)
{
    int64_t begun = job->started_ms ? job->started_ms : job->ended_ms;

    shape_add(out, "executionState", job_state_name(job->state));
    shape_add_time(out, "executionStateTransitionTime", job->state_ms);
    if (job->state == JOB_QUEUED || !begun)
        return;
    str_add(out, ",\"executionInfo\":{\"startTime\":");
    shape_write_time(out, begun);
    if (job_is_final(job->state)) {
        shape_add_time(out, "endTime", job->ended_ms);
        if (job->exit_code >= 0)
            add_int(out, "exitCode", job->exit_code);
        if (job->error_code) {
            auto_json json_t *errors = json_pack(
                "[o]", shape_error(job->error_code, job->error_message, NULL, job->error_info));

            shape_add_value(out, "errors", errors);
        }
    }
    str_add_char(out, '}');
}

int shape_job(struct str *out, struct db *db, const struct resource *r, struct err *e)
{
    autoptr(arena) arena = arena_new();
    auto_job_work work = {0};
    const char *key;
    json_t *value;
    bool found;

    if (store_find_job_work(db, r->id, &work, &found, e) < 0)
        return -1;
    open_properties(out, r);
    shape_add(out, "experimentName", resource_name_above(arena, r->arm_id, 1));
    shape_add(out, "toolType", batchai_tool(r->properties));
    json_object_foreach(r->properties, key, value) shape_add_value(out, key, value);
    if (found) {
        shape_add(out, "jobOutputDirectoryPathSegment",
                  resource_output_segment(arena, r->arm_id, work.uuid));
        add_execution(out, &work.job);
    }
    str_add(out, "}}");
    return 0;
}

/* --- file servers --- */

/* The address of this yard that others can use, if it has one. */
static const char *own_address(const struct api *api)
{
    unsigned char scratch[sizeof(struct in6_addr)];

    for (size_t i = 0; i < api->config.host_count; i++) {
        const char *host = api->config.hosts[i];

        if (inet_pton(AF_INET, host, scratch) == 1 && !str_starts(host, "127."))
            return host;
    }
    return "127.0.0.1";
}

void shape_file_server(struct str *out, const struct api *api, const struct resource *r)
{
    const char *key, *address = own_address(api);
    json_t *value;

    open_properties(out, r);
    json_object_foreach(r->properties, key, value) shape_add_value(out, key, value);
    if (!json_object_get(r->properties, "subnet")) {
        auto_json json_t *subnet = shape_subnet(r);

        shape_add_value(out, "subnet", subnet);
    }
    str_add(out, ",\"mountSettings\":{\"mountPoint\":\"/data\"");
    shape_add(out, "fileServerPublicIP", address);
    shape_add(out, "fileServerInternalIP", address);
    str_add(out, "}}}");
}
