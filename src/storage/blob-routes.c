/* blob-routes.c - every operation of the Blob service, one row each.
 *
 * The first row that fits is taken: rows with a header stand before the same row without.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"

enum {
    MIB = 1024 * 1024,
    MOST_XML = MIB,
    MOST_BLOCK_LIST = 16 * MIB, /* 50,000 ids of 88 characters and their elements: 6 MiB */
    MOST_BATCH = 4 * MIB,
};

#define SERVICE   .level = STORAGE_SERVICE
#define CONTAINER .level = STORAGE_CONTAINER, .restype = "container"
#define BLOB      .level = STORAGE_OBJECT
#define WRITE     OP_WRITES | OP_WAITS
#define FROM_URL  .header = "x-ms-copy-source"
#define ACCOUNT   .restype = "account", .comp = "properties", .permissions = "*", .levels = "sco"

/* A row is read across. */
/* clang-format off */
static const struct storage_op ops[] = {
    /* the service */
    {.name = "ListContainers", .method = "GET", SERVICE, .comp = "list", .permissions = "l",
     .flags = OP_WAITS, .handle = blob_op_list_containers},
    {.name = "GetServiceProperties", .method = "GET", SERVICE, .restype = "service",
     .comp = "properties", .permissions = "r", .handle = storage_op_get_properties},
    {.name = "SetServiceProperties", .method = "PUT", SERVICE, .restype = "service",
     .comp = "properties", .permissions = "w", .flags = WRITE | OP_COLLECTS, .most = MOST_XML,
     .handle = storage_op_set_properties},
    {.name = "GetServiceStats", .method = "GET", SERVICE, .restype = "service",
     .comp = "stats", .permissions = "r", .handle = blob_op_stats},
    {.name = "GetUserDelegationKey", .method = "POST", SERVICE, .restype = "service",
     .comp = "userdelegationkey", .permissions = "", .flags = OP_COLLECTS, .most = MOST_XML,
     .handle = storage_op_delegation_key},
    {.name = "GetAccountInformation", .method = "GET", SERVICE, ACCOUNT,
     .handle = storage_op_account_info},
    {.name = "GetAccountInformation", .method = "HEAD", SERVICE, ACCOUNT,
     .handle = storage_op_account_info},
    {.name = "BlobBatch", .method = "POST", SERVICE, .comp = "batch", .permissions = "*",
     .levels = "sco", .flags = OP_WAITS | OP_COLLECTS, .most = MOST_BATCH,
     .handle = blob_op_batch},
    /* A client that takes the account for a container. */
    {.name = "BlobBatch", .method = "POST", SERVICE, .restype = "container", .comp = "batch",
     .permissions = "*", .levels = "sco", .flags = OP_WAITS | OP_COLLECTS, .most = MOST_BATCH,
     .handle = blob_op_batch},

    /* containers */
    {.name = "CreateContainer", .method = "PUT", CONTAINER, .permissions = "wc",
     .flags = WRITE, .handle = blob_op_create_container},
    {.name = "GetContainerProperties", .method = "GET", CONTAINER, .permissions = "r",
     .handle = blob_op_get_container},
    {.name = "GetContainerProperties", .method = "HEAD", CONTAINER, .permissions = "r",
     .handle = blob_op_get_container},
    {.name = "DeleteContainer", .method = "DELETE", CONTAINER, .permissions = "d",
     .flags = WRITE, .handle = blob_op_delete_container},
    {.name = "GetContainerMetadata", .method = "GET", CONTAINER, .comp = "metadata",
     .permissions = "r", .handle = blob_op_get_container},
    {.name = "GetContainerMetadata", .method = "HEAD", CONTAINER, .comp = "metadata",
     .permissions = "r", .handle = blob_op_get_container},
    {.name = "SetContainerMetadata", .method = "PUT", CONTAINER, .comp = "metadata",
     .permissions = "w", .flags = WRITE, .handle = blob_op_set_container_metadata},
    {.name = "GetContainerACL", .method = "GET", CONTAINER, .comp = "acl", .permissions = "",
     .handle = blob_op_get_acl},
    {.name = "GetContainerACL", .method = "HEAD", CONTAINER, .comp = "acl", .permissions = "",
     .handle = blob_op_get_acl},
    {.name = "SetContainerACL", .method = "PUT", CONTAINER, .comp = "acl", .permissions = "",
     .flags = WRITE | OP_COLLECTS, .most = MOST_XML, .handle = blob_op_set_acl},
    {.name = "LeaseContainer", .method = "PUT", CONTAINER, .comp = "lease",
     .header = "x-ms-lease-action", .value = "break", .permissions = "wd", .flags = WRITE,
     .handle = blob_op_lease_container},
    {.name = "LeaseContainer", .method = "PUT", CONTAINER, .comp = "lease",
     .permissions = "w", .flags = WRITE, .handle = blob_op_lease_container},
    {.name = "ListBlobs", .method = "GET", CONTAINER, .comp = "list", .permissions = "l",
     .flags = OP_WAITS | OP_SERVICE_SAS, .handle = blob_op_list},
    {.name = "BlobBatch", .method = "POST", CONTAINER, .comp = "batch", .permissions = "*",
     .levels = "sco", .flags = OP_WAITS | OP_COLLECTS | OP_SERVICE_SAS, .most = MOST_BATCH,
     .handle = blob_op_batch},
    {.name = "GetAccountInformation", .method = "GET", .level = STORAGE_CONTAINER, ACCOUNT,
     .flags = OP_SERVICE_SAS, .handle = storage_op_account_info},
    {.name = "GetAccountInformation", .method = "HEAD", .level = STORAGE_CONTAINER, ACCOUNT,
     .flags = OP_SERVICE_SAS, .handle = storage_op_account_info},

    /* blobs: whole */
    {.name = "CopyBlobFromURL", .method = "PUT", BLOB, FROM_URL, .permissions = "wc",
     .flags = WRITE | OP_CREATES, .handle = blob_op_copy},
    {.name = "PutBlob", .method = "PUT", BLOB, .permissions = "wc",
     .flags = WRITE | OP_CREATES | OP_STREAMS, .begin = blob_begin_put, .handle = blob_op_put},
    {.name = "AbortCopyBlob", .method = "PUT", BLOB, .comp = "copy", .permissions = "w",
     .flags = OP_WRITES, .handle = blob_op_abort_copy},
    {.name = "GetBlob", .method = "GET", BLOB, .header = "x-ms-range-get-content-md5",
     .permissions = "r", .flags = OP_WAITS, .handle = blob_op_get},
    {.name = "GetBlob", .method = "GET", BLOB, .header = "x-ms-range-get-content-crc64",
     .permissions = "r", .flags = OP_WAITS, .handle = blob_op_get},
    {.name = "GetBlob", .method = "GET", BLOB, .permissions = "r", .handle = blob_op_get},
    {.name = "GetBlobProperties", .method = "HEAD", BLOB, .permissions = "r",
     .handle = blob_op_head},
    {.name = "DeleteBlob", .method = "DELETE", BLOB, .permissions = "d", .flags = WRITE | OP_SNAPSHOTS,
     .handle = blob_op_delete},
    {.name = "UndeleteBlob", .method = "PUT", BLOB, .comp = "undelete", .permissions = "w",
     .flags = OP_WRITES, .handle = blob_op_undelete},

    /* blobs: facts */
    {.name = "GetBlobMetadata", .method = "GET", BLOB, .comp = "metadata", .permissions = "r",
     .handle = blob_op_get_metadata},
    {.name = "GetBlobMetadata", .method = "HEAD", BLOB, .comp = "metadata",
     .permissions = "r", .handle = blob_op_get_metadata},
    {.name = "SetBlobMetadata", .method = "PUT", BLOB, .comp = "metadata", .permissions = "w",
     .flags = WRITE, .handle = blob_op_set_metadata},
    {.name = "SetBlobProperties", .method = "PUT", BLOB, .comp = "properties",
     .permissions = "w", .flags = WRITE, .handle = blob_op_set_properties},
    {.name = "GetBlobTags", .method = "GET", BLOB, .comp = "tags", .permissions = "t",
     .handle = blob_op_get_tags},
    {.name = "SetBlobTags", .method = "PUT", BLOB, .comp = "tags", .permissions = "t",
     .flags = WRITE | OP_COLLECTS, .most = MOST_XML, .handle = blob_op_set_tags},
    {.name = "SetBlobTier", .method = "PUT", BLOB, .comp = "tier", .permissions = "w",
     .flags = WRITE | OP_SNAPSHOTS, .handle = blob_op_set_tier},
    {.name = "SnapshotBlob", .method = "PUT", BLOB, .comp = "snapshot", .permissions = "cw",
     .flags = WRITE, .handle = blob_op_snapshot},
    {.name = "LeaseBlob", .method = "PUT", BLOB, .comp = "lease",
     .header = "x-ms-lease-action", .value = "break", .permissions = "wd", .flags = WRITE,
     .handle = blob_op_lease},
    {.name = "LeaseBlob", .method = "PUT", BLOB, .comp = "lease", .permissions = "w",
     .flags = WRITE, .handle = blob_op_lease},
    {.name = "GetAccountInformation", .method = "GET", BLOB, ACCOUNT,
     .handle = storage_op_account_info},
    {.name = "GetAccountInformation", .method = "HEAD", BLOB, ACCOUNT,
     .handle = storage_op_account_info},

    /* blobs: parts */
    {.name = "PutBlockFromURL", .method = "PUT", BLOB, .comp = "block", FROM_URL,
     .permissions = "w", .flags = WRITE, .handle = blob_op_put_block_from_url},
    {.name = "PutBlock", .method = "PUT", BLOB, .comp = "block", .permissions = "w",
     .flags = WRITE | OP_STREAMS, .begin = blob_begin_block, .handle = blob_op_put_block},
    {.name = "PutBlockList", .method = "PUT", BLOB, .comp = "blocklist", .permissions = "w",
     .flags = WRITE | OP_COLLECTS, .most = MOST_BLOCK_LIST, .handle = blob_op_put_block_list},
    {.name = "GetBlockList", .method = "GET", BLOB, .comp = "blocklist", .permissions = "r",
     .flags = OP_WAITS, .handle = blob_op_get_block_list},
    {.name = "AppendBlockFromURL", .method = "PUT", BLOB, .comp = "appendblock", FROM_URL,
     .permissions = "aw", .flags = WRITE, .handle = blob_op_append_from_url},
    {.name = "AppendBlock", .method = "PUT", BLOB, .comp = "appendblock", .permissions = "aw",
     .flags = WRITE | OP_STREAMS, .begin = blob_begin_append, .handle = blob_op_append},
    {.name = "PutPageFromURL", .method = "PUT", BLOB, .comp = "page", FROM_URL,
     .permissions = "w", .flags = WRITE, .handle = blob_op_put_page_from_url},
    {.name = "PutPage", .method = "PUT", BLOB, .comp = "page", .permissions = "w",
     .flags = WRITE | OP_STREAMS, .begin = blob_begin_page, .handle = blob_op_put_page},
    {.name = "GetPageRanges", .method = "GET", BLOB, .comp = "pagelist", .permissions = "r",
     .flags = OP_WAITS, .handle = blob_op_get_pages},
};
/* clang-format on */

static int policies_of(struct storage_call *call, json_t **ret_policies, struct err *e)
{
    autoptr(container) container = NULL;

    if (blobs_find_container(blobs_of(call), call->account, call->container, &container, e) < 0)
        return -1;
    *ret_policies = json_incref(container->policies);
    return 0;
}

static const struct storage_table blob_table = {
    .service = "blob",
    .ops = ops,
    .count = ARRAY_SIZE(ops),
    .policies = policies_of,
    .has_root = true,
};

void storage_on_blob_request(struct http_req *req, void *service)
{
    storage_serve(service, &blob_table, req);
}
