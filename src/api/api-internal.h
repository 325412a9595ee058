/* api-internal.h - a call on its way through the API, and what handlers answer with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef API_API_INTERNAL_H
#define API_API_INTERNAL_H

#include "api/api.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "control/principals.h"
#include "core/access.h"
#include "core/resource.h"
#include "http/request.h"
#include "http/router.h"
#include "store/pool.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct batchai_spec;
struct blobs;
struct cache;
struct call;
struct files;
struct follows;
struct stream;
struct wire;

#define CALL_SAS_VERSION "2021-12-02" /* understood by every client seen */

enum body_kind {
    BODY_NONE, /* whatever comes is thrown away */
    BODY_JSON, /* an object; an absent body is an empty object */
    BODY_FORM, /* application/x-www-form-urlencoded, into call->body as strings */
    BODY_OWN,  /* the handler reads it itself, as a stream */
};

/* One row of the table.  The first member is the router's. */
struct api_route {
    struct http_route route;
    const char *operation_id;
    void (*handle)(struct call *call);
    enum access_permission permission;
    enum body_kind body;
    const char *summary;
};

extern const struct api_route api_routes[];
extern const size_t api_route_count;

enum {
    METRIC_CLASSES = 6, /* 1xx .. 5xx, by the first digit */
    METRIC_BUCKETS = 12,
};

struct api {
    struct api_config config;
    struct http_router *router;
    struct http_server *server;
    const char *blob_url, *file_url;
    struct blobs *blobs; /* NULL in a house without storage */
    struct files *files;
    int64_t started_ms;
    atomic_ullong *counts;                 /* [route][class] */
    atomic_ullong latency[METRIC_BUCKETS]; /* requests by duration */
    atomic_ullong latency_us_total;
    atomic_ullong refused[3]; /* 401, 403, 421 */
    char *openapi;
    struct cache *cache;
    struct follows *follows;
    pthread_mutex_t errands_lock;
    pthread_cond_t errands_over;
    size_t errands; /* threads that work; see api_wait */
};

/* One request with all that is known of it.  Lives in the request's arena. */
struct call {
    struct api *api;
    struct http_req *req;
    struct arena *arena;
    const struct api_route *route;
    struct http_match match;
    struct identity who;   /* zeroed for public routes */
    const char *group_key; /* of the group in the path, or "" */
    json_t *body;          /* BODY_JSON, BODY_FORM; dropped with the arena */
    int64_t started_us;
    struct stream *stream; /* of job-log.c */
};

static inline const char *call_param(const struct call *call, const char *name)
{
    return http_match_param(&call->match, name);
}

/* --- reply.c --- */

/* Reply with JSON; takes the reference.  Content type and the usual headers are added. */
void reply_json(struct call *call, int status, json_t *body);
void reply_empty(struct call *call, int status);
void reply_text(struct call *call, int status, const char *type, const char *text);
/* Cache-Control and the like, for replies that are not made here. */
void reply_usual_headers(struct call *call);
/* The error envelope that the SDKs parse. */
void reply_error(struct call *call, const struct err *e);
/* A resource in its wire form with ETag and Last-Modified. */
void reply_resource(struct call *call, int status, const struct resource *resource);
/* The same for a GET, which honours If-None-Match, from a form made before. */
void reply_wire(struct call *call, const struct wire *wire);
/* 202 with Azure-AsyncOperation, Location and Retry-After. */
void reply_accepted(struct call *call, const struct operation *operation);
/* "https://host:port" as the client wrote it; in the arena. */
const char *call_base_url(struct call *call);

/* --- shape.c: resources in their wire form --- */

/* db is for kinds whose states are rows of their own. */
int shape_resource(struct str *out,
                   const struct api *api,
                   struct db *db,
                   const struct resource *resource,
                   struct err *e);
json_t *shape_time(int64_t wall_ms); /* a new reference */
/* ,"name":value; nothing for a NULL value. */
void shape_add(struct str *out, const char *name, const char *value);
void shape_add_time(struct str *out, const char *name, int64_t wall_ms);
void shape_add_value(struct str *out, const char *name, const json_t *value);
void shape_write_time(struct str *out, int64_t wall_ms);
/* All before the properties, with an open brace. */
void shape_add_envelope(struct str *out, const struct resource *resource);

