/* storage-internal.h - what the files of the blob store share.
 *
 * How a blob changes, always under the lock of its name:
 *     look (the file, then its row) - check conditions - commit the intent - swap the file -
 *     queue the settling of rows.
 * Which blobs exist, and their bytes, is the file system's word; rows are facts about inodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_STORAGE_INTERNAL_H
#define STORAGE_STORAGE_INTERNAL_H

#include "db/writer.h"
#include "storage/blobs.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct blob_row;
struct container_row;
struct db;
struct db_writer;
struct entries_cache;
struct lease_row;
struct row_cache;
struct staging;
struct statx;
struct store_pool;
struct str;
struct syncs;
struct work_pool;

enum {
    NAME_HASH_BYTES = 65, /* sha256 in hex, with its NUL */
    TMP_NAME_BYTES = 40,  /* "tmp/" and 16 random bytes in hex, with its NUL */
    ETAG_BYTES = 24,      /* as in struct blob */
    SNAPSHOT_BYTES = 32,  /* 2018-06-06T18:39:26.1234567Z */
    NAME_LOCKS = 4096,    /* stripes: so many that threads hardly ever meet in one */
    FOLDER_BUCKETS = 256, /* of the table of open containers */
    BLOCK_ID_MOST = 96,   /* base64 of 64 bytes is 88 */
    MOST_BLOCKS = 50000,  /* committed */
    MOST_UNCOMMITTED = 100000,
};

/* An open container.  Counted: folder_take, folder_drop. */
struct folder {
    int64_t id; /* of its row */
    char *account, *name;
    int fd; /* the container's folder: odd/, staged/, snap/, tmp/ beneath, with names of ours */
    int tree_fd;                 /* tree/: for names of strangers, always by openat2 */
    struct syncs *syncs;         /* borrowed */
    atomic_int making;           /* threads that make folders in tree/ right now ... */
    pthread_mutex_t making_lock; /* ... and the lock they hold until those are on disk */
    int refs;                    /* guarded by blobs->folders_lock, as are the two below */
    uint64_t used;
    struct folder *next;
};

struct blobs {
    char *root;
    int root_fd;
    struct db_writer *writer;
    struct store_pool *readers;
    struct work_pool *cleaner; /* one thread: removes what is no longer anybody's */
    struct work_pool *hashers; /* reckon MD5s of large uploads: see hasher.h */
    atomic_bool is_stopping;   /* it stops half-way, too: the next start goes on */
    struct entries_cache *entries;
    struct row_cache *rows;
    struct staging *staging;
    struct syncs *syncs;
    pthread_mutex_t name_locks[NAME_LOCKS];
    atomic_int_least64_t last_tick;

    pthread_mutex_t folders_lock;
    struct folder *folders[FOLDER_BUCKETS];
    size_t folder_count;
    uint64_t folder_clock;

    pthread_mutex_t settle_lock; /* also held while submitting, so that order is kept */
    struct settle *settles, **settles_tail;
    atomic_bool has_unsettled; /* rows that could not be removed, until the next start */

    pthread_mutex_t broken_lock;
    void (*broken)(const struct err *why, void *context);
    void *broken_context;
};

/* --- blobs.c: the database, the clock, the locks --- */

/* Run apply in the writer's next transaction and wait for its commit.  What was queued for
 * settling goes first. */
int blobs_write(struct blobs *blobs,
                int (*apply)(void *context, struct db *db, struct err *e),
                void *context,
                struct err *e);
/* The same in two steps, with something else to do in between.  Who begins must end. */
struct row_wait {
    struct db_write write;
    int (*apply)(void *context, struct db *db, struct err *e);
    void *context;
    sem_t wake;
    struct err outcome;
};
void blobs_write_begin(struct blobs *blobs,
                       int (*apply)(void *context, struct db *db, struct err *e),
                       void *context,
                       struct row_wait *wait);
int blobs_write_end(struct row_wait *wait, struct err *e);
/* 100 ns since the year 1: strictly rising within a process.  An ETag is one in hex. */
int64_t blobs_tick(struct blobs *blobs);
int64_t tick_to_ms(int64_t tick);
int64_t tick_of_ns(int64_t wall_ns); /* since 1970 */
void etag_format(char etag[ETAG_BYTES], int64_t tick);

