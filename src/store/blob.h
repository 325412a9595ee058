/* blob.h - the rows of storage.db: what a blob's file cannot say about itself.
 *
 * Nothing here knows the file system: storage/ decides which row belongs to which file.
 * Functions take a struct db as store.h says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_BLOB_H
#define STORE_BLOB_H

#include "base/err.h"
#include "base/mem.h"
#include "db/db.h"

#include <stddef.h>
#include <stdint.h>

/* Open (and create, and migrate) storage.db for writing. */
int store_open_storage(const char *path, struct db **ret_db, struct err *e);

struct lease_row {
    char id[40]; /* "" = none */
    int64_t expires_ms, breaks_ms;
    int64_t duration_s;
};

/* --- containers --- */

struct container_row {
    int64_t id;
    char *account, *name;
    char etag[24];
    int64_t created_ms, modified_ms;
    char *metadata, *policies; /* JSON, NULL = empty */
    struct lease_row lease;
};
void container_row_free(struct container_row *row);
DEFINE_AUTOPTR(container_row)

/* *ret_row is NULL when there is none. */
int store_find_container(struct db *db,
                         const char *account,
                         const char *name,
                         struct container_row **ret_row,
                         struct err *e);
int store_find_container_by_id(struct db *db,
                               int64_t id,
                               struct container_row **ret_row,
                               struct err *e);
/* Insert (id 0; sets it) or update. */
int store_put_container(struct db *db, struct container_row *row, struct err *e);
/* The row goes; those of its blobs are for store_purge_doomed. */
int store_doom_container(struct db *db, int64_t id, struct err *e);
int store_doom_account(struct db *db, const char *account, struct err *e);
/* In order of name: those of the account, after `after`, beginning with `prefix`.  each says
 * whether to go on. */
int store_each_container(struct db *db,
                         const char *account,
                         const char *prefix,
                         const char *after,
                         bool (*each)(const struct container_row *row, void *context),
                         void *context,
                         struct err *e);
/* Of all accounts. */
int store_each_container_of_all(struct db *db,
                                bool (*each)(const struct container_row *row, void *context),
                                void *context,
                                struct err *e);
/* Remove some rows of blobs of doomed containers.  *ret_more says whether to come again. */
int store_purge_doomed(struct db *db, bool *ret_more, struct err *e);

/* --- blobs --- */

/* Which file: its name, and the inode it must be. */
struct blob_key {
    int64_t container_id;
    const char *name, *snapshot;
    uint64_t inode;
    int64_t born_ns;
};

struct blob_row {
    char *name, *snapshot;
    uint64_t inode;
    int64_t born_ns, mtime_ns, size_bytes;
    bool is_odd;
    int type;
    char etag[24];
    int64_t created_ms, modified_ms;
    char *content_type, *content_encoding, *content_language, *content_disposition,
        *cache_control, *content_md5;
    char *metadata, *tags; /* JSON, NULL = empty */
    char *tier;
    int64_t sequence, block_count;
    struct lease_row lease;
    char *copy_id, *copy_source;
    int64_t copied_ms;
};
void blob_row_done(struct blob_row *row);
void blob_row_free(struct blob_row *row);
DEFINE_AUTOPTR(blob_row)

/* *ret_row is NULL when there is none. */
int store_find_blob(struct db *db,
                    const struct blob_key *key,
                    struct blob_row **ret_row,
                    struct err *e);
/* The row of a file that is not the one it was written for, but has its name, its size and its
 * mtime to the nanosecond: a copy, as a restore makes it. */
int store_find_blob_like(struct db *db,
                         const struct blob_key *key,
                         int64_t size_bytes,
                         int64_t mtime_ns,
                         struct blob_row **ret_row,
                         struct err *e);
/* Insert, or replace the one of the same name and inode. */
int store_put_blob(struct db *db,
                   int64_t container_id,
                   const struct blob_row *row,
                   struct err *e);
/* Remove all rows of the name and snapshot but the one of that inode; inode 0 keeps none. */
int store_keep_blob(struct db *db, const struct blob_key *keep, struct err *e);
/* Does the name have rows, while nothing is under way there? */
int store_has_settled_rows(struct db *db,
                           int64_t container_id,
                           const char *name,
                           const char *snapshot,
                           bool *ret_has,
                           struct err *e);
/* Times of the snapshots of a name that have rows, in order. */
int store_each_snapshot(struct db *db,
                        int64_t container_id,
                        const char *name,
                        void (*each)(const char *snapshot, void *context),
                        void *context,
                        struct err *e);

/* A walk through the rows of a container in byte order of name, then snapshot. */
struct blob_cursor {
    struct db_query query;
    struct blob_row row; /* borrowed: strings hold until the next call */
};
/* From the first name that is not before `from`. */
int blob_cursor_open(struct blob_cursor *cursor,
                     struct db *db,
                     int64_t container_id,
                     const char *from,
                     struct err *e);
/* The same, only of blobs in odd/. */
int blob_cursor_open_odd(struct blob_cursor *cursor,
                         struct db *db,
                         int64_t container_id,
                         const char *from,
                         struct err *e);
/* 1 a row, 0 no more, -1 failed. */
int blob_cursor_next(struct blob_cursor *cursor, struct err *e);
void blob_cursor_done(struct blob_cursor *cursor);

/* --- the committed blocks of a blob: per block, 8 bytes of size (little-endian), 1 byte of the
 * id's length, the id --- */

/* Empty removes. */
int store_put_block_list(
    struct db *db, const struct blob_key *key, const void *list, size_t len, struct err *e);
/* *ret_list is NULL when there is none; caller frees. */
int store_find_block_list(
    struct db *db, const struct blob_key *key, void **ret_list, size_t *ret_len, struct err *e);

/* --- names under change --- */

/* Inserting refuses with ERR_NOT_FOUND when the container is gone. */
int store_mark_unsettled(
    struct db *db, int64_t container_id, const char *name, const char *snapshot, struct err *e);
int store_clear_unsettled(
    struct db *db, int64_t container_id, const char *name, const char *snapshot, struct err *e);
int store_each_unsettled(
    struct db *db,
    void (*each)(int64_t container_id, const char *name, const char *snapshot, void *context),
    void *context,
    struct err *e);

/* --- names with uncommitted blocks --- */

/* Refuses with ERR_NOT_FOUND when the container is gone. */
int store_put_staged(
    struct db *db, int64_t container_id, const char *name, int64_t staged_ms, struct err *e);
int store_remove_staged(struct db *db, int64_t container_id, const char *name, struct err *e);
int store_is_staged(
    struct db *db, int64_t container_id, const char *name, bool *ret_staged, struct err *e);
/* In byte order of name, from the first that is not before `from`; each says whether to go on.
 */
int store_each_staged(struct db *db,
                      int64_t container_id,
                      const char *from,
                      bool (*each)(const char *name, int64_t staged_ms, void *context),
                      void *context,
                      struct err *e);

/* --- notes: small texts of an account --- */

/* *ret_text is NULL when there is none; caller frees. */
int store_get_note(
    struct db *db, const char *account, const char *name, char **ret_text, struct err *e);
int store_put_note(
    struct db *db, const char *account, const char *name, const char *text, struct err *e);
int store_remove_notes(struct db *db, const char *account, struct err *e);

#endif
