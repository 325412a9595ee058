/* files-internal.h - what the files of the share store have in common.
 *
 * Which files exist, their names, sizes and bytes are the file system's word; a row is about an
 * inode and says the rest.  So a rename takes the facts along, whoever did it.
 *
 * How a file changes: open the share - find the entry - take the lock of its inode - read its
 * row - check lease and attributes - write bytes, commit the row, move the name, as the case
 * may be.  A lease is taken and given up under the lock for writing; a range is put under it
 * for reading, so that parallel uploads of one file do not wait for each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_FILES_INTERNAL_H
#define STORAGE_FILES_INTERNAL_H

#include "storage/files.h"
#include "storage/storage-internal.h"

struct file_row;
struct share_row;

enum {
    FILE_LOCKS = 256,  /* stripes: far more than threads */
    USAGE_SLOTS = 64,  /* shares whose usage is remembered */
    CASE_FILTERS = 16, /* directories whose names are remembered */
    FILE_MODE = 0777,  /* whoever mounts a share may write it and run it, as over SMB; */
    FOLDER_MODE = 0777 /* the data folder itself is closed to others */
};

/* What was counted of a share, and what was promised to it since. */
struct share_usage {
    int64_t share_id;
    int64_t bytes;
    int64_t counted_ms; /* monotonic */
};

/* The hashes of the names in a directory: see file-cases.c. */
struct case_filter {
    pthread_mutex_t lock;
    bool is_valid;
    uint64_t inode;
    int64_t born_ns, mtime_ns;
    uint64_t *hashes;
    size_t count, room;
};

struct files {
    struct blobs *blobs; /* borrowed */
    pthread_rwlock_t locks[FILE_LOCKS];
    pthread_mutex_t shares_lock; /* held while a share is made or removed */
    pthread_mutex_t usage_lock;
    struct share_usage usage[USAGE_SLOTS];
    struct case_filter filters[CASE_FILTERS];
};

/* Set an error with the protocol's word for it. */
int files_fail(struct err *e, enum err_code code, const char *reason, const char *text);
/* The same for a failed system call, disk full included. */
int files_fail_sys(struct err *e, int errno_value, const char *doing);

/* Always -1: see err.h. */
#define files_fail(...)     err_always_fails(files_fail(__VA_ARGS__))
#define files_fail_sys(...) err_always_fails(files_fail_sys(__VA_ARGS__))

/* auto_file_lock lock = {0}; file_lock(...): held to the end of the scope. */
struct file_lock {
    pthread_rwlock_t *held;
};
void file_lock(struct files *files, uint64_t inode, bool exclusive, struct file_lock *ret_lock);
void file_unlock(struct file_lock *lock);
/* Two at once, for writing; the second stays free when one does for both. */
void file_lock_two(struct files *files,
                   uint64_t inode,
                   uint64_t other,
                   struct file_lock *ret_first,
                   struct file_lock *ret_second);
#define auto_file_lock __attribute__((cleanup(file_unlock))) struct file_lock

/* --- file-names.c: what names may be, and when two are the same --- */

/* A path as a client gave it, brought into one form: no slash at the ends, trailing dots
 * dropped unless allowed.  Caller frees.  InvalidResourceName, InvalidFileOrDirectoryPathName.
 */
int file_path_normalize(const char *path, bool trailing_dots, char **ret_path, struct err *e);
/* May a new entry be called so?  More is refused than when looking: names that came through a
 * mount can be read and removed. */
bool file_name_is_allowed(const char *name);
/* Can a client ask for it?  Else it is not listed. */
bool file_name_is_visible(const char *name);
bool file_names_equal(const char *a, const char *b);         /* but for case */
bool file_name_starts(const char *name, const char *prefix); /* but for case */
/* Names that are equal but for case have the same. */
uint64_t file_name_hash(const char *name);

/* --- file-cases.c --- */

void case_filters_init(struct files *files);
void case_filters_done(struct files *files);
/* Is there surely no entry that has this name but for case?  False means: look. */
bool case_filter_excludes(struct files *files, int dir_fd, const char *name);

/* Around every change of ours to the names in a directory; a lock is held in between.  added:
 * the new name, NULL when there is none. */
struct case_change {
    struct case_filter *filter;
    int dir_fd;
    bool is_noted;
};
void case_change_begin(struct files *files, int dir_fd, struct case_change *change);
void case_change_end(struct case_change *change, const char *added);

/* --- file-tree.c: entries on disk --- */

/* What the kernel says of an entry. */
struct file_stat {
    uint64_t inode;
    int64_t born_ns, mtime_ns, ctime_ns, atime_ns, size_bytes;
    bool is_directory;
};

/* An open share. */
struct share_place {
    struct files *files;
    struct share_row *row;
    int fd;      /* the share's folder: tmp/ beneath, with names of ours */
    int tree_fd; /* tree/: for names of strangers, always by openat2 */
};
void share_place_done(struct share_place *place);
#define auto_place    __attribute__((cleanup(share_place_done))) struct share_place
#define SHARE_NOWHERE ((struct share_place){.fd = -1, .tree_fd = -1})

