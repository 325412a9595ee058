/* mount.h - the mount: what the handlers of the kernel's requests work with.
 *
 * The two kinds of remote things, containers and shares, are a struct side each.  Handlers
 * (ops-*.c) answer the kernel; they find nodes, bring folders up to date, and leave everything
 * that is different between the kinds to the side.
 *
 * Locks, in the order in which they are taken: a node's writing, the tree, the reader.  None
 * but the first is held while a request is out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_MOUNT_H
#define MOUNT_MOUNT_H

#include "base/err.h"
#include "mount/reader.h"
#include "mount/tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

struct fuse_lowlevel_ops;
struct fuse_session;
struct http_answer;
struct settings;
struct side;

struct mount {
    const struct settings *settings;
    const struct side *side;
    struct remote *remote;
    struct tree tree;
    struct reader *reader;
    struct fuse_session *session; /* NULL until mounted */
    int64_t fresh_ms, missing_ms; /* how long names, and their absence, are believed */
    int64_t started_ns;           /* time of folders that have none */
    uid_t uid;
    gid_t gid;
    bool is_writable;
    atomic_bool may_write; /* it has been seen to work */
    struct writing *writings;
    atomic_bool has_read_ahead; /* the kernel has been told how far to read ahead */
    int ready_fd; /* a byte is written here when the kernel has been answered; -1 = none */
    pthread_t upkeep;
    pthread_mutex_t upkeep_lock;
    pthread_cond_t upkeep_wake;
    bool has_upkeep, stop;
};

/* What a request said of a file. */
struct facts {
    char etag[128];               /* without quotes; "" = it did not */
    int64_t size_bytes, mtime_ns; /* -1 = it did not */
};

/* A path is from the top of the container or share.  Failures are remote_errno's. */
struct side {
    /* Append what is directly below a folder. */
    int (*list)(struct mount *mount, const char *path, struct listed_rows *rows, struct err *e);
    /* As in reader.h. */
    int (*fetch)(void *mount,
                 struct node *node,
                 uint64_t version,
                 int64_t first,
                 int64_t len,
                 reader_take *take,
                 void *take_context,
                 struct err *e);
    int (*make_folder)(struct mount *mount, const char *path, struct err *e);
    /* A folder is empty, as far as is known. */
    int (*remove)(struct mount *mount, const char *path, bool is_folder, struct err *e);
    /* Over what is at the new path. */
    int (*move)(struct mount *mount,
                const char *from,
                const char *to,
                bool is_folder,
                struct facts *ret_facts,
                struct err *e);
    /* Make an empty file, unless that is done with its first flush: then there is no ETag. */
    int (*make_file)(struct mount *mount,
                     const char *path,
                     struct facts *ret_facts,
                     struct err *e);

    /* Writing.  All are called with the writing locked, all but open after open; set_time also
     * when there is none. */
    int (*open)(
        struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e);
    int (*write)(struct mount *mount,
                 struct node *node,
                 const void *bytes,
                 size_t len,
                 int64_t offset,
                 struct err *e);
    int (*truncate)(struct mount *mount, struct node *node, int64_t size_bytes, struct err *e);
    int (*flush)(struct mount *mount, struct node *node, struct err *e);
    int (*set_time)(struct mount *mount, struct node *node, int64_t mtime_ns, struct err *e);
    /* The last one closed it; what is left unstored is given up. */
    void (*close)(struct writing *writing);
    /* Give bytes from the writing itself; returns how many, or -1.  NULL: a flush makes them
     * readable for everybody. */
    int64_t (*read)(struct writing *writing, void *bytes, size_t len, int64_t offset);
};

extern const struct side side_blob, side_share;

/* --- mount.c --- */

/* Ask for the root once, so that what is wrong is said before anything is mounted. */
int mount_probe(const struct settings *settings, struct err *e);
int mount_open(struct mount *mount, const struct settings *settings, struct err *e);
/* Threads: those that write what waits, and fetch ahead. */
void mount_start(struct mount *mount);
/* Store what waits, end the threads. */
void mount_stop(struct mount *mount);
void mount_done(struct mount *mount);

