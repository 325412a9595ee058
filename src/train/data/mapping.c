/* SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int mapping_open(struct mapping *mapping, const char *path, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *bytes;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "\"%.200s\" is no file", path);
    *mapping = (struct mapping){0};
    if (st.st_size == 0)
        return 0;
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_sys(e, errno, "could not map \"%.200s\"", path);
    *mapping = (struct mapping){.bytes = bytes, .len = (size_t)st.st_size};
    return 0;
}

void mapping_done(struct mapping *mapping)
{
    if (mapping->bytes)
        munmap((void *)(uintptr_t)mapping->bytes, mapping->len);
    *mapping = (struct mapping){0};
}

bool data_has(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    return access(path, F_OK) == 0;
}
