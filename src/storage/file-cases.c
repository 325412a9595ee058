/* file-cases.c - is there surely no entry that is the same name but for case?
 *
 * A file system tells that only by listing the whole directory, and who uploads a hundred
 * thousand files into one would list it a hundred thousand times.  So for the directories in
 * use we keep the hashes of their names.  A filter holds as long as the directory has the time
 * of change that it had when it was read; what we change ourselves, we change under the
 * filter's lock and note.  A job that makes an entry within one tick of the kernel's clock may
 * go unnoticed: then there are two names that differ in case, as jobs can have them anyway.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include <string.h>

enum {
    MOST_NAMES = 500 * 1000, /* of one directory: 8 MiB of hashes */
    FIRST_ROOM = 64,         /* a power of two, as all are */
};

static struct case_filter *filter_of(struct files *files, uint64_t inode)
{
    return &files->filters[(inode * 0x9e3779b97f4a7c15ull >> 32) % CASE_FILTERS];
}

static void clear(struct case_filter *f)
{
    free(f->hashes);
    f->hashes = NULL;
    f->count = f->room = 0;
    f->is_valid = false;
}

/* Where the hash is, or would be.  0 marks a free place. */
static uint64_t *place_of(const struct case_filter *f, uint64_t hash)
{
    size_t at = (size_t)(hash * 0x9e3779b97f4a7c15ull >> 20) & (f->room - 1);

    while (f->hashes[at] && f->hashes[at] != hash)
        at = (at + 1) & (f->room - 1);
    return &f->hashes[at];
}

static void grow(struct case_filter *f)
{
    struct case_filter bigger = {.room = f->room ? f->room * 2 : FIRST_ROOM};

    bigger.hashes = xcalloc(bigger.room, sizeof(bigger.hashes[0]));
    for (size_t i = 0; i < f->room; i++) {
        if (f->hashes[i])
            *place_of(&bigger, f->hashes[i]) = f->hashes[i];
    }
    free(f->hashes);
    f->hashes = bigger.hashes;
    f->room = bigger.room;
}

static uint64_t hash_of(const char *name)
{
    return file_name_hash(name) | 1;
}

static void add(struct case_filter *f, const char *name)
{
    uint64_t hash = hash_of(name), *place;

    if (f->count >= MOST_NAMES) {
        clear(f);
        return;
    }
    if (2 * f->count >= f->room)
        grow(f);
    place = place_of(f, hash);
    f->count += *place == 0;
    *place = hash;
}

static void add_entry(int fd, const char *name, void *context)
{
    struct case_filter *f = context;

    (void)fd;
    if (f->is_valid)
        add(f, name);
}

static bool is_of(const struct case_filter *f, const struct file_stat *dir)
{
    return f->is_valid && f->inode == dir->inode && f->born_ns == dir->born_ns &&
           f->mtime_ns == dir->mtime_ns;
}

static void fill(struct case_filter *f, int dir_fd, const struct file_stat *dir)
{
    clear(f);
    f->inode = dir->inode;
    f->born_ns = dir->born_ns;
    f->mtime_ns = dir->mtime_ns;
    f->is_valid = true;
    grow(f);
    files_each_name(dir_fd, ".", add_entry, f);
}

bool case_filter_excludes(struct files *files, int dir_fd, const char *name)
{
    struct case_filter *f;
    struct file_stat dir;
    bool excluded;

    if (file_stat_of(dir_fd, &dir, NULL) < 0)
        return false;
    f = filter_of(files, dir.inode);
    pthread_mutex_lock(&f->lock);
    if (!is_of(f, &dir))
        fill(f, dir_fd, &dir);
    excluded = f->is_valid && *place_of(f, hash_of(name)) == 0;
    pthread_mutex_unlock(&f->lock);
    return excluded;
}

void case_change_begin(struct files *files, int dir_fd, struct case_change *change)
{
    struct file_stat dir = {0};
    bool is_known = file_stat_of(dir_fd, &dir, NULL) == 0;

    *change = (struct case_change){.filter = filter_of(files, dir.inode), .dir_fd = dir_fd};
    pthread_mutex_lock(&change->filter->lock);
    /* Looked at again under the lock: another request may have changed it and noted that. */
    is_known = is_known && file_stat_of(dir_fd, &dir, NULL) == 0;
    change->is_noted = is_known && is_of(change->filter, &dir);
}

void case_change_end(struct case_change *change, const char *added)
{
    struct case_filter *f = change->filter;
    struct file_stat dir;

    if (change->is_noted) {
        if (file_stat_of(change->dir_fd, &dir, NULL) < 0)
            clear(f);
        else
            f->mtime_ns = dir.mtime_ns;
        if (added && f->is_valid)
            add(f, added);
    }
    pthread_mutex_unlock(&f->lock);
}

void case_filters_init(struct files *files)
{
    for (size_t i = 0; i < CASE_FILTERS; i++)
        pthread_mutex_init(&files->filters[i].lock, NULL);
}

void case_filters_done(struct files *files)
{
    for (size_t i = 0; i < CASE_FILTERS; i++) {
        clear(&files->filters[i]);
        pthread_mutex_destroy(&files->filters[i].lock);
    }
}
