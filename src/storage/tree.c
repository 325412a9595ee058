/* Names and the files they stand for.
 *
 * A name that is a path is the file tree/<name>; every other, and one whose path is blocked
 * (a/b beside a file a, or a beside a folder a), is odd/<hash of the name>.  Whoever looks
 * tries tree/ first, so the spot may differ from put to put.
 *
 * The kernel resolves what strangers named: openat2 beneath tree/, no links.  Whatever a job
 * planted there (links, pipes, sockets, devices) is no blob.
 *
 * Folders: a put makes what is missing and has it on disk before it renames into it; a delete
 * removes what became empty.  The two meet: a folder may go between its making and the rename,
 * which then fails with ENOENT and is tried again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/crypt.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/text.h"
#include "storage/syncs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_NAME_CHARACTERS = 1024,
    MOST_SEGMENTS = 254,
    MOST_TRIES = 1000, /* of a put against deletes that prune its folders */
};

/* --- names --- */

int name_check(const char *name, struct err *e)
{
    size_t characters = 0, segments = 1;

    for (const char *p = name; *p; p++) {
        characters += ((unsigned char)*p & 0xc0) != 0x80;
        segments += *p == '/' && p[1] != '\0';
    }
    if (characters == 0 || characters > MOST_NAME_CHARACTERS || segments > MOST_SEGMENTS) {
        err_set(e, ERR_INVALID,
                "a blob name has 1 to %d characters and at most %d segments, not %zu and %zu",
                MOST_NAME_CHARACTERS, MOST_SEGMENTS, characters, segments);
        return err_reason(e, "OutOfRangeInput");
    }
    if (!text_is_utf8(name, strlen(name))) {
        err_set(e, ERR_INVALID, "a blob name is UTF-8");
        return err_reason(e, "InvalidUri");
    }
    return 0;
}

static bool segment_is_plain(const char *segment, size_t len)
{
    if (len == 0 || len > NAME_MAX)
        return false;
    return !(segment[0] == '.' && (len == 1 || (len == 2 && segment[1] == '.')));
}

bool name_is_path(const char *name)
{
    size_t len = strlen(name);

    if (len >= PATH_MAX)
        return false;
    for (const char *p = name;; p++) {
        const char *end = strchrnul(p, '/');

        if (!segment_is_plain(p, (size_t)(end - p)))
            return false;
        if (!*end)
            return true;
        p = end;
    }
}

void name_hash(const char *name, char hash[NAME_HASH_BYTES])
{
    unsigned char digest[CRYPT_SHA256_BYTES];
    static const char digits[] = "0123456789abcdef";

    crypt_sha256(name, strlen(name), digest);
    for (size_t i = 0; i < CRYPT_SHA256_BYTES; i++) {
        hash[2 * i] = digits[digest[i] >> 4];
        hash[2 * i + 1] = digits[digest[i] & 15];
    }
    hash[NAME_HASH_BYTES - 1] = '\0';
}

/* --- what the kernel says --- */

static int64_t ns_of(struct statx_timestamp t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool facts_from_statx(const struct statx *stx, struct facts *ret_facts)
{
    if (!S_ISREG(stx->stx_mode))
        return false;
    *ret_facts = (struct facts){
        .inode = stx->stx_ino,
        .born_ns = stx->stx_mask & STATX_BTIME ? ns_of(stx->stx_btime) : 0,
        .mtime_ns = ns_of(stx->stx_mtime),
        .size_bytes = (int64_t)stx->stx_size,
    };
    return true;
}

int facts_of(int fd, struct facts *ret_facts, struct err *e)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) < 0)
        return err_sys(e, errno, "could not ask for a file's facts");
    if (!facts_from_statx(&stx, ret_facts))
        return err_set(e, ERR_NOT_FOUND, "not a regular file");
    return 0;
}

void facts_set_mtime(int fd, int64_t mtime_ns)
{
    const struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = mtime_ns / 1000000000, .tv_nsec = mtime_ns % 1000000000},
    };

    futimens(fd, times);
}

/* Errors that say "no blob there", whatever is there instead. */
static bool says_missing(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENXIO:
    case ENODEV:
    case EISDIR:
    case ENAMETOOLONG:
        return true;
    default:
        return false;
    }
}

