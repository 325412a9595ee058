/* file-share.c - one share: its life, its metadata, its policies, what it takes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/json.h"
#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>
#include <strings.h>

static int read_tier(struct storage_call *call, const char **ret, struct err *e)
{
    static const char *const tiers[] = {"TransactionOptimized", "Hot", "Cool", "Premium"};
    const char *value = storage_header(call, "x-ms-access-tier");

    *ret = NULL;
    if (!value || !*value)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(tiers); i++) {
        if (strcasecmp(value, tiers[i]) == 0) {
            *ret = tiers[i];
            return 0;
        }
    }
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "\"%.32s\" is no tier for shares",
                   value);
    return err_target(e, "x-ms-access-tier");
}

/* The yard has no NFS server: a share is one for everything, and says SMB. */
static int check_protocols(struct storage_call *call, struct err *e)
{
    const char *value = storage_header(call, "x-ms-enabled-protocols");

    if (!value || !*value || strcasecmp(value, "SMB") == 0)
        return 0;
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue", "shares are SMB shares here");
    return err_target(e, "x-ms-enabled-protocols");
}

static int read_facts(struct storage_call *call, struct share_change *ret, struct err *e)
{
    int64_t quota_gib = -1;

    *ret = (struct share_change){.quota_gib = -1};
    if (storage_header_int(call, "x-ms-share-quota", 1, FILES_MOST_QUOTA_GIB, &quota_gib, e) <
            0 ||
        read_tier(call, &ret->tier, e) < 0)
        return -1;
    ret->quota_gib = quota_gib;
    return 0;
}

static int reply_changed(struct storage_call *call, const struct share *share, int status)
{
    storage_reply_etag(call, share->etag, share->modified_ms);
    return storage_reply(call, status);
}

int file_op_create_share(struct storage_call *call, struct err *e)
{
    autoptr(share) share = NULL;
    struct share_change facts;
    json_t *metadata;

    if (check_protocols(call, e) < 0 || read_facts(call, &facts, e) < 0 ||
        storage_metadata(call, false, &metadata, e) < 0)
        return -1;
    facts.metadata = metadata;
    if (files_create_share(files_of(call), call->account, call->container, &facts, &share, e) <
        0)
        return -1;
    return reply_changed(call, share, 201);
}

/* Reads take a lease only if it is the one that holds. */
static int find_share(struct storage_call *call, struct share **ret_share, struct err *e)
{
    const char *id = file_lease_id(call);
    autoptr(share) share = NULL;

    if (file_refuse_snapshot(call, e) < 0 ||
        files_find_share(files_of(call), call->account, call->container, &share, e) < 0)
        return -1;
    if (id && !lease_is_locked(&share->lease, call->now_ms))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseNotPresentWithContainerOperation",
                              "there is no lease on the share");
    if (id && !str_equal_nocase(share->lease.id, id))
        return storage_refuse(e, ERR_PRECONDITION, "LeaseIdMismatchWithContainerOperation",
                              "the share is leased to another");
    *ret_share = take_ptr(&share);
    return 0;
}

int file_op_get_share(struct storage_call *call, struct err *e)
{
    autoptr(share) share = NULL;

    if (find_share(call, &share, e) < 0)
        return -1;
    storage_reply_etag(call, share->etag, share->modified_ms);
    storage_reply_metadata(call, share->metadata);
    if (!call->op->comp) {
        storage_reply_headerf(call, "x-ms-share-quota", "%lld", (long long)share->quota_gib);
        storage_reply_header(call, "x-ms-access-tier", share->tier);
        storage_reply_date(call, "x-ms-access-tier-change-time", share->created_ms);
        storage_reply_header(call, "x-ms-enabled-protocols", share->protocols);
        storage_reply_lease_state(call, &share->lease);
    }
    return storage_reply(call, 200);
}

int file_op_delete_share(struct storage_call *call, struct err *e)
{
    if (file_refuse_snapshot(call, e) < 0 ||
        files_delete_share(files_of(call), call->account, call->container, file_lease_id(call),
                           e) < 0)
        return -1;
    return storage_reply(call, 202);
}

static int update(struct storage_call *call, const struct share_change *change, struct err *e)
{
    autoptr(share) share = NULL;

    if (files_update_share(files_of(call), call->account, call->container, change,
                           file_lease_id(call), &share, e) < 0)
        return -1;
    return reply_changed(call, share, 200);
}