/* Where an entry is, or would be. */
struct file_spot {
    int parent_fd;
    uint64_t parent_inode;
    char *asked; /* the last segment of the path; "" = the root directory */
    char *name;  /* the same as on disk, when it is there */
    bool is_there;
    struct file_stat stat;
};
void file_spot_done(struct file_spot *spot);
#define auto_file_spot __attribute__((cleanup(file_spot_done))) struct file_spot
#define FILE_NOWHERE   ((struct file_spot){.parent_fd = -1})

/* Find the spot of a path: exactly, else but for case.  What is neither file nor directory
 * is not there.  ParentNotFound, and the errors of file_path_normalize. */
int file_spot_find(const struct share_place *place,
                   const struct file_address *at,
                   struct file_spot *ret_spot,
                   struct err *e);
/* Open the entry of a spot and see what it is now.  ResourceNotFound when it went away. */
int file_spot_open(const struct file_spot *spot,
                   int flags,
                   int *ret_fd,
                   struct file_stat *ret_stat,
                   struct err *e);
int file_stat_of(int fd, struct file_stat *ret_stat, struct err *e);
/* 1, or 0 when there is no file or directory of that name, -1. */
int file_stat_at(int dir_fd, const char *name, struct file_stat *ret_stat, struct err *e);
int file_set_written(int fd, struct file_time written, struct err *e);

/* Rename an entry of from_fd to the spot, by that name; on disk when it returns.
 * ResourceAlreadyExists when something is there and must not be. */
int file_spot_place(struct files *files,
                    int from_fd,
                    const char *from,
                    const struct file_spot *spot,
                    const char *name,
                    bool replaces,
                    struct err *e);

/* Call entry for everything in a tree; what cannot be opened is passed over. */
struct file_walk {
    /* path: relative to the tree.  stat NULL: neither file nor directory. */
    void (*entry)(const char *path, const struct file_stat *stat, void *context);
    void *context;
};
void file_walk(int tree_fd, const struct file_walk *walk);

/* --- shares.c --- */

/* ShareNotFound, InvalidResourceName. */
int share_place_open(struct files *files,
                     const char *account,
                     const char *share,
                     struct share_place *ret_place,
                     struct err *e);
/* On the writer: the row of a share.  ShareNotFound.  Caller frees. */
int share_row_need(struct db *db,
                   const char *account,
                   const char *share,
                   struct share_row **ret_row,
                   struct err *e);
extern const struct lease_words share_words;
bool share_name_is_valid(const char *name);
struct share_row *share_row_new(struct files *files, const char *account, const char *name);

/* --- share-remove.c --- */

/* Remove the rows of what is gone, when there is time. */
void shares_purge_later(struct files *files);

/* --- share-upkeep.c --- */

/* Rows without folders go, folders without rows get one.  At start. */
int shares_reconcile(struct files *files, struct err *e);
/* Call each with the names in a folder, if it can be opened. */
void files_each_name(int dir_fd,
                     const char *path,
                     void (*each)(int fd, const char *name, void *context),
                     void *context);
/* May the share grow by that many bytes?  ShareSizeLimitReached. */
int share_reserve(struct files *files,
                  const struct share_place *place,
                  int64_t bytes,
                  struct err *e);

/* The key of the descriptor that a file has by itself; caller frees. */
char *files_default_permission_key(void);

/* --- file-facts.c: rows and the kernel's word made one --- */

int file_row_find(struct files *files,
                  const struct share_place *place,
                  const struct file_stat *stat,
                  struct file_row **ret_row,
                  struct err *e);
/* row NULL: only the kernel knows it. */
struct file *file_of(const struct file_row *row,
                     const struct file_stat *stat,
                     const char *name,
                     uint64_t parent_inode);
/* Is the row's file as the row says, or was it changed through a mount? */
bool file_row_holds(const struct file_row *row, const struct file_stat *stat);
void file_row_set_headers(struct file_row *row, const struct blob_headers *headers);
void file_row_set_stat(struct file_row *row, const struct file_stat *stat);
/* A new row for a new file. */
struct file_row *
file_row_new(struct files *files, const struct file_put *put, const struct file_stat *stat);
/* Read the row (or start one), let edit change it, write it; one transaction.  The row comes
 * out when ret_row is given. */
struct file_edit {
    int (*edit)(struct file_row *row, void *context, struct err *e);
    void *context;
    bool is_silent; /* leave the ETag */
    bool is_ours;   /* what changed since the row was written is the caller's doing */
};
int file_row_edit(struct files *files,
                  const struct file_address *at,
                  const struct file_stat *stat,
                  const struct file_edit *edit,
                  struct file_row **ret_row,
                  struct err *e);
/* Write a row as it is. */
int file_row_write(struct files *files,
                   const struct file_address *at,
                   const struct file_row *row,
                   struct err *e);
/* With the next commit the row of that inode goes; nobody waits. */
void file_row_forget(struct files *files,
                     const struct share_place *place,
                     const struct file_stat *stat);

/* The entry must be there, of the kind wanted (-1 = either): ResourceNotFound,
 * ResourceTypeMismatch. */
int file_spot_need(const struct file_spot *spot, int want_directory, struct err *e);
/* May the holder of lease_id write it?  LeaseIdMissing, LeaseIdMismatchWithFileOperation. */
int file_check_lease(const struct file_row *row, const char *lease_id, struct err *e);
/* ReadOnlyAttribute. */
int file_check_writable(const struct file_row *row, struct err *e);

#endif
