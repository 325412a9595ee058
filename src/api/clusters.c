/* Microsoft.BatchAI: clusters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/batchai.h"

void handle_cluster_put(struct call *call)
{
    struct batchai_spec spec = {0};
    struct err e = {0};

    if (batchai_read_cluster(call->body, control_sizes(call->api->config.control), &spec, &e) <
            0 ||
        call_check_volumes(call, spec.kept, "properties.nodeSetup.mountVolumes", &e) < 0)
        call_refuse(call, &e);
    else
        call_put_spec(call, RESOURCE_CLUSTER, &spec);
    batchai_spec_done(&spec);
}

void handle_cluster_get(struct call *call)
{
    call_get(call, RESOURCE_CLUSTER);
}

/* A new scale, and nothing else, may be set. */
void handle_cluster_patch(struct call *call)
{
    struct control_put put = {.must_exist = true};
    auto_json json_t *properties = NULL;
    json_t *scale = NULL;
    struct err e = {0};

    if (batchai_read_scale(call->body, &scale, &e) < 0) {
        call_refuse(call, &e);
        return;
    }
    properties = json_pack("{s:o}", "scaleSettings", scale);
    put.properties = properties;
    call_put(call, RESOURCE_CLUSTER, &put);
}

void handle_cluster_delete(struct call *call)
{
    call_delete(call, RESOURCE_CLUSTER, false);
}

void handle_cluster_list(struct call *call)
{
    call_list_below(call, RESOURCE_WORKSPACE, RESOURCE_CLUSTER);
}
