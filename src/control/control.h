/* control.h - the one way to change anything: apply, record, act.
 *
 * A change is described by a struct control_change and handed in.  On the writer thread its
 * `apply` reads what is there, asks core whether the event is allowed, and writes the new
 * state; the event itself (who, what, when, outcome) is recorded in the same transaction, a
 * refusal too.  After the commit the requester is told, and control's own thread acts: it does
 * what the state reached calls for, such as finishing an operation.  Acting is idempotent:
 * after a crash control_new finds the running operations and acts again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "base/err.h"
#include "base/mem.h"
#include "core/access.h"
#include "core/operation.h"
#include "core/resource.h"
#include "core/yard.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct db_writer_counts;
struct engine;
struct engine_events;
struct loop;
struct principals;
struct store_pool;
struct vault;
struct vmsizes;
struct volume;
struct control; /* opaque */

struct control_config {
    struct store_pool *pool;   /* borrowed */
    const struct vault *vault; /* borrowed */
    size_t most_per_commit;    /* of the writer; 0 = its default */
    int64_t keep_events_ms;    /* how long the audit log goes back; 0 = for ever */
    /* Forget all data of a storage account that is gone.  From the writer thread.  May be NULL.
     */
    int (*purge_account)(const char *account, void *context, struct err *e);
    /* Clusters and jobs.  Without make_engine none of them moves: they stay as they are put. */
    int (*make_engine)(struct loop *loop,
                       const struct engine_events *events,
                       void *context,
                       struct engine **ret_engine,
                       struct err *e);
    const char *vm_sizes; /* more of them than the catalogue has (core/vmsize.h), or NULL */
    struct yard_limits limits; /* cores and GPUs are the engine's to say */
    int64_t idle_ms;           /* automatic clusters give up nodes idle for so long */
    int most_attempts;         /* tries of a job whose nodes are lost */
    const char *file_servers;  /* folder of their trees */
    /* The folder of a share or container on this machine; caller frees.  On control's thread.
     */
    int (*volume_folder)(const struct volume *volume,
                         void *context,
                         char **ret_path,
                         struct err *e);
    /* The disk failed us: stop the process.  From the writer thread. */
    void (*broken)(const struct err *why, void *context);
    void *context;
};

/* Takes over the writing connection; recovers, then acts. */
int control_new(struct db *db,
                const struct control_config *config,
                struct control **ret_control,
                struct err *e);
/* The catalogue of machine sizes.  From any thread. */
const struct vmsizes *control_sizes(const struct control *control);
/* Go on with clusters and jobs: once, when volume_folder can work. */
void control_resume(struct control *control);
/* Finish what was submitted, stop both threads. */
void control_free(struct control *control);

struct principals *control_principals(struct control *control);
void control_writer_counts(struct control *control, struct db_writer_counts *ret_counts);
/* See db_writer_generation: what was read at an even one holds while it stays the same. */
uint64_t control_generation(struct control *control);

/* Who asks for a change, for the record.  All in the change's arena or longer. */
struct control_caller {
    const char *principal, *peer, *operation, *target, *request_id;
};

struct control_change {
    struct arena *arena; /* dies with the change */
    struct control_caller caller;
    int (*apply)(struct control_change *change, struct db *db, struct err *e);
    /* On the writer thread, after the commit or the refusal; must hand over to the requester's
     * own thread. The requester frees the change with control_change_free. */
    void (*done)(struct control_change *change, const struct err *why);
    void *context;  /* the requester's */
    bool is_upkeep; /* nobody asked for it: leave no event */
    /* apply reads, writes rows, sets what came of it, and does no more: it may be called again
     * after it was undone, which makes it cheaper (db/writer.h). */
    bool is_repeatable;

    /* Set by control_submit. */
    struct control *control;
    int64_t now_ms;