/* 1 a regular file, 0 none, -1. */
static int open_file(
    int at, const char *path, int flags, int *ret_fd, struct facts *ret_facts, struct err *e)
{
    /* openat2 takes nothing beside O_PATH that would mean nothing there. */
    int safe = flags & O_PATH ? O_NOFOLLOW : O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    auto_close int fd = -1;
    struct err why = {0};

    if (fs_open_beneath(at, path, flags | safe, 0, &fd, NULL) < 0)
        return says_missing(errno) ? 0 : err_sys(e, errno, "could not open \"%.200s\"", path);
    if (facts_of(fd, ret_facts, &why) < 0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        return err_set(e, why.code, "%s", why.msg);
    }
    *ret_fd = take_fd(&fd);
    return 1;
}

static void odd_path(const char *hash, struct str *out)
{
    str_add(out, "odd/");
    str_add(out, hash);
}

int tree_open(struct folder *folder,
              const char *name,
              int flags,
              int *ret_fd,
              struct facts *ret_facts,
              bool *ret_is_odd,
              struct err *e)
{
    char hash[NAME_HASH_BYTES];
    auto_str path = {0};
    int there = 0;

    *ret_is_odd = false;
    if (name_is_path(name))
        there = open_file(folder->tree_fd, name, flags, ret_fd, ret_facts, e);
    if (there != 0)
        return there;
    *ret_is_odd = true;
    name_hash(name, hash);
    odd_path(hash, &path);
    return open_file(folder->fd, path.data, flags, ret_fd, ret_facts, e);
}

/* --- a spot for a new file --- */

void spot_done(struct spot *spot)
{
    mem_close_fd(&spot->parent_fd);
}

enum {
    WAY_BLOCKED = 0, /* something else has the name of a folder */
    WAY_OPEN = 1,
    WAY_GONE = 2, /* a folder was removed meanwhile: again from the top */
};

/* One folder down, made when it is missing. */
static int step_down(int at, const char *segment, int *ret_fd, struct err *e)
{
    for (int i = 0; i < MOST_TRIES; i++) {
        bool is_made = mkdirat(at, segment, 0777) == 0;

        if (!is_made && errno != EEXIST)
            return errno == ENOENT ? WAY_GONE : err_sys(e, errno, "could not make a folder");
        if (is_made && fsync(at) < 0)
            return err_sys(e, errno, "could not sync a folder");
        if (fs_open_beneath(at, segment, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ret_fd,
                            NULL) == 0)
            return WAY_OPEN;
        if (errno != ENOENT)
            return says_missing(errno) ? WAY_BLOCKED
                                       : err_sys(e, errno, "could not open a folder");
    }
    return WAY_GONE;
}

static int make_parents(struct folder *folder, const char *parents, int *ret_fd, struct err *e)
{
    auto_free char *path = xstrdup(parents);
    auto_close int fd = dup(folder->tree_fd);
    char *rest = path, *segment;

    if (fd < 0)
        return err_sys(e, errno, "could not open a folder");
    while ((segment = strsep(&rest, "/"))) {
        int next, rc = step_down(fd, segment, &next, e);

        if (rc != WAY_OPEN)
            return rc;
        close(fd);
        fd = next;
    }
    *ret_fd = take_fd(&fd);
    return WAY_OPEN;
}

static int open_or_make(struct folder *folder, const char *parents, int *ret_fd, struct err *e)
{
    int rc;

    if (fs_open_beneath(folder->tree_fd, parents, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                        ret_fd, NULL) == 0) {
        /* Somebody may have made it this instant: wait until it is on disk. */
        if (folder->making > 0) {
            pthread_mutex_lock(&folder->making_lock);
            pthread_mutex_unlock(&folder->making_lock);
        }
        return WAY_OPEN;
    }
    if (errno != ENOENT)
        return says_missing(errno) ? WAY_BLOCKED : err_sys(e, errno, "could not open a folder");
    folder->making++;
    pthread_mutex_lock(&folder->making_lock);
    rc = make_parents(folder, parents, ret_fd, e);
    pthread_mutex_unlock(&folder->making_lock);
    folder->making--;
    return rc;
}

/* Open the folder of a name in tree/, made when it is missing.  1, 0 the way is blocked, -1. */
static int open_parent(struct folder *folder, const char *parents, int *ret_fd, struct err *e)
{
    for (int i = 0; i < MOST_TRIES; i++) {
        int rc = open_or_make(folder, parents, ret_fd, e);

        if (rc != WAY_GONE)
            return rc;
    }
    return err_set(e, ERR_BUSY, "could not keep a folder: it is removed again and again");
}

