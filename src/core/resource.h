/* resource.h - what the yard holds: its kinds, their names and their one state machine.
 *
 * Every resource has an ARM id,
 * "/subscriptions/S/resourceGroups/G/providers/P/collection/name/...", and hangs on a parent.
 * Ids are compared without case: the `key` is the id in lower case.
 *
 * The state moves only through resource_apply:
 *
 *     absent --create--> ready --update--> ready --delete--> deleting --removed--> gone
 *
 * A resource being deleted refuses updates and children; deleting it again changes nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RESOURCE_H
#define CORE_RESOURCE_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

enum resource_kind {
    RESOURCE_GROUP,
    RESOURCE_STORAGE_ACCOUNT,
    RESOURCE_WORKSPACE,
    RESOURCE_EXPERIMENT,
    RESOURCE_CLUSTER,
    RESOURCE_FILE_SERVER,
    RESOURCE_JOB,
    RESOURCE_KINDS,
};

enum resource_state {
    RESOURCE_ABSENT,
    RESOURCE_READY,
    RESOURCE_DELETING,
    RESOURCE_GONE,
    RESOURCE_STATES,
};

enum resource_event {
    RESOURCE_CREATE,
    RESOURCE_UPDATE,
    RESOURCE_DELETE,
    RESOURCE_REMOVED,
    RESOURCE_EVENTS,
};

struct resource_kind_info {
    const char *noun;      /* "workspace": for messages, and the kind's name in the tables */
    const char *type;      /* "Microsoft.BatchAI/workspaces" */
    const char *id_part;   /* what stands between the parent's id and the name */
    const char *not_found; /* the wire's word when it is missing */
};

/* What a resource of that kind hangs on; not for groups. */
enum resource_kind resource_parent_kind(enum resource_kind kind);
const struct resource_kind_info *resource_kind_info(enum resource_kind kind);
int resource_kind_parse(const char *noun, enum resource_kind *ret_kind, struct err *e);

struct resource {
    int64_t id;        /* row id: order of creation */
    int64_t parent_id; /* 0 for groups */
    int64_t group_id;  /* of the group it is in; a group's own */
    enum resource_kind kind;
    enum resource_state state;
    char *arm_id; /* as spelled at creation */
    char *name;
    char *location;     /* NULL where the kind has none */
    json_t *tags;       /* object of strings, or NULL */
    json_t *properties; /* what the kind keeps; never NULL */
    int64_t created_ms;
    int64_t state_ms;    /* when the state was entered */
    int64_t modified_ms; /* the last change by a client; with the version it makes the ETag */
    int64_t version;     /* unique over all resources and times; grows */
};

struct resource *resource_new(enum resource_kind kind);
void resource_free(struct resource *resource);
DEFINE_AUTOPTR(resource)

/* The only writer of resource->state.  Sets state_ms when the state changes.  A refusal is
 * ERR_CONFLICT. */
int resource_apply(struct resource *resource,
                   enum resource_event event,
                   int64_t now_ms,
                   struct err *e);

/* "/subscriptions/S": the id that groups hang on. */
char *resource_subscription_id(struct arena *arena, const char *subscription);
/* The id of a child; the key of an id. */
char *resource_child_id(struct arena *arena,
                        enum resource_kind kind,
                        const char *parent_id,
                        const char *name);
char *resource_key(struct arena *arena, const char *arm_id);
/* The parts of an id that a client reads: "S$G$workspace$experiment". */
char *resource_dollar_path(struct arena *arena, const char *arm_id);
/* Where what a cluster or job writes lies: "S/G/workspaces/W/experiments/E/jobs/J/<uuid>". */
char *resource_output_segment(struct arena *arena, const char *arm_id, const char *uuid);
/* The name n levels above the last of an id: 0 the resource's own, 1 its parent's, ...; "" when
 * there is none. */
char *resource_name_above(struct arena *arena, const char *arm_id, size_t levels);
/* The group part of an id or key, "" when it has none; in the arena. */
char *resource_group_part(struct arena *arena, const char *arm_id);
/* How much of an id is that of the group it lies in; of others, what stands before the
 * provider.
 */
size_t resource_group_span(const char *arm_id);
/* That part's key. */
char *resource_group_key(struct arena *arena, const char *arm_id);

/* Set "the specified workspace x is not found" with the kind's own code.  Returns -1. */
int resource_not_found(struct err *e, enum resource_kind kind, const char *name);

/* ETags look like "0x8D5CBDCD4B8D591" in quotes: the version in hex. */
enum {
    RESOURCE_ETAG_BYTES = 24,
};
const char *resource_etag(const struct resource *resource, char buf[RESOURCE_ETAG_BYTES]);
/* The next version: the wall clock in the unit of the original's ETags (100 ns since year 1),
 * but always more than the last. */
int64_t resource_next_version(int64_t wall_ms, int64_t last);

/* Is the tag one of a header's comma-separated list, or is the list "*"?  Weak marks are
 * ignored. */
bool resource_etag_in(const char *list, const char *etag);
/* Check If-Match and If-None-Match (each may be NULL) against what is there (NULL = nothing).
 */
int resource_check_match(const struct resource *resource,
                         const char *if_match,
                         const char *if_none_match,
                         struct err *e);

#endif