/* auto_name_lock pthread_mutex_t *lock = name_lock(...): held to the end of the scope. */
pthread_mutex_t *name_lock(struct blobs *blobs, const struct folder *folder, const char *name);
void name_unlock(pthread_mutex_t **lock);
#define auto_name_lock __attribute__((cleanup(name_unlock), unused))

/* --- settle.c --- */

struct blob_key;
/* With the next commit, rows of the name that are not of that inode go (inode 0: all), and so
 * does the note of its staged blocks when staged is set. */
void settle_later(struct blobs *blobs, const struct blob_key *keep, bool staged);
/* Submit what is queued; settle_lock is held. */
void settle_submit(struct blobs *blobs);
/* Look at every name that a crash left unsettled. */
int settle_all(struct blobs *blobs, struct err *e);

/* --- unmarked.c: deletes on a full disk --- */

/* Remove the file of a name (or of its snapshot), durably, though there is no room for a mark:
 * the next start holds all rows of the container against their files. */
int unmarked_remove(
    struct folder *folder, const char *name, const char *snapshot, bool is_odd, struct err *e);
/* The containers where that happened. */
struct unmarked {
    struct blobs *blobs;
    int64_t *ids; /* caller frees */
    size_t count;
};
/* At start: call each for the names (and snapshots) there that have rows and no file. */
int unmarked_each(
    struct unmarked *unmarked,
    void (*each)(int64_t container_id, const char *name, const char *snapshot, void *context),
    void *context,
    struct err *e);
/* Their rows are gone. */
void unmarked_clear(struct unmarked *unmarked);

/* --- folders.c --- */

/* ContainerNotFound. */
int folder_take(struct blobs *blobs,
                const char *account,
                const char *container,
                struct folder **ret_folder,
                struct err *e);
int folder_take_by_id(struct blobs *blobs,
                      int64_t id,
                      struct folder **ret_folder,
                      struct err *e);
struct folder *folder_ref(struct blobs *blobs, struct folder *folder);
void folder_drop(struct blobs *blobs, struct folder *folder);
/* Move the container's folder to the trash: the name is free from here on. */
int folder_discard(struct blobs *blobs,
                   const char *account,
                   const char *container,
                   struct err *e);
/* Forget all of an account, whose folders are gone. */
void folder_forget_account(struct blobs *blobs, const char *account);
void folders_done(struct blobs *blobs);

/* auto_folder struct folder_ref f = {blobs, NULL}; folder_take(..., &f.folder, e) */
struct folder_ref {
    struct blobs *blobs;
    struct folder *folder;
};
void folder_ref_done(struct folder_ref *ref);
#define auto_folder __attribute__((cleanup(folder_ref_done))) struct folder_ref

bool account_is_valid(const char *account);
bool container_is_valid(const char *name);

/* --- containers.c --- */

/* Rows without folders go, folders without rows get one.  At start. */
int containers_reconcile(struct blobs *blobs, struct err *e);
/* Of all there are; caller frees. */
int containers_ids(struct blobs *blobs, int64_t **ret_ids, size_t *ret_count, struct err *e);

/* --- trash.c: what is removed later --- */

/* Move a folder away, so that it is gone at once, and remove it later.  A missing one is fine.
 */
int trash_move(struct blobs *blobs, int dir_fd, const char *path, struct err *e);
/* Start removing what lies in the trash, and rows of containers that are gone. */
void trash_empty_later(struct blobs *blobs);

/* --- tree.c: names and files --- */

/* What the kernel says of a file. */
struct facts {
    uint64_t inode;
    int64_t born_ns, mtime_ns, size_bytes;
};
int facts_of(int fd, struct facts *ret_facts, struct err *e);
/* Set the time of the last write; a failure is seen when the facts are asked for. */
void facts_set_mtime(int fd, int64_t mtime_ns);
/* False when that is no regular file. */
bool facts_from_statx(const struct statx *stx, struct facts *ret_facts);
void facts_etag(const struct facts *facts, char etag[ETAG_BYTES]);

