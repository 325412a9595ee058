/* Put Block List: blocks, staged and committed ones, become one file.
 *
 * The file is put together without the lock, because that takes as long as copying does; then,
 * under the lock, conditions are judged and the file takes the name.  If blocks of the old blob
 * were used and that has been replaced meanwhile, it is done again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blocks.h"

#include "base/fault.h"
#include "base/str.h"
#include "base/text.h"
#include "store/blob.h"
#include "store/pool.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_TRIES = 10,
    FLUSH_BYTES = 32 << 20,
};

/* --- the list --- */

bool block_list_next(const struct block_list *list, size_t *at, struct block_entry *ret_entry)
{
    const unsigned char *p = (const unsigned char *)list->bytes + *at;
    uint64_t size;
    size_t len;

    if (*at + 9 > list->len)
        return false;
    memcpy(&size, p, sizeof(size));
    len = p[8];
    if (*at + 9 + len > list->len || len >= sizeof(ret_entry->id))
        return false;
    ret_entry->size = (int64_t)le64toh(size);
    memcpy(ret_entry->id, p + 9, len);
    ret_entry->id[len] = '\0';
    *at += 9 + len;
    return true;
}

void block_list_add(struct block_list *list, const char *id, int64_t size)
{
    uint64_t little = htole64((uint64_t)size);
    size_t len = strlen(id);
    char *p;

    if (list->len + 9 + len > list->room) {
        list->room = (list->room + 9 + len) * 2;
        list->bytes = xrealloc(list->bytes, list->room);
    }
    p = (char *)list->bytes + list->len;
    memcpy(p, &little, sizeof(little));
    p[8] = (char)len;
    memcpy(p + 9, id, len);
    list->len += 9 + len;
}

int block_list_read(struct blobs *blobs,
                    struct folder *folder,
                    const char *name,
                    const char *snapshot,
                    const struct found *found,
                    struct block_list *ret_list,
                    struct err *e)
{
    struct blob_key key = {folder->id, name, snapshot ? snapshot : "", 0, 0};
    auto_reader r = {0};

    *ret_list = (struct block_list){0};
    if (!found->row || found->is_changed)
        return 0;
    key.inode = found->row->inode;
    key.born_ns = found->row->born_ns;
    if (store_pool_take(blobs->readers, &r, e) < 0 ||
        store_find_block_list(r.db, &key, &ret_list->bytes, &ret_list->len, e) < 0)
        return -1;
    ret_list->room = ret_list->len;
    return 0;
}

/* --- putting together --- */

struct old_block {
    char id[BLOCK_ID_MOST];
    int64_t offset, size;
};

struct assembly {
    struct blobs *blobs;
    struct folder *folder;
    const char *name;
    int staged_fd; /* -1 = there are none */
    int fd;        /* of the new file */
    char tmp[TMP_NAME_BYTES];
    int64_t size, flushed;
    struct block_list list;
    struct found old;       /* what committed blocks come from */
    struct old_block *olds; /* sorted by id; NULL until needed */
    size_t old_count;
    bool is_old_used;
};

static void assembly_done(struct assembly *a)
{
    if (a->tmp[0])
        unlinkat(a->folder->fd, a->tmp, 0);
    mem_close_fd(&a->fd);
    mem_close_fd(&a->staged_fd);
    found_done(&a->old);
    free(a->olds);
    free(a->list.bytes);
}

static int bad_list(struct err *e, const char *id)
{
    err_set(e, ERR_INVALID, "the block list names a block that is not there: \"%s\"", id);
    return err_reason(e, "InvalidBlockList");
}

static int compare_old(const void *a, const void *b)
{
    return strcmp(((const struct old_block *)a)->id, ((const struct old_block *)b)->id);
}

