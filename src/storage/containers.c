/* Containers: a folder that is there or not, and a row of facts.
 *
 * Making one: the row, then the folder appears by a rename.  Deleting one: the folder goes by a
 * rename, then the row.  So the folder decides, and after a crash a row without one is dropped.
 * A folder without a row, as after the loss of storage.db, gets a row again: bytes are never
 * given up for want of facts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void container_free(struct container *container)
{
    if (!container)
        return;
    free(container->account);
    free(container->name);
    json_decref(container->metadata);
    json_decref(container->policies);
    free(container);
}

static struct container *container_of_row(const struct container_row *row)
{
    struct container *c = xcalloc(1, sizeof(*c));

    c->id = row->id;
    c->account = xstrdup(row->account);
    c->name = xstrdup(row->name);
    memcpy(c->etag, row->etag, sizeof(c->etag));
    c->created_ms = row->created_ms;
    c->modified_ms = row->modified_ms;
    if (!row->metadata ||
        json_parse(row->metadata, strlen(row->metadata), &c->metadata, NULL) < 0)
        c->metadata = json_object();
    if (!row->policies ||
        json_parse(row->policies, strlen(row->policies), &c->policies, NULL) < 0)
        c->policies = json_array();
    c->lease = lease_from_row(&row->lease);
    return c;
}

/* --- making --- */

/* mkdir, on disk; an existing one is fine. */
static int make_synced(int at, const char *name, struct err *e)
{
    if (mkdirat(at, name, 0777) < 0 && errno != EEXIST)
        return err_sys(e, errno, "could not make the folder \"%s\"", name);
    if (fsync(at) < 0)
        return err_sys(e, errno, "could not sync a folder");
    return 0;
}

/* Open <account>/blob, made when it is missing. */
static int open_account(struct blobs *blobs, const char *account, int *ret_fd, struct err *e)
{
    auto_free char *path = xasprintf("%s/blob", account);
    auto_close int fd = -1;

    if (fs_open_beneath(blobs->root_fd, path, O_RDONLY | O_DIRECTORY, 0, ret_fd, NULL) == 0)
        return 0;
    if (make_synced(blobs->root_fd, account, e) < 0 ||
        fs_open_beneath(blobs->root_fd, account, O_RDONLY | O_DIRECTORY, 0, &fd, e) < 0 ||
        make_synced(fd, "blob", e) < 0)
        return -1;
    return fs_open_beneath(fd, "blob", O_RDONLY | O_DIRECTORY, 0, ret_fd, e);
}

static int make_parts(int fd, struct err *e)
{
    static const char *const parts[] = {"tree", "odd", "staged", "snap", "tmp"};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (mkdirat(fd, parts[i], 0777) < 0 && errno != EEXIST)
            return err_sys(e, errno, "could not make the folder \"%s\"", parts[i]);
    }
    if (fsync(fd) < 0)
        return err_sys(e, errno, "could not sync a folder");
    return 0;
}

/* Make the container's folder under a name that is none, and let it appear. */
static int make_folder(int account_fd, const char *name, struct err *e)
{
    char tmp[TMP_NAME_BYTES];
    auto_close int fd = -1;

    tmp_name(tmp);
    tmp[3] = '.'; /* "tmp.<random>": no container is called so */
    if (make_synced(account_fd, tmp, e) < 0 ||
        fs_open_beneath(account_fd, tmp, O_RDONLY | O_DIRECTORY, 0, &fd, e) < 0 ||
        make_parts(fd, e) < 0)
        return -1;
    FAULT("storage.before-container");
    if (renameat(account_fd, tmp, account_fd, name) < 0)
        return err_sys(e, errno, "could not make the container");
    if (fsync(account_fd) < 0)
        return err_sys(e, errno, "could not sync a folder");
    return 0;
}

static int apply_put(void *context, struct db *db, struct err *e)
{
    return store_put_container(db, context, e);
}

static int apply_doom(void *context, struct db *db, struct err *e)
{
    return store_doom_container(db, *(int64_t *)context, e);
}

static struct container_row *new_row(struct blobs *blobs, const char *account, const char *name)
{
    struct container_row *row = xcalloc(1, sizeof(*row));
    int64_t tick = blobs_tick(blobs);

