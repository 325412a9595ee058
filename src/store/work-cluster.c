/* Clusters, nodes and the image map.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "base/str.h"
#include "store/store-internal.h"

#include <inttypes.h>
#include <string.h>

int store_add_cluster(struct db *db, int64_t id, const char *uuid, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO cluster_state (resource_id, uuid, is_steady, steady_ms, wanted,"
                  " error_code, error_message) VALUES (?, ?, 1, 0, 0, '', '')",
                  "it", id, uuid);
}

int store_put_cluster(struct db *db, const struct yard_cluster *c, struct err *e)
{
    return db_run(db, e,
                  "UPDATE cluster_state SET is_steady = ?, steady_ms = ?, wanted = ?,"
                  " error_code = ?, error_message = ? WHERE resource_id = ?",
                  "iiitti", (int64_t)c->is_steady, c->steady_ms, (int64_t)c->wanted,
                  c->error_code, c->error_message, c->id);
}

/* The highest id that was ever given, for after its row is gone. */
static int remember_node(struct db *db, int64_t id, struct err *e)
{
    return db_run(db, e,
                  "INSERT INTO meta (name, value) VALUES ('last_node', ?1) ON CONFLICT (name)"
                  " DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(?1 AS INTEGER))",
                  "i", id);
}

int store_put_node(struct db *db, const struct yard_node *n, struct err *e)
{
    if (n->state == NODE_GONE) {
        if (remember_node(db, n->id, e) < 0)
            return -1;
        return db_run(db, e, "DELETE FROM node WHERE id = ?", "i", n->id);
    }
    return db_run(db, e,
                  "INSERT INTO node (id, cluster_id, name, state, since_ms, attempt_id,"
                  " error_code, error_message, error_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                  " ON CONFLICT (id) DO UPDATE SET state = excluded.state,"
                  " since_ms = excluded.since_ms, attempt_id = excluded.attempt_id,"
                  " error_code = excluded.error_code, error_message = excluded.error_message,"
                  " error_info = excluded.error_info",
                  "iitiiittt", n->id, n->cluster_id, n->name, (int64_t)n->state, n->since_ms,
                  n->attempt_id, n->error_code, n->error_message, n->error_info);
}

static void copy(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text ? text : "");
}

static int count_nodes(struct db *db, int64_t id, struct node_counts *counts, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT state, count(*) FROM node WHERE cluster_id = ? GROUP BY state", "i",
                  id) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        int number = (int)db_int(&q, 1);

        switch ((enum node_state)db_int(&q, 0)) {
        case NODE_CREATING:
            counts->preparing = number;
            break;
        case NODE_IDLE:
            counts->idle = number;
            break;
        case NODE_RUNNING:
            counts->running = number;
            break;
        case NODE_LEAVING:
            counts->leaving = number;
            break;
        case NODE_UNUSABLE:
            counts->unusable = number;
            break;
        case NODE_GONE:
        case NODE_STATES:
            break;
        }
    }
    return rows;
}

int store_find_cluster_work(
    struct db *db, int64_t id, struct cluster_work *ret_work, bool *ret_found, struct err *e)
{
    auto_query q = {0};
    int rows;

    *ret_found = false;
    if (db_select(db, &q, e,
                  "SELECT uuid, is_steady, steady_ms, wanted, error_code, error_message"
                  " FROM cluster_state WHERE resource_id = ?",
                  "i", id) < 0 ||
        (rows = db_next(&q, e)) < 0)
        return -1;
    if (rows == 0)
        return 0;
    *ret_work = (struct cluster_work){.cluster = {.id = id}};
    copy(ret_work->uuid, sizeof(ret_work->uuid), db_text(&q, 0));
    ret_work->cluster.is_steady = db_int(&q, 1) != 0;
    ret_work->cluster.steady_ms = db_int(&q, 2);
    ret_work->cluster.wanted = (int)db_int(&q, 3);
    copy(ret_work->cluster.error_code, sizeof(ret_work->cluster.error_code), db_text(&q, 4));
    copy(ret_work->cluster.error_message, sizeof(ret_work->cluster.error_message),
         db_text(&q, 5));
    *ret_found = true;
    return count_nodes(db, id, &ret_work->nodes, e);
}

int store_each_node(struct db *db,
                    int64_t cluster_id,
                    void (*each)(const struct yard_node *node, void *context),
                    void *context,
                    struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT id, cluster_id, name, state, since_ms, attempt_id, error_code,"
                  " error_message, error_info FROM node WHERE ?1 = 0 OR cluster_id = ?1"
                  " ORDER BY id",
                  "i", cluster_id) < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0) {
        struct yard_node n = {
            .id = db_int(&q, 0),
            .cluster_id = db_int(&q, 1),
            .state = (enum node_state)db_int(&q, 3),
            .since_ms = db_int(&q, 4),
            .attempt_id = db_int(&q, 5),
        };

        copy(n.name, sizeof(n.name), db_text(&q, 2));
        copy(n.error_code, sizeof(n.error_code), db_text(&q, 6));
        copy(n.error_message, sizeof(n.error_message), db_text(&q, 7));
        copy(n.error_info, sizeof(n.error_info), db_text(&q, 8));
        each(&n, context);
    }
    return rows;
}

int store_last_work_ids(struct db *db, int64_t *ret_node, int64_t *ret_attempt, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e,
                  "SELECT max(coalesce((SELECT max(id) FROM node), 0),"
                  " coalesce((SELECT CAST(value AS INTEGER) FROM meta"
                  " WHERE name = 'last_node'), 0)),"
                  " max(coalesce((SELECT max(id) FROM attempt), 0),"
                  " coalesce((SELECT CAST(value AS INTEGER) FROM meta"
                  " WHERE name = 'last_attempt'), 0))",
                  "") < 0 ||
        (rows = db_next(&q, e)) < 0)
        return -1;
    *ret_node = rows ? db_int(&q, 0) : 0;
    *ret_attempt = rows ? db_int(&q, 1) : 0;
    return 0;
}

int store_map_image(
    struct db *db, const char *image, const char *target, bool *ret_found, struct err *e)
{
    int rc = target ? db_run(db, e,
                             "INSERT INTO image_map (image, target) VALUES (?, ?)"
                             " ON CONFLICT (image) DO UPDATE SET target = excluded.target",
                             "tt", image, target)
                    : db_run(db, e, "DELETE FROM image_map WHERE image = ?", "t", image);

    if (rc == 0 && ret_found)
        *ret_found = db_changed_rows(db) > 0;
    return rc;
}

int store_find_image(struct db *db, const char *image, char **ret_target, struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT target FROM image_map WHERE image = ?", "t", image) < 0 ||
        (rows = db_next(&q, e)) < 0)
        return -1;
    *ret_target = rows ? store_dup(&q, 0) : NULL;
    return 0;
}

int store_each_image(struct db *db,
                     void (*each)(const char *image, const char *target, void *context),
                     void *context,
                     struct err *e)
{
    auto_query q = {0};
    int rows;

    if (db_select(db, &q, e, "SELECT image, target FROM image_map ORDER BY image", "") < 0)
        return -1;
    while ((rows = db_next(&q, e)) > 0)
        each(db_text(&q, 0), db_text(&q, 1), context);
    return rows;
}
