/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/walk.h"

#include "base/fs.h"
#include "base/mem.h"
#include "storage/entries.h"
#include "storage/storage-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_DEPTH = 254, /* segments of a blob's name */
};

static int push(struct walk *w, int fd, struct err *e)
{
    const struct entries *entries;

    if (entries_take(w->cache, fd, &entries, e) < 0) {
        close(fd);
        return -1;
    }
    if (w->depth == w->room) {
        w->room = w->room ? w->room * 2 : 8;
        w->levels = xreallocarray(w->levels, w->room, sizeof(w->levels[0]));
    }
    w->levels[w->depth++] = (struct walk_level){fd, entries, 0, w->name.len};
    return 0;
}

static void pop(struct walk *w)
{
    struct walk_level *level = &w->levels[--w->depth];

    close(level->fd);
    entries_drop(w->cache, level->entries);
}

/* Skip, in the folder just opened, what does not come after w->after. */
static void position(struct walk *w)
{
    struct walk_level *level = &w->levels[w->depth - 1];
    const char *rest;
    size_t at;

    if (strncmp(w->after, str_text(&w->name), level->path_len) != 0) {
        if (strcmp(w->after, str_text(&w->name)) > 0)
            level->next = level->entries->count;
        return;
    }
    if (!*w->after)
        return;
    rest = w->after + level->path_len;
    at = entries_after(level->entries, rest);
    /* The folder that `after` itself lies in has more to come. */
    if (at > 0 && level->entries->items[at - 1].is_folder) {
        size_t len = level->entries->items[at - 1].len;

        if (strncmp(rest, entry_name(level->entries, at - 1), len) == 0 && rest[len] == '/')
            at--;
    }
    level->next = at;
}

int walk_begin(struct walk *w,
               struct entries_cache *cache,
               int tree_fd,
               const char *prefix,
               const char *after,
               struct err *e)
{
    const char *slash = strrchr(prefix, '/');
    auto_free char *folder = slash ? xstrndup(prefix, (size_t)(slash - prefix)) : xstrdup(".");
    struct walk_level *level;
    int fd;

    *w = (struct walk){.cache = cache, .prefix = prefix, .after = after};
    if (slash && !name_is_path(folder))
        return 0;
    if (fs_open_beneath(tree_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, NULL) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : err_sys(e, errno, "could not open a folder");
    if (slash)
        str_add_len(&w->name, prefix, (size_t)(slash + 1 - prefix));
    if (push(w, fd, e) < 0)
        return -1;
    position(w);
    level = &w->levels[0];
    if (slash ? slash[1] : prefix[0]) {
        size_t first = entries_from(level->entries, slash ? slash + 1 : prefix);

        if (first > level->next)
            level->next = first;
    }
    return 0;
}

static void stand_at(struct walk *w, const struct walk_level *level)
{
    const struct entry *entry = &level->entries->items[level->next];

    str_truncate(&w->name, level->path_len);
    str_add_len(&w->name, entry_name(level->entries, level->next), entry->len);
    w->is_folder = entry->is_folder;
    if (entry->is_folder)
        str_add_char(&w->name, '/');
}

int walk_next(struct walk *w)
{
    while (w->depth > 0) {
        struct walk_level *level = &w->levels[w->depth - 1];

        if (level->next < level->entries->count) {
            stand_at(w, level);
            level->next++;
            if (str_starts(str_text(&w->name), w->prefix))
                return 1;
            /* Sorted, so what begins with the prefix is behind us. */
            level->next = level->entries->count;
        }
        pop(w);
    }
    return 0;
}

int walk_enter(struct walk *w, struct err *e)
{
    int fd;

    if (w->depth >= MOST_DEPTH)
        return 0;
    if (fs_open_beneath(walk_folder_fd(w), walk_leaf(w), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                        &fd, NULL) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? 0
                   : err_sys(e, errno, "could not open a folder");
    if (push(w, fd, e) < 0)
        return -1;
    position(w);
    return 0;
}

int walk_folder_fd(const struct walk *w)
{
    return w->levels[w->depth - 1].fd;
}

const char *walk_leaf(const struct walk *w)
{
    const struct walk_level *level = &w->levels[w->depth - 1];

    return entry_name(level->entries, level->next - 1);
}

void walk_done(struct walk *w)
{
    while (w->depth > 0)
        pop(w);
    free(w->levels);
    str_done(&w->name);
}

/* 1 a file or folder of ours, as the kind asks; 0 something else. */
static bool is_kind(int fd, const struct dirent *d, bool is_folder)
{
    struct stat st;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return false;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type == (is_folder ? DT_DIR : DT_REG);
    return fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (is_folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static bool has_file(int at, const char *name, int depth)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *d;
    bool found = false;

    if (!dir) {
        mem_close_fd(&fd);
        return false;
    }
    while (!found && (d = readdir(dir)))
        found = is_kind(fd, d, false);
    rewinddir(dir);
    while (!found && depth < MOST_DEPTH && (d = readdir(dir)))
        found = is_kind(fd, d, true) && has_file(fd, d->d_name, depth + 1);
    closedir(dir);
    return found;
}

bool walk_has_file(const struct walk *w)
{
    return has_file(walk_folder_fd(w), walk_leaf(w), 0);
}
