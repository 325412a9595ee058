/* files.h - shares, directories and files on disk.  See docs/design/storage.md.
 *
 * A share is a folder tree; what a client writes through the protocol and what a job writes
 * through a mount are the same files.  Rows hold only what a file cannot: metadata, content
 * headers, SMB attributes.  Names keep their case and are found without it.
 *
 * Errors carry the protocol's own word as their reason, as in blobs.h.
 *
 * Threads: any.  "waits" as in blobs.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_FILES_H
#define STORAGE_FILES_H

#include "storage/blobs.h"

struct files; /* opaque: the shares of all accounts */

/* Shares the root, the database and its writer with the blobs, which outlive it.  Empties what
 * a crash left in the tmp folders. */
int files_open(struct blobs *blobs, struct files **ret_files, struct err *e);
void files_free(struct files *files);
DEFINE_AUTOPTR(files)

/* Everything of an account goes: at once, bytes after.  waits. */
int files_remove_account(struct files *files, const char *account, struct err *e);

enum {
    FILES_DEFAULT_QUOTA_GIB = 5120,
    FILES_MOST_QUOTA_GIB = 262144, /* what Azure sells at most: 256 TiB */
    FILES_MOST_RANGE = 4 * 1024 * 1024,
};
#define FILES_MOST_SIZE ((int64_t)4 << 40) /* of a file, as Azure has it */

/* --- shares --- */

struct share {
    int64_t id;
    char *account, *name;
    char etag[24];
    int64_t created_ms, modified_ms;
    int64_t quota_gib;
    char *tier, *protocols;      /* never NULL */
    json_t *metadata, *policies; /* never NULL */
    struct lease lease;
};
void share_free(struct share *share);
DEFINE_AUTOPTR(share)

/* NULL or -1 keeps, or leaves the default. */
struct share_change {
    const json_t *metadata, *policies;
    int64_t quota_gib;
    const char *tier, *protocols;
};

/* waits.  ShareAlreadyExists, InvalidResourceName. */
int files_create_share(struct files *files,
                       const char *account,
                       const char *name,
                       const struct share_change *facts,
                       struct share **ret_share,
                       struct err *e);
/* ShareNotFound. */
int files_find_share(struct files *files,
                     const char *account,
                     const char *name,
                     struct share **ret_share,
                     struct err *e);
/* In order of name, after `marker` ("" = from the first), names with the prefix, at most
 * `most`. *ret_next is the marker of the next page ("" = that was all); caller frees. */
int files_list_shares(struct files *files,
                      const char *account,
                      const char *prefix,
                      const char *marker,
                      size_t most,
                      void (*each)(const struct share *share, void *context),
                      void *context,
                      char **ret_next,
                      struct err *e);
/* waits. */
int files_update_share(struct files *files,
                       const char *account,
                       const char *name,
                       const struct share_change *change,
                       const char *lease_id,
                       struct share **ret_share,
                       struct err *e);
/* waits. */
int files_delete_share(struct files *files,
                       const char *account,
                       const char *name,
                       const char *lease_id,
                       struct err *e);
/* waits.  *ret_left_s is the rest of a breaking lease. */
int files_lease_share(struct files *files,
                      const char *account,
                      const char *name,
                      const struct lease_request *request,
                      struct share **ret_share,
                      int *ret_left_s,
                      struct err *e);
/* The sizes of the share's files, added up.  waits. */
int files_share_usage(struct files *files,
                      const char *account,
                      const char *name,
                      int64_t *ret_bytes,
                      struct err *e);

/* Security descriptors are kept as they are and never read.  The same text has the same key.
 * waits. */
int files_put_permission(struct files *files,
                         const char *account,
                         const char *share,
                         const char *text,
                         char **ret_key,
                         struct err *e);
/* FileInvalidPermissionKey. */
int files_find_permission(struct files *files,
                          const char *account,
                          const char *share,
                          const char *key,
                          char **ret_text,
                          struct err *e);

/* --- files and directories --- */

/* By address; path "" is the share's root directory.  Trailing dots of names are dropped
 * unless they are allowed. */
struct file_address {
    const char *account, *share, *path;
    bool trailing_dots;
};

struct file {
    char *name; /* the last segment, as it is on disk */
    bool is_directory;
    int64_t size_bytes;
    uint64_t file_id, parent_id; /* inode numbers */
    char etag[24];
    int64_t modified_ms; /* the last change of bytes or facts: goes with the ETag */
    /* Since 1970.  written: the bytes; changed: bytes, name or facts. */
    int64_t created_ns, written_ns, changed_ns, accessed_ns;
    struct blob_headers headers; /* files only */
    json_t *metadata;            /* never NULL */
    char *attributes;            /* "Directory", "Archive|ReadOnly", ... */
    char *permission_key;        /* never NULL */
    struct lease lease;
    char *copy_id, *copy_source; /* of the copy that made it, NULL when none did */
    int64_t copied_ms;
};
void file_free(struct file *file);
DEFINE_AUTOPTR(file)

