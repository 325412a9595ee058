/* store.h - core's types to and from tables.  The only SQL of the project.
 *
 * Functions take a struct db: a reader from the pool, or the writer's connection inside a
 * change.  Nothing here decides anything: rules are core's, order of events is control's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/access.h"
#include "core/operation.h"
#include "core/resource.h"
#include "db/db.h"

#include <stddef.h>
#include <stdint.h>

struct str;

/* Open (and create, and migrate) the database for writing. */
int store_open(const char *path, struct db **ret_db, struct err *e);
/* Is this file a yard's database that this program can take over?  For restore. */
int store_check_file(const char *path, struct err *e);

/* --- facts --- */

/* The value of a fact, or NULL; caller frees. */
int store_get_meta(struct db *db, const char *name, char **ret_value, struct err *e);
int store_put_meta(struct db *db, const char *name, const char *value, struct err *e);

/* --- resources --- */

/* *ret_resource is NULL when there is none.  Caller frees. */
int store_find_resource(struct db *db,
                        const char *key,
                        struct resource **ret_resource,
                        struct err *e);
int store_find_resource_by_id(struct db *db,
                              int64_t id,
                              struct resource **ret_resource,
                              struct err *e);
/* A storage account by its name alone. */
int store_find_account(struct db *db,
                       const char *name,
                       struct resource **ret_resource,
                       struct err *e);
/* A new row, unless its key is taken: then *ret_added is false.  Its id must be above
 * store_last_resource(); its group_id is its parent's, or its id when it is a group. */
int store_add_resource(struct db *db,
                       const struct resource *resource,
                       bool *ret_added,
                       struct err *e);
/* The row of that id: what may change in it. */
int store_update_resource(struct db *db, const struct resource *resource, struct err *e);
/* The row, its secrets and everything below it.  Storage accounts among them are doomed. */
int store_remove_tree(struct db *db, int64_t id, struct err *e);
/* The highest version ever given; 0 when none.  Reads every row: for the start, once. */
int store_last_version(struct db *db, int64_t *ret_version, struct err *e);
/* The highest id that a resource ever had; 0 when there was none. */
int store_last_resource(struct db *db, int64_t *ret_id, struct err *e);

struct store_filter {
    int kind;                    /* a resource_kind, or -1 for all but groups */
    int64_t parent_id;           /* 0 = any; else one kind must be given */
    const char *key_prefix;      /* ids that begin so (lower case), NULL = any */
    const char *group_key;       /* of that group, NULL = any */
    const char *tag, *tag_value; /* having that tag (with that value), NULL = any */
    const char *name;            /* of that name, without case, NULL = any */
    int64_t after_id;            /* only later ones: paging */
    size_t most;                 /* rows wanted */
};

struct resource_list {
    struct resource **items;
    size_t count;
    bool more; /* there are rows beyond `most` */
};
void resource_list_done(struct resource_list *list);
#define auto_resource_list __attribute__((cleanup(resource_list_done))) struct resource_list

int store_list_resources(struct db *db,
                         const struct store_filter *filter,
                         struct resource_list *ret_list,
                         struct err *e);

/* The subscriptions that have groups, other than which nothing is known of them: call each(id).
 * scope limits them to the one of that group key, "" does not. */
int store_each_subscription(struct db *db,
                            const char *scope,
                            void (*each)(const char *id, void *context),
                            void *context,
                            struct err *e);

/* --- accounts that are gone, with data that may not be (store_remove_tree dooms them) --- */

/* One of them, NULL when there is none; caller frees. */
int store_first_doomed(struct db *db, char **ret_name, struct err *e);
int store_is_doomed(struct db *db, const char *name, bool *ret_doomed, struct err *e);
int store_forget_doomed(struct db *db, const char *name, struct err *e);

/* --- secrets: sealed text goes in and out, the key is the caller's --- */

int store_put_secret(struct db *db,
                     int64_t resource_id,
                     const char *name,
                     const char *sealed,
                     int64_t now_ms,
                     struct err *e);
/* *ret_sealed is NULL when there is none.  Caller frees.  ret_created_ms may be NULL. */
int store_get_secret(struct db *db,
                     int64_t resource_id,
                     const char *name,
                     char **ret_sealed,
                     int64_t *ret_created_ms,
                     struct err *e);

/* Are there any sealed secrets? */
int store_has_secrets(struct db *db, bool *ret_has, struct err *e);

/* --- operations --- */

int store_put_operation(struct db *db,
                        const struct operation *operation,
                        const char *group_key,
                        struct err *e);
/* *ret_operation is NULL when there is none. ret_group_key (may be NULL) is in the caller's
 * hands. */
int store_find_operation(struct db *db,
                         const char *id,
                         struct operation **ret_operation,
                         char **ret_group_key,
                         struct err *e);
/* The running operation on a resource, or NULL; a delete before any other. */
int store_find_running_operation(struct db *db,
                                 int64_t resource_id,
                                 struct operation **ret_operation,
                                 struct err *e);
/* The ids of all running operations, oldest first: call each(id, context). */
int store_each_running_operation(struct db *db,
                                 void (*each)(const char *id, void *context),
                                 void *context,
                                 struct err *e);
/* Forget ended operations older than that. */
int store_remove_old_operations(struct db *db, int64_t before_ms, struct err *e);

/* --- principals --- */

struct principal {
    int64_t id;
    char *name, *client_id, *token_hash, *scope;
    enum access_role role;
    int64_t created_ms, expires_ms; /* 0 = never */
};
void principal_free(struct principal *principal);
DEFINE_AUTOPTR(principal)

int store_find_principal(struct db *db,
                         const char *name,
                         struct principal **ret_principal,
                         struct err *e);
/* Insert, or replace the one of that name. */
int store_put_principal(struct db *db, const struct principal *principal, struct err *e);
/* *ret_found says whether there was one. */
int store_remove_principal(struct db *db, const char *name, bool *ret_found, struct err *e);
/* Those whose scope is the group of that key. */
int store_remove_principals_of(struct db *db,
                               const char *group_key,
                               bool *ret_found,
                               struct err *e);
/* All of them, in order of creation. */
int store_each_principal(struct db *db,
                         void (*each)(const struct principal *principal, void *context),
                         void *context,
                         struct err *e);

/* --- events --- */

struct event {
    int64_t seq, at_ms;
    const char *principal, *peer, *operation, *target, *request_id, *outcome, *detail;
};
int store_add_event(struct db *db, const struct event *event, struct err *e);
/* Forget events older than that; the newest stays, since the next one is numbered after it. */
int store_remove_old_events(struct db *db, int64_t before_ms, struct err *e);
/* Newest first, before seq (0 = from the newest), at most `most`. */
int store_each_event(struct db *db,
                     int64_t before_seq,
                     size_t most,
                     void (*each)(const struct event *event, void *context),
                     void *context,
                     struct err *e);

/* --- invariants, for doctor --- */

/* One finding: the check's name, whether it holds, and what was seen. */
typedef void store_finding(const char *name, bool ok, const char *detail, void *context);
int store_check_invariants(struct db *db, store_finding *finding, void *context, struct err *e);

#endif
