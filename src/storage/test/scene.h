/* scene.h - a store in a temporary folder, for unit tests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_TEST_SCENE_H
#define STORAGE_TEST_SCENE_H

#include "base/mem.h"
#include "base/str.h"
#include "storage/storage-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ACCOUNT   "acct"
#define CONTAINER "con"

struct scene {
    char folder[64], *root, *db;
    struct blobs *blobs;
    struct err e;
};

static inline int
scene_remove(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    remove(path);
    return 0;
}

static inline void scene_open(struct scene *s)
{
    s->e = (struct err){0};
    if (blobs_open(s->root, s->db, &s->blobs, &s->e) < 0)
        fail_msg("%s", s->e.msg);
}

static inline void scene_reopen(struct scene *s)
{
    blobs_free(s->blobs);
    scene_open(s);
}

/* A new temporary folder, with nothing in it yet. */
static inline struct scene *scene_new(void)
{
    struct scene *s = xcalloc(1, sizeof(*s));

    snprintf(s->folder, sizeof(s->folder), "/tmp/storage-test-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    s->root = xasprintf("%s/storage", s->folder);
    s->db = xasprintf("%s/storage.db", s->folder);
    return s;
}

static inline int scene_setup(void **state)
{
    struct scene *s = scene_new();

    scene_open(s);
    *state = s;
    return blobs_create_container(s->blobs, ACCOUNT, CONTAINER, NULL, NULL, &s->e);
}

static inline int scene_teardown(void **state)
{
    struct scene *s = *state;

    blobs_free(s->blobs);
    nftw(s->folder, scene_remove, 16, FTW_DEPTH | FTW_PHYS);
    free(s->root);
    free(s->db);
    free(s);
    return 0;
}

/* Where the container's tree (or another part) lies; caller frees. */
static inline char *scene_path(struct scene *s, const char *below)
{
    return xasprintf("%s/%s/blob/%s/%s", s->root, ACCOUNT, CONTAINER, below);
}

static inline struct blob_address at_name(const char *name)
{
    return (struct blob_address){ACCOUNT, CONTAINER, name, NULL};
}

static inline struct upload *upload_of(struct scene *s, const char *text)
{
    struct upload *upload = NULL;

    if (upload_begin(s->blobs, ACCOUNT, CONTAINER, &upload, &s->e) < 0 ||
        upload_write(upload, text, strlen(text), &s->e) < 0)
        fail_msg("%s", s->e.msg);
    return upload;
}

static inline int put_if(struct scene *s,
                         const char *name,
                         const char *text,
                         const struct conditions *conditions,
                         struct blob **ret_blob)
{
    const struct blob_address at = at_name(name);
    const struct blob_put put = {0};
    autoptr(upload) upload = upload_of(s, text);

    return blobs_put(s->blobs, &at, upload, &put, conditions, ret_blob, &s->e);
}

static inline void put_text(struct scene *s, const char *name, const char *text)
{
    if (put_if(s, name, text, NULL, NULL) < 0)
        fail_msg("put %s: %s", name, s->e.msg);
}

static inline char *read_fd(int fd, int64_t size)
{
    char *text = xcalloc(1, (size_t)size + 1);

    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    return text;
}

/* The content, NULL when there is no such blob; caller frees. */
static inline char *get_text(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    autoptr(blob) blob = NULL;
    auto_close int fd = -1;

    if (blobs_find(s->blobs, &at, NULL, &blob, &fd, NULL, &s->e) < 0)
        return NULL;
    return read_fd(fd, blob->size_bytes);
}

/* The facts of a blob that is there. */
static inline struct blob *find(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);
    struct blob *blob = NULL;

    if (blobs_find(s->blobs, &at, NULL, &blob, NULL, NULL, &s->e) < 0) {
        fail_msg("%s is not there: %s", name, s->e.msg);
        abort();
    }
    return blob;
}

static inline void assert_text(struct scene *s, const char *name, const char *text)
{
    auto_free char *got = get_text(s, name);

    if (!text) {
        assert_null(got);
        return;
    }
    if (!got)
        fail_msg("%s is not there: %s", name, s->e.msg);
    assert_string_equal(got, text);
}

static inline int delete_name(struct scene *s, const char *name)
{
    const struct blob_address at = at_name(name);

    return blobs_delete(s->blobs, &at, SNAPSHOTS_REFUSE, NULL, &s->e);
}

/* The call failed, with that word. */
#define assert_refused(s, rc, word)                                                            \
    do {                                                                                       \
        assert_int_equal(rc, -1);                                                              \
        assert_string_equal(err_reason_of(&(s)->e), word);                                     \
    } while (0)

/* Write a file as a job with a mount would. */
static inline void plant(struct scene *s, const char *below, const char *text)
{
    auto_free char *path = scene_path(s, below);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline bool is_there(struct scene *s, const char *below)
{
    auto_free char *path = scene_path(s, below);
    struct stat st;

    return lstat(path, &st) == 0;
}

static inline void note_finding(const char *what, const char *where, void *context)
{
    str_addf(context, "%s: %s\n", what, where);
}

/* The store's own check finds nothing wrong. */
static inline void assert_sound(struct scene *s)
{
    auto_str findings = {0};

    assert_int_equal(blobs_scrub(s->blobs, note_finding, &findings, &s->e), 0);
    assert_string_equal(str_text(&findings), "");
}

/* All items of a listing, a page at a time, as lines; prefixes in brackets. */
static inline void list_blob(const struct blob *blob, void *context)
{
    str_addf(context, "%s%s%s\n", blob->name, blob->snapshot[0] ? "@" : "", blob->snapshot);
}

static inline void list_prefix(const char *prefix, void *context)
{
    str_addf(context, "[%s]\n", prefix);
}

static inline char *list_all(
    struct scene *s, const char *prefix, const char *delimiter, size_t most, bool snapshots)
{
    struct str out = {0};
    auto_free char *marker = xstrdup("");

    do {
        struct blob_listing listing = {
            .prefix = prefix,
            .delimiter = delimiter,
            .marker = marker,
            .most = most,
            .snapshots = snapshots,
            .blob = list_blob,
            .prefix_found = list_prefix,
            .context = &out,
        };
        char *next = NULL;

        if (blobs_list(s->blobs, ACCOUNT, CONTAINER, &listing, &next, &s->e) < 0)
            fail_msg("%s", s->e.msg);
        free(marker);
        marker = next;
    } while (*marker);
    return str_take(&out);
}

#endif
