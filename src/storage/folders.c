/* The table of open containers: an id and two descriptors each, so that a request does not look
 * its container up in the database.
 *
 * Containers go only through folder_discard and folder_forget_account, which hold the lock that
 * opening holds: what is in the table is there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/fs.h"
#include "base/str.h"
#include "core/names.h"
#include "storage/syncs.h"
#include "store/blob.h"
#include "store/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_OPEN = 512, /* two descriptors each */
};

bool account_is_valid(const char *account)
{
    return names_account_problem(account) == NULL;
}

bool container_is_valid(const char *name)
{
    size_t len = strlen(name);

    if (str_equal(name, "$root") || str_equal(name, "$web") || str_equal(name, "$logs"))
        return true;
    if (len < 3 || len > 63 || name[0] == '-' || name[len - 1] == '-' || strstr(name, "--"))
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static size_t bucket_of(const char *account, const char *container)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *p = account; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    for (const char *p = container; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return hash % FOLDER_BUCKETS;
}

static void folder_free(struct folder *folder)
{
    if (!folder)
        return;
    mem_close_fd(&folder->fd);
    mem_close_fd(&folder->tree_fd);
    pthread_mutex_destroy(&folder->making_lock);
    free(folder->account);
    free(folder->name);
    free(folder);
}
DEFINE_AUTOPTR(folder)

static int container_not_found(struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "the container does not exist");
    return err_reason(e, "ContainerNotFound");
}

static int open_folder(struct blobs *blobs,
                       const char *account,
                       const char *container,
                       struct folder **ret_folder,
                       struct err *e)
{
    autoptr(folder) folder = xcalloc(1, sizeof(*folder));
    auto_free char *path = xasprintf("%s/blob/%s", account, container);
    autoptr(container_row) row = NULL;
    auto_reader r = {0};

    folder->fd = folder->tree_fd = -1;
    folder->syncs = blobs->syncs;
    pthread_mutex_init(&folder->making_lock, NULL);
    if (fs_open_beneath(blobs->root_fd, path, O_RDONLY | O_DIRECTORY, 0, &folder->fd, NULL) < 0)
        return errno == ENOENT ? container_not_found(e)
                               : err_sys(e, errno, "could not open \"%s\"", path);
    if (fs_open_beneath(folder->fd, "tree", O_RDONLY | O_DIRECTORY, 0, &folder->tree_fd, e) < 0)
        return -1;
    if (store_pool_take(blobs->readers, &r, e) < 0 ||
        store_find_container(r.db, account, container, &row, e) < 0)
        return -1;
    if (!row)
        return container_not_found(e);
    folder->id = row->id;
    folder->account = xstrdup(account);
    folder->name = xstrdup(container);
    *ret_folder = take_ptr(&folder);
    return 0;
}

/* Close the one that was not used for longest. */
static void evict(struct blobs *blobs)
{
    struct folder **oldest = NULL, *folder;

    for (size_t i = 0; i < FOLDER_BUCKETS; i++) {
        for (struct folder **p = &blobs->folders[i]; *p; p = &(*p)->next) {
            if ((*p)->refs == 1 && (!oldest || (*p)->used < (*oldest)->used))
                oldest = p;
        }
    }
    if (!oldest)
        return;
    folder = *oldest;
    *oldest = folder->next;
    blobs->folder_count--;
    folder_free(folder);
}

static struct folder **
find_in_table(struct blobs *blobs, const char *account, const char *container)
{
    struct folder **p = &blobs->folders[bucket_of(account, container)];

    while (*p && (strcmp((*p)->name, container) != 0 || strcmp((*p)->account, account) != 0))
        p = &(*p)->next;
    return p;
}

static int take_locked(struct blobs *blobs,
                       const char *account,
                       const char *container,
                       struct folder **ret_folder,
                       struct err *e)
{
    struct folder **at = find_in_table(blobs, account, container);