/* want_directory: 0 a file, 1 a directory, -1 either.  ret_fd, may be NULL: open for reading,
 * caller closes.  ShareNotFound, ParentNotFound, ResourceNotFound (also for the other kind:
 * clients ask by kind whether a thing is there), InvalidResourceName. */
int files_find(struct files *files,
               const struct file_address *at,
               int want_directory,
               struct file **ret_file,
               int *ret_fd,
               struct err *e);

struct file_time {
    enum { FILE_TIME_NOW, FILE_TIME_KEEP, FILE_TIME_SET } how;
    int64_t ns;
};

/* What a new file or directory is to be. */
struct file_put {
    struct blob_headers headers;
    const json_t *metadata;                  /* NULL = none */
    const char *attributes, *permission_key; /* NULL = default */
    struct file_time created, written;
    const void *content; /* the first bytes; NULL = zeros */
    size_t content_len;
    bool must_be_new; /* replaces nothing: ResourceAlreadyExists */
};
/* waits.  ResourceAlreadyExists, ParentNotFound. */
int files_create_directory(struct files *files,
                           const struct file_address *at,
                           const struct file_put *put,
                           struct file **ret_file,
                           struct err *e);
/* A file of that many bytes; replaces one that is there.  waits.  ShareSizeLimitReached,
 * ReadOnlyAttribute, ResourceTypeMismatch. */
int files_create(struct files *files,
                 const struct file_address *at,
                 int64_t size_bytes,
                 const struct file_put *put,
                 const char *lease_id,
                 struct file **ret_file,
                 struct err *e);
/* Durable when it returns.  bytes NULL clears the span.  waits.  InvalidRange when it is not
 * within the file. */
int files_put_range(struct files *files,
                    const struct file_address *at,
                    int64_t offset,
                    const void *bytes,
                    int64_t len,
                    bool keeps_written, /* leave the time of the last write as it is */
                    const char *lease_id,
                    struct file **ret_file,
                    struct err *e);
/* The spans between first and last that hold data, in order. */
int files_list_ranges(struct files *files,
                      const struct file_address *at,
                      int64_t first,
                      int64_t last,
                      void (*each)(int64_t first, int64_t last, void *context),
                      void *context,
                      struct file **ret_file,
                      struct err *e);

/* NULL members keep; size -1 keeps. */
struct file_change {
    const struct blob_headers *headers; /* all six are replaced */
    const json_t *metadata;
    const char *attributes, *permission_key;
    struct file_time created, written;
    int64_t size;
};
#define FILE_CHANGE_NONE                                                                       \
    ((struct file_change){                                                                     \
        .created = {FILE_TIME_KEEP, 0}, .written = {FILE_TIME_KEEP, 0}, .size = -1})
/* waits. */
int files_change(struct files *files,
                 const struct file_address *at,
                 bool is_directory,
                 const struct file_change *change,
                 const char *lease_id,
                 struct file **ret_file,
                 struct err *e);
/* waits.  DirectoryNotEmpty, ReadOnlyAttribute. */
int files_delete(struct files *files,
                 const struct file_address *at,
                 bool is_directory,
                 const char *lease_id,
                 struct err *e);

struct file_move {
    bool is_directory;
    bool replaces;         /* a file that is there; else ResourceAlreadyExists */
    bool ignores_readonly; /* of the file that is replaced */
    const char *from_lease, *to_lease;
    const struct file_change *change; /* NULL = none */
};
/* Both in the same share.  waits. */
int files_rename(struct files *files,
                 const struct file_address *from,
                 const struct file_address *to,
                 const struct file_move *move,
                 struct file **ret_file,
                 struct err *e);

struct file_copy {
    int fd;                 /* the bytes; borrowed */
    const char *source_url; /* for the record */
    bool ignores_readonly;  /* of the file that is replaced */
    const char *lease_id;   /* of the file that is replaced */
};
/* A whole new file, or none.  waits. */
int files_copy(struct files *files,
               const struct file_copy *copy,
               const struct file_address *to,
               const struct file_put *put,
               struct file **ret_file,
               struct err *e);
/* Leases of files are infinite.  waits. */
int files_lease(struct files *files,
                const struct file_address *at,
                const struct lease_request *request,
                struct file **ret_file,
                struct err *e);

/* The entries of a directory in byte order of name: those after `marker` that begin, in any
 * case, with the prefix.  waits.  *ret_directory (may be NULL) is the directory itself. */
int files_list(struct files *files,
               const struct file_address *directory,
               const char *prefix,
               const char *marker,
               size_t most,
               void (*each)(const struct file *file, void *context),
               void *context,
               struct file **ret_directory,
               char **ret_next,
               struct err *e);

/* --- upkeep --- */

/* Where a share lies, for a bind mount; caller frees. */
char *files_tree_path(struct files *files, const char *account, const char *share);
/* Call finding for what no client can see, and for rows of files that are gone: jobs remove
 * files without telling.  waits. */
int files_scrub(struct files *files,
                void (*finding)(const char *what, const char *where, void *context),
                void *context,
                struct err *e);

#endif