/* OutOfRangeInput, InvalidUri. */
int name_check(const char *name, struct err *e);
/* Can it be a path of files?  If not, its blob lies in odd/. */
bool name_is_path(const char *name);
void name_hash(const char *name, char hash[NAME_HASH_BYTES]);

/* Open the file a name stands for.  1 and the outputs, 0 when there is none, -1. */
int tree_open(struct folder *folder,
              const char *name,
              int flags,
              int *ret_fd,
              struct facts *ret_facts,
              bool *ret_is_odd,
              struct err *e);

/* The spot a new file of a name will take. */
struct spot {
    int parent_fd;
    const char *leaf; /* points into the name, or at hash */
    bool is_odd;
    char hash[NAME_HASH_BYTES];
};
/* Find it; its folders are made, and on disk. */
int tree_prepare(struct folder *folder, const char *name, struct spot *ret_spot, struct err *e);
/* Rename the temporary file (relative to the container's folder) to it; on disk when it
 * returns. 0 done, 1 the spot has changed meanwhile: prepare again, -1. */
int tree_place(
    struct folder *folder, const char *tmp, const char *name, struct spot *spot, struct err *e);
void spot_done(struct spot *spot);
#define auto_spot __attribute__((cleanup(spot_done))) struct spot

/* Remove the file of a name, durably, and folders that are empty then.  A missing one is fine.
 */
int tree_remove(struct folder *folder, const char *name, struct err *e);
/* A file that odd/ had for a name that is in tree/ now is hidden: it must not come up again. */
int tree_remove_odd(struct folder *folder, const char *name, struct err *e);
/* Remove empty folders above a name. */
void tree_prune(struct folder *folder, const char *name);

/* fsync a folder, by its path beneath the container's folder. */
int folder_sync(struct folder *folder, const char *path, struct err *e);

/* --- find.c --- */

/* On a file that is being appended to: see append.c. */
#define APPEND_ATTRIBUTE "user.yard.append"

/* A blob as it is now: its file, and the row that describes it. */
struct found {
    int fd;
    struct facts facts; /* size_bytes: what is visible of it */
    bool is_odd;
    struct blob_row *row; /* NULL = written through a mount */
    bool is_changed;      /* since the row was written */
};
void found_done(struct found *found);
#define auto_found __attribute__((cleanup(found_done))) struct found
#define FOUND_NONE ((struct found){.fd = -1})

/* 1 found, 0 there is none, -1.  flags: of open (O_RDONLY, O_RDWR, O_PATH). */
int blob_look(struct blobs *blobs,
              struct folder *folder,
              const char *name,
              const char *snapshot,
              int flags,
              struct found *ret_found,
              struct err *e);
/* As the outside sees it. */
struct blob *blob_of_row(const struct blob_row *row,
                         const struct facts *facts,
                         bool is_changed,
                         const char *name,
                         const char *snapshot);
struct blob *blob_of_found(const struct found *found, const char *name, const char *snapshot);
/* A row to change: a copy of the one found, brought up to date, or a new one. */
struct blob_row *row_dup(const struct blob_row *from);
struct blob_row *
row_of_found(const struct found *found, const char *name, const char *snapshot);
int not_found(struct err *e); /* BlobNotFound */
void snapshot_path(const char *name, const char *snapshot, struct str *out);
bool snapshot_is_valid(const char *snapshot);

/* --- put.c --- */

/* New facts: ETag and modification time. */
void row_touch(struct blobs *blobs, struct blob_row *row);
void row_set_facts(struct blob_row *row, const struct facts *facts);
void row_set_headers(struct blob_row *row, const struct blob_headers *headers);
void row_set_put(struct blob_row *row, const struct blob_put *put);
/* JSON as a row keeps it, NULL when empty; caller frees. */
char *json_text(const json_t *value);

/* A row for new bytes of a name; lease and time of creation outlive the old ones. */
struct blob_row *row_new_for(struct blobs *blobs,
                             const char *name,
                             enum blob_type type,
                             const struct blob_put *put,
                             const struct found *old);