    row->account = xstrdup(account);
    row->name = xstrdup(name);
    etag_format(row->etag, tick);
    row->created_ms = row->modified_ms = tick_to_ms(tick);
    return row;
}

int blobs_create_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const json_t *metadata,
                           struct container **ret_container,
                           struct err *e)
{
    autoptr(container_row) row = NULL;
    auto_close int account_fd = -1;

    if (!account_is_valid(account) || !container_is_valid(name)) {
        err_set(e, ERR_INVALID,
                "a container name has 3 to 63 lower case letters, digits and single dashes");
        return err_reason(e, "InvalidResourceName");
    }
    if (open_account(blobs, account, &account_fd, e) < 0)
        return -1;
    row = new_row(blobs, account, name);
    row->metadata = json_text(metadata);
    if (blobs_write(blobs, apply_put, row, e) < 0)
        return err_reason(e, e && e->code == ERR_CONFLICT ? "ContainerAlreadyExists" : NULL);
    if (make_folder(account_fd, name, e) < 0) {
        blobs_write(blobs, apply_doom, &row->id, NULL);
        return -1;
    }
    if (ret_container)
        *ret_container = container_of_row(row);
    return 0;
}

/* --- finding --- */

static int find_row(struct blobs *blobs,
                    const char *account,
                    const char *name,
                    struct container_row **ret_row,
                    struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_reader r = {0};

    if (folder_take(blobs, account, name, &f.folder, e) < 0 ||
        store_pool_take(blobs->readers, &r, e) < 0 ||
        store_find_container(r.db, account, name, ret_row, e) < 0)
        return -1;
    if (*ret_row)
        return 0;
    err_set(e, ERR_NOT_FOUND, "the container does not exist");
    return err_reason(e, "ContainerNotFound");
}

int blobs_find_container(struct blobs *blobs,
                         const char *account,
                         const char *name,
                         struct container **ret_container,
                         struct err *e)
{
    autoptr(container_row) row = NULL;

    if (find_row(blobs, account, name, &row, e) < 0)
        return -1;
    *ret_container = container_of_row(row);
    return 0;
}

struct page {
    size_t left;
    void (*each)(const struct container *container, void *context);
    void *context;
    char *last, *next;
};

static bool list_one(const struct container_row *row, void *context)
{
    struct page *page = context;
    autoptr(container) container = NULL;

    if (page->left == 0) {
        page->next = take_ptr(&page->last);
        return false;
    }
    page->left--;
    free(page->last);
    page->last = xstrdup(row->name);
    container = container_of_row(row);
    page->each(container, page->context);
    return true;
}

int blobs_list_containers(struct blobs *blobs,
                          const char *account,
                          const char *prefix,
                          const char *marker,
                          size_t most,
                          void (*each)(const struct container *container, void *context),
                          void *context,
                          char **ret_next,
                          struct err *e)
{
    struct page page = {most, each, context, NULL, NULL};
    auto_reader r = {0};
    int rc;

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    rc = store_each_container(r.db, account, prefix, marker, list_one, &page, e);
    if (rc == 0)
        *ret_next = page.next ? take_ptr(&page.next) : xstrdup("");
    free(page.last);
    free(page.next);
    return rc;
}

struct ids {
    int64_t *items;
    size_t count, room;
};

static bool note_id(const struct container_row *row, void *context)
{
    struct ids *ids = context;

    if (ids->count == ids->room) {
        ids->room = ids->room ? ids->room * 2 : 64;
        ids->items = xreallocarray(ids->items, ids->room, sizeof(ids->items[0]));
    }
    ids->items[ids->count++] = row->id;
    return true;
}

int containers_ids(struct blobs *blobs, int64_t **ret_ids, size_t *ret_count, struct err *e)
{
    struct ids ids = {0};
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    if (store_each_container_of_all(r.db, note_id, &ids, e) < 0) {
        free(ids.items);
        return -1;
    }
    *ret_ids = ids.items;
    *ret_count = ids.count;
    return 0;
}

/* --- changing --- */

/* Read, judge and write within one transaction: changes of one container are rare, and so need
 * no lock. */
struct container_change {
    const char *account, *name;
    const json_t *metadata, *policies;
    const struct conditions *conditions;
    const struct lease_request *lease;
    int left_s;
    struct blobs *blobs;
    struct container_row *row; /* as it became */
};

