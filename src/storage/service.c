/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/service.h"

#include "base/mem.h"
#include "http/request.h"
#include "storage/file-ops.h"
#include "storage/storage-proto.h"

struct storage_service *storage_service_new(const struct storage_config *config)
{
    struct storage_service *service = xcalloc(1, sizeof(*service));

    service->config = *config;
    return service;
}

void storage_service_free(struct storage_service *service)
{
    free(service);
}

void storage_on_file_request(struct http_req *req, void *service)
{
    struct storage_service *s = service;

    if (s->config.files) {
        storage_serve(s, &file_table, req);
        return;
    }
    http_reply_header(req, "x-ms-error-code", "NotImplemented");
    http_reply(req, 501, NULL, 0);
}