/* What a name stands for before it gets new bytes (maybe nothing), if the conditions allow. */
int look_to_replace(struct blobs *blobs,
                    struct folder *folder,
                    const char *name,
                    const struct conditions *conditions,
                    struct found *ret_found,
                    struct err *e);

/* A temporary file that is to become a blob. */
struct swap {
    struct folder *folder;
    const char *name;
    const char *tmp;
    struct upload *upload; /* to be synced while the row is written; NULL = it is synced */
    struct blob_row *row;  /* with the facts of the temporary file */
    const void *block_list;
    size_t block_list_len;
};
/* The lock of the name is held.  Staged blocks of the name are dropped. */
int blob_swap(struct blobs *blobs, struct swap *swap, struct err *e);
/* Write one row and wait. */
int row_write(struct blobs *blobs,
              struct folder *folder,
              const struct blob_row *row,
              struct err *e);

/* --- upload.c --- */

/* Flush to disk; ENOSPC and the like come out here. */
int upload_sync(struct upload *upload, struct err *e);
struct folder *upload_folder(struct upload *upload);
int upload_fd(struct upload *upload);
/* Relative to the container's folder. */
const char *upload_tmp(struct upload *upload);
/* The temporary file is somebody else's now. */
void upload_keep(struct upload *upload);
void tmp_name(char name[TMP_NAME_BYTES]);
/* A new temporary file of a container. */
int tmp_open(struct folder *folder, char name[TMP_NAME_BYTES], int *ret_fd, struct err *e);
/* Copy len bytes between files, from one offset to another, by the kernel where it can. */
int copy_range(
    int from, int64_t from_offset, int to, int64_t to_offset, int64_t len, struct err *e);

/* --- conditions.c --- */

enum condition_kind {
    CONDITION_CREATE, /* If-None-Match: * means "only if there is none" */
    CONDITION_CHANGE,
    CONDITION_FREE, /* as CHANGE, but a lease binds only those who name one */
};
/* blob NULL: there is none.  Checks the lease too. */
int conditions_check_write(const struct conditions *conditions,
                           const struct blob *blob,
                           enum condition_kind kind,
                           struct err *e);
/* *ret_unchanged NULL: a 412 then. */
int conditions_check_read(const struct conditions *conditions,
                          const struct blob *blob,
                          bool *ret_unchanged,
                          struct err *e);
/* Of a container: what differs are the words for leases. */
int conditions_check_container(const struct conditions *conditions,
                               const struct container *container,
                               bool lease_counts,
                               struct err *e);

/* --- change.c --- */

/* A blob that is there (BlobNotFound), if the conditions allow to change it. */
int look_to_change(struct blobs *blobs,
                   struct folder *folder,
                   const char *name,
                   const char *snapshot,
                   int flags,
                   const struct conditions *conditions,
                   enum condition_kind kind,
                   struct found *ret_found,
                   struct blob **ret_blob,
                   struct err *e);

/* --- snapshot.c --- */

/* A synced temporary file with the first size bytes of another; tmp is "" when none was made.
 */
int copy_whole(struct folder *folder,
               int from,
               int64_t size,
               char tmp[TMP_NAME_BYTES],
               struct facts *ret_facts,
               struct err *e);

/* --- leases.c --- */

struct lease_words {
    const char *mismatch, *not_present;
};
/* May the holder of lease_id (NULL = none) write what has that lease? */
int lease_check_write(const struct lease *lease,
                      const char *lease_id,
                      const struct lease_words *words,
                      struct err *e);
int lease_apply(struct lease *lease,
                const struct lease_request *request,
                int64_t now_ms,
                int *ret_left_s,
                struct err *e);
struct lease lease_from_row(const struct lease_row *row);
/* What was written since is not under its guard: an expired lease is not renewed after that. */
void lease_after_write(struct lease_row *row, int64_t now_ms);
void lease_to_row(const struct lease *lease, struct lease_row *row);

/* --- blocks.c: the uncommitted --- */

struct staging *staging_new(void);
void staging_free(struct staging *staging);
/* Drop the uncommitted blocks of a name: gone at once, removed later.  *ret_had says whether
 * there was something to drop. */
void staging_drop(struct blobs *blobs, struct folder *folder, const char *name, bool *ret_had);

#endif
