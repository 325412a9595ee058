/* The side that is this machine's file system.
 *
 * What comes down is written to a hidden name beside its place and renamed when it is whole, so
 * that nobody ever sees half a file under the real name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-side.h"

#include "base/fs.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/transfer-digest.h"
#include "cli/transfer-options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_DEPTH = 1000, /* of folders: deeper is a loop of links */
    HASH_BYTES = 256 * 1024,
};

static int64_t modified_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static void facts_of(const struct stat *st, struct facts *facts)
{
    *facts = (struct facts){
        .size_bytes = S_ISDIR(st->st_mode) ? 0 : (int64_t)st->st_size,
        .modified_ns = modified_of(st),
        .is_folder = S_ISDIR(st->st_mode),
    };
}

/* --- walking --- */

struct names {
    char **texts;
    size_t count, room;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* .name.yard-TAG: what an unfinished download has left.  See temporary(). */
static bool is_unfinished(const char *name)
{
    const char *tag = strstr(name, ".yard-");

    return name[0] == '.' && tag && tag[6] && !tag[6 + strspn(tag + 6, "0123456789abcdef")];
}

/* The names in a folder, in order: a run can be compared with another one. */
static int read_names(const char *path, struct names *names, struct err *e)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return err_sys(e, errno, "could not read the folder \"%s\"", path);
    while ((entry = readdir(dir))) {
        if (str_equal(entry->d_name, ".") || str_equal(entry->d_name, "..") ||
            is_unfinished(entry->d_name))
            continue;
        if (names->count == names->room) {
            names->room = names->room ? names->room * 2 : 64;
            names->texts = xreallocarray(names->texts, names->room, sizeof(*names->texts));
        }
        names->texts[names->count++] = xstrdup(entry->d_name);
    }
    closedir(dir);
    if (names->count)
        qsort(names->texts, names->count, sizeof(*names->texts), compare);
    return 0;
}

static void pass(const struct side_walk *walk, const char *path, const char *why)
{
    if (walk->pass)
        walk->pass(walk->context, path, why);
}

/* What a name stands for.  1 and the facts, 0 when it is passed over. */
static int look_at(const struct side_walk *walk,
                   const char *whole,
                   const char *path,
                   struct facts *facts,
                   struct err *e)
{
    struct stat st;

    if (lstat(whole, &st) < 0) {
        if (errno == ENOENT) /* gone since the folder was read */
            return 0;
        return err_sys(e, errno, "could not look at \"%s\"", whole);
    }
    if (S_ISLNK(st.st_mode)) {
        if (!walk->follows_links) {
            pass(walk, path, "a symbolic link; take --follow-symlinks to follow it");
            return 0;
        }
        if (stat(whole, &st) < 0) {
            pass(walk, path, "a symbolic link that leads nowhere");
            return 0;
        }
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        pass(walk, path, "neither a file nor a folder");
        return 0;
    }
    if (!text_is_utf8(path, strlen(path))) {
        pass(walk, path, "its name is not UTF-8");
        return 0;
    }
    facts_of(&st, facts);
    return 1;
}

static bool enters(const struct side_walk *walk, const char *path)
{
    return !walk->enters || walk->enters(walk->context, path);
}

static int walk_folder(struct port *port,
                       const struct side_walk *walk,
                       const char *below,
                       int depth,
                       struct err *e)
{
    __attribute__((cleanup(names_done))) struct names names = {0};
    auto_free char *folder = side_path(port->side, below);
    int rc;

