/* share-yard.h - for tests: a data folder of its own with a share "data" in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_TEST_SHARE_YARD_H
#define STORAGE_TEST_SHARE_YARD_H

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "storage/files.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct share_yard {
    char folder[40];
    struct blobs *blobs;
    struct files *files;
};

static inline void assert_ok(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s: %s", err_reason_of(e), e->msg);
}

static inline void assert_refused(int rc, const struct err *e, const char *reason)
{
    assert_int_equal(rc, -1);
    assert_string_equal(err_reason_of(e), reason);
}

static inline void yard_open(struct share_yard *yard)
{
    auto_free char *root = xasprintf("%s/storage", yard->folder);
    auto_free char *db = xasprintf("%s/storage.db", yard->folder);
    struct err e = {0};

    assert_ok(blobs_open(root, db, &yard->blobs, &e), &e);
    assert_ok(files_open(yard->blobs, &yard->files, &e), &e);
}

static inline void yard_close(struct share_yard *yard)
{
    files_free(yard->files);
    blobs_free(yard->blobs);
    yard->files = NULL;
    yard->blobs = NULL;
}

static inline void yard_add_share(struct share_yard *yard, const char *name)
{
    const struct share_change facts = {.quota_gib = -1};
    autoptr(share) share = NULL;
    struct err e = {0};

    assert_ok(files_create_share(yard->files, "acct", name, &facts, &share, &e), &e);
}

static inline int yard_setup(void **state)
{
    struct share_yard *yard = xcalloc(1, sizeof(*yard));

    snprintf(yard->folder, sizeof(yard->folder), "/tmp/yard-shares-XXXXXX");
    assert_non_null(mkdtemp(yard->folder));
    yard_open(yard);
    yard_add_share(yard, "data");
    *state = yard;
    return 0;
}

static inline int
yard_remove_one(const char *path, const struct stat *file, int type, struct FTW *at)
{
    (void)file;
    (void)type;
    (void)at;
    return remove(path);
}

static inline int yard_teardown(void **state)
{
    struct share_yard *yard = *state;

    yard_close(yard);
    nftw(yard->folder, yard_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(yard);
    return 0;
}

/* Where an entry of the share lies; caller frees. */
static inline char *yard_path(const struct share_yard *yard, const char *path)
{
    return xasprintf("%s/storage/acct/file/data/tree/%s", yard->folder, path);
}

static inline struct file_address at(const char *path)
{
    return (struct file_address){.account = "acct", .share = "data", .path = path};
}

static inline int try_create(struct share_yard *yard,
                             const char *path,
                             int64_t size,
                             const struct file_put *put,
                             struct err *e)
{
    static const struct file_put nothing;
    const struct file_address a = at(path);
    autoptr(file) file = NULL;

    return files_create(yard->files, &a, size, put ? put : &nothing, NULL, &file, e);
}

static inline int try_mkdir(struct share_yard *yard, const char *path, struct err *e)
{
    static const struct file_put nothing;
    const struct file_address a = at(path);
    autoptr(file) file = NULL;

    return files_create_directory(yard->files, &a, &nothing, &file, e);
}

static inline int try_write(
    struct share_yard *yard, const char *path, int64_t offset, const char *text, struct err *e)
{
    const struct file_address a = at(path);
    autoptr(file) file = NULL;

    return files_put_range(yard->files, &a, offset, text, (int64_t)strlen(text), false, NULL,
                           &file, e);
}

static inline void make_file(struct share_yard *yard, const char *path, const char *text)
{
    struct err e = {0};

    assert_ok(try_create(yard, path, (int64_t)strlen(text), NULL, &e), &e);
    if (*text)
        assert_ok(try_write(yard, path, 0, text, &e), &e);
}

static inline void make_folder(struct share_yard *yard, const char *path)
{
    struct err e = {0};

    assert_ok(try_mkdir(yard, path, &e), &e);
}

/* As a job would, through a mount. */
static inline void write_behind(struct share_yard *yard, const char *path, const char *text)
{
    auto_free char *real = yard_path(yard, path);
    FILE *out = fopen(real, "w");

    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static inline struct file *find(struct share_yard *yard, const char *path)
{
    const struct file_address a = at(path);
    struct file *file = NULL;
    struct err e = {0};

    assert_ok(files_find(yard->files, &a, -1, &file, NULL, &e), &e);
    return file;
}

static inline void assert_missing(struct share_yard *yard, const char *path, const char *reason)
{
    const struct file_address a = at(path);
    struct file *file = NULL;
    struct err e = {0};

    assert_refused(files_find(yard->files, &a, -1, &file, NULL, &e), &e, reason);
}

/* The whole content; caller frees. */
static inline char *read_file(struct share_yard *yard, const char *path)
{
    const struct file_address a = at(path);
    autoptr(file) file = NULL;
    auto_close int fd = -1;
    struct err e = {0};
    char *text;

    assert_ok(files_find(yard->files, &a, 0, &file, &fd, &e), &e);
    text = xcalloc(1, (size_t)file->size_bytes + 1);
    assert_int_equal(pread(fd, text, (size_t)file->size_bytes, 0), file->size_bytes);
    return text;
}

#endif
