/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blob.h"

#include "base/str.h"
#include "store/store-internal.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS                                                                                \
    "name, snapshot, inode, born_ns, mtime_ns, size_bytes, is_odd, type, etag, created_ms,"    \
    " modified_ms, content_type, content_encoding, content_language, content_disposition,"     \
    " cache_control, content_md5, metadata, tags, tier, sequence, block_count, lease_id,"      \
    " lease_expires_ms, lease_breaks_ms, lease_duration_s, copy_id, copy_source, copied_ms"

void blob_row_done(struct blob_row *row)
{
    free(row->name);
    free(row->snapshot);
    free(row->content_type);
    free(row->content_encoding);
    free(row->content_language);
    free(row->content_disposition);
    free(row->cache_control);
    free(row->content_md5);
    free(row->metadata);
    free(row->tags);
    free(row->tier);
    free(row->copy_id);
    free(row->copy_source);
    *row = (struct blob_row){0};
}

void blob_row_free(struct blob_row *row)
{
    if (!row)
        return;
    blob_row_done(row);
    free(row);
}

/* Fill the row with texts that the query owns. */
static void borrow_row(struct db_query *q, struct blob_row *row)
{
    const char *lease_id = db_text(q, 22);

    *row = (struct blob_row){
        .name = (char *)db_text(q, 0),
        .snapshot = (char *)db_text(q, 1),
        .inode = (uint64_t)db_int(q, 2),
        .born_ns = db_int(q, 3),
        .mtime_ns = db_int(q, 4),
        .size_bytes = db_int(q, 5),
        .is_odd = db_int(q, 6) != 0,
        .type = (int)db_int(q, 7),
        .created_ms = db_int(q, 9),
        .modified_ms = db_int(q, 10),
        .content_type = (char *)db_text(q, 11),
        .content_encoding = (char *)db_text(q, 12),
        .content_language = (char *)db_text(q, 13),
        .content_disposition = (char *)db_text(q, 14),
        .cache_control = (char *)db_text(q, 15),
        .content_md5 = (char *)db_text(q, 16),
        .metadata = (char *)db_text(q, 17),
        .tags = (char *)db_text(q, 18),
        .tier = (char *)db_text(q, 19),
        .sequence = db_int(q, 20),
        .block_count = db_int(q, 21),
        .copy_id = (char *)db_text(q, 26),
        .copy_source = (char *)db_text(q, 27),
        .copied_ms = db_int(q, 28),
    };
    snprintf(row->etag, sizeof(row->etag), "%s", db_text(q, 8));
    if (!lease_id)
        return;
    snprintf(row->lease.id, sizeof(row->lease.id), "%s", lease_id);
    row->lease.expires_ms = db_int(q, 23);
    row->lease.breaks_ms = db_int(q, 24);
    row->lease.duration_s = db_int(q, 25);
}

static char *dup(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* Make the borrowed texts the row's own. */
static void own_row(struct blob_row *row)
{
    row->name = dup(row->name);
    row->snapshot = dup(row->snapshot);
    row->content_type = dup(row->content_type);
    row->content_encoding = dup(row->content_encoding);
    row->content_language = dup(row->content_language);
    row->content_disposition = dup(row->content_disposition);
    row->cache_control = dup(row->cache_control);
    row->content_md5 = dup(row->content_md5);
    row->metadata = dup(row->metadata);
    row->tags = dup(row->tags);
    row->tier = dup(row->tier);
    row->copy_id = dup(row->copy_id);
    row->copy_source = dup(row->copy_source);
}

static int read_one(struct db_query *q, struct blob_row **ret_row, struct err *e)
{
    int rows = db_next(q, e);

    if (rows < 0)
        return -1;
    *ret_row = NULL;
    if (rows > 0) {
        *ret_row = xcalloc(1, sizeof(**ret_row));
        borrow_row(q, *ret_row);
        own_row(*ret_row);
    }
    return 0;
}

int store_find_blob(struct db *db,
                    const struct blob_key *key,
                    struct blob_row **ret_row,
                    struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM blob WHERE container_id = ? AND name = ?"
                  " AND snapshot = ? AND inode = ? AND born_ns = ?",
                  "ittii", key->container_id, key->name, key->snapshot, (int64_t)key->inode,
                  key->born_ns) < 0)
        return -1;
    return read_one(&q, ret_row, e);
}

int store_find_blob_like(struct db *db,
                         const struct blob_key *key,
                         int64_t size_bytes,
                         int64_t mtime_ns,
                         struct blob_row **ret_row,
                         struct err *e)
{
    auto_query q = {0};

    if (db_select(db, &q, e,
                  "SELECT " COLUMNS " FROM blob WHERE container_id = ? AND name = ?"
                  " AND snapshot = ? AND size_bytes = ? AND mtime_ns = ?",
                  "ittii", key->container_id, key->name, key->snapshot, size_bytes,
                  mtime_ns) < 0)
        return -1;
    return read_one(&q, ret_row, e);
}