    if (depth > MOST_DEPTH)
        return err_set(e, ERR_INVALID, "the folders are nested too deep: \"%.200s\"", folder);
    if (read_names(folder, &names, e) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        auto_free char *path =
            *below ? xasprintf("%s/%s", below, names.texts[i]) : xstrdup(names.texts[i]);
        auto_free char *whole = side_path(port->side, path);
        struct facts facts;

        if (!*below && !side_fits(walk->pattern, path))
            continue;
        rc = look_at(walk, whole, path, &facts, e);
        if (rc == 0 ||
            (rc > 0 && facts.is_folder && !walk->is_recursive && !walk->shows_folders))
            continue;
        if (rc > 0)
            rc = walk->see(walk->context, path, &facts, e);
        if (rc == 0 && facts.is_folder && walk->is_recursive && enters(walk, path))
            rc = walk_folder(port, walk, path, depth + 1, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int local_walk(struct port *port, const struct side_walk *walk, struct err *e)
{
    int rc = walk_folder(port, walk, "", 0, e);

    return rc < 0 ? -1 : 0;
}

static int local_look(struct port *port,
                      const char *path,
                      struct facts *ret_facts,
                      bool *ret_found,
                      struct err *e)
{
    auto_free char *whole = side_path(port->side, path);
    struct stat st;

    if (stat(whole, &st) < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return err_sys(e, errno, "could not look at \"%s\"", whole);
        *ret_found = false;
        return 0;
    }
    facts_of(&st, ret_facts);
    *ret_found = true;
    return 0;
}

/* --- reading --- */

static int
read_exactly(int fd, const char *path, int64_t offset, char *buf, size_t len, struct err *e)
{
    size_t done = 0;

    while (done < len) {
        ssize_t got = pread(fd, buf + done, len - done, (off_t)(offset + (int64_t)done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "could not read \"%s\"", path);
        if (got == 0)
            return err_set(e, ERR_CONFLICT, "\"%s\" has become shorter meanwhile", path);
        done += (size_t)got;
    }
    return 0;
}

static int local_read(struct port *port,
                      const struct item *item,
                      int64_t offset,
                      void *buf,
                      size_t len,
                      struct err *e)
{
    auto_free char *path = side_path(port->side, item->path);
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", path);
    if (read_exactly(fd, path, offset, buf, len, e) < 0)
        return -1;
    /* Afterwards, so that what was read is of the file that was found. */
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not look at \"%s\"", path);
    if ((int64_t)st.st_size != item->facts.size_bytes ||
        modified_of(&st) != item->facts.modified_ns)
        return err_set(e, ERR_CONFLICT, "\"%s\" has changed meanwhile", path);
    return 0;
}

/* --- writing --- */

/* Names that come from elsewhere: none may lead out of the root, none may be unusable here. */
static int check_target(const char *path, struct err *e)
{
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, "/");

        if (!len || (len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
            return err_set(e, ERR_INVALID, "the name \"%.300s\" cannot be a path here", path);
        p += len;
        if (!*p)
            return 0;
    }
}

/* dir/.name.yard-TAG: hidden, and of the same source the same at each run. */
static char *temporary(const char *path, const char *tag)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash + 1 - path) : 0;

    /* A name of 255 bytes leaves no room for more; the tag alone is enough then. */
    if (strlen(path + folder) > 200)
        return xasprintf("%.*s.yard-%s", (int)folder, path, tag);
    return xasprintf("%.*s.%s.yard-%s", (int)folder, path, path + folder, tag);
}

static int set_time(int fd, const char *path, const struct item *item, struct err *e)
{
    int64_t ns = item->facts.modified_ns;
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000},
    };

    if (ns >= 0 && futimens(fd, times) < 0)
        return err_sys(e, errno, "could not set the time of \"%s\"", path);
    return 0;
}

static int move_in_place(const char *temp, const char *path, bool is_new, struct err *e)
{
    if (is_new && link(temp, path) == 0) {
        unlink(temp);
        return 0;
    }
    if (is_new && errno == EEXIST)
        return err_set(e, ERR_CONFLICT, "\"%s\" is there already", path);
    if (rename(temp, path) < 0)
        return err_sys(e, errno, "could not rename \"%s\" to \"%s\"", temp, path);
    return 0;
}

static int local_put(struct port *port,
                     const struct item *item,
                     const void *bytes,
                     size_t len,
                     bool is_new,
                     struct err *e)
{
    auto_free char *path = side_path(port->side, item->target);
    /* The next run of a killed job writes over what this one leaves. */
    const char *tag = port->options->tag;
    auto_free char *suffix = tag ? xasprintf("%.8s", tag) : xasprintf("%d", (int)getpid());
    auto_free char *temp = temporary(path, suffix);
    auto_close int fd = -1;
    int rc;

    if (check_target(item->target, e) < 0 || side_need_parent(port, item->target, e) < 0)
        return -1;
    fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_sys(e, errno, "could not create \"%s\"", temp);
    rc = fs_write_all(fd, bytes, len, e);
    if (rc == 0 && port->options->keeps_time)
        rc = set_time(fd, path, item, e);
    if (rc == 0)
        rc = move_in_place(temp, path, is_new, e);
    if (rc < 0)
        unlink(temp);
    return rc;
}

