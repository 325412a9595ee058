/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bind.h"

#include "base/fs.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

static int open_source(const struct bind_source *source, int *ret_fd, struct err *e)
{
    auto_free char *tree = xasprintf("%s/storage/%s/%s/%s/tree", source->home, source->account,
                                     storage_service_name(source->service), source->container);
    auto_close int fd = open(tree, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.300s\"", tree);
    if (!*source->path) {
        *ret_fd = take_fd(&fd);
        return 0;
    }
    return fs_open_beneath(fd, source->path, O_PATH | O_DIRECTORY, 0, ret_fd, e);
}

/* Its flags are set before it is anywhere to be seen. */
static int make_mount(int source_fd, bool is_read_only, int *ret_fd, struct err *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                          (is_read_only ? MOUNT_ATTR_RDONLY : 0)};
    auto_close int fd =
        open_tree(source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    if (fd < 0 && errno == EPERM)
        return err_set(e, ERR_FORBIDDEN, "only root may bind; leave --bind out");
    if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return err_sys(e, errno, "could not make a bind mount");
    *ret_fd = take_fd(&fd);
    return 0;
}

int bind_mount(const struct bind_source *source,
               const char *where,
               bool is_read_only,
               struct err *e)
{
    auto_close int source_fd = -1;
    auto_close int fd = -1;

    if (open_source(source, &source_fd, e) < 0 ||
        make_mount(source_fd, is_read_only, &fd, e) < 0)
        return -1;
    if (move_mount(fd, "", AT_FDCWD, where, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, errno, "could not mount on \"%.300s\"", where);
    return 0;
}

int bind_umount(const char *where, bool is_lazy, struct err *e)
{
    if (umount2(where, UMOUNT_NOFOLLOW | (is_lazy ? MNT_DETACH : 0)) < 0)
        return err_sys(e, errno, "could not unmount \"%.300s\"", where);
    return 0;
}
