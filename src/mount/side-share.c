/* side-share.c - a share: real folders, and files that change in place.
 *
 * The service has no condition for reading a file, so what came is judged by the ETag that came
 * with it: when it is not the one that was expected, the file was changed by somebody else, its
 * node is brought up to date, and the read begins anew.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/side-share.h"

#include "base/clock.h"
#include "base/str.h"
#include "mount/pages.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- listing --- */

static int see_entry(void *context, const struct listing_entry *entry, struct err *e)
{
    struct listed_rows *rows = context;
    int64_t ns = facts_parse_time(listing_get(entry, "Properties/LastWriteTime"));
    int64_t ms = listing_modified_ms(entry);
    struct listed row = {
        .name = xstrdup(listing_name(entry)),
        .etag = pages_etag(entry),
        .size_bytes = listing_size(entry),
        .mtime_ns = ns >= 0   ? ns
                    : ms >= 0 ? ms * 1000000
                              : 0,
        .is_folder = str_equal(listing_kind(entry), "Directory"),
    };

    (void)e;
    listed_add(rows, &row);
    return 0;
}

static int list(struct mount *mount, const char *path, struct listed_rows *rows, struct err *e)
{
    return pages_walk(mount->remote, path,
                      "restype=directory&comp=list&include=timestamps,Etag&maxresults=5000",
                      see_entry, rows, e);
}

/* --- reading --- */

static int has_changed(struct err *e)
{
    err_set(e, ERR_PRECONDITION, "the file was changed meanwhile");
    return err_reason(e, "ConditionNotMet");
}

/* Take what the answer says for the truth, unless this mount is writing the file. */
static void update(struct mount *mount, struct node *node, const struct facts *facts)
{
    pthread_mutex_lock(&mount->tree.lock);
    node_set_facts(node, facts->etag[0] ? facts->etag : NULL,
                   node->writing || facts->size_bytes < 0 ? node->size_bytes
                                                          : facts->size_bytes,
                   facts->mtime_ns < 0 ? node->mtime_ns : facts->mtime_ns);
    node->version++;
    pthread_mutex_unlock(&mount->tree.lock);
    reader_drop(mount->reader, node);
}

/* The range was refused: the file is shorter than we think. */
static int look_again(struct mount *mount, struct node *node, struct err *e)
{
    pthread_mutex_lock(&mount->tree.lock);
    if (node->parent)
        tree_expire(node->parent);
    pthread_mutex_unlock(&mount->tree.lock);
    return has_changed(e);
}

static int fetch(void *context,
                 struct node *node,
                 uint64_t version,
                 int64_t first,
                 int64_t len,
                 reader_take *take,
                 void *take_context,
                 struct err *e)
{
    struct mount *mount = context;
    auto_sighting seen = {0};
    auto_answer answer = {0};
    char range[64];
    const char *headers[] = {range, NULL};
    struct remote_call call = {
        .method = "GET", .headers = headers, .sink = take, .sink_context = take_context};
    struct facts facts;
    int rc;

    if (mount_see(mount, node, version, &seen, e) < 0)
        return -1;
    snprintf(range, sizeof(range), "x-ms-range: bytes=%" PRId64 "-%" PRId64, first,
             first + len - 1);
    call.path = seen.path;
    rc = remote_call(mount->remote, &call, &answer, e);
    if (rc < 0 && e->code == ERR_NOT_FOUND)
        return mount_is_gone(mount, node, &seen, e);
    if (rc < 0)
        return answer.status == 416 ? look_again(mount, node, e) : -1;
    facts_read(&answer, &facts);
    if (seen.etag && str_equal(facts.etag, seen.etag))
        return 0;
    update(mount, node, &facts);
    return has_changed(e);
}

/* --- changing names --- */

static int make_folder(struct mount *mount, const char *path, struct err *e)
{
    const struct remote_call call = {
        .method = "PUT", .path = path, .query = "restype=directory", .done_errno = EEXIST};

    return remote_call(mount->remote, &call, NULL, e);
}

/* The service would refuse them too; but a file is made later than its writer opens it. */
static int check_name(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (const char *p = name; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f || strchr("\\:*?\"<>|", *p)) {
            err_set(e, ERR_INVALID, "a share has no names like \"%.100s\"", name);
            return err_reason(e, "InvalidResourceName");
        }
    }
    return 0;
}

int share_make(struct mount *mount,
               const char *path,
               const void *bytes,
               size_t len,
               struct facts *ret_facts,
               struct err *e)
{
    char size[48];
    const char *headers[] = {size,
                             "x-ms-type: file",
                             "x-ms-file-attributes: None",
                             "x-ms-file-creation-time: now",
                             "x-ms-file-last-write-time: now",
                             "x-ms-file-permission: inherit",
                             NULL};
    const struct remote_call call = {
        .method = "PUT", .path = path, .headers = headers, .body = bytes, .body_len = len};
    auto_answer answer = {0};

    snprintf(size, sizeof(size), "x-ms-content-length: %zu", len);
    if (remote_call(mount->remote, &call, &answer, e) < 0)
        return -1;
    facts_read(&answer, ret_facts);
    atomic_store(&mount->may_write, true);
    return 0;
}

/* A yard makes a file together with its first bytes; so it is made when they are known.  But
 * not the first of a mount: whether we may write at all should be said at once, and not when
 * it is closed, where few programs listen. */
static int
make_file(struct mount *mount, const char *path, struct facts *ret_facts, struct err *e)
{
    *ret_facts = (struct facts){.size_bytes = 0, .mtime_ns = -1};
    if (check_name(path, e) < 0)
        return -1;
    if (mount->settings->is_yard && atomic_load(&mount->may_write))
        return 0;
    return share_make(mount, path, NULL, 0, ret_facts, e);
}

static int remove_it(struct mount *mount, const char *path, bool is_folder, struct err *e)
{
    const struct remote_call call = {
        .method = "DELETE",
        .path = path,
        .query = is_folder ? "restype=directory" : NULL,
        .done_errno = ENOENT,
    };

    return remote_call(mount->remote, &call, NULL, e);
}

static int move(struct mount *mount,
                const char *from,
                const char *to,
                bool is_folder,
                struct facts *ret_facts,
                struct err *e)
{
    auto_free char *url = remote_url(mount->remote, from);
    auto_free char *source = xasprintf("x-ms-file-rename-source: %s", url);
    const char *headers[] = {source, "x-ms-file-rename-replace-if-exists: true",
                             "x-ms-file-rename-ignore-readonly: true", NULL};
    const struct remote_call call = {
        .method = "PUT",
        .path = to,
        .query = is_folder ? "restype=directory&comp=rename" : "comp=rename",
        .headers = is_folder ? (const char *[]){source, NULL} : headers,
        .done_errno = ENOENT,
    };
    auto_answer answer = {0};

    if (remote_call(mount->remote, &call, &answer, e) < 0)
        return -1;
    facts_read(&answer, ret_facts);
    return 0;
}

const struct side side_share = {
    .list = list,
    .fetch = fetch,
    .make_folder = make_folder,
    .remove = remove_it,
    .move = move,
    .make_file = make_file,
    .open = share_open,
    .write = share_write,
    .truncate = share_truncate,
    .flush = share_flush,
    .set_time = share_set_time,
    .close = share_close,
};
