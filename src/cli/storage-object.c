/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/storage-object.h"

#include "base/mem.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-verb.h"
#include "cli/storage-wire.h"

#include <string.h>

const struct option_row storage_content_type = {
    .names = "--content-type",
    .help = "What it is; by its name when not given.",
};
const struct option_row storage_protocol = {
    .names = "--protocol",
    .help = "Protocol of the URL.",
    .choices = "http https",
};

const char *storage_own_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int storage_look(struct wire *wire,
                 const char *container,
                 const char *path,
                 struct http_answer *answer,
                 struct err *e)
{
    struct wire_request request = {.method = "HEAD", .container = container, .path = path};
    bool is_blob = wire_service(wire) == STORAGE_BLOB;
    const char *code;

    if (wire_call(wire, &request, answer, e) == 0)
        return 0;
    if (!wire_is_missing(wire))
        return -1;
    code = wire_code(wire);
    if (!*code)
        code = is_blob ? "BlobNotFound" : "ResourceNotFound";
    return err_set(e, ERR_NOT_FOUND, "(%s) there is no %s \"%.200s\" in \"%.64s\"", code,
                   is_blob ? "blob" : "file", path, container);
}

int storage_object_url(struct call *call,
                       enum storage_service service,
                       const char *container,
                       const char *path,
                       json_t **ret_result,
                       struct err *e)
{
    const char *wanted = args_get(call->args, "protocol");
    auto_free char *url = NULL;
    auto_link link = {0};

    if (storage_link_open(call, service, &link, e) < 0)
        return -1;
    url = wire_url(link.wire, container, path);
    *ret_result = wanted ? json_sprintf("%s%s", wanted, strstr(url, "://")) : json_string(url);
    return 0;
}