/* Bring a folder up to date, unless what is known is at most that old. */
int mount_refresh(struct mount *mount, struct node *folder, int64_t most_age_ms, struct err *e);

/* The path at the server; the caller frees.  Fails with ConditionNotMet (ESTALE) when the node
 * is no longer there. */
int mount_path(struct mount *mount, struct node *node, char **ret_path, struct err *e);
int mount_child_path(
    struct mount *mount, struct node *folder, const char *name, char **ret_path, struct err *e);

/* The name, for messages; the caller frees. */
char *mount_name(struct mount *mount, struct node *node);

/* With the tree locked. */
void mount_stat(const struct mount *mount, const struct node *node, struct stat *ret_stat);

/* What a node was when a request about it was made. */
struct sighting {
    char *path, *etag; /* the latter may be NULL */
};
void sighting_done(struct sighting *seen);
#define auto_sighting __attribute__((cleanup(sighting_done))) struct sighting

/* Fails with ConditionNotMet (ESTALE) when it is of another version by now, or no longer
 * there. */
int mount_see(struct mount *mount,
              struct node *node,
              uint64_t version,
              struct sighting *ret_seen,
              struct err *e);

/* The server no longer has what was seen.  Unless this mount did that meanwhile, somebody else
 * changed or removed it: say so once, and look again.  Fails always, with ConditionNotMet. */
int mount_is_gone(struct mount *mount,
                  struct node *node,
                  const struct sighting *seen,
                  struct err *e);

/* Read facts from the head of an answer. */
void facts_read(const struct http_answer *answer, struct facts *facts);
/* 2024-01-01T00:00:00.1234567Z, or -1. */
int64_t facts_parse_time(const char *text);
/* A writer of this mount made it that long; the server does not know yet. */
void mount_resized(struct mount *mount, struct node *node, int64_t size_bytes);
/* The node was written by this mount and is so now. */
void mount_wrote(struct mount *mount,
                 struct node *node,
                 const struct facts *facts,
                 int64_t size_bytes);

/* --- writing.c --- */

/* Bytes that are written and not yet stored; one for all who have the file open for writing. */
struct writing {
    struct node *node;
    struct writing *prev, *next; /* all of the mount, under the tree's lock */
    pthread_mutex_t lock;
    int uses;        /* handles and calls; under the tree's lock */
    int errno_value; /* of what failed in the background, told at the next flush */
    /* Of a share: bytes next to each other that are not stored yet. */
    char *bytes;
    size_t len;
    int64_t offset;
    atomic_llong since_ms; /* when the first of them came, monotonic; 0 = there are none */
    bool is_open;
    bool is_unmade;       /* the server does not know the file yet ... */
    bool is_lost;         /* ... and does not want to */
    int64_t stored_bytes; /* size that the server knows */
    /* Of a container: the whole file. */
    int fd;
    bool is_dirty;
    bool must_be_new;
    char *based_on; /* the ETag that the content was taken from; NULL = none */
};

/* Have the file open for writing; then writing_end. */
int writing_begin(
    struct mount *mount, struct node *node, bool is_new, bool truncates, struct err *e);
/* The writing if there is one, locked; NULL otherwise.  Then writing_leave. */
struct writing *writing_enter(struct mount *mount, struct node *node);
void writing_leave(struct mount *mount, struct node *node, struct writing *writing);
/* Give up what writing_begin took; stores nothing. */
void writing_end(struct mount *mount, struct node *node);
/* Store what waits; fine when there is nothing. */
int writing_flush(struct mount *mount, struct node *node, struct err *e);
/* Store what has waited for that long, of a share.  A blob is stored whole or not at all. */
void writing_flush_old(struct mount *mount, int64_t least_age_ms);

/* --- ops.c --- */

/* The table for the kernel. */
void ops_init(struct fuse_lowlevel_ops *ops, const struct mount *mount);

#endif
