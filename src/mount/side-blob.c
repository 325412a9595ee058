/* side-blob.c - a container: names with slashes in them make folders, a blob is replaced as a
 * whole.
 *
 * An empty folder exists in this mount only.  A rename is a copy and a removal; that of a
 * folder is so for each blob below it, and not at one moment.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mount/side-blob.h"

#include "base/str.h"
#include "base/text.h"
#include "mount/pages.h"
#include "mount/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
    POLL_MS = 100,
    MOST_POLLS = 36000,
};

/* --- listing --- */

struct blob_list {
    size_t prefix_len;
    struct listed_rows *rows;
};

static int see_entry(void *context, const struct listing_entry *entry, struct err *e)
{
    struct blob_list *list = context;
    const char *name = listing_name(entry);
    size_t len = strlen(name);
    int64_t ms = listing_modified_ms(entry);
    struct listed row = {.is_folder = str_equal(listing_kind(entry), "BlobPrefix")};

    (void)e;
    /* The blob "a/" is how some tools mark the folder a: it has no name below it. */
    if (len <= list->prefix_len)
        return 0;
    name += list->prefix_len;
    len -= list->prefix_len;
    if (row.is_folder) {
        row.name = xstrndup(name, len - (name[len - 1] == '/'));
    } else {
        row.name = xstrdup(name);
        row.etag = pages_etag(entry);
        row.size_bytes = listing_size(entry);
        row.mtime_ns = ms < 0 ? 0 : ms * 1000000;
    }
    listed_add(list->rows, &row);
    return 0;
}

static char *list_query(const char *path, bool is_deep)
{
    auto_str query = {0};

    str_add(&query, "restype=container&comp=list&maxresults=5000");
    if (!is_deep)
        str_add(&query, "&delimiter=%2F");
    if (*path) {
        str_add(&query, "&prefix=");
        text_percent(&query, path);
        str_add(&query, "%2F");
    }
    return str_take(&query);
}

static int list(struct mount *mount, const char *path, struct listed_rows *rows, struct err *e)
{
    auto_free char *query = list_query(path, false);
    struct blob_list context = {*path ? strlen(path) + 1 : 0, rows};

    return pages_walk(mount->remote, "", query, see_entry, &context, e);
}

/* --- reading --- */

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
    char range[64], condition[160];
    const char *headers[] = {range, condition, NULL};
    struct remote_call call = {
        .method = "GET", .headers = headers, .sink = take, .sink_context = take_context};
    int rc;

    if (mount_see(mount, node, version, &seen, e) < 0)
        return -1;
    snprintf(range, sizeof(range), "x-ms-range: bytes=%" PRId64 "-%" PRId64, first,
             first + len - 1);
    snprintf(condition, sizeof(condition), seen.etag ? "If-Match: \"%s\"" : "If-Match: *",
             seen.etag);
    call.path = seen.path;
    rc = remote_call(mount->remote, &call, &answer, e);
    if (rc < 0 && (e->code == ERR_PRECONDITION || e->code == ERR_NOT_FOUND))
        return mount_is_gone(mount, node, &seen, e);
    return rc;
}

/* --- changing names --- */

static int make_folder(struct mount *mount, const char *path, struct err *e)
{
    (void)mount;
    (void)path;
    (void)e;
    return 0;
}

static int remove_it(struct mount *mount, const char *path, bool is_folder, struct err *e)
{
    const struct remote_call call = {.method = "DELETE", .path = path, .done_errno = ENOENT};

    return is_folder ? 0 : remote_call(mount->remote, &call, NULL, e);
}

/* Large copies between accounts take their time; the header tells. */
static int
wait_for_copy(struct mount *mount, const char *path, struct http_answer *answer, struct err *e)
{
    for (int polls = 0; polls < MOST_POLLS; polls++) {
        auto_free char *status = http_answer_header(answer, "x-ms-copy-status");
        const struct remote_call call = {.method = "HEAD", .path = path};
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

        if (!status || str_equal(status, "success"))
            return 0;
        if (!str_equal(status, "pending"))
            return err_set(e, ERR_INTERNAL, "the copy ended as \"%.40s\"", status);
        nanosleep(&pause, NULL);
        if (remote_call(mount->remote, &call, answer, e) < 0)
            return -1;
    }
    return err_set(e, ERR_TIMEOUT, "the copy did not end");
}

static int copy(struct mount *mount,
                const char *from,
                const char *to,
                struct facts *ret_facts,
                struct err *e)
{
    auto_free char *url = remote_url(mount->remote, from);
    auto_free char *source = xasprintf("x-ms-copy-source: %s", url);
    const char *headers[] = {source, NULL};
    const struct remote_call call = {.method = "PUT", .path = to, .headers = headers};
    auto_answer answer = {0};

    if (remote_call(mount->remote, &call, &answer, e) < 0)
        return -1;
    if (ret_facts)
        facts_read(&answer, ret_facts);
    return wait_for_copy(mount, to, &answer, e);
}

static int move_file(struct mount *mount,
                     const char *from,
                     const char *to,
                     struct facts *ret_facts,
                     struct err *e)
{
    if (copy(mount, from, to, ret_facts, e) < 0)
        return -1;
    return remove_it(mount, from, false, e);
}

static int move_folder(struct mount *mount, const char *from, const char *to, struct err *e)
{
    auto_free char *query = list_query(from, true);
    auto_listed rows = {0};
    struct blob_list context = {strlen(from) + 1, &rows};

    if (pages_walk(mount->remote, "", query, see_entry, &context, e) < 0)
        return -1;
    /* All copies before any removal: what fails halfway has lost nothing. */
    for (int removes = 0; removes < 2; removes++) {
        for (size_t i = 0; i < rows.count; i++) {
            auto_free char *old = xasprintf("%s/%s", from, rows.rows[i].name);
            auto_free char *new = xasprintf("%s/%s", to, rows.rows[i].name);

            if ((removes ? remove_it(mount, old, false, e) : copy(mount, old, new, NULL, e)) <
                0)
                return -1;
        }
    }
    return 0;
}

static int move(struct mount *mount,
                const char *from,
                const char *to,
                bool is_folder,
                struct facts *ret_facts,
                struct err *e)
{
    *ret_facts = (struct facts){.size_bytes = -1, .mtime_ns = -1};
    return is_folder ? move_folder(mount, from, to, e)
                     : move_file(mount, from, to, ret_facts, e);
}

/* The blob is stored when its writer closes it. */
static int
make_file(struct mount *mount, const char *path, struct facts *ret_facts, struct err *e)
{
    (void)mount;
    (void)path;
    (void)e;
    *ret_facts = (struct facts){.size_bytes = 0, .mtime_ns = -1};
    return 0;
}

const struct side side_blob = {
    .list = list,
    .fetch = fetch,
    .make_folder = make_folder,
    .remove = remove_it,
    .move = move,
    .make_file = make_file,
    .open = blob_open,
    .write = blob_write,
    .truncate = blob_truncate,
    .flush = blob_flush,
    .set_time = blob_set_time,
    .close = blob_close,
    .read = blob_read,
};