/* Is there a folder in the way that is not just empty? */
static bool is_blocked(int parent_fd, const char *leaf)
{
    struct stat st;

    if (fstatat(parent_fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return false;
    return unlinkat(parent_fd, leaf, AT_REMOVEDIR) < 0 && errno != ENOENT;
}

/* 1, 0 no such spot, -1. */
static int
prepare_in_tree(struct folder *folder, const char *name, struct spot *ret_spot, struct err *e)
{
    const char *slash = strrchr(name, '/');
    auto_free char *parents = slash ? xstrndup(name, (size_t)(slash - name)) : xstrdup(".");
    int rc = open_parent(folder, parents, &ret_spot->parent_fd, e);

    if (rc <= 0)
        return rc;
    ret_spot->leaf = slash ? slash + 1 : name;
    ret_spot->is_odd = false;
    if (!is_blocked(ret_spot->parent_fd, ret_spot->leaf))
        return 1;
    spot_done(ret_spot);
    ret_spot->parent_fd = -1;
    return 0;
}

int tree_prepare(struct folder *folder, const char *name, struct spot *ret_spot, struct err *e)
{
    int rc = name_is_path(name) ? prepare_in_tree(folder, name, ret_spot, e) : 0;

    if (rc != 0)
        return rc < 0 ? -1 : 0;
    name_hash(name, ret_spot->hash);
    ret_spot->leaf = ret_spot->hash;
    ret_spot->is_odd = true;
    return fs_open_beneath(folder->fd, "odd", O_RDONLY | O_DIRECTORY, 0, &ret_spot->parent_fd,
                           e);
}

int tree_remove_odd(struct folder *folder, const char *name, struct err *e)
{
    char hash[NAME_HASH_BYTES];
    auto_str path = {0};

    name_hash(name, hash);
    odd_path(hash, &path);
    if (unlinkat(folder->fd, path.data, 0) == 0)
        return folder_sync(folder, "odd", e);
    return errno == ENOENT ? 0 : err_sys(e, errno, "could not remove an old file");
}

int tree_place(
    struct folder *folder, const char *tmp, const char *name, struct spot *spot, struct err *e)
{
    FAULT("storage.before-rename");
    if (renameat(folder->fd, tmp, spot->parent_fd, spot->leaf) < 0) {
        if (errno == ENOENT || errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)
            return 1;
        return err_sys(e, errno, "could not put the file in its place");
    }
    FAULT("storage.after-rename");
    if (syncs_wait(folder->syncs, spot->parent_fd, e) < 0)
        return -1;
    return spot->is_odd ? 0 : tree_remove_odd(folder, name, e);
}

/* --- removing --- */

void tree_prune(struct folder *folder, const char *name)
{
    auto_free char *path = xstrdup(name);
    char *slash;

    while ((slash = strrchr(path, '/'))) {
        auto_close int fd = -1;
        char *segment;

        *slash = '\0';
        segment = strrchr(path, '/');
        if (segment)
            *segment = '\0';
        if (fs_open_beneath(folder->tree_fd, segment ? path : ".", O_PATH | O_DIRECTORY, 0, &fd,
                            NULL) < 0)
            return;
        if (unlinkat(fd, segment ? segment + 1 : path, AT_REMOVEDIR) < 0)
            return;
        if (segment)
            *segment = '/';
    }
}

/* 1 removed, 0 there is none. */
static int remove_from_tree(struct folder *folder, const char *name, struct err *e)
{
    const char *slash = strrchr(name, '/');
    auto_free char *parents = slash ? xstrndup(name, (size_t)(slash - name)) : xstrdup(".");
    auto_close int fd = -1;

    if (fs_open_beneath(folder->tree_fd, parents, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd,
                        NULL) < 0)
        return says_missing(errno) ? 0 : err_sys(e, errno, "could not open a folder");
    if (unlinkat(fd, slash ? slash + 1 : name, 0) < 0)
        return says_missing(errno) ? 0 : err_sys(e, errno, "could not remove the file");
    FAULT("storage.after-unlink");
    return syncs_wait(folder->syncs, fd, e) < 0 ? -1 : 1;
}

int tree_remove(struct folder *folder, const char *name, struct err *e)
{
    int rc;

    /* First what is hidden, so that it never shows. */
    if (tree_remove_odd(folder, name, e) < 0)
        return -1;
    if (!name_is_path(name))
        return 0;
    rc = remove_from_tree(folder, name, e);
    if (rc > 0)
        tree_prune(folder, name);
    return rc < 0 ? -1 : 0;
}
