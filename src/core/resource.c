/* SPDX-License-Identifier: Apache-2.0 */
#include "core/resource.h"

#include "base/str.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct resource_kind_info infos[RESOURCE_KINDS] = {
    [RESOURCE_GROUP] = {"resource group", "Microsoft.Resources/resourceGroups",
                        "/resourceGroups/", "ResourceGroupNotFound"},
    [RESOURCE_STORAGE_ACCOUNT] = {"storage account", "Microsoft.Storage/storageAccounts",
                                  "/providers/Microsoft.Storage/storageAccounts/",
                                  "ResourceNotFound"},
    [RESOURCE_WORKSPACE] = {"workspace", "Microsoft.BatchAI/workspaces",
                            "/providers/Microsoft.BatchAI/workspaces/", "WorkspaceNotFound"},
    [RESOURCE_EXPERIMENT] = {"experiment", "Microsoft.BatchAI/workspaces/experiments",
                             "/experiments/", "ExperimentNotFound"},
    [RESOURCE_CLUSTER] = {"cluster", "Microsoft.BatchAI/workspaces/clusters", "/clusters/",
                          "ClusterNotFound"},
    [RESOURCE_FILE_SERVER] = {"file server", "Microsoft.BatchAI/workspaces/fileservers",
                              "/fileservers/", "FileServerNotFound"},
    [RESOURCE_JOB] = {"job", "Microsoft.BatchAI/workspaces/experiments/jobs", "/jobs/",
                      "JobNotFound"},
};

enum resource_kind resource_parent_kind(enum resource_kind kind)
{
    switch (kind) {
    case RESOURCE_STORAGE_ACCOUNT:
    case RESOURCE_WORKSPACE:
        return RESOURCE_GROUP;
    case RESOURCE_EXPERIMENT:
    case RESOURCE_CLUSTER:
    case RESOURCE_FILE_SERVER:
        return RESOURCE_WORKSPACE;
    case RESOURCE_JOB:
        return RESOURCE_EXPERIMENT;
    case RESOURCE_GROUP:
    case RESOURCE_KINDS:
        break;
    }
    assert(!"groups hang on nothing");
    return RESOURCE_GROUP;
}

const struct resource_kind_info *resource_kind_info(enum resource_kind kind)
{
    assert(kind < RESOURCE_KINDS);
    return &infos[kind];
}

int resource_kind_parse(const char *noun, enum resource_kind *ret_kind, struct err *e)
{
    for (size_t i = 0; i < RESOURCE_KINDS; i++) {
        if (str_equal(noun, infos[i].noun)) {
            *ret_kind = (enum resource_kind)i;
            return 0;
        }
    }
    return err_set(e, ERR_INTERNAL, "\"%.40s\" is no kind of resource", noun);
}

struct resource *resource_new(enum resource_kind kind)
{
    struct resource *r = xcalloc(1, sizeof(*r));

    r->kind = kind;
    r->properties = json_object();
    return r;
}

void resource_free(struct resource *r)
{
    if (!r)
        return;
    free(r->arm_id);
    free(r->name);
    free(r->location);
    json_decref(r->tags);
    json_decref(r->properties);
    free(r);
}

static const struct edge {
    enum resource_event on;
    enum resource_state from, to;
} edges[] = {
    {RESOURCE_CREATE, RESOURCE_ABSENT, RESOURCE_READY},
    {RESOURCE_UPDATE, RESOURCE_READY, RESOURCE_READY},
    {RESOURCE_DELETE, RESOURCE_READY, RESOURCE_DELETING},
    {RESOURCE_DELETE, RESOURCE_DELETING, RESOURCE_DELETING},
    {RESOURCE_REMOVED, RESOURCE_DELETING, RESOURCE_GONE},
};

int resource_apply(struct resource *r, enum resource_event event, int64_t now_ms, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
        if (edges[i].on == event && edges[i].from == r->state) {
            if (r->state != edges[i].to) {
                r->state = edges[i].to;
                r->state_ms = now_ms;
            }
            return 0;
        }
    }
    if (r->state == RESOURCE_DELETING) {
        err_set(e, ERR_CONFLICT,
                "the %s %s is being deleted; wait until it is gone, then try again",
                infos[r->kind].noun, r->name);
        return err_reason(e, r->kind == RESOURCE_GROUP ? "ResourceGroupBeingDeleted"
                                                       : "ResourceBeingDeleted");
    }
    return err_set(e, ERR_CONFLICT, "the %s %s cannot do that in its state",
                   infos[r->kind].noun, r->name);
}

/* Without a format: every request makes several. */
static char *join(struct arena *arena, const char *a, const char *b, const char *c)
{
    size_t la = strlen(a), lb = strlen(b), lc = strlen(c);
    char *text = arena_alloc(arena, la + lb + lc + 1);

    memcpy(text, a, la);
    memcpy(text + la, b, lb);
    memcpy(text + la + lb, c, lc);
    return text;
}

char *resource_subscription_id(struct arena *arena, const char *subscription)
{
    return join(arena, "/subscriptions/", subscription, "");
}

char *resource_child_id(struct arena *arena,
                        enum resource_kind kind,
                        const char *parent_id,
                        const char *name)
{
    return join(arena, parent_id, infos[kind].id_part, name);
}

char *resource_key(struct arena *arena, const char *arm_id)
{
    char *lower = arena_strdup(arena, arm_id);

    for (char *p = lower; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p + ('a' - 'A'));
    return lower;
}

