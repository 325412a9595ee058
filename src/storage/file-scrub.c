/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "db/db.h"
#include "store/file.h"
#include "store/pool.h"

#include <string.h>

/* An inode number comes back for another file, with another time of birth. */
struct identity {
    uint64_t inode;
    int64_t born_ns;
};

struct identity_list {
    struct identity *items;
    size_t count, room;
};

struct scrub {
    struct files *files;
    void (*finding)(const char *what, const char *where, void *context);
    void *context;
    const char *account, *share;
    struct identity_list rows, seen;
};

static void add(struct identity_list *list, uint64_t inode, int64_t born_ns)
{
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 1024;
        list->items = xreallocarray(list->items, list->room, sizeof(list->items[0]));
    }
    list->items[list->count++] = (struct identity){inode, born_ns};
}

static int compare(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;

    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return (x->born_ns > y->born_ns) - (x->born_ns < y->born_ns);
}

static bool note_row(uint64_t inode, int64_t born_ns, void *context)
{
    struct scrub *s = context;

    add(&s->rows, inode, born_ns);
    return true;
}

static void look_at(const char *path, const struct file_stat *stat, void *context)
{
    struct scrub *s = context;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    auto_free char *where = xasprintf("%s/%s/%s", s->account, s->share, path);

    if (!stat) {
        s->finding("neither file nor directory: no client can see it", where, s->context);
        return;
    }
    if (!file_name_is_visible(name))
        s->finding("a name that the protocol cannot say", where, s->context);
    add(&s->seen, stat->inode, stat->born_ns);
}

static void report_gone(struct scrub *s)
{
    auto_free char *where = NULL;
    size_t gone = 0;

    if (s->seen.count > 0)
        qsort(s->seen.items, s->seen.count, sizeof(struct identity), compare);
    for (size_t i = 0; i < s->rows.count; i++) {
        gone += s->seen.count == 0 || !bsearch(&s->rows.items[i], s->seen.items, s->seen.count,
                                               sizeof(struct identity), compare);
    }
    where = xasprintf("%s/%s: %zu", s->account, s->share, gone);
    if (gone > 0)
        s->finding("rows of files that are gone; harmless", where, s->context);
}

/* Rows first: a file that is made meanwhile has no row among them. */
static int scrub_share(struct scrub *s, struct err *e)
{
    const struct file_walk walk = {look_at, s};
    auto_place place = SHARE_NOWHERE;
    auto_reader r = {0};
    struct file_stat root;
    int rc;

    s->rows = s->seen = (struct identity_list){0};
    if (share_place_open(s->files, s->account, s->share, &place, e) < 0)
        return e && e->code != ERR_NOT_FOUND ? -1 : 0; /* deleted meanwhile */
    if (file_stat_of(place.tree_fd, &root, e) < 0 ||
        store_pool_take(s->files->blobs->readers, &r, e) < 0)
        return -1;
    rc = store_each_file(r.db, place.row->id, 0, note_row, s, e);
    if (rc == 0) {
        add(&s->seen, root.inode, root.born_ns);
        file_walk(place.tree_fd, &walk);
        report_gone(s);
    }
    free(s->rows.items);
    free(s->seen.items);
    return rc;
}

struct share_names {
    char **names; /* account, share, account, share, ... */
    size_t count;
};

static bool note_share(const struct share_row *row, void *context)
{
    struct share_names *list = context;

    list->names = xreallocarray(list->names, list->count + 2, sizeof(list->names[0]));
    list->names[list->count++] = xstrdup(row->account);
    list->names[list->count++] = xstrdup(row->name);
    return true;
}

static int list_shares(struct files *files, struct share_names *list, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(files->blobs->readers, &r, e) < 0)
        return -1;
    return store_each_share(r.db, NULL, note_share, list, e);
}

int files_scrub(struct files *files,
                void (*finding)(const char *what, const char *where, void *context),
                void *context,
                struct err *e)
{
    struct scrub s = {.files = files, .finding = finding, .context = context};
    struct share_names list = {0};
    int rc = list_shares(files, &list, e);

    for (size_t i = 0; i < list.count; i += 2) {
        s.account = list.names[i];
        s.share = list.names[i + 1];
        if (rc == 0)
            rc = scrub_share(&s, e);
        free(list.names[i]);
        free(list.names[i + 1]);
    }
    free(list.names);
    return rc;
}