    if (!*at) {
        struct folder *folder = NULL;

        if (open_folder(blobs, account, container, &folder, e) < 0)
            return -1;
        if (blobs->folder_count >= MOST_OPEN)
            evict(blobs);
        at = find_in_table(blobs, account, container);
        folder->refs = 1; /* the table's */
        *at = folder;
        blobs->folder_count++;
    }
    (*at)->refs++;
    (*at)->used = ++blobs->folder_clock;
    *ret_folder = *at;
    return 0;
}

int folder_take(struct blobs *blobs,
                const char *account,
                const char *container,
                struct folder **ret_folder,
                struct err *e)
{
    int rc;

    if (!account_is_valid(account) || !container_is_valid(container))
        return container_not_found(e);
    pthread_mutex_lock(&blobs->folders_lock);
    rc = take_locked(blobs, account, container, ret_folder, e);
    pthread_mutex_unlock(&blobs->folders_lock);
    return rc;
}

int folder_take_by_id(struct blobs *blobs,
                      int64_t id,
                      struct folder **ret_folder,
                      struct err *e)
{
    autoptr(container_row) row = NULL;
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0 ||
        store_find_container_by_id(r.db, id, &row, e) < 0)
        return -1;
    if (!row)
        return container_not_found(e);
    return folder_take(blobs, row->account, row->name, ret_folder, e);
}

static void unref_locked(struct folder *folder)
{
    if (--folder->refs == 0)
        folder_free(folder);
}

struct folder *folder_ref(struct blobs *blobs, struct folder *folder)
{
    pthread_mutex_lock(&blobs->folders_lock);
    folder->refs++;
    pthread_mutex_unlock(&blobs->folders_lock);
    return folder;
}

void folder_drop(struct blobs *blobs, struct folder *folder)
{
    if (!folder)
        return;
    pthread_mutex_lock(&blobs->folders_lock);
    unref_locked(folder);
    pthread_mutex_unlock(&blobs->folders_lock);
}

void folder_ref_done(struct folder_ref *ref)
{
    folder_drop(ref->blobs, ref->folder);
}

static void unlist(struct blobs *blobs, struct folder **at)
{
    struct folder *folder = *at;

    *at = folder->next;
    blobs->folder_count--;
    unref_locked(folder);
}

static int sync_parent(struct blobs *blobs, const char *account, struct err *e)
{
    auto_free char *path = xasprintf("%s/blob", account);
    auto_close int fd = -1;

    if (fs_open_beneath(blobs->root_fd, path, O_RDONLY | O_DIRECTORY, 0, &fd, e) < 0)
        return -1;
    if (fsync(fd) < 0)
        return err_sys(e, errno, "could not sync \"%s\"", path);
    return 0;
}

int folder_discard(struct blobs *blobs,
                   const char *account,
                   const char *container,
                   struct err *e)
{
    auto_free char *path = xasprintf("%s/blob/%s", account, container);
    struct folder **at;
    int rc;

    pthread_mutex_lock(&blobs->folders_lock);
    rc = trash_move(blobs, blobs->root_fd, path, e);
    at = find_in_table(blobs, account, container);
    if (rc == 0 && *at)
        unlist(blobs, at);
    pthread_mutex_unlock(&blobs->folders_lock);
    return rc < 0 ? -1 : sync_parent(blobs, account, e);
}

void folder_forget_account(struct blobs *blobs, const char *account)
{
    pthread_mutex_lock(&blobs->folders_lock);
    for (size_t i = 0; i < FOLDER_BUCKETS; i++) {
        for (struct folder **p = &blobs->folders[i]; *p;) {
            if (strcmp((*p)->account, account) == 0)
                unlist(blobs, p);
            else
                p = &(*p)->next;
        }
    }
    pthread_mutex_unlock(&blobs->folders_lock);
}

void folders_done(struct blobs *blobs)
{
    for (size_t i = 0; i < FOLDER_BUCKETS; i++) {
        while (blobs->folders[i])
            unlist(blobs, &blobs->folders[i]);
    }
}

int folder_sync(struct folder *folder, const char *path, struct err *e)
{
    auto_close int fd =
        openat(folder->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    return syncs_wait(folder->syncs, fd, e);
}
