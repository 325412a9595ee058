/* Blocks that were staged and never committed go after a while.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/str.h"
#include "store/blob.h"
#include "store/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
    char **items;
    size_t count, room;
};

static void names_add(struct names *names, const char *name)
{
    if (names->count == names->room) {
        names->room = names->room ? names->room * 2 : 64;
        names->items = xreallocarray(names->items, names->room, sizeof(names->items[0]));
    }
    names->items[names->count++] = xstrdup(name);
}

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

/* The folder's time is that of its last block.  A missing folder is old, too. */
static bool is_old(struct folder *folder, const char *path, int64_t before_ms)
{
    struct stat st;

    if (fstatat(folder->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < before_ms;
}

struct removal {
    struct folder *folder;
    const char *name;
};

static int apply_removal(void *context, struct db *db, struct err *e)
{
    const struct removal *r = context;

    return store_remove_staged(db, r->folder->id, r->name, e);
}

static int collect_name(struct blobs *blobs,
                        struct folder *folder,
                        const char *name,
                        int64_t before_ms,
                        struct err *e)
{
    struct removal removal = {folder, name};
    char path[STAGED_PATH_BYTES];
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, folder, name);
    bool had;

    staged_folder(name, path);
    if (!is_old(folder, path, before_ms))
        return 0;
    staging_drop(blobs, folder, name, &had);
    return blobs_write(blobs, apply_removal, &removal, e);
}

static bool note_name(const char *name, int64_t staged_ms, void *context)
{
    (void)staged_ms;
    names_add(context, name);
    return true;
}

/* Folders that no row knows: a crash had them come back. */
static void collect_strays(struct blobs *blobs, struct folder *folder, int64_t before_ms)
{
    int fd = openat(folder->fd, "staged", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("staged/%s", entry->d_name);

        if (strlen(entry->d_name) == NAME_HASH_BYTES - 1 && is_old(folder, path, before_ms))
            trash_move(blobs, folder->fd, path, NULL);
    }
    if (dir)
        closedir(dir);
}

static int collect_container(struct blobs *blobs, int64_t id, int64_t before_ms, struct err *e)
{
    auto_folder f = {blobs, NULL};
    struct names names = {0};
    int rc;

    if (folder_take_by_id(blobs, id, &f.folder, NULL) < 0)
        return 0; /* gone meanwhile */
    {
        auto_reader r = {0};

        if (store_pool_take(blobs->readers, &r, e) < 0)
            return -1;
        rc = store_each_staged(r.db, id, "", note_name, &names, e);
    }
    for (size_t i = 0; i < names.count && rc == 0; i++)
        rc = collect_name(blobs, f.folder, names.items[i], before_ms, e);
    names_done(&names);
    if (rc == 0)
        collect_strays(blobs, f.folder, before_ms);
    return rc;
}

int blobs_collect_staged(struct blobs *blobs, int64_t before_ms, struct err *e)
{
    auto_free int64_t *ids = NULL;
    size_t count;

    if (containers_ids(blobs, &ids, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (collect_container(blobs, ids[i], before_ms, e) < 0)
            return -1;
    }
    return 0;
}
