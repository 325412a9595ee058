/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/mounts.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/command.h"
#include "engine/local/enter.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COMMAND_MS = 120 * 1000, /* an NFS server that does not answer takes about that long */
};

/* By enum volume_kind: the words of the original service, and of ours for what it never told.
 */
static const struct {
    const char *code, *message;
} failures[] = {
    [VOLUME_FILE_SHARE] = {"AZFMountError", "Unable to mount Azure File"},
    [VOLUME_BLOBS] = {"BFSMountError", "unable to mount blob fuse file system"},
    [VOLUME_FILE_SERVER] = {"NFSMountError", "Unable to mount the file server"},
    [VOLUME_UNMANAGED] = {"UnmanagedMountError", "Unable to mount the unmanaged file system"},
};

/* One volume on its way. */
struct mounting {
    const struct mount_place *place;
    const char *path;    /* relative to the root */
    int tree_fd;         /* the clone, on nobody's map yet */
    const char *source;  /* for a link */
    const char *command; /* unmanaged */
};

/* --- the source --- */

/* "ro" among the words of the options, whoever's notation. */
static bool is_read_only(const char *options)
{
    auto_free char *copy = xstrdup(options ? options : "");
    char *rest = NULL;

    for (char *word = strtok_r(copy, " ,=", &rest); word; word = strtok_r(NULL, " ,=", &rest)) {
        if (strcmp(word, "ro") == 0)
            return true;
    }
    return false;
}

static int open_source(const char *source, const char *folder, int *ret_fd, struct err *e)
{
    auto_close int fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", source);
    while (folder && *folder == '/')
        folder++;
    if (!folder || !*folder) {
        *ret_fd = take_fd(&fd);
        return 0;
    }
    return fs_open_beneath(fd, folder, O_PATH | O_DIRECTORY, 0, ret_fd, e);
}

int mounts_resolve(const struct engine_volume *volume,
                   struct arena *arena,
                   const char **ret_path,
                   bool *ret_read_only,
                   struct err *e)
{
    auto_close int fd = -1;
    char link[64], path[PATH_MAX];
    ssize_t len;

    if (open_source(volume->source, volume->volume.folder, &fd, e) < 0)
        return -1;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path));
    if (len < 0 || len == (ssize_t)sizeof(path))
        return err_sys(e, len < 0 ? errno : ENAMETOOLONG, "could not find \"%.200s\"",
                       volume->source);
    *ret_path = arena_strndup(arena, path, (size_t)len);
    *ret_read_only = is_read_only(volume->volume.options);
    return 0;
}

static int clone_source(int source_fd, bool is_readonly, int *ret_fd, struct err *e)
{
    auto_close int fd = open_tree(
        source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                    (is_readonly ? (unsigned)MOUNT_ATTR_RDONLY : 0),
        .propagation = MS_PRIVATE,
    };

    if (fd < 0)
        return err_sys(e, errno, "could not clone the source");
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
        return err_sys(e, errno, "could not set the mount's flags");
    *ret_fd = take_fd(&fd);
    return 0;
}

/* --- the place: these run in the node --- */