/* Where each committed block lies in the blob as it is now. */
static int read_old(struct assembly *a, struct err *e)
{
    struct block_list list;
    struct block_entry entry;
    int64_t offset = 0;
    size_t room = 0;

    if (a->olds)
        return 0;
    if (block_list_read(a->blobs, a->folder, a->name, "", &a->old, &list, e) < 0)
        return -1;
    a->olds = xcalloc(1, sizeof(a->olds[0]));
    for (size_t at = 0; block_list_next(&list, &at, &entry); offset += entry.size) {
        if (a->old_count >= room) {
            room = room ? room * 2 : 64;
            a->olds = xreallocarray(a->olds, room, sizeof(a->olds[0]));
        }
        memcpy(a->olds[a->old_count].id, entry.id, sizeof(entry.id));
        a->olds[a->old_count].offset = offset;
        a->olds[a->old_count++].size = entry.size;
    }
    free(list.bytes);
    qsort(a->olds, a->old_count, sizeof(a->olds[0]), compare_old);
    return 0;
}

static int add_span(struct assembly *a, int from, int64_t offset, int64_t len, struct err *e)
{
    if (copy_range(from, offset, a->fd, a->size, len, e) < 0)
        return -1;
    a->size += len;
    if (a->size - a->flushed >= FLUSH_BYTES) {
        sync_file_range(a->fd, a->flushed, a->size - a->flushed, SYNC_FILE_RANGE_WRITE);
        a->flushed = a->size;
    }
    return 0;
}

