/* Uncommitted blocks: files in staged/<hash of the name>/<id in hex>, on disk when
 * acknowledged.
 *
 * What exists is what the folder holds; the row of `staged` is for listing such names.  How
 * many there are and how long their ids is remembered while blocks come, so that the folder
 * need not be read for each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "base/text.h"
#include "storage/syncs.h"
#include "store/blob.h"
#include "store/pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_ID_BYTES = 64, /* decoded */
};

void staged_folder(const char *name, char path[STAGED_PATH_BYTES])
{
    char hash[NAME_HASH_BYTES];

    name_hash(name, hash);
    snprintf(path, STAGED_PATH_BYTES, "staged/%s", hash);
}

/* "" when the file's name is no id. */
static void id_of_file(const char *file, char id[BLOCK_ID_MOST])
{
    size_t len = strlen(file);

    id[0] = '\0';
    if (len == 0 || len % 2 != 0 || len / 2 >= BLOCK_ID_MOST)
        return;
    for (size_t i = 0; i < len / 2; i++) {
        unsigned int byte;

        if (sscanf(file + 2 * i, "%2x", &byte) != 1) {
            id[0] = '\0';
            return;
        }
        id[i] = (char)byte;
    }
    id[len / 2] = '\0';
}

int staged_each(struct folder *folder,
                const char *name,
                void (*each)(int fd, const char *file, const char *id, void *context),
                void *context,
                struct err *e)
{
    char path[STAGED_PATH_BYTES], id[BLOCK_ID_MOST];
    struct dirent *entry;
    DIR *dir;
    int fd;

    staged_folder(name, path);
    fd = openat(folder->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not read staged blocks");
    dir = fdopendir(fd);
    while ((entry = readdir(dir))) {
        id_of_file(entry->d_name, id);
        if (id[0])
            each(fd, entry->d_name, id, context);
    }
    closedir(dir);
    return 0;
}

void staging_drop(struct blobs *blobs, struct folder *folder, const char *name, bool *ret_had)
{
    char path[STAGED_PATH_BYTES];
    struct stat st;

    staged_folder(name, path);
    *ret_had = fstatat(folder->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*ret_had)
        return;
    staging_forget(blobs->staging, folder->id, path + strlen("staged/"));
    /* What stays behind for a fault is collected with the weeks. */
    trash_move(blobs, folder->fd, path, NULL);
}

/* --- Put Block --- */

static int check_id(const char *id, struct err *e)
{
    auto_str decoded = {0};

    if (text_base64_decode(&decoded, id, NULL) == 0 && decoded.len > 0 &&
        decoded.len <= MOST_ID_BYTES && strlen(id) < BLOCK_ID_MOST)
        return 0;
    err_set(e, ERR_INVALID, "a block id is 1 to %d bytes in base64", MOST_ID_BYTES);
    return err_reason(e, "InvalidQueryParameterValue");
}

/* A blob that is there must be one of blocks, and free or leased to the caller. */
static int check_target(struct blobs *blobs,
                        struct folder *folder,
                        const char *name,
                        const char *lease_id,
                        struct err *e)
{
    const struct conditions conditions = {.lease_id = lease_id};
    auto_found found = FOUND_NONE;
    autoptr(blob) blob = NULL;
    int there = blob_look(blobs, folder, name, "", O_PATH, &found, e);