    /* What came of it; each owned by the change. */
    struct resource *resource;   /* as it is now, or was when it was removed */
    struct operation *operation; /* that goes on, if one does */
    bool starts_operation;       /* it began with this change, else it ran already */
    bool created;                /* it was not there before */
    char *secret;                /* a value told once */
    bool accounts_doomed;        /* storage accounts may have gone: their data must follow */
    bool principals_changed;     /* the list in memory must follow */
    const void *request;         /* of the typed changes below */
};

/* A change of one's own making: fill in caller, apply, done, context. */
struct control_change *control_change_new(void);
void control_change_free(struct control_change *change);
void control_submit(struct control *control, struct control_change *change);

/* --- resources --- */

/* What a client wants a resource to be.  NULL members keep what is there (or stay unset). */
struct control_put {
    enum resource_kind kind;
    const char *parent_id; /* ARM id of what it hangs on; "/subscriptions/S" for a group */
    const char *name;
    const char *location;
    json_t *tags;       /* replaces all tags */
    json_t *properties; /* members replace their namesakes, and so do the members of objects
                           among them: what a client leaves out keeps its value */
    json_t *secrets;    /* of a cluster, file server or job (core/batchai.h); NULL = none */
    const char *if_match, *if_none_match;
    bool must_exist; /* PATCH */
};
/* The request is copied; of its JSON a reference is kept, so nobody may change it meanwhile. */
void control_put_resource(struct control *control,
                          struct control_change *change,
                          const struct control_put *put);

struct control_delete {
    enum resource_kind kind;
    const char *arm_id, *name;
    const char *if_match;
    bool at_once; /* in this very transaction; else as an operation */
};
/* Afterwards change->resource is NULL when there was nothing to delete; change->operation goes
 * on, unless at_once. Deleting again what is being deleted answers with the same operation. */
void control_delete_resource(struct control *control,
                             struct control_change *change,
                             const struct control_delete *del);

/* End a job.  Afterwards change->operation goes on until it has ended; NULL when it had. */
void control_terminate_job(struct control *control,
                           struct control_change *change,
                           const char *arm_id,
                           const char *name);

/* What only the mind and the engine know.  ask runs on control's thread, where both may be
 * looked at; engine is NULL when there is none, or not any more. */
struct control_view {
    const struct yard *yard;
    struct engine *engine;
};
void control_ask(struct control *control,
                 void (*ask)(const struct control_view *view, void *context),
                 void *context);

/* Call changed(id, state) after every commit that changed a job's row.  On control's thread; it
 * must be quick and must not come back to control.  There is one watcher; NULL ends it, after
 * which it is not called any more. */
void control_watch_jobs(struct control *control,
                        void (*changed)(int64_t job_id, enum job_state state, void *context),
                        void *context);

/* A reference to the value that lives as long as the change. */
json_t *control_keep_json(struct control_change *change, json_t *value);

/* --- storage account keys --- */

/* key_name is key1 or key2 (also spelled Key1, primary, ...: the caller has settled that). */
void control_rotate_key(struct control *control,
                        struct control_change *change,
                        const char *account_id,
                        const char *key_name);

/* Let the data of all accounts that are gone follow them.  Done after every delete; call it
 * once after a start, when purge_account can work. */
void control_purge_doomed(struct control *control);

/* --- the image map --- */

struct control_image {
    const char *image, *target; /* change->request */
};
/* Jobs that name the image get the target, an image or "host", from their next attempt on.
 * target NULL removes it: ERR_NOT_FOUND when it is not mapped. */
void control_map_image(struct control *control,
                       struct control_change *change,
                       const char *image,
                       const char *target);

/* --- principals --- */

struct control_principal {
    const char *name;
    enum access_role role;
    const char *group_id;  /* ARM id of its group, NULL = the whole yard */
    const char *token;     /* NULL = make one; told in change->secret */
    int64_t lifetime_ms;   /* 0 = for ever */
    const char *client_id; /* in the arena; set by control */
    int64_t expires_ms;    /* set by control */
};
/* Borrowed until the change is done. */
void control_put_principal(struct control *control,
                           struct control_change *change,
                           struct control_principal *principal);
void control_remove_principal(struct control *control,
                              struct control_change *change,
                              const char *name);

#endif
