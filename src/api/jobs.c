/* Microsoft.BatchAI: jobs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/batchai.h"

#include <string.h>

/* Whose token ends at one group can neither use nor find out about clusters of others.  That
 * the cluster is there is control's to check. */
static int check_cluster(struct call *call, const json_t *kept, struct err *e)
{
    const char *id = batchai_job_cluster(kept);

    if (access_sees(call->who.scope, call_group_key(call, id)))
        return 0;
    resource_not_found(e, RESOURCE_CLUSTER, strrchr(id, '/') + 1);
    return err_target(e, "properties.cluster.id");
}

void handle_job_put(struct call *call)
{
    struct batchai_spec spec = {0};
    struct err e = {0};

    if (batchai_read_job(call->body, &spec, &e) < 0 || check_cluster(call, spec.kept, &e) < 0 ||
        call_check_volumes(call, spec.kept, "properties.mountVolumes", &e) < 0)
        call_refuse(call, &e);
    else
        call_put_spec(call, RESOURCE_JOB, &spec);
    batchai_spec_done(&spec);
}

void handle_job_get(struct call *call)
{
    call_get(call, RESOURCE_JOB);
}

void handle_job_delete(struct call *call)
{
    call_delete(call, RESOURCE_JOB, false);
}

void handle_job_list(struct call *call)
{
    call_list_below(call, RESOURCE_EXPERIMENT, RESOURCE_JOB);
}

/* 202 while there is something to end, 200 when it has ended: as for a delete. */
void handle_job_terminate(struct call *call)
{
    struct control_change *change = call_change(call);

    call_when_done(call, change, call_reply_delete);
    control_terminate_job(call->api->config.control, change, call_arm_id(call, RESOURCE_JOB),
                          call_name(call, RESOURCE_JOB));
}
