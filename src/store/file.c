/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file.h"

#include "store/store-internal.h"

#include <stdio.h>

#define COLUMNS                                                                                \
    "inode, born_ns, mtime_ns, size_bytes, etag, created_ns, content_type, content_encoding,"  \
    " content_language, content_disposition, cache_control, content_md5, metadata,"            \
    " attributes, permission_key, lease_id, lease_expires_ms, lease_breaks_ms,"                \
    " lease_duration_s, copy_id, copy_source, copied_ms"

void file_row_free(struct file_row *row)
{
    if (!row)
        return;
    free(row->content_type);
    free(row->content_encoding);
    free(row->content_language);
    free(row->content_disposition);
    free(row->cache_control);
    free(row->content_md5);
    free(row->metadata);
    free(row->attributes);
    free(row->permission_key);
    free(row->copy_id);
    free(row->copy_source);
    free(row);
}

static struct file_row *read_row(struct db_query *q)
{
    struct file_row *row = xcalloc(1, sizeof(*row));
    const char *lease_id = db_text(q, 15);

    row->inode = (uint64_t)db_int(q, 0);
    row->born_ns = db_int(q, 1);
    row->mtime_ns = db_int(q, 2);
    row->size_bytes = db_int(q, 3);
    snprintf(row->etag, sizeof(row->etag), "%s", db_text(q, 4));
    row->created_ns = db_int(q, 5);
    row->content_type = store_dup(q, 6);
    row->content_encoding = store_dup(q, 7);
    row->content_language = store_dup(q, 8);
    row->content_disposition = store_dup(q, 9);
    row->cache_control = store_dup(q, 10);
    row->content_md5 = store_dup(q, 11);
    row->metadata = store_dup(q, 12);
    row->attributes = store_dup(q, 13);
    row->permission_key = store_dup(q, 14);
    snprintf(row->lease.id, sizeof(row->lease.id), "%s", lease_id ? lease_id : "");
    row->lease.expires_ms = db_int(q, 16);
    row->lease.breaks_ms = db_int(q, 17);
    row->lease.duration_s = db_int(q, 18);
    row->copy_id = store_dup(q, 19);
    row->copy_source = store_dup(q, 20);
    row->copied_ms = db_int(q, 21);
    return row;
}

int store_find_file(struct db *db,
                    int64_t share_id,
                    uint64_t inode,
                    int64_t born_ns,
                    struct file_row **ret_row,
                    struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM file WHERE share_id = ? AND inode = ?"
                  " AND born_ns = ?",
                  "iii", share_id, (int64_t)inode, born_ns) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_row = rows ? read_row(&q) : NULL;
    return 0;
}

int store_put_file(struct db *db, int64_t share_id, const struct file_row *r, struct err *e)
{
    return db_run(db, e,
                  "INSERT OR REPLACE INTO file (share_id, " COLUMNS ") VALUES"
                  " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "i"
                  "iiiiti"
                  "tttttt"
                  "ttt"
                  "tiii"
                  "tti",
                  share_id, (int64_t)r->inode, r->born_ns, r->mtime_ns, r->size_bytes, r->etag,
                  r->created_ns, r->content_type, r->content_encoding, r->content_language,
                  r->content_disposition, r->cache_control, r->content_md5, r->metadata,
                  r->attributes, r->permission_key, r->lease.id[0] ? r->lease.id : NULL,
                  r->lease.expires_ms, r->lease.breaks_ms, r->lease.duration_s, r->copy_id,
                  r->copy_source, r->copied_ms);
}

int store_remove_file(
    struct db *db, int64_t share_id, uint64_t inode, int64_t born_ns, struct err *e)
{
    return db_run(db, e, "DELETE FROM file WHERE share_id = ? AND inode = ? AND born_ns = ?",
                  "iii", share_id, (int64_t)inode, born_ns);
}

int store_each_file(struct db *db,
                    int64_t share_id,
                    uint64_t after,
                    bool (*each)(uint64_t inode, int64_t born_ns, void *context),
                    void *context,
                    struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT inode, born_ns FROM file WHERE share_id = ? AND inode > ?"
                  " ORDER BY inode",
                  "ii", share_id, (int64_t)after) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        if (!each((uint64_t)db_int(&q, 0), db_int(&q, 1), context))
            return 0;
    }
    return rows;
}

int store_put_permission(
    struct db *db, int64_t share_id, const char *key, const char *text, struct err *e)
{
    return db_run(db, e,
                  "INSERT OR REPLACE INTO file_permission (share_id, key, text)"
                  " VALUES (?, ?, ?)",
                  "itt", share_id, key, text);
}

int store_find_permission(
    struct db *db, int64_t share_id, const char *key, char **ret_text, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT text FROM file_permission WHERE share_id = ? AND key = ?",
                  "it", share_id, key) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_text = rows ? store_dup(&q, 0) : NULL;
    return 0;
}
