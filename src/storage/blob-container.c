/* blob-container.c - one container: its life, its metadata, its policies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"

#include <string.h>

/* A container is never public: an address alone opens nothing here. */
static int refuse_public(struct storage_call *call, struct err *e)
{
    const char *access = storage_header(call, "x-ms-blob-public-access");

    if (!access || !*access)
        return 0;
    return storage_refuse(e, ERR_CONFLICT, "PublicAccessNotPermitted",
                          "containers are not public here; hand out a SAS instead");
}

int blob_op_create_container(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;
    json_t *metadata;

    if (refuse_public(call, e) < 0 || storage_metadata(call, false, &metadata, e) < 0 ||
        blobs_create_container(blobs_of(call), call->account, call->container, metadata,
                               &container, e) < 0)
        return -1;
    storage_reply_etag(call, container->etag, container->modified_ms);
    return storage_reply(call, 201);
}

/* Reads take no condition but a lease, which must then be the one that holds. */
static int
check_lease(struct storage_call *call, const struct container *container, struct err *e)
{
    const char *id = storage_header(call, "x-ms-lease-id");

    if (!id || !*id)
        return 0;
    if (!lease_is_locked(&container->lease, call->now_ms))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseNotPresentWithContainerOperation",
                              "there is no lease on the container");
    if (!str_equal_nocase(container->lease.id, id))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseIdMismatchWithContainerOperation",
                              "the container is leased to another");
    return 0;
}

static int
find_container(struct storage_call *call, struct container **ret_container, struct err *e)
{
    autoptr(container) container = NULL;

    if (blobs_find_container(blobs_of(call), call->account, call->container, &container, e) <
            0 ||
        check_lease(call, container, e) < 0)
        return -1;
    *ret_container = take_ptr(&container);
    return 0;
}

int blob_op_get_container(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;

    if (find_container(call, &container, e) < 0)
        return -1;
    storage_reply_etag(call, container->etag, container->modified_ms);
    storage_reply_metadata(call, container->metadata);
    if (!call->op->comp) {
        storage_reply_lease_state(call, &container->lease);
        storage_reply_header(call, "x-ms-has-immutability-policy", "false");
        storage_reply_header(call, "x-ms-has-legal-hold", "false");
        storage_reply_header(call, "x-ms-immutable-storage-with-versioning-enabled", "false");
        storage_reply_header(call, "x-ms-default-encryption-scope", "$account-encryption-key");
        storage_reply_header(call, "x-ms-deny-encryption-scope-override", "false");
    }
    return storage_reply(call, 200);
}

static int reply_changed(struct storage_call *call, const struct container *container)
{
    storage_reply_etag(call, container->etag, container->modified_ms);
    return storage_reply(call, 200);
}

int blob_op_set_container_metadata(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;
    struct conditions conditions;
    json_t *metadata;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        storage_metadata(call, true, &metadata, e) < 0 ||
        blobs_update_container(blobs_of(call), call->account, call->container, metadata, NULL,
                               &conditions, &container, e) < 0)
        return -1;
    return reply_changed(call, container);
}

int blob_op_get_acl(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;

    if (find_container(call, &container, e) < 0)
        return -1;
    storage_reply_etag(call, container->etag, container->modified_ms);
    storage_write_policies(&call->out_body, container->policies);
    return storage_reply_xml(call, 200);
}

int blob_op_set_acl(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;
    auto_json json_t *policies = NULL;
    struct conditions conditions;

    if (refuse_public(call, e) < 0 || storage_conditions(call, "", &conditions, e) < 0 ||
        storage_read_policies(call, &policies, e) < 0 ||
        blobs_update_container(blobs_of(call), call->account, call->container, NULL, policies,
                               &conditions, &container, e) < 0)
        return -1;
    return reply_changed(call, container);
}

int blob_op_lease_container(struct storage_call *call, struct err *e)
{
    autoptr(container) container = NULL;
    struct lease_request request;
    struct conditions conditions;
    int left_s = 0;

    if (storage_lease_request(call, &request, e) < 0 ||
        storage_conditions(call, "", &conditions, e) < 0)
        return -1;
    conditions.lease_id = NULL; /* it is what the request is about */
    if (blobs_lease_container(blobs_of(call), call->account, call->container, &request,
                              &conditions, &container, &left_s, e) < 0)
        return -1;
    storage_reply_etag(call, container->etag, container->modified_ms);
    return storage_reply_lease(call, &request, &container->lease, left_s);
}

int blob_op_delete_container(struct storage_call *call, struct err *e)
{
    struct conditions conditions;

    if (storage_conditions(call, "", &conditions, e) < 0 ||
        blobs_delete_container(blobs_of(call), call->account, call->container, &conditions, e) <
            0)
        return -1;
    return storage_reply(call, 202);
}
