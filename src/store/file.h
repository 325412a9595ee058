/* file.h - the rows of storage.db about shares: what a file in one cannot say about itself.
 *
 * Nothing here knows the file system: storage/ decides which row belongs to which file.
 * Functions take a struct db as store.h says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include "store/blob.h"

/* --- shares --- */

struct share_row {
    int64_t id;
    char *account, *name;
    char etag[24];
    int64_t created_ms, modified_ms;
    int64_t quota_gib;
    char *tier, *protocols;
    char *metadata, *policies; /* JSON, NULL = empty */
    struct lease_row lease;
};
void share_row_free(struct share_row *row);
DEFINE_AUTOPTR(share_row)

/* *ret_row is NULL when there is none. */
int store_find_share(struct db *db,
                     const char *account,
                     const char *name,
                     struct share_row **ret_row,
                     struct err *e);
/* Insert (id 0; sets it) or update.  ERR_NOT_FOUND when the row to update is gone. */
int store_put_share(struct db *db, struct share_row *row, struct err *e);
/* The row goes; those of its files are for store_purge_doomed_shares. */
int store_doom_share(struct db *db, int64_t id, struct err *e);
int store_doom_shares_of(struct db *db, const char *account, struct err *e);
/* Those of an account (NULL: of all), in order of name.  each says whether to go on. */
int store_each_share(struct db *db,
                     const char *account,
                     bool (*each)(const struct share_row *row, void *context),
                     void *context,
                     struct err *e);
/* Remove some rows of files of doomed shares.  *ret_more says whether to come again. */
int store_purge_doomed_shares(struct db *db, bool *ret_more, struct err *e);

/* --- files and directories --- */

#define FILE_WHEN_BORN INT64_MIN

struct file_row {
    uint64_t inode;
    int64_t born_ns, mtime_ns, size_bytes;
    char etag[24];
    int64_t created_ns; /* as a client set it, or FILE_WHEN_BORN */
    char *content_type, *content_encoding, *content_language, *content_disposition,
        *cache_control, *content_md5;
    char *metadata; /* JSON, NULL = empty */
    char *attributes, *permission_key;
    struct lease_row lease;
    char *copy_id, *copy_source;
    int64_t copied_ms;
};
void file_row_free(struct file_row *row);
DEFINE_AUTOPTR(file_row)

/* The row of that inode and birth time; *ret_row is NULL when there is none. */
int store_find_file(struct db *db,
                    int64_t share_id,
                    uint64_t inode,
                    int64_t born_ns,
                    struct file_row **ret_row,
                    struct err *e);
/* Insert, or replace what is known of the inode. */
int store_put_file(struct db *db, int64_t share_id, const struct file_row *row, struct err *e);
int store_remove_file(
    struct db *db, int64_t share_id, uint64_t inode, int64_t born_ns, struct err *e);
/* Inode and birth time of every row of a share, in order of inode, after `after`; each says
 * whether to go on. */
int store_each_file(struct db *db,
                    int64_t share_id,
                    uint64_t after,
                    bool (*each)(uint64_t inode, int64_t born_ns, void *context),
                    void *context,
                    struct err *e);

/* --- security descriptors, opaque --- */

int store_put_permission(
    struct db *db, int64_t share_id, const char *key, const char *text, struct err *e);
/* *ret_text is NULL when there is none; caller frees. */
int store_find_permission(
    struct db *db, int64_t share_id, const char *key, char **ret_text, struct err *e);

#endif