static void touch(struct container_change *c)
{
    int64_t tick = blobs_tick(c->blobs);

    etag_format(c->row->etag, tick);
    c->row->modified_ms = tick_to_ms(tick);
}

static void replace(char **text, const json_t *value)
{
    if (!value)
        return;
    free(*text);
    *text = json_text(value);
}

static int apply_change(void *context, struct db *db, struct err *e)
{
    struct container_change *c = context;
    autoptr(container) container = NULL;

    if (store_find_container(db, c->account, c->name, &c->row, e) < 0)
        return -1;
    if (!c->row) {
        err_set(e, ERR_NOT_FOUND, "the container does not exist");
        return err_reason(e, "ContainerNotFound");
    }
    container = container_of_row(c->row);
    if (conditions_check_container(c->conditions, container, false, e) < 0)
        return -1;
    if (c->lease) {
        if (lease_apply(&container->lease, c->lease, clock_wall_ms(), &c->left_s, e) < 0)
            return -1;
        lease_to_row(&container->lease, &c->row->lease);
    } else {
        replace(&c->row->metadata, c->metadata);
        replace(&c->row->policies, c->policies);
        touch(c);
    }
    return store_put_container(db, c->row, e);
}

static int change_container(struct blobs *blobs,
                            struct container_change *c,
                            struct container **ret_container,
                            struct err *e)
{
    auto_folder f = {blobs, NULL};
    int rc;

    c->blobs = blobs;
    if (folder_take(blobs, c->account, c->name, &f.folder, e) < 0)
        return -1;
    rc = blobs_write(blobs, apply_change, c, e);
    if (rc == 0 && ret_container)
        *ret_container = container_of_row(c->row);
    container_row_free(c->row);
    return rc;
}

int blobs_update_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const json_t *metadata,
                           const json_t *policies,
                           const struct conditions *conditions,
                           struct container **ret_container,
                           struct err *e)
{
    struct container_change change = {
        .account = account,
        .name = name,
        .metadata = metadata,
        .policies = policies,
        .conditions = conditions,
    };

    return change_container(blobs, &change, ret_container, e);
}

int blobs_lease_container(struct blobs *blobs,
                          const char *account,
                          const char *name,
                          const struct lease_request *request,
                          const struct conditions *conditions,
                          struct container **ret_container,
                          int *ret_left_s,
                          struct err *e)
{
    struct conditions without_lease = conditions ? *conditions : (struct conditions){0};
    struct container_change change = {
        .account = account,
        .name = name,
        .conditions = &without_lease,
        .lease = request,
    };

    without_lease.lease_id = NULL; /* the request's own id is judged by the action */
    if (change_container(blobs, &change, ret_container, e) < 0)
        return -1;
    if (ret_left_s)
        *ret_left_s = change.left_s;
    return 0;
}

/* --- deleting --- */

int blobs_delete_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const struct conditions *conditions,
                           struct err *e)
{
    autoptr(container_row) row = NULL;
    autoptr(container) container = NULL;

    if (find_row(blobs, account, name, &row, e) < 0)
        return -1;
    container = container_of_row(row);
    if (conditions_check_container(conditions, container, true, e) < 0 ||
        folder_discard(blobs, account, name, e) < 0)
        return -1;
    FAULT("storage.after-container");
    if (blobs_write(blobs, apply_doom, &row->id, e) < 0)
        return -1;
    trash_empty_later(blobs);
    return 0;
}

static int apply_doom_account(void *context, struct db *db, struct err *e)
{
    return store_doom_account(db, context, e);
}

int blobs_remove_account(struct blobs *blobs, const char *account, struct err *e)
{
    auto_free char *path = xasprintf("%s/blob", account);

    if (!account_is_valid(account))
        return err_set(e, ERR_NOT_FOUND, "no storage account has such a name");
    if (trash_move(blobs, blobs->root_fd, path, e) < 0)
        return -1;
    folder_forget_account(blobs, account);
    unlinkat(blobs->root_fd, account, AT_REMOVEDIR); /* stays while it has shares */
    if (fsync(blobs->root_fd) < 0)
        return err_sys(e, errno, "could not sync a folder");
    if (blobs_write(blobs, apply_doom_account, (void *)account, e) < 0)
        return -1;
    trash_empty_later(blobs);
    return 0;
}
