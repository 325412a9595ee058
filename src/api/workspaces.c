/* Microsoft.BatchAI: workspaces and experiments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

void handle_workspace_put(struct call *call)
{
    struct control_put put = {0};
    struct err e = {0};

    if (call_read_location(call, true, &put.location, &e) < 0 ||
        call_read_tags(call, &put.tags, &e) < 0)
        call_refuse(call, &e);
    else
        call_put(call, RESOURCE_WORKSPACE, &put);
}

void handle_workspace_patch(struct call *call)
{
    struct control_put put = {.must_exist = true};
    struct err e = {0};

    if (call_read_tags(call, &put.tags, &e) < 0)
        call_refuse(call, &e);
    else
        call_put(call, RESOURCE_WORKSPACE, &put);
}

void handle_workspace_get(struct call *call)
{
    call_get(call, RESOURCE_WORKSPACE);
}

void handle_workspace_delete(struct call *call)
{
    call_delete(call, RESOURCE_WORKSPACE, false);
}

void handle_workspace_list(struct call *call)
{
    struct store_filter filter = {
        .kind = RESOURCE_WORKSPACE,
        .key_prefix = resource_key(
            call->arena,
            resource_subscription_id(call->arena, call_param(call, "subscriptionId"))),
    };

    call_list(call, &filter);
}

void handle_workspace_list_by_group(struct call *call)
{
    call_list_below(call, RESOURCE_GROUP, RESOURCE_WORKSPACE);
}

void handle_experiment_put(struct call *call)
{
    struct control_put put = {0};

    call_put(call, RESOURCE_EXPERIMENT, &put);
}

void handle_experiment_get(struct call *call)
{
    call_get(call, RESOURCE_EXPERIMENT);
}

void handle_experiment_delete(struct call *call)
{
    call_delete(call, RESOURCE_EXPERIMENT, false);
}

void handle_experiment_list(struct call *call)
{
    call_list_below(call, RESOURCE_WORKSPACE, RESOURCE_EXPERIMENT);
}
