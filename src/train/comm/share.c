/* share.c - see share.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/share.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(int fd, size_t bytes, bool is_ready, void **ret_at, struct err *e)
{
    int flags = MAP_SHARED | (is_ready ? MAP_POPULATE : 0);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (at == MAP_FAILED)
        return err_sys(e, errno, "could not map %zu bytes of shared memory", bytes);
    *ret_at = at;
    return 0;
}

/* posix_fallocate and not ftruncate: memory that is not there is an error now and not a SIGBUS
 * later. */
static int size(int fd, size_t bytes, struct err *e)
{
    int error = posix_fallocate(fd, 0, (off_t)bytes);

    if (error)
        return err_sys(e, error, "could not get %zu bytes of shared memory", bytes);
    return 0;
}

int share_create_named(size_t bytes, char ret_name[SHARE_NAME_BYTES], struct err *e)
{
    unsigned long long random;
    auto_close int fd = -1;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return err_sys(e, errno, "could not get a random number");
    snprintf(ret_name, SHARE_NAME_BYTES, "/yardbench-%016llx", random);
    fd = shm_open(ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, errno, "could not create shared memory \"%s\"", ret_name);
    if (size(fd, bytes, e) < 0) {
        shm_unlink(ret_name);
        return -1;
    }
    return 0;
}

int share_open_named(const char *name, struct share *ret_share, struct err *e)
{
    auto_close int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    struct stat facts;
    void *at;

    if (fd < 0 || fstat(fd, &facts) < 0)
        return err_sys(e, errno, "could not open shared memory \"%s\"", name);
    if (facts.st_uid != geteuid())
        return err_set(e, ERR_FORBIDDEN, "shared memory \"%s\" is another user's", name);
    if (map(fd, (size_t)facts.st_size, true, &at, e) < 0)
        return -1;
    *ret_share = (struct share){at, (size_t)facts.st_size, -1};
    return 0;
}

void share_unlink(const char *name)
{
    shm_unlink(name);
}

int share_create(size_t bytes, bool is_ready, struct share *ret_share, struct err *e)
{
    auto_close int fd = memfd_create("yardbench", MFD_CLOEXEC);
    void *at;

    if (fd < 0)
        return err_sys(e, errno, "could not create shared memory");
    if (is_ready ? size(fd, bytes, e) < 0 : ftruncate(fd, (off_t)bytes) < 0)
        return is_ready ? -1 : err_sys(e, errno, "could not size shared memory");
    if (map(fd, bytes, is_ready, &at, e) < 0)
        return -1;
    *ret_share = (struct share){at, bytes, take_fd(&fd)};
    return 0;
}

int share_open(
    pid_t pid, int fd, size_t bytes, bool is_ready, struct share *ret_share, struct err *e)
{
    char path[64];
    auto_close int opened = -1;
    struct stat facts;
    void *at;

    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
    opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0 || fstat(opened, &facts) < 0)
        return err_sys(e, errno, "could not open the shared memory of process %ld", (long)pid);
    if ((size_t)facts.st_size < bytes)
        return err_set(e, ERR_INTERNAL, "shared memory of process %ld is too small", (long)pid);
    if (map(opened, bytes, is_ready, &at, e) < 0)
        return -1;
    *ret_share = (struct share){at, bytes, -1};
    return 0;
}

void share_done(struct share *share)
{
    if (share->at)
        munmap(share->at, share->bytes);
    if (share->at && share->fd >= 0)
        close(share->fd);
    *share = (struct share){.fd = -1};
}