static int local_begin(struct port *port, struct parts *parts, struct err *e)
{
    const char *target = parts->item->target;
    auto_free char *path = side_path(port->side, target);
    auto_free char *temp = temporary(path, parts->tag);
    auto_close int fd = -1;
    struct stat st;

    if (check_target(target, e) < 0 || side_need_parent(port, target, e) < 0)
        return -1;
    /* What the journal remembers of it holds only while the file is there. */
    if (stat(temp, &st) < 0 || (int64_t)st.st_size != parts->item->facts.size_bytes)
        memset(parts->is_done, 0, parts->count);
    fd = open(temp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_sys(e, errno, "could not create \"%s\"", temp);
    if (ftruncate(fd, (off_t)parts->item->facts.size_bytes) < 0)
        return err_sys(e, errno, "could not make \"%s\" as long as its source", temp);
    return 0;
}

static int local_put_piece(struct port *port,
                           const struct parts *parts,
                           size_t index,
                           const void *bytes,
                           size_t len,
                           struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_free char *temp = temporary(path, parts->tag);
    auto_close int fd = open(temp, O_WRONLY | O_CLOEXEC);
    int64_t offset = (int64_t)index * parts->piece_bytes;
    size_t done = 0;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", temp);
    while (done < len) {
        ssize_t put =
            pwrite(fd, (const char *)bytes + done, len - done, (off_t)(offset + (int64_t)done));

        if (put < 0 && errno != EINTR)
            return err_sys(e, errno, "could not write \"%s\"", temp);
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int local_hash(struct port *port, struct parts *parts, bool is_source, struct err *e)
{
    auto_free char *path =
        side_path(port->side, is_source ? parts->item->path : parts->item->target);
    auto_free char *temp = is_source ? NULL : temporary(path, parts->tag);
    auto_free char *buf = xmalloc(HASH_BYTES);
    autoptr(md5) md5 = md5_new();
    auto_close int fd = open(temp ? temp : path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", temp ? temp : path);
    while ((got = read(fd, buf, HASH_BYTES)) != 0) {
        if (got < 0 && errno != EINTR)
            return err_sys(e, errno, "could not read \"%s\"", temp ? temp : path);
        md5_add(md5, buf, got > 0 ? (size_t)got : 0);
    }
    md5_end(md5, parts->md5);
    return 0;
}

static int local_finish(struct port *port, const struct parts *parts, struct err *e)
{
    auto_free char *path = side_path(port->side, parts->item->target);
    auto_free char *temp = temporary(path, parts->tag);
    auto_close int fd = -1;
    const char *want = parts->item->facts.md5;

    if (*want && *parts->md5 && !str_equal(want, parts->md5) &&
        port->options->check_md5 >= MD5_MUST_FIT) {
        unlink(temp);
        return err_set(e, ERR_CONFLICT, "the MD5 of what came is %s and should be %s",
                       parts->md5, want);
    }
    if (port->options->keeps_time) {
        fd = open(temp, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || set_time(fd, path, parts->item, e) < 0)
            return fd < 0 ? err_sys(e, errno, "could not open \"%s\"", temp) : -1;
    }
    return move_in_place(temp, path, false, e);
}

static int local_make_folder(struct port *port, const char *path, struct err *e)
{
    auto_free char *whole = side_path(port->side, path);
    struct stat st;

    if (*path && check_target(path, e) < 0)
        return -1;
    if (!*path)
        return stat(whole, &st) == 0 && S_ISDIR(st.st_mode) ? 0
                                                            : fs_make_folders(whole, 0777, e);
    if (mkdir(whole, 0777) == 0)
        return 0;
    if (errno == EEXIST && stat(whole, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_sys(e, errno == EEXIST ? ENOTDIR : errno, "could not make the folder \"%s\"",
                   whole);
}

static int local_remove(struct port *port, const char *path, bool is_folder, struct err *e)
{
    auto_free char *whole = side_path(port->side, path);

    if ((is_folder ? rmdir(whole) : unlink(whole)) < 0 && errno != ENOENT)
        return err_sys(e, errno, "could not remove \"%s\"", whole);
    return 0;
}

const struct side_ops side_local_ops = {
    .walk = local_walk,
    .look = local_look,
    .read = local_read,
    .put = local_put,
    .begin = local_begin,
    .put_piece = local_put_piece,
    .finish = local_finish,
    .make_folder = local_make_folder,
    .remove = local_remove,
    .hash = local_hash,
    .most_piece_bytes = INT64_C(1) << 30,
};
