/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-place.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-storage.h"
#include "cli/batchai-user.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/storage-account.h"

#include <ctype.h>
#include <string.h>

enum {
    NAME_BYTES = 6, /* of the digest, in an account's name */
    MOST_NAME = 64,
};

void runs_place_done(struct runs_place *place)
{
    storage_account_free(place->account);
    free(place->cluster_id);
    free(place->jobs);
}

char *runs_cluster_name(const char *size)
{
    auto_str name = {0};

    str_add(&name, "run-");
    for (; *size && name.len < MOST_NAME; size++)
        str_add_char(&name,
                     isalnum((unsigned char)*size) ? (char)tolower((unsigned char)*size) : '-');
    return str_take(&name);
}

char *runs_account_name(const char *subscription, const char *group)
{
    auto_free char *small = str_lower(group);
    auto_free char *whole = xasprintf("%s/%s", subscription, small);
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str name = {0};

    crypt_sha256(whole, strlen(whole), digest);
    str_add(&name, "yardrun");
    text_hex(&name, digest, NAME_BYTES);
    return str_take(&name);
}

/* GET it, or PUT it when it is not there.  *ret_found may be NULL. */
static int
need(struct call *call, const char *pattern, json_t *body, json_t **ret_found, struct err *e)
{
    auto_json json_t *found = NULL;
    struct err why = {0};

    if (batchai_act(call, pattern, "GET", NULL, false, &found, &why) < 0) {
        if (why.code != ERR_NOT_FOUND) {
            *e = why;
            return -1;
        }
        if (batchai_act(call, pattern, "PUT", body, true, &found, e) < 0)
            return -1;
        call_info(call, "made %s", json_string_value(json_object_get(found, "id")));
    }
    if (ret_found)
        *ret_found = json_incref(found);
    return 0;
}

static int need_storage(struct call *call, struct runs_place *place, struct err *e)
{
    const char *group = args_get(call->args, "resource-group");
    const char *location = args_get(call->args, "location");
    const char *subscription;
    auto_free char *name = NULL;

    if (call_subscription(call, &subscription, e) < 0)
        return -1;
    name = runs_account_name(subscription, group);
    if (batchai_need_account(call, group, name, location, e) < 0 ||
        batchai_open_account(call, name, &place->account, e) < 0)
        return -1;
    return batchai_need_share(call, place->account, RUNS_SHARE, e);
}

/* --- the cluster --- */

static json_t *cluster_body(const char *size, long nodes)
{
    json_t *properties =
        json_pack("{s:s, s:{s:{s:i, s:I, s:I}}}", "vmSize", size, "scaleSettings", "autoScale",
                  "minimumNodeCount", 0, "maximumNodeCount", (json_int_t)nodes,
                  "initialNodeCount", (json_int_t)nodes);

    batchai_set_own_user(properties);
    return json_pack("{s:o}", "properties", properties);
}

/* A cluster that grows by itself is let grow; others are their owner's. */
static int let_grow(struct call *call, const json_t *cluster, long nodes, struct err *e)
{
    const json_t *scale =
        json_object_get(json_object_get(cluster, "properties"), "scaleSettings");
    const json_t *range = json_object_get(scale, "autoScale");
    json_int_t most = json_integer_value(
        json_object_get(json_object_get(scale, "manual"), "targetNodeCount"));
    auto_json json_t *body = NULL;

    if (!json_is_object(range)) {
        if (most >= nodes)
            return 0;
        return err_set(
            e, ERR_INVALID,
            "the cluster \"%s\" has %lld nodes, the job wants %ld; see: yard batchai "
            "cluster resize",
            args_get(call->args, "cluster"), (long long)most, nodes);
    }
    if (json_integer_value(json_object_get(range, "maximumNodeCount")) >= nodes)
        return 0;
    body = json_pack("{s:{s:{s:{s:O, s:I}}}}", "properties", "scaleSettings", "autoScale",
                     "minimumNodeCount", json_object_get(range, "minimumNodeCount"),
                     "maximumNodeCount", (json_int_t)nodes);
    return batchai_act(call, BATCHAI_CLUSTERS "/{cluster}", "PATCH", body, false, NULL, e);
}

static int need_cluster(struct call *call, long nodes, struct runs_place *place, struct err *e)
{
    const char *size = args_get(call->args, "size");
    auto_free char *usual = runs_cluster_name(size ? size : "host");
    auto_json json_t *body = cluster_body(size ? size : "host", nodes), *cluster = NULL;
    const char *id, *has;

    if (!args_has(call->args, "cluster"))
        args_set(call->args, "cluster", usual);
    if (need(call, BATCHAI_CLUSTERS "/{cluster}", body, &cluster, e) < 0)
        return -1;
    id = json_string_value(json_object_get(cluster, "id"));
    has = json_string_value(json_object_get(json_object_get(cluster, "properties"), "vmSize"));
    if (size && has && !str_equal_nocase(size, has))
        return err_set(e, ERR_CONFLICT,
                       "the cluster \"%s\" has machines of the size %s, not %s",
                       args_get(call->args, "cluster"), has, size);
    place->cluster_id = xstrdup(id ? id : "");
    return let_grow(call, cluster, nodes, e);
}

int runs_place_make(struct call *call, long nodes, struct runs_place *ret, struct err *e)
{
    const char *location = args_get(call->args, "location");
    auto_json json_t *workspace = json_pack("{s:s}", "location", location);
    auto_free char *path = NULL;

    if (batchai_need_group(call, args_get(call->args, "resource-group"), location, e) < 0 ||
        need(call, BATCHAI_WORKSPACE, workspace, NULL, e) < 0 ||
        need(call, BATCHAI_EXPERIMENTS "/{experiment}", NULL, NULL, e) < 0 ||
        need_cluster(call, nodes, ret, e) < 0 || need_storage(call, ret, e) < 0 ||
        arm_path(call, BATCHAI_JOBS, ARM_BATCHAI, &path, e) < 0)
        return -1;
    ret->jobs = xstrndup(path, strcspn(path, "?"));
    return 0;
}
