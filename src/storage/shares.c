/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "db/db.h"
#include "store/file.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Azure's words for a share's lease are those of a container's. */
const struct lease_words share_words = {
    .mismatch = "LeaseIdMismatchWithContainerOperation",
    .not_present = "LeaseNotPresentWithContainerOperation",
};

static int not_there(struct err *e)
{
    return files_fail(e, ERR_NOT_FOUND, "ShareNotFound", "the share does not exist");
}

void share_free(struct share *share)
{
    if (!share)
        return;
    free(share->account);
    free(share->name);
    free(share->tier);
    free(share->protocols);
    json_decref(share->metadata);
    json_decref(share->policies);
    free(share);
}

static json_t *parse_or(const char *text, json_t *empty)
{
    json_t *value = NULL;

    if (!text || json_parse(text, strlen(text), &value, NULL) < 0)
        return empty;
    json_decref(empty);
    return value;
}

static struct share *share_of(const struct share_row *row)
{
    struct share *share = xcalloc(1, sizeof(*share));

    share->id = row->id;
    share->account = xstrdup(row->account);
    share->name = xstrdup(row->name);
    memcpy(share->etag, row->etag, sizeof(share->etag));
    share->created_ms = row->created_ms;
    share->modified_ms = row->modified_ms;
    share->quota_gib = row->quota_gib;
    share->tier = xstrdup(row->tier ? row->tier : "TransactionOptimized");
    share->protocols = xstrdup(row->protocols ? row->protocols : "SMB");
    share->metadata = parse_or(row->metadata, json_object());
    share->policies = parse_or(row->policies, json_array());
    share->lease = lease_from_row(&row->lease);
    return share;
}

static void touch(struct files *files, struct share_row *row)
{
    int64_t tick = blobs_tick(files->blobs);

    etag_format(row->etag, tick);
    row->modified_ms = tick_to_ms(tick);
}

struct share_row *share_row_new(struct files *files, const char *account, const char *name)
{
    struct share_row *row = xcalloc(1, sizeof(*row));

    row->account = xstrdup(account);
    row->name = xstrdup(name);
    row->quota_gib = FILES_DEFAULT_QUOTA_GIB;
    touch(files, row);
    row->created_ms = row->modified_ms;
    return row;
}

static void set_text(char **text, const char *with)
{
    if (!with)
        return;
    free(*text);
    *text = xstrdup(with);
}

static void row_set(struct share_row *row, const struct share_change *change)
{
    if (change->metadata) {
        free(row->metadata);
        row->metadata = json_text(change->metadata);
    }
    if (change->policies) {
        free(row->policies);
        row->policies = json_text(change->policies);
    }
    if (change->quota_gib > 0)
        row->quota_gib = change->quota_gib;
    set_text(&row->tier, change->tier);
    set_text(&row->protocols, change->protocols);
}

/* --- finding --- */

bool share_name_is_valid(const char *name)
{
    return name[0] != '$' && container_is_valid(name);
}

static int open_folders(struct files *files,
                        const char *account,
                        const char *share,
                        struct share_place *place,
                        struct err *e)
{
    auto_free char *path = xasprintf("%s/file/%s", account, share);
    int flags = O_RDONLY | O_DIRECTORY;

    if (fs_open_beneath(files->blobs->root_fd, path, flags, 0, &place->fd, NULL) < 0 ||
        fs_open_beneath(place->fd, "tree", flags, 0, &place->tree_fd, NULL) < 0)
        return errno == ENOENT ? not_there(e) : err_sys(e, errno, "could not open a share");
    return 0;
}

int share_place_open(struct files *files,
                     const char *account,
                     const char *share,
                     struct share_place *place,
                     struct err *e)
{
    auto_reader r = {0};

    if (!account_is_valid(account) || !share_name_is_valid(share))
        return not_there(e);
    place->files = files;
    if (open_folders(files, account, share, place, e) < 0 ||
        store_pool_take(files->blobs->readers, &r, e) < 0 ||
        store_find_share(r.db, account, share, &place->row, e) < 0)
        return -1;
    return place->row ? 0 : not_there(e);
}

int share_row_need(struct db *db,
                   const char *account,
                   const char *share,
                   struct share_row **ret_row,
                   struct err *e)
{
    if (store_find_share(db, account, share, ret_row, e) < 0)
        return -1;
    return *ret_row ? 0 : not_there(e);
}

int files_find_share(struct files *files,
                     const char *account,
                     const char *name,
                     struct share **ret_share,
                     struct err *e)
{
    auto_place place = SHARE_NOWHERE;

    if (share_place_open(files, account, name, &place, e) < 0)
        return -1;
    *ret_share = share_of(place.row);
    return 0;
}

struct listing {
    const char *prefix, *marker;
    size_t most, count;
    void (*each)(const struct share *share, void *context);
    void *context;
    char *last, *next;
};

static bool list_one(const struct share_row *row, void *context)
{
    struct listing *l = context;
    autoptr(share) share = NULL;

    if (strcmp(row->name, l->marker) <= 0 || !str_starts(row->name, l->prefix))
        return true;
    if (l->count == l->most) {
        l->next = take_ptr(&l->last);
        return false;
    }
    share = share_of(row);
    l->each(share, l->context);
    l->count++;
    free(l->last);
    l->last = xstrdup(row->name);
    return true;
}

int files_list_shares(struct files *files,
                      const char *account,
                      const char *prefix,
                      const char *marker,
                      size_t most,
                      void (*each)(const struct share *share, void *context),
                      void *context,
                      char **ret_next,
                      struct err *e)
{
    struct listing l = {prefix, marker, most, 0, each, context, NULL, NULL};
    auto_reader r = {0};
    int rc;