    if (there < 0)
        return -1;
    if (there > 0)
        blob = blob_of_found(&found, name, "");
    if (conditions_check_write(&conditions, blob, CONDITION_CHANGE, e) < 0)
        return -1;
    return blob && blob->type != BLOB_BLOCK ? wrong_type(e) : 0;
}

int wrong_type(struct err *e)
{
    err_set(e, ERR_CONFLICT, "the blob is of another type");
    return err_reason(e, "InvalidBlobType");
}

static void count_one(int fd, const char *file, const char *id, void *context)
{
    struct staged_count *known = context;

    (void)fd;
    (void)file;
    known->count++;
    known->id_len = strlen(id);
}

struct staged_name {
    struct folder *folder;
    const char *name;
};

static int apply_staged(void *context, struct db *db, struct err *e)
{
    const struct staged_name *n = context;

    if (store_put_staged(db, n->folder->id, n->name, clock_wall_ms(), e) < 0)
        return err_reason(e, e->code == ERR_NOT_FOUND ? "ContainerNotFound" : NULL);
    return 0;
}

/* The first block since the start: the row, then the folder. */
static int begin_session(struct blobs *blobs,
                         struct folder *folder,
                         const char *name,
                         const char *path,
                         struct staged_count *ret_known,
                         struct err *e)
{
    struct staged_name staged = {folder, name};

    if (blobs_write(blobs, apply_staged, &staged, e) < 0)
        return -1;
    if (mkdirat(folder->fd, path, 0777) == 0)
        return folder_sync(folder, "staged", e);
    if (errno != EEXIST)
        return err_sys(e, errno, "could not make a folder for blocks");
    return staged_each(folder, name, count_one, ret_known, e);
}

static int invalid_block(struct err *e, const char *message)
{
    err_set(e, ERR_INVALID, "%s", message);
    return err_reason(e, "InvalidBlobOrBlock");
}

/* Under the lock of the name: may the block come, and where does it go? */
static int admit(struct blobs *blobs,
                 struct folder *folder,
                 const char *name,
                 const char *id,
                 const char *path,
                 int *ret_fd,
                 struct err *e)
{
    const char *hash = path + strlen("staged/");
    struct staged_count known = {0};