int store_put_blob(struct db *db, int64_t container_id, const struct blob_row *r, struct err *e)
{
    return db_run(db, e,
                  "INSERT OR REPLACE INTO blob (container_id, " COLUMNS ") VALUES"
                  " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                  " ?, ?, ?, ?, ?)",
                  "i"
                  "ttiiiiiit"
                  "ii"
                  "tttttt"
                  "ttt"
                  "ii"
                  "tiii"
                  "tti",
                  container_id, r->name, r->snapshot ? r->snapshot : "", (int64_t)r->inode,
                  r->born_ns, r->mtime_ns, r->size_bytes, (int64_t)r->is_odd, (int64_t)r->type,
                  r->etag, r->created_ms, r->modified_ms, r->content_type, r->content_encoding,
                  r->content_language, r->content_disposition, r->cache_control, r->content_md5,
                  r->metadata, r->tags, r->tier, r->sequence, r->block_count,
                  r->lease.id[0] ? r->lease.id : NULL, r->lease.expires_ms, r->lease.breaks_ms,
                  r->lease.duration_s, r->copy_id, r->copy_source, r->copied_ms);
}

int store_keep_blob(struct db *db, const struct blob_key *keep, struct err *e)
{
    if (db_run(db, e,
               "DELETE FROM blob WHERE container_id = ? AND name = ? AND snapshot = ?"
               " AND NOT (inode = ? AND born_ns = ?)",
               "ittii", keep->container_id, keep->name, keep->snapshot, (int64_t)keep->inode,
               keep->born_ns) < 0)
        return -1;
    return db_run(db, e,
                  "DELETE FROM block_list WHERE container_id = ? AND name = ? AND snapshot = ?"
                  " AND NOT (inode = ? AND born_ns = ?)",
                  "ittii", keep->container_id, keep->name, keep->snapshot, (int64_t)keep->inode,
                  keep->born_ns);
}

int store_has_settled_rows(struct db *db,
                           int64_t container_id,
                           const char *name,
                           const char *snapshot,
                           bool *ret_has,
                           struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT 1 FROM blob WHERE container_id = ?1 AND name = ?2 AND snapshot = ?3"
                  " AND NOT EXISTS (SELECT 1 FROM unsettled WHERE container_id = ?1"
                  " AND name = ?2 AND snapshot = ?3)",
                  "itt", container_id, name, snapshot) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_has = rows > 0;
    return 0;
}

int store_each_snapshot(struct db *db,
                        int64_t container_id,
                        const char *name,
                        void (*each)(const char *snapshot, void *context),
                        void *context,
                        struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT DISTINCT snapshot FROM blob WHERE container_id = ? AND name = ?"
                  " AND snapshot > '' ORDER BY snapshot",
                  "it", container_id, name) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_text(&q, 0), context);
    return rows;
}

int blob_cursor_open(struct blob_cursor *cursor,
                     struct db *db,
                     int64_t container_id,
                     const char *from,
                     struct err *e)
{
    *cursor = (struct blob_cursor){0};
    return db_select(db, &cursor->query, e,
                     "SELECT " COLUMNS " FROM blob WHERE container_id = ? AND name >= ?"
                     " ORDER BY name, snapshot",
                     "it", container_id, from);
}

int blob_cursor_open_odd(struct blob_cursor *cursor,
                         struct db *db,
                         int64_t container_id,
                         const char *from,
                         struct err *e)
{
    *cursor = (struct blob_cursor){0};
    return db_select(db, &cursor->query, e,
                     "SELECT " COLUMNS " FROM blob INDEXED BY odd_blob"
                     " WHERE container_id = ? AND is_odd = 1 AND name >= ? ORDER BY name",
                     "it", container_id, from);
}

int blob_cursor_next(struct blob_cursor *cursor, struct err *e)
{
    int rows = db_next(&cursor->query, e);

    if (rows > 0)
        borrow_row(&cursor->query, &cursor->row);
    return rows;
}

void blob_cursor_done(struct blob_cursor *cursor)
{
    db_query_done(&cursor->query);
}

int store_put_block_list(
    struct db *db, const struct blob_key *key, const void *list, size_t len, struct err *e)
{
    if (len == 0)
        return db_run(db, e,
                      "DELETE FROM block_list WHERE container_id = ? AND name = ?"
                      " AND snapshot = ? AND inode = ? AND born_ns = ?",
                      "ittii", key->container_id, key->name, key->snapshot, (int64_t)key->inode,
                      key->born_ns);
    return db_run(db, e,
                  "INSERT OR REPLACE INTO block_list (container_id, name, snapshot, inode,"
                  " born_ns, list) VALUES (?, ?, ?, ?, ?, ?)",
                  "ittiib", key->container_id, key->name, key->snapshot, (int64_t)key->inode,
                  key->born_ns, list, len);
}

int store_find_block_list(
    struct db *db, const struct blob_key *key, void **ret_list, size_t *ret_len, struct err *e)
{
    auto_query q = {0};
    const void *list;
    int rows;

    if (db_select(db, &q, e,
                  "SELECT list FROM block_list WHERE container_id = ? AND name = ?"
                  " AND snapshot = ? AND inode = ? AND born_ns = ?",
                  "ittii", key->container_id, key->name, key->snapshot, (int64_t)key->inode,
                  key->born_ns) < 0)
        return -1;
    rows = db_next(&q, e);
    if (rows < 0)
        return -1;
    *ret_list = NULL;
    *ret_len = 0;
    if (rows > 0) {
        list = db_blob(&q, 0, ret_len);
        *ret_list = memcpy(xmalloc(*ret_len + 1), list, *ret_len);
    }
    return 0;
}
