/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/str.h"
#include "base/text.h"
#include "db/db.h"
#include "store/file.h"
#include "store/pool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* --- folders and rows brought together --- */

struct reconcile {
    struct files *files;
    struct db *db;
    const char *account;
    struct err *e;
    int rc;
};

static void adopt_share(int fd, const char *name, void *context)
{
    struct reconcile *r = context;
    auto_free char *tree = xasprintf("%s/tree", name);
    autoptr(share_row) row = NULL;
    struct stat st;

    if (r->rc < 0 || !share_name_is_valid(name) ||
        fstatat(fd, tree, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return;
    r->rc = store_find_share(r->db, r->account, name, &row, r->e);
    if (r->rc < 0 || row)
        return;
    row = share_row_new(r->files, r->account, name);
    r->rc = store_put_share(r->db, row, r->e);
}

static void adopt_account(int fd, const char *name, void *context)
{
    struct reconcile *r = context;
    auto_free char *path = xasprintf("%s/file", name);

    r->account = name;
    if (account_is_valid(name))
        files_each_name(fd, path, adopt_share, r);
}

struct id_list {
    struct files *files;
    int64_t *ids;
    size_t count;
};

static bool note_missing(const struct share_row *row, void *context)
{
    struct id_list *list = context;
    auto_free char *path = xasprintf("%s/file/%s/tree", row->account, row->name);

    if (faccessat(list->files->blobs->root_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    list->ids = xreallocarray(list->ids, list->count + 1, sizeof(list->ids[0]));
    list->ids[list->count++] = row->id;
    return true;
}

static int apply_reconcile(void *context, struct db *db, struct err *e)
{
    struct reconcile r = {.files = context, .db = db, .e = e};
    struct id_list missing = {.files = r.files};

    files_each_name(r.files->blobs->root_fd, ".", adopt_account, &r);
    if (r.rc == 0)
        r.rc = store_each_share(db, NULL, note_missing, &missing, e);
    for (size_t i = 0; r.rc == 0 && i < missing.count; i++)
        r.rc = store_doom_share(db, missing.ids[i], e);
    free(missing.ids);
    return r.rc;
}

int shares_reconcile(struct files *files, struct err *e)
{
    if (blobs_write(files->blobs, apply_reconcile, files, e) < 0)
        return -1;
    shares_purge_later(files);
    return 0;
}

/* --- usage and quota --- */

enum {
    COUNT_AGE_MS = 60 * 1000, /* how long a count is believed: jobs write without asking */
};

static void add_size(const char *path, const struct file_stat *stat, void *context)
{
    int64_t *bytes = context;

    (void)path;
    if (stat)
        *bytes += stat->size_bytes;
}

static int64_t count_bytes(const struct share_place *place)
{
    int64_t bytes = 0;
    const struct file_walk walk = {add_size, &bytes};

    file_walk(place->tree_fd, &walk);
    return bytes;
}

int files_share_usage(struct files *files,
                      const char *account,
                      const char *name,
                      int64_t *ret_bytes,
                      struct err *e)
{
    auto_place place = SHARE_NOWHERE;

    if (share_place_open(files, account, name, &place, e) < 0)
        return -1;
    *ret_bytes = count_bytes(&place);
    return 0;
}

/* A quota that is larger than the disk is the disk's own affair: nothing is counted. */
static bool quota_matters(const struct share_place *place, int64_t quota)
{
    struct statvfs fs;

    return fstatvfs(place->fd, &fs) == 0 && (uint64_t)quota < fs.f_blocks * fs.f_frsize;
}

/* Take the bytes from what is left by the last count; 0 when it does not help. */
static int take_counted(struct files *files, int64_t share_id, int64_t quota, int64_t bytes)
{
    struct share_usage *usage = &files->usage[(uint64_t)share_id % USAGE_SLOTS];
    int64_t now = clock_mono_ms();
    int fits = 0;

    pthread_mutex_lock(&files->usage_lock);
    if (usage->share_id == share_id && now - usage->counted_ms < COUNT_AGE_MS &&
        bytes <= quota - usage->bytes) {
        usage->bytes += bytes;
        fits = 1;
    }
    pthread_mutex_unlock(&files->usage_lock);
    return fits;
}

static void note_counted(struct files *files, int64_t share_id, int64_t bytes)
{
    pthread_mutex_lock(&files->usage_lock);
    files->usage[(uint64_t)share_id % USAGE_SLOTS] =
        (struct share_usage){share_id, bytes, clock_mono_ms()};
    pthread_mutex_unlock(&files->usage_lock);
}

int share_reserve(struct files *files,
                  const struct share_place *place,
                  int64_t bytes,
                  struct err *e)
{
    int64_t quota = place->row->quota_gib << 30, id = place->row->id;

    if (bytes <= 0 || !quota_matters(place, quota) || take_counted(files, id, quota, bytes))
        return 0;
    note_counted(files, id, count_bytes(place));
    if (take_counted(files, id, quota, bytes))
        return 0;
    err_set(e, ERR_FORBIDDEN, "the share's quota of %" PRId64 " GiB does not allow for that",
            place->row->quota_gib);
    return err_reason(e, "ShareSizeLimitReached");
}

/* --- security descriptors --- */

struct permission {
    const char *account, *share, *key, *text;
};

static int apply_permission(void *context, struct db *db, struct err *e)
{
    const struct permission *p = context;
    autoptr(share_row) row = NULL;

    if (share_row_need(db, p->account, p->share, &row, e) < 0)
        return -1;
    return store_put_permission(db, row->id, p->key, p->text, e);
}

/* What a file has that nobody gave a descriptor: full control for the system and its
 * administrators, changes for users.  Clients that copy descriptors ask for it by its key. */
static const char default_permission[] =
    "O:SYG:SYD:(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;AU)";

/* Keys look like Azure's: two numbers with a star between them. */
static char *key_of(const char *text)
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    uint64_t a, b;

    crypt_sha256(text, strlen(text), digest);
    memcpy(&a, digest, sizeof(a));
    memcpy(&b, digest + sizeof(a), sizeof(b));
    return xasprintf("%" PRIu64 "*%" PRIu64, a, b);
}

char *files_default_permission_key(void)
{
    return key_of(default_permission);
}

int files_put_permission(struct files *files,
                         const char *account,
                         const char *share,
                         const char *text,
                         char **ret_key,
                         struct err *e)
{
    auto_free char *key = key_of(text);
    auto_place place = SHARE_NOWHERE;
    struct permission p = {account, share, key, text};

    if (share_place_open(files, account, share, &place, e) < 0 ||
        blobs_write(files->blobs, apply_permission, &p, e) < 0)
        return -1;
    *ret_key = take_ptr(&key);
    return 0;
}

int files_find_permission(struct files *files,
                          const char *account,
                          const char *share,
                          const char *key,
                          char **ret_text,
                          struct err *e)
{
    auto_free char *own = files_default_permission_key();
    auto_place place = SHARE_NOWHERE;
    auto_reader r = {0};
    char *text = NULL;

    if (share_place_open(files, account, share, &place, e) < 0 ||
        store_pool_take(files->blobs->readers, &r, e) < 0 ||
        store_find_permission(r.db, place.row->id, key, &text, e) < 0)
        return -1;
    if (!text && strcmp(key, own) == 0)
        text = xstrdup(default_permission);
    if (!text)
        return files_fail(e, ERR_INVALID, "FileInvalidPermissionKey",
                          "the share has no permission with that key");
    *ret_text = text;
    return 0;
}