int file_op_set_share_metadata(struct storage_call *call, struct err *e)
{
    struct share_change change = {.quota_gib = -1};
    json_t *metadata;

    if (storage_metadata(call, true, &metadata, e) < 0)
        return -1;
    change.metadata = metadata;
    return update(call, &change, e);
}

int file_op_set_share_properties(struct storage_call *call, struct err *e)
{
    struct share_change change;

    if (read_facts(call, &change, e) < 0)
        return -1;
    return update(call, &change, e);
}

int file_op_get_acl(struct storage_call *call, struct err *e)
{
    autoptr(share) share = NULL;

    if (find_share(call, &share, e) < 0)
        return -1;
    storage_reply_etag(call, share->etag, share->modified_ms);
    storage_write_policies(&call->out_body, share->policies);
    return storage_reply_xml(call, 200);
}

int file_op_set_acl(struct storage_call *call, struct err *e)
{
    struct share_change change = {.quota_gib = -1};
    auto_json json_t *policies = NULL;

    if (storage_read_policies(call, &policies, e) < 0)
        return -1;
    change.policies = policies;
    return update(call, &change, e);
}

int file_op_share_stats(struct storage_call *call, struct err *e)
{
    struct str *out = &call->out_body;
    autoptr(share) share = NULL;
    int64_t bytes;

    if (find_share(call, &share, e) < 0 ||
        files_share_usage(files_of(call), call->account, call->container, &bytes, e) < 0)
        return -1;
    storage_reply_etag(call, share->etag, share->modified_ms);
    xml_begin(out);
    xml_open(out, "ShareStats");
    xml_number(out, "ShareUsageBytes", bytes);
    xml_close(out, "ShareStats");
    return storage_reply_xml(call, 200);
}

int file_op_lease_share(struct storage_call *call, struct err *e)
{
    struct lease_request request;
    autoptr(share) share = NULL;
    int left_s = 0;

    if (file_refuse_snapshot(call, e) < 0 || storage_lease_request(call, &request, e) < 0 ||
        files_lease_share(files_of(call), call->account, call->container, &request, &share,
                          &left_s, e) < 0)
        return -1;
    storage_reply_etag(call, share->etag, share->modified_ms);
    return storage_reply_lease(call, &request, &share->lease, left_s);
}

/* --- security descriptors --- */

int file_op_put_permission(struct storage_call *call, struct err *e)
{
    auto_json json_t *body = NULL;
    auto_free char *key = NULL;
    const char *text = NULL;

    if (json_parse(call->body, call->body_len, &body, e) < 0 ||
        json_get_string(body, "permission", &text, e) < 0)
        return err_reason(e, "InvalidInput");
    if (!text || !*text)
        return storage_refuse(e, ERR_INVALID, "FileInvalidPermission",
                              "the body needs a \"permission\"");
    if (files_put_permission(files_of(call), call->account, call->container, text, &key, e) < 0)
        return -1;
    storage_reply_header(call, "x-ms-file-permission-key", key);
    storage_reply_header(call, "x-ms-request-server-encrypted", "true");
    return storage_reply(call, 201);
}

int file_op_get_permission(struct storage_call *call, struct err *e)
{
    const char *key = storage_need_header(call, "x-ms-file-permission-key", e);
    auto_json json_t *body = NULL;
    auto_free char *text = NULL;

    if (!key || files_find_permission(files_of(call), call->account, call->container, key,
                                      &text, e) < 0)
        return -1;
    body = json_pack("{s:s}", "permission", text);
    json_write(&call->out_body, body);
    storage_reply_header(call, "Content-Type", "application/json");
    return storage_reply(call, 200);
}

/* --- what is not there --- */

int file_op_snapshot_share(struct storage_call *call, struct err *e)
{
    (void)call;
    return storage_refuse(e, ERR_INVALID, "ShareSnapshotOperationNotSupported",
                          "shares have no snapshots here");
}

int file_op_undelete_share(struct storage_call *call, struct err *e)
{
    (void)call;
    return storage_refuse(e, ERR_NOT_FOUND, "ShareNotFound",
                          "a deleted share is gone for good here");
}