/* --- shape-batchai.c --- */

int shape_cluster(struct str *out,
                  struct db *db,
                  const struct resource *resource,
                  struct err *e);
int shape_job(struct str *out, struct db *db, const struct resource *resource, struct err *e);
void shape_file_server(struct str *out, const struct api *api, const struct resource *resource);

/* --- change.c: handing a change to control and answering when it is done --- */

/* A change that knows who asks. */
struct control_change *call_change(struct call *call);
/* Call reply(call, change, why) on the request's thread after the commit; then free the change.
 */
void call_when_done(struct call *call,
                    struct control_change *change,
                    void (*reply)(struct call *call,
                                  struct control_change *change,
                                  const struct err *why));
/* Record a refusal that control never saw.  Does not wait. */
void call_record_refusal(struct call *call, const struct err *why);
/* The same, and answer with it. */
void call_refuse(struct call *call, const struct err *why);
/* Record that a secret was told or a signature made: nothing changed, but an audit wants to
 * know. */
void call_record_use(struct call *call);
/* The replies most handlers want: the resource (201 when created and say_created), or the
 * operation. */
void call_reply_put(struct call *call, struct control_change *change, const struct err *why);
void call_reply_delete(struct call *call, struct control_change *change, const struct err *why);

/* --- errand.c --- */

/* Embedded in what the work needs; see container_of. */
struct errand {
    struct call *call;
    void (*work)(struct errand *errand);   /* on a thread of its own; a failure goes into e */
    void (*answer)(struct errand *errand); /* back on the request's, unless it failed */
    void (*done)(struct errand *errand);   /* frees it, last */
    bool is_change;                        /* a failure is recorded */
    struct err e;
};
void errand_start(struct errand *errand);
/* Answer at once, without work: for what fails before it. */
void errand_answer(struct errand *errand);

/* --- ask.c --- */

/* Embedded in what the answer needs, which is in the call's arena; see container_of. */
struct call_question {
    struct call *call;
    /* On control's thread: neither the call nor its arena may be changed.  A failure goes into
     * e. */
    void (*ask)(struct call_question *question, const struct control_view *view);
    void (*answer)(
        struct call_question *question); /* back on the request's, unless it failed */
    json_t *result;                      /* dropped with the call */
    struct err e;
};
void call_ask(struct call_question *question);

/* --- specs.c --- */

/* PUT of a cluster, file server or job; references to the spec's JSON are kept. */
void call_put_spec(struct call *call, enum resource_kind kind, const struct batchai_spec *spec);
/* Are the accounts and file servers that volumes name in this yard?  where: their place in the
 * body, for the error. */
int call_check_volumes(struct call *call, const json_t *kept, const char *where, struct err *e);
/* The key of the group that an id belongs to; in the arena. */
const char *call_group_key(struct call *call, const char *arm_id);

/* --- resources.c: what the handlers of all kinds share --- */

/* Find the resource of the path, or fail with its kind's 404 (its parents' first). */
int call_find(struct call *call,
              enum resource_kind kind,
              struct resource **ret_resource,
              struct err *e);
/* ARM ids from the path's parameters; in the arena. */
const char *call_arm_id(struct call *call, enum resource_kind kind);
const char *call_parent_id(struct call *call, enum resource_kind kind);
const char *call_name(struct call *call, enum resource_kind kind);
/* GET, PUT, PATCH and DELETE of a kind.  The put's kind, parent, name and conditions are filled
 * in. */
void call_get(struct call *call, enum resource_kind kind);
void call_put(struct call *call, enum resource_kind kind, struct control_put *put);
void call_delete(struct call *call, enum resource_kind kind, bool at_once);
/* A whole number in the query, `least` to `most`; *ret_number stays when it is not given. */
int call_read_number(struct call *call,
                     const char *name,
                     int64_t least,
                     int64_t most,
                     int64_t *ret_number,
                     struct err *e);
/* location (required or not) and tags of a body, checked, into put. */
int call_read_location(struct call *call,
                       bool required,
                       const char **ret_location,
                       struct err *e);