    if (!staging_find(blobs->staging, folder->id, hash, &known)) {
        if (begin_session(blobs, folder, name, path, &known, e) < 0)
            return -1;
        staging_begin(blobs->staging, folder->id, hash, &known);
    }
    if (known.count > 0 && known.id_len != strlen(id))
        return invalid_block(e, "all block ids of a blob have the same length");
    if (known.count >= MOST_UNCOMMITTED) {
        err_set(e, ERR_CONFLICT, "a blob has at most %d uncommitted blocks", MOST_UNCOMMITTED);
        return err_reason(e, "BlockCountExceedsLimit");
    }
    *ret_fd = openat(folder->fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_sys(e, errno, "could not open the folder of blocks");
    return 0;
}

static bool is_removed(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* Put the synced file in its place, on disk.  1 when the folder is gone meanwhile. */
static int place(struct blobs *blobs,
                 struct folder *folder,
                 const char *path,
                 int fd,
                 const char *id,
                 const char *tmp,
                 struct err *e)
{
    auto_str file = {0};
    int rc;

    text_hex(&file, id, strlen(id));
    rc = renameat2(folder->fd, tmp, fd, file.data, RENAME_NOREPLACE);
    if (rc == 0)
        staging_add(blobs->staging, folder->id, path + strlen("staged/"), strlen(id));
    else if (errno == EEXIST || errno == EINVAL)
        rc = renameat(folder->fd, tmp, fd, file.data);
    if (rc < 0 && errno == ENOENT && is_removed(fd))
        return 1;
    if (rc < 0)
        return err_sys(e, errno, "could not put the block in its place");
    FAULT("storage.after-block");
    return syncs_wait(blobs->syncs, fd, e);
}

static int admit_locked(struct blobs *blobs,
                        struct folder *folder,
                        const struct blob_address *at,
                        const char *id,
                        const char *lease_id,
                        const char *path,
                        int *ret_fd,
                        struct err *e)
{
    auto_name_lock pthread_mutex_t *lock = name_lock(blobs, folder, at->name);

    if (check_target(blobs, folder, at->name, lease_id, e) < 0)
        return -1;
    return admit(blobs, folder, at->name, id, path, ret_fd, e);
}

int blobs_stage_block(struct blobs *blobs,
                      const struct blob_address *at,
                      const char *id,
                      struct upload *upload,
                      const char *lease_id,
                      struct err *e)
{
    struct folder *folder = upload_folder(upload);
    char path[STAGED_PATH_BYTES];
    int rc;

    if (name_check(at->name, e) < 0 || check_id(id, e) < 0 || upload_sync(upload, e) < 0)
        return -1;
    staged_folder(at->name, path);
    /* Without the lock: a commit or removal that comes between drops the block, as if it had
     * come before, or has removed the folder: then the block comes after it. */
    do {
        auto_close int fd = -1;

        rc = admit_locked(blobs, folder, at, id, lease_id, path, &fd, e);
        if (rc == 0)
            rc = place(blobs, folder, path, fd, id, upload_tmp(upload), e);
    } while (rc > 0);
    if (rc == 0)
        upload_keep(upload);
    return rc;
}

/* --- Get Block List --- */

struct staged_block {
    char id[BLOCK_ID_MOST];
    int64_t size;
};

struct staged_blocks {
    struct staged_block *items;
    size_t count, room;
};

static void note_block(int fd, const char *file, const char *id, void *context)
{
    struct staged_blocks *blocks = context;
    struct stat st;

    if (fstatat(fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (blocks->count == blocks->room) {
        blocks->room = blocks->room ? blocks->room * 2 : 64;
        blocks->items = xreallocarray(blocks->items, blocks->room, sizeof(blocks->items[0]));
    }
    snprintf(blocks->items[blocks->count].id, BLOCK_ID_MOST, "%s", id);
    blocks->items[blocks->count++].size = st.st_size;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct staged_block *x = a, *y = b;

    return strcmp(x->id, y->id);
}

static int
tell_staged(struct folder *folder,
            const char *name,
            void (*each)(const char *id, int64_t size, bool committed, void *context),
            void *context,
            size_t *ret_count,
            struct err *e)
{
    struct staged_blocks blocks = {0};
    int rc = staged_each(folder, name, note_block, &blocks, e);

    if (blocks.count > 1)
        qsort(blocks.items, blocks.count, sizeof(blocks.items[0]), compare_blocks);
    for (size_t i = 0; i < blocks.count; i++)
        each(blocks.items[i].id, blocks.items[i].size, false, context);
    *ret_count = blocks.count;
    free(blocks.items);
    return rc;
}

static int
tell_committed(struct blobs *blobs,
               struct folder *folder,
               const char *name,
               const char *snapshot,
               const struct found *found,
               void (*each)(const char *id, int64_t size, bool committed, void *context),
               void *context,
               struct err *e)
{
    struct block_list list = {0};
    struct block_entry entry;

    if (block_list_read(blobs, folder, name, snapshot, found, &list, e) < 0)
        return -1;
    for (size_t at = 0; block_list_next(&list, &at, &entry);)
        each(entry.id, entry.size, true, context);
    free(list.bytes);
    return 0;
}

int blobs_list_blocks(struct blobs *blobs,
                      const struct blob_address *at,
                      void (*each)(const char *id, int64_t size, bool committed, void *context),
                      void *context,
                      struct blob **ret_blob,
                      struct err *e)
{
    auto_folder f = {blobs, NULL};
    auto_found found = FOUND_NONE;
    size_t staged = 0;
    int there;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    there = blob_look(blobs, f.folder, at->name, at->snapshot, O_PATH, &found, e);
    if (there < 0)
        return -1;
    if (found.row && found.row->type != BLOB_BLOCK)
        return wrong_type(e);
    if (there > 0 &&
        tell_committed(blobs, f.folder, at->name, at->snapshot, &found, each, context, e) < 0)
        return -1;
    if (!(at->snapshot && at->snapshot[0]) &&
        tell_staged(f.folder, at->name, each, context, &staged, e) < 0)
        return -1;
    if (there == 0 && staged == 0)
        return not_found(e);
    *ret_blob = there > 0 ? blob_of_found(&found, at->name, at->snapshot) : NULL;
    return 0;
}