/* 1 added, 0 there is no such block, -1. */
static int add_staged(struct assembly *a, const char *id, struct err *e)
{
    auto_str file = {0};
    auto_close int fd = -1;
    struct stat st;

    text_hex(&file, id, strlen(id));
    if (a->staged_fd < 0)
        return 0;
    fd = openat(a->staged_fd, str_text(&file), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not open a block");
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not ask for a block's size");
    if (add_span(a, fd, 0, st.st_size, e) < 0)
        return -1;
    block_list_add(&a->list, id, st.st_size);
    return 1;
}

static int add_committed(struct assembly *a, const char *id, struct err *e)
{
    struct old_block key, *old;

    if (read_old(a, e) < 0)
        return -1;
    if (strlen(id) >= sizeof(key.id))
        return 0;
    memcpy(key.id, id, strlen(id) + 1);
    old = bsearch(&key, a->olds, a->old_count, sizeof(a->olds[0]), compare_old);
    if (!old)
        return 0;
    if (add_span(a, a->old.fd, old->offset, old->size, e) < 0)
        return -1;
    block_list_add(&a->list, id, old->size);
    a->is_old_used = true;
    return 1;
}

static int add_block(struct assembly *a, const struct block_ref *ref, struct err *e)
{
    int rc = 0;

    if (ref->source != BLOCK_COMMITTED)
        rc = add_staged(a, ref->id, e);
    if (rc == 0 && ref->source != BLOCK_UNCOMMITTED)
        rc = add_committed(a, ref->id, e);
    return rc == 0 ? bad_list(e, ref->id) : rc < 0 ? -1 : 0;
}

/* A blob of one staged block: that file is the blob already. */
static bool link_only_block(struct assembly *a, const struct block_ref *ref)
{
    auto_str file = {0};
    struct stat st;

    if (ref->source == BLOCK_COMMITTED || a->staged_fd < 0)
        return false;
    text_hex(&file, ref->id, strlen(ref->id));
    tmp_name(a->tmp);
    if (linkat(a->staged_fd, str_text(&file), a->folder->fd, a->tmp, 0) < 0) {
        a->tmp[0] = '\0';
        return false;
    }
    a->fd = openat(a->folder->fd, a->tmp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (a->fd < 0 || fstat(a->fd, &st) < 0)
        return false;
    block_list_add(&a->list, ref->id, st.st_size);
    return true;
}

static int
assemble(struct assembly *a, const struct block_ref *blocks, size_t count, struct err *e)
{
    char path[STAGED_PATH_BYTES];

    staged_folder(a->name, path);
    a->staged_fd = openat(a->folder->fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (count == 1 && link_only_block(a, &blocks[0]))
        return 0;
    mem_close_fd(&a->fd);
    a->fd = -1;
    if (a->tmp[0])
        unlinkat(a->folder->fd, a->tmp, 0);
    if (tmp_open(a->folder, a->tmp, &a->fd, e) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (add_block(a, &blocks[i], e) < 0)
            return -1;
    }
    FAULT("storage.after-assembly");
    if (fsync(a->fd) < 0)
        return err_sys(e, errno, "could not write the blob to disk");
    return 0;
}

/* --- taking the name --- */

static bool is_same_file(const struct found *a, const struct found *b)
{
    return a->facts.inode == b->facts.inode && a->facts.born_ns == b->facts.born_ns &&
           a->facts.mtime_ns == b->facts.mtime_ns;
}

/* 0 done, 1 the old blob has changed: again, -1. */
static int take_name(struct assembly *a,
                     const struct blob_put *put,
                     const struct conditions *conditions,
                     struct blob **ret_blob,
                     struct err *e)
{
    struct swap swap = {
        .folder = a->folder,
        .name = a->name,
        .tmp = a->tmp,
        .block_list = a->list.bytes,
        .block_list_len = a->list.len,
    };
    auto_found now = FOUND_NONE;
    autoptr(blob_row) row = NULL;
    struct facts facts;
    auto_name_lock pthread_mutex_t *lock = name_lock(a->blobs, a->folder, a->name);

    if (look_to_replace(a->blobs, a->folder, a->name, conditions, &now, e) < 0)
        return -1;
    if (now.row && now.row->type != BLOB_BLOCK)
        return wrong_type(e);
    if (a->is_old_used && !is_same_file(&a->old, &now))
        return 1;
    if (facts_of(a->fd, &facts, e) < 0)
        return -1;
    row = row_new_for(a->blobs, a->name, BLOB_BLOCK, put, &now);
    row_set_facts(row, &facts);
    swap.row = row;
    if (blob_swap(a->blobs, &swap, e) < 0)
        return -1;
    a->tmp[0] = '\0';
    if (ret_blob)
        *ret_blob = blob_of_row(row, &facts, false, a->name, "");
    return 0;
}

static int try_commit(struct blobs *blobs,
                      struct folder *folder,
                      const char *name,
                      const struct block_ref *blocks,
                      size_t count,
                      const struct blob_put *put,
                      const struct conditions *conditions,
                      struct blob **ret_blob,
                      struct err *e)
{
    struct assembly a = {
        .blobs = blobs,
        .folder = folder,
        .name = name,
        .staged_fd = -1,
        .fd = -1,
        .old = FOUND_NONE,
    };
    autoptr(blob) old = NULL;
    int there = blob_look(blobs, folder, name, "", O_RDONLY, &a.old, e), rc = -1;

    if (there > 0)
        old = blob_of_found(&a.old, name, "");
    /* Judged again under the lock; here it saves the work. */
    if (there >= 0 && conditions_check_write(conditions, old, CONDITION_CREATE, e) == 0 &&
        assemble(&a, blocks, count, e) == 0)
        rc = take_name(&a, put, conditions, ret_blob, e);
    assembly_done(&a);
    return rc;
}

int blobs_commit_blocks(struct blobs *blobs,
                        const struct blob_address *at,
                        const struct block_ref *blocks,
                        size_t count,
                        const struct blob_put *put,
                        const struct conditions *conditions,
                        struct blob **ret_blob,
                        struct err *e)
{
    auto_folder f = {blobs, NULL};
    int rc = 1;

    if (folder_take(blobs, at->account, at->container, &f.folder, e) < 0 ||
        name_check(at->name, e) < 0)
        return -1;
    if (count > MOST_BLOCKS) {
        err_set(e, ERR_INVALID, "a block list has at most %d blocks", MOST_BLOCKS);
        return err_reason(e, "BlockListTooLong");
    }
    for (int i = 0; i < MOST_TRIES && rc == 1; i++)
        rc = try_commit(blobs, f.folder, at->name, blocks, count, put, conditions, ret_blob, e);
    if (rc == 1)
        return err_set(e, ERR_BUSY, "could not commit: the blob changes all the time");
    return rc;
}