    if (store_pool_take(files->blobs->readers, &r, e) < 0)
        return -1;
    rc = store_each_share(r.db, account, list_one, &l, e);
    free(l.last);
    if (rc == 0)
        *ret_next = l.next ? l.next : xstrdup("");
    else
        free(l.next);
    return rc;
}

/* --- making --- */

/* A row of the same name that is there belongs to a share that is not. */
static int apply_create(void *context, struct db *db, struct err *e)
{
    struct share_row *row = context;
    autoptr(share_row) stale = NULL;

    if (store_find_share(db, row->account, row->name, &stale, e) < 0)
        return -1;
    if (stale && store_doom_share(db, stale->id, e) < 0)
        return -1;
    return store_put_share(db, row, e);
}

static int make_folder(int dir_fd, const char *name)
{
    auto_close int fd = -1;

    if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
        return -1;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return -1;
    return take_fd(&fd);
}

/* Under a name of its own first: a share is there with all its parts or not at all. */
static int make_share(int parent_fd, const char *tmp)
{
    auto_close int fd = make_folder(parent_fd, tmp), tree = -1, scratch = -1;

    if (fd < 0)
        return -1;
    tree = make_folder(fd, "tree");
    scratch = make_folder(fd, "tmp");
    if (tree < 0 || scratch < 0 || fchmod(tree, FOLDER_MODE) < 0 || fsync(tree) < 0)
        return -1;
    return fsync(fd);
}

static int open_parent(struct files *files, const char *account, int *ret_fd, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s/file", files->blobs->root, account);

    if (fs_make_folders(path, 0700, e) < 0)
        return -1;
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, errno, "could not open \"%s\"", path) : 0;
}

static int create_locked(struct files *files, struct share_row *row, struct err *e)
{
    auto_close int parent = -1;
    char tmp[64], id[CRYPT_UUID_BYTES];

    if (open_parent(files, row->account, &parent, e) < 0)
        return -1;
    if (faccessat(parent, row->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return files_fail(e, ERR_CONFLICT, "ShareAlreadyExists", "the share exists already");
    snprintf(tmp, sizeof(tmp), ".new-%s", crypt_uuid(id));
    if (make_share(parent, tmp) < 0) {
        err_sys(e, errno, "could not make the folders of a share");
        trash_move(files->blobs, parent, tmp, NULL);
        return -1;
    }
    if (blobs_write(files->blobs, apply_create, row, e) < 0) {
        trash_move(files->blobs, parent, tmp, NULL);
        return -1;
    }
    FAULT("shares.before-rename");
    if (renameat2(parent, tmp, parent, row->name, RENAME_NOREPLACE) < 0 || fsync(parent) < 0)
        return err_sys(e, errno, "could not make a share");
    return 0;
}

int files_create_share(struct files *files,
                       const char *account,
                       const char *name,
                       const struct share_change *facts,
                       struct share **ret_share,
                       struct err *e)
{
    autoptr(share_row) row = NULL;
    int rc;

    if (!account_is_valid(account) || !share_name_is_valid(name))
        return files_fail(e, ERR_INVALID, "InvalidResourceName",
                          "a share's name has 3 to 63 lower case letters, digits and single "
                          "dashes");
    row = share_row_new(files, account, name);
    row_set(row, facts);
    pthread_mutex_lock(&files->shares_lock);
    rc = create_locked(files, row, e);
    pthread_mutex_unlock(&files->shares_lock);
    if (rc == 0)
        *ret_share = share_of(row);
    return rc;
}

/* --- changing --- */

struct change {
    struct files *files;
    const char *account, *name;
    const struct share_change *change; /* NULL: a lease request */
    const char *lease_id;
    const struct lease_request *request;
    int left_s;
    struct share_row *row;
};

static int apply_change(void *context, struct db *db, struct err *e)
{
    struct change *c = context;
    struct lease lease;

    if (share_row_need(db, c->account, c->name, &c->row, e) < 0)
        return -1;
    lease = lease_from_row(&c->row->lease);
    if (c->request) {
        if (lease_apply(&lease, c->request, clock_wall_ms(), &c->left_s, e) < 0)
            return -1;
        lease_to_row(&lease, &c->row->lease);
    } else {
        if (c->lease_id && lease_check_write(&lease, c->lease_id, &share_words, e) < 0)
            return -1;
        row_set(c->row, c->change);
        touch(c->files, c->row);
    }
    return store_put_share(db, c->row, e);
}

static int change_share(struct change *c, struct share **ret_share, struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    int rc;

    if (share_place_open(c->files, c->account, c->name, &place, e) < 0)
        return -1;
    rc = blobs_write(c->files->blobs, apply_change, c, e);
    if (rc == 0)
        *ret_share = share_of(c->row);
    share_row_free(c->row);
    return rc;
}

int files_update_share(struct files *files,
                       const char *account,
                       const char *name,
                       const struct share_change *change,
                       const char *lease_id,
                       struct share **ret_share,
                       struct err *e)
{
    struct change c = {.files = files,
                       .account = account,
                       .name = name,
                       .change = change,
                       .lease_id = lease_id};

    return change_share(&c, ret_share, e);
}

int files_lease_share(struct files *files,
                      const char *account,
                      const char *name,
                      const struct lease_request *request,
                      struct share **ret_share,
                      int *ret_left_s,
                      struct err *e)
{
    struct change c = {.files = files, .account = account, .name = name, .request = request};

    if (change_share(&c, ret_share, e) < 0)
        return -1;
    *ret_left_s = c.left_s;
    return 0;
}
