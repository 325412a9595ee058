/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/str.h"
#include "db/db.h"
#include "store/file.h"
#include "store/pool.h"

#include <fcntl.h>
#include <string.h>

int files_find(struct files *files,
               const struct file_address *at,
               int want_directory,
               struct file **ret_file,
               int *ret_fd,
               struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    autoptr(file_row) row = NULL;
    struct file_stat stat;
    auto_close int fd = -1;

    if (share_place_open(files, at->account, at->share, &place, e) < 0 ||
        file_spot_find(&place, at, &spot, e) < 0)
        return -1;
    if (spot.is_there && want_directory >= 0 && spot.stat.is_directory != (want_directory != 0))
        spot.is_there = false;
    if (file_spot_need(&spot, -1, e) < 0)
        return -1;
    stat = spot.stat;
    if (ret_fd && file_spot_open(&spot, O_RDONLY, &fd, &stat, e) < 0)
        return -1;
    if (file_row_find(files, &place, &stat, &row, e) < 0)
        return -1;
    *ret_file = file_of(row, &stat, *spot.asked ? spot.name : "", spot.parent_inode);
    if (ret_fd)
        *ret_fd = take_fd(&fd);
    return 0;
}

/* --- listing --- */

/* The first names in order, as many as asked for: a heap with the last of them on top, so that
 * a page of a large directory costs memory for the page only. */
struct page {
    char **names;
    size_t count, most;
    const char *prefix, *marker;
};

static void page_done(struct page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->names[i]);
    free(page->names);
}

static void swap_names(char **a, char **b)
{
    char *kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_up(struct page *page, size_t at)
{
    while (at > 0 && strcmp(page->names[(at - 1) / 2], page->names[at]) < 0) {
        swap_names(&page->names[(at - 1) / 2], &page->names[at]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct page *page)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < page->count) {
        if (child + 1 < page->count && strcmp(page->names[child], page->names[child + 1]) < 0)
            child++;
        if (strcmp(page->names[at], page->names[child]) >= 0)
            return;
        swap_names(&page->names[at], &page->names[child]);
        at = child;
    }
}

static void offer_name(int fd, const char *name, void *context)
{
    struct page *page = context;

    (void)fd;
    if (strcmp(name, page->marker) <= 0 || !file_name_starts(name, page->prefix) ||
        !file_name_is_visible(name))
        return;
    if (page->count < page->most) {
        page->names = xreallocarray(page->names, page->count + 1, sizeof(page->names[0]));
        page->names[page->count++] = xstrdup(name);
        sift_up(page, page->count - 1);
    } else if (strcmp(name, page->names[0]) < 0) {
        free(page->names[0]);
        page->names[0] = xstrdup(name);
        sift_down(page);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct listing {
    struct files *files;
    const struct share_place *place;
    const struct file_stat *directory;
    int fd;
    void (*each)(const struct file *file, void *context);
    void *context;
};

/* What is neither file nor directory is left out; so a page may be short. */
static int
list_names(const struct listing *l, const struct page *page, size_t most, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(l->files->blobs->readers, &r, e) < 0)
        return -1;
    for (size_t i = 0; i < page->count && i < most; i++) {
        autoptr(file_row) row = NULL;
        autoptr(file) file = NULL;
        struct file_stat stat;
        int there = file_stat_at(l->fd, page->names[i], &stat, e);

        if (there < 0 || (there > 0 && store_find_file(r.db, l->place->row->id, stat.inode,
                                                       stat.born_ns, &row, e) < 0))
            return -1;
        if (there == 0)
            continue;
        file = file_of(row, &stat, page->names[i], l->directory->inode);
        l->each(file, l->context);
    }
    return 0;
}

int files_list(struct files *files,
               const struct file_address *directory,
               const char *prefix,
               const char *marker,
               size_t most,
               void (*each)(const struct file *file, void *context),
               void *context,
               struct file **ret_directory,
               char **ret_next,
               struct err *e)
{
    auto_place place = SHARE_NOWHERE;
    auto_file_spot spot = FILE_NOWHERE;
    __attribute__((cleanup(page_done))) struct page page = {
        .most = most + 1, .prefix = prefix, .marker = marker};
    autoptr(file_row) row = NULL;
    struct file_stat stat;
    auto_close int fd = -1;

    if (share_place_open(files, directory->account, directory->share, &place, e) < 0 ||
        file_spot_find(&place, directory, &spot, e) < 0 || file_spot_need(&spot, -1, e) < 0)
        return -1;
    if (!spot.stat.is_directory)
        return files_fail(e, ERR_NOT_FOUND, "ResourceNotFound", "that is not a directory");
    if (file_spot_open(&spot, O_RDONLY, &fd, &stat, e) < 0 ||
        file_row_find(files, &place, &stat, &row, e) < 0)
        return -1;
    files_each_name(fd, ".", offer_name, &page);
    if (page.count > 0)
        qsort(page.names, page.count, sizeof(page.names[0]), compare_names);
    if (list_names(&(const struct listing){files, &place, &stat, fd, each, context}, &page,
                   most, e) < 0)
        return -1;
    if (ret_directory)
        *ret_directory = file_of(row, &stat, *spot.asked ? spot.name : "", spot.parent_inode);
    *ret_next = xstrdup(page.count > most && most > 0 ? page.names[most - 1] : "");
    return 0;
}