/* Segment n (from 0) of "/a/b/c"; its length is 0 when there are not so many. */
static const char *segment(const char *path, size_t n, size_t *ret_len)
{
    const char *p = path;

    for (size_t i = 0;; i++) {
        if (*p == '/')
            p++;
        *ret_len = strcspn(p, "/");
        if (i == n || *ret_len == 0)
            return p;
        p += *ret_len;
    }
}

/* An id is subscriptions/S/resourceGroups/G/providers/P/collection/name/collection/name...: the
 * names are segments 1, 3, 7, 9, ... */
char *resource_dollar_path(struct arena *arena, const char *arm_id)
{
    auto_str out = {0};

    for (size_t n = 1;; n += n == 3 ? 4 : 2) {
        size_t len;
        const char *name = segment(arm_id, n, &len);

        if (len == 0)
            return arena_strdup(arena, str_text(&out));
        if (out.len)
            str_add_char(&out, '$');
        str_add_len(&out, name, len);
    }
}

char *resource_output_segment(struct arena *arena, const char *arm_id, const char *uuid)
{
    size_t subscription_len, group_len, len;
    const char *subscription = segment(arm_id, 1, &subscription_len);
    const char *group = segment(arm_id, 3, &group_len);
    const char *rest = segment(arm_id, 6, &len); /* "workspaces/..." */

    return arena_printf(arena, "%.*s/%.*s/%s/%s", (int)subscription_len, subscription,
                        (int)group_len, group, rest, uuid);
}

char *resource_name_above(struct arena *arena, const char *arm_id, size_t levels)
{
    size_t end = strlen(arm_id), start;

    for (;; levels--) {
        for (start = end; start > 0 && arm_id[start - 1] != '/'; start--)
            continue;
        if (levels == 0 || start < 2)
            break;
        /* Over the collection's name, to the end of the parent's. */
        for (end = start - 1; end > 0 && arm_id[end - 1] != '/'; end--)
            continue;
        end = end ? end - 1 : 0;
    }
    return arena_strndup(arena, levels == 0 ? arm_id + start : "",
                         levels == 0 ? end - start : 0);
}

static bool is_in_group(const char *arm_id)
{
    size_t len;
    const char *word = segment(arm_id, 2, &len);

    return len == strlen("resourceGroups") && strncasecmp(word, "resourceGroups", len) == 0;
}

char *resource_group_part(struct arena *arena, const char *arm_id)
{
    size_t len;
    const char *word = segment(arm_id, 3, &len);

    return arena_strndup(arena, word, is_in_group(arm_id) ? len : 0);
}

/* By segments: a group may be called "providers". */
size_t resource_group_span(const char *arm_id)
{
    const char *providers = strcasestr(arm_id, "/providers/");
    size_t len;
    const char *word = segment(arm_id, 3, &len);

    if (is_in_group(arm_id))
        return (size_t)(word - arm_id) + len;
    return providers ? (size_t)(providers - arm_id) : strlen(arm_id);
}

char *resource_group_key(struct arena *arena, const char *arm_id)
{
    return resource_key(arena, arena_strndup(arena, arm_id, resource_group_span(arm_id)));
}

int resource_not_found(struct err *e, enum resource_kind kind, const char *name)
{
    if (kind == RESOURCE_GROUP)
        err_set(e, ERR_NOT_FOUND, "Resource group '%.100s' could not be found.", name);
    else
        err_set(e, ERR_NOT_FOUND, "The specified %s %.100s is not found", infos[kind].noun,
                name);
    return err_reason(e, infos[kind].not_found);
}

const char *resource_etag(const struct resource *r, char buf[RESOURCE_ETAG_BYTES])
{
    snprintf(buf, RESOURCE_ETAG_BYTES, "\"0x%" PRIX64 "\"", (uint64_t)r->version);
    return buf;
}

int64_t resource_next_version(int64_t wall_ms, int64_t last)
{
    /* 621355968000000000 ticks of 100 ns lie between year 1 and 1970. */
    int64_t now = wall_ms * 10000 + INT64_C(621355968000000000);

    return now > last ? now : last + 1;
}

bool resource_etag_in(const char *list, const char *etag)
{
    size_t len = strlen(etag);

    for (const char *p = list; *p;) {
        size_t item;

        p += strspn(p, ", \t");
        if (p[0] == 'W' && p[1] == '/')
            p += 2;
        item = strcspn(p, ", \t");
        if (item == 1 && *p == '*')
            return true;
        if (item == len && memcmp(p, etag, len) == 0)
            return true;
        p += item;
    }
    return false;
}

int resource_check_match(const struct resource *r,
                         const char *if_match,
                         const char *if_none_match,
                         struct err *e)
{
    char etag[RESOURCE_ETAG_BYTES] = "";

    if (r)
        resource_etag(r, etag);
    if (if_match && (!r || !resource_etag_in(if_match, etag))) {
        err_set(e, ERR_PRECONDITION, "If-Match: %.100s does not hold; the resource %s%s",
                if_match, r ? "now has the ETag " : "does not exist", etag);
        return err_target(e, "If-Match");
    }
    if (if_none_match && r && resource_etag_in(if_none_match, etag)) {
        err_set(e, ERR_PRECONDITION,
                "If-None-Match: %.100s does not hold; the resource has the ETag %s",
                if_none_match, etag);
        return err_target(e, "If-None-Match");
    }
    return 0;
}