int call_read_tags(struct call *call, json_t **ret_tags, struct err *e);
/* List what the filter says, the page the query says, only what the caller may see. */
void call_list(struct call *call, struct store_filter *filter);
/* List the children of a resource of the path, which must be there. */
void call_list_below(struct call *call, enum resource_kind parent, enum resource_kind kind);
/* ,"nextLink":"...": this very request, from after `last`; and what it says there, in the
 * arena; *ret_last stays when it says nothing. */
void call_add_next_link(struct call *call, const char *last, struct str *out);
int call_read_skip_text(struct call *call, const char **ret_last, struct err *e);
int call_read_skip(struct call *call, int64_t *ret_after, struct err *e); /* the id of a row */

/* --- filter.c --- */

struct odata_filter {
    const char *tag, *tag_value, *type, *name;
};
/* "tagName eq 'x' and tagValue eq 'y'", "resourceType eq 'z'", "name eq 'n'"; in the arena. A
 * value without its tag is refused. */
int odata_parse(struct arena *arena, const char *text, struct odata_filter *ret, struct err *e);

/* --- auth.c --- */

int auth_check_host(struct api *api, struct http_req *req, struct err *e);
int auth_identify(struct call *call, struct err *e);

/* --- the handlers, by file --- */

void handle_health(struct call *call);
void handle_page(struct call *call);
void handle_openapi(struct call *call);
void handle_metrics(struct call *call);

void handle_token(struct call *call);
void handle_openid(struct call *call);
void handle_discovery(struct call *call);

void handle_tenants(struct call *call);
void handle_subscriptions(struct call *call);
void handle_subscription(struct call *call);
void handle_locations(struct call *call);

void handle_providers(struct call *call);
void handle_provider(struct call *call);
void handle_provider_register(struct call *call);

void handle_group_put(struct call *call);
void handle_group_get(struct call *call);
void handle_group_head(struct call *call);
void handle_group_patch(struct call *call);
void handle_group_delete(struct call *call);
void handle_group_list(struct call *call);
void handle_resource_list(struct call *call);
void handle_group_resource_list(struct call *call);

void handle_account_put(struct call *call);
void handle_account_get(struct call *call);
void handle_account_patch(struct call *call);
void handle_account_delete(struct call *call);
void handle_account_list(struct call *call);
void handle_account_list_by_group(struct call *call);
void handle_account_name(struct call *call);
void handle_account_keys(struct call *call);
void handle_account_rotate(struct call *call);
void handle_account_sas(struct call *call);
void handle_service_sas(struct call *call);

void handle_batchai_operations(struct call *call);
void handle_batchai_usages(struct call *call);
void handle_workspace_put(struct call *call);
void handle_workspace_get(struct call *call);
void handle_workspace_patch(struct call *call);
void handle_workspace_delete(struct call *call);
void handle_workspace_list(struct call *call);
void handle_workspace_list_by_group(struct call *call);
void handle_experiment_put(struct call *call);
void handle_experiment_get(struct call *call);
void handle_experiment_delete(struct call *call);
void handle_experiment_list(struct call *call);

void handle_cluster_put(struct call *call);
void handle_cluster_get(struct call *call);
void handle_cluster_patch(struct call *call);
void handle_cluster_delete(struct call *call);
void handle_cluster_list(struct call *call);
void handle_cluster_login(struct call *call);
void handle_file_server_put(struct call *call);
void handle_file_server_get(struct call *call);
void handle_file_server_delete(struct call *call);
void handle_file_server_list(struct call *call);
void handle_job_put(struct call *call);
void handle_job_get(struct call *call);
void handle_job_delete(struct call *call);
void handle_job_list(struct call *call);
void handle_job_terminate(struct call *call);
void handle_job_login(struct call *call);
void handle_output_files(struct call *call);
void handle_job_log(struct call *call);
void handle_job_why(struct call *call);
void handle_all_jobs(struct call *call);
void handle_top(struct call *call);
void handle_image_list(struct call *call);
void handle_image_put(struct call *call);
void handle_image_delete(struct call *call);

void handle_operation_result(struct call *call);
void handle_operation_status(struct call *call);

void handle_token_put(struct call *call);
void handle_token_list(struct call *call);
void handle_token_delete(struct call *call);
void handle_audit(struct call *call);
void handle_doctor(struct call *call);
void handle_backup(struct call *call);
void handle_restore(struct call *call);

/* metrics.c */
void metrics_count(struct call *call, int status);

#endif
