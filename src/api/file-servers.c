/* Microsoft.BatchAI: file servers.  One is a folder of the yard that several clusters share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "core/batchai.h"

void handle_file_server_put(struct call *call)
{
    struct batchai_spec spec = {0};
    struct err e = {0};

    if (batchai_read_file_server(call->body, control_sizes(call->api->config.control), &spec,
                                 &e) < 0)
        call_refuse(call, &e);
    else
        call_put_spec(call, RESOURCE_FILE_SERVER, &spec);
    batchai_spec_done(&spec);
}

void handle_file_server_get(struct call *call)
{
    call_get(call, RESOURCE_FILE_SERVER);
}

void handle_file_server_delete(struct call *call)
{
    call_delete(call, RESOURCE_FILE_SERVER, false);
}

void handle_file_server_list(struct call *call)
{
    call_list_below(call, RESOURCE_WORKSPACE, RESOURCE_FILE_SERVER);
}
