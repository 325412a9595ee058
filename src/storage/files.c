/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/files-internal.h"

#include "base/fs.h"
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --- errors: names in parentheses, there are macros of the same names --- */

int(files_fail)(struct err *e, enum err_code code, const char *reason, const char *text)
{
    err_set(e, code, "%s", text);
    return err_reason(e, reason);
}

int(files_fail_sys)(struct err *e, int errno_value, const char *doing)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP: /* a symbolic link took the place of what was there */
        return files_fail(e, ERR_NOT_FOUND, "ResourceNotFound",
                          "the file or directory does not exist");
    case EEXIST:
        return files_fail(e, ERR_CONFLICT, "ResourceAlreadyExists",
                          "there is something of that name already");
    case ENOTEMPTY:
        return files_fail(e, ERR_CONFLICT, "DirectoryNotEmpty", "the directory is not empty");
    case EISDIR:
        return files_fail(e, ERR_CONFLICT, "ResourceTypeMismatch",
                          "a directory of that name is there");
    case EFBIG:
        return files_fail(e, ERR_FORBIDDEN, "ShareSizeLimitReached",
                          "the file is larger than the disk allows");
    case ENAMETOOLONG:
        return files_fail(e, ERR_INVALID, "InvalidFileOrDirectoryPathName",
                          "the path is too long");
    default:
        return err_sys(e, errno_value, "%s", doing);
    }
}

/* --- locks --- */

static size_t stripe_of(uint64_t inode)
{
    return (inode * 0x9e3779b97f4a7c15ull >> 32) % FILE_LOCKS;
}

void file_lock(struct files *files, uint64_t inode, bool exclusive, struct file_lock *lock)
{
    lock->held = &files->locks[stripe_of(inode)];
    if (exclusive)
        pthread_rwlock_wrlock(lock->held);
    else
        pthread_rwlock_rdlock(lock->held);
}

void file_unlock(struct file_lock *lock)
{
    if (lock->held)
        pthread_rwlock_unlock(lock->held);
}

void file_lock_two(struct files *files,
                   uint64_t inode,
                   uint64_t other,
                   struct file_lock *first,
                   struct file_lock *second)
{
    bool in_order = stripe_of(inode) < stripe_of(other);

    /* Always in the same order, or two renames could wait for each other. */
    file_lock(files, in_order ? inode : other, true, first);
    if (stripe_of(inode) != stripe_of(other))
        file_lock(files, in_order ? other : inode, true, second);
}

/* --- opening --- */

void files_each_name(int dir_fd,
                     const char *path,
                     void (*each)(int fd, const char *name, void *context),
                     void *context)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        mem_close_fd(&fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(fd, entry->d_name, context);
    }
    closedir(dir);
}

/* What was being made when the daemon died goes the way of all trash. */
static void clear_entry(int fd, const char *name, void *context)
{
    trash_move(context, fd, name, NULL);
}

static void clear_share(int fd, const char *name, void *context)
{
    auto_free char *path = xasprintf("%s/tmp", name);

    if (name[0] == '.')
        clear_entry(fd, name, context); /* a share on its way */
    else
        files_each_name(fd, path, clear_entry, context);
}

static void clear_account(int fd, const char *name, void *context)
{
    auto_free char *path = xasprintf("%s/file", name);

    files_each_name(fd, path, clear_share, context);
}

int files_open(struct blobs *blobs, struct files **ret_files, struct err *e)
{
    autoptr(files) files = xcalloc(1, sizeof(*files));

    files->blobs = blobs;
    pthread_mutex_init(&files->shares_lock, NULL);
    pthread_mutex_init(&files->usage_lock, NULL);
    case_filters_init(files);
    for (size_t i = 0; i < FILE_LOCKS; i++)
        pthread_rwlock_init(&files->locks[i], NULL);
    files_each_name(blobs->root_fd, ".", clear_account, blobs);
    if (shares_reconcile(files, e) < 0)
        return -1;
    *ret_files = take_ptr(&files);
    return 0;
}

void files_free(struct files *files)
{
    if (!files)
        return;
    case_filters_done(files);
    for (size_t i = 0; i < FILE_LOCKS; i++)
        pthread_rwlock_destroy(&files->locks[i]);
    pthread_mutex_destroy(&files->usage_lock);
    pthread_mutex_destroy(&files->shares_lock);
    free(files);
}

char *files_tree_path(struct files *files, const char *account, const char *share)
{
    return xasprintf("%s/%s/file/%s/tree", files->blobs->root, account, share);
}