static int open_root(const struct mount_place *place, int *ret_fd, struct err *e)
{
    *ret_fd = open(place->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(e, errno, "could not open \"%.200s\"", place->root) : 0;
}

static int set_down(void *arg, struct err *e)
{
    struct mounting *m = arg;
    auto_close int root = -1, at = -1;

    if (open_root(m->place, &root, e) < 0 ||
        folder_make_beneath(root, m->path, 0777, &at, e) < 0)
        return -1;
    if (move_mount(m->tree_fd, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
        0)
        return err_sys(e, errno, "could not mount at \"%.200s\"", m->path);
    return 0;
}

static int link_down(void *arg, struct err *e)
{
    struct mounting *m = arg;
    const char *slash = strrchr(m->path, '/');
    auto_free char *parent = xstrndup(m->path, (size_t)(slash - m->path));
    auto_close int root = -1, at = -1;

    if (open_root(m->place, &root, e) < 0 ||
        folder_make_beneath(root, parent, 0777, &at, e) < 0)
        return -1;
    if (unlinkat(at, slash + 1, 0) < 0)
        unlinkat(at, slash + 1, AT_REMOVEDIR);
    if (symlinkat(m->source, at, slash + 1) < 0)
        return err_sys(e, errno, "could not link \"%.200s\"", m->path);
    return 0;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static int run_down(void *arg, struct err *e)
{
    struct mounting *m = arg;
    bool is_entered = m->place->keeper_fd >= 0;
    auto_free char *home =
        xasprintf("HOME=%s", is_entered ? LOCAL_HOME : text_or(getenv("HOME"), "/root"));
    auto_free char *user = xasprintf("USER=%s", text_or(getenv("USER"), "root"));
    const char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                         "LANG=C.UTF-8", home, user, NULL};
    auto_free char *path = xasprintf("%s/%s", m->place->root, m->path);
    auto_free char *script = xasprintf("%s \"$0\"", m->command);
    const char *argv[] = {"bash", "-c", script, path, NULL};
    auto_close int root = -1;

    if (open_root(m->place, &root, e) < 0 ||
        folder_make_beneath(root, m->path, 0777, NULL, e) < 0)
        return -1;
    return command_must(&(struct command){.argv = argv,
                                          .env = env,
                                          .timeout_ms = COMMAND_MS,
                                          .errands = m->place->errands,
                                          .is_cancelled = m->place->is_cancelled},
                        e);
}

/* --- one volume --- */

static int mount_source(struct mounting *m, const struct engine_volume *volume, struct err *e)
{
    const struct volume *v = &volume->volume;
    auto_close int source = -1, tree = -1;
    auto_free char *linked = NULL;

    if (open_source(volume->source, v->folder, &source, e) < 0)
        return -1;
    if (m->place->keeper_fd < 0) {
        linked = v->folder && *v->folder ? xasprintf("%s/%s", volume->source, v->folder)
                                         : xstrdup(volume->source);
        m->source = linked;
        return link_down(m, e);
    }
    if (clone_source(source, is_read_only(v->options), &tree, e) < 0)
        return -1;
    m->tree_fd = tree;
    return enter_run(m->place->keeper_fd, set_down, m, e);
}

static int
mount_one(const struct mount_place *place, const struct engine_volume *volume, struct err *e)
{
    const struct volume *v = &volume->volume;
    auto_free char *path = xasprintf("%s/%s", place->folder, v->path ? v->path : "");
    struct mounting m = {.place = place, .path = path, .tree_fd = -1};
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    if (v->kind != VOLUME_UNMANAGED)
        return volume->source ? mount_source(&m, volume, e)
                              : err_set(e, ERR_NOT_FOUND, "it has no folder on this machine");
    m.command = v->command;
    return enter_run(place->keeper_fd, run_down, &m, e);
}

static int fail(struct mount_failure *failure,
                const struct engine_volume *volume,
                const char *code,
                const char *message,
                const char *info)
{
    const char *name = volume->volume.path ? volume->volume.path : "";

    snprintf(failure->code, sizeof(failure->code), "%s", code);
    snprintf(failure->message, sizeof(failure->message), "%s", message);
    snprintf(failure->info, sizeof(failure->info), "%s: %s", name, info ? info : message);
    return -1;
}

int mounts_add(const struct mount_place *place,
               const struct engine_volume *volumes,
               size_t count,
               struct mount_failure *ret_failure)
{
    for (size_t i = 0; i < count; i++) {
        const struct engine_volume *volume = &volumes[i];
        struct err e = {0};

        if (volume->error_code)
            return fail(ret_failure, volume, volume->error_code, volume->error_message,
                        volume->error_info);
        if (i == 0 && mounts_undo(place, &e) < 0)
            return fail(ret_failure, volume, "MountError", "Unable to unmount", e.msg);
        if (mount_one(place, volume, &e) < 0)
            return fail(ret_failure, volume, failures[volume->volume.kind].code,
                        failures[volume->volume.kind].message, e.msg);
    }
    return 0;
}

int mounts_bind(const struct mount_place *place, const char *source, struct err *e)
{
    struct mounting m = {
        .place = place, .path = place->folder, .tree_fd = -1, .source = source};
    auto_close int fd = -1, tree = -1;

    if (place->keeper_fd < 0)
        return link_down(&m, e);
    if (open_source(source, NULL, &fd, e) < 0 || clone_source(fd, false, &tree, e) < 0)
        return -1;
    m.tree_fd = tree;
    return enter_run(place->keeper_fd, set_down, &m, e);
}

/* --- undoing --- */

/* mountinfo writes blanks and the like as three octal digits. */
static void decode_octal(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Unmount the last mounted of those beneath the prefix; false when there is none. */
static bool unmount_last(const char *prefix, struct str *ret_stuck)
{
    auto_str mounts = {0};
    char *rest = NULL, *last = NULL;
    size_t len = strlen(prefix);

    if (fs_read("/proc/thread-self/mountinfo", 4 << 20, &mounts, NULL) < 0)
        return false;
    for (char *line = strtok_r(mounts.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *inner = NULL, *point = strtok_r(line, " ", &inner);

        for (int i = 0; point && i < 4; i++)
            point = strtok_r(NULL, " ", &inner);
        if (!point)
            continue;
        decode_octal(point);
        if (strncmp(point, prefix, len) == 0 && (point[len] == '/' || point[len] == '\0'))
            last = point;
    }
    if (!last)
        return false;
    /* Lazily: a file that somebody beyond our reach holds open must not hold the node. */
    if (umount2(last, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return true;
    str_add(ret_stuck, last);
    return false;
}

static int undo_mounts(void *arg, struct err *e)
{
    const struct mount_place *place = arg;
    auto_free char *prefix = xasprintf("%s/%s", place->root, place->folder);
    auto_str stuck = {0};

    while (unmount_last(prefix, &stuck))
        ;
    return stuck.len ? err_set(e, ERR_BUSY, "could not unmount %s", str_text(&stuck)) : 0;
}

int mounts_undo(const struct mount_place *place, struct err *e)
{
    auto_close int root = -1;

    if (place->keeper_fd >= 0)
        return enter_run(place->keeper_fd, undo_mounts, (void *)place, e);
    if (open_root(place, &root, e) < 0)
        return -1;
    /* Links: with all of the folder, which is made again for the next. */
    return folder_remove_beneath(root, place->folder, e);
}
