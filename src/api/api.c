/* The way of a request from its head to its handler.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/cache.h"
#include "api/follow.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "core/names.h"

#include <string.h>
#include <strings.h>

/* On control's thread. */
static void job_changed(int64_t job_id, enum job_state state, void *context)
{
    struct api *api = context;

    if (job_is_final(state))
        follows_job_ended(api->follows, job_id);
}

struct api *api_new(const struct api_config *config)
{
    struct api *api = xcalloc(1, sizeof(*api));

    api->config = *config;
    api->started_ms = clock_wall_ms();
    api->counts = xcalloc(api_route_count * METRIC_CLASSES, sizeof(*api->counts));
    api->openapi = api_openapi(YARD_VERSION);
    api->cache = cache_new();
    api->follows = follows_new();
    pthread_mutex_init(&api->errands_lock, NULL);
    pthread_cond_init(&api->errands_over, NULL);
    api->router = http_router_new();
    for (size_t i = 0; i < api_route_count; i++)
        http_router_add(api->router, &api_routes[i].route);
    if (config->control)
        control_watch_jobs(config->control, job_changed, api);
    return api;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    http_router_free(api->router);
    free(api->counts);
    free(api->openapi);
    cache_free(api->cache);
    follows_free(api->follows);
    pthread_mutex_destroy(&api->errands_lock);
    pthread_cond_destroy(&api->errands_over);
    free(api);
}

void api_set_server(struct api *api, struct http_server *server)
{
    api->server = server;
}

void api_set_storage(struct api *api, const char *blob_url, const char *file_url)
{
    api->blob_url = blob_url;
    api->file_url = file_url;
}

void api_set_stores(struct api *api, struct blobs *blobs, struct files *files)
{
    api->blobs = blobs;
    api->files = files;
}

void api_cut_streams(struct api *api)
{
    follows_cut(api->follows);
}

static bool changes_state(const struct call *call)
{
    const char *method = http_req_method(call->req);

    return !str_equal(method, "GET") && !str_equal(method, "HEAD");
}

/* The group that the path names, as a key; and is the subscription a UUID at all? */
static int read_scope(struct call *call, struct err *e)
{
    const char *subscription = NULL, *group = NULL;

    for (size_t i = 0; i < call->match.count; i++) {
        if (str_equal(call->match.names[i], "subscriptionId"))
            subscription = call->match.values[i];
        else if (str_equal(call->match.names[i], "resourceGroupName"))
            group = call->match.values[i];
    }
    call->group_key = "";
    if (subscription && names_check_subscription(subscription, e) < 0)
        return -1;
    if (subscription && group)
        call->group_key = resource_key(
            call->arena,
            resource_child_id(call->arena, RESOURCE_GROUP,
                              resource_subscription_id(call->arena, subscription), group));
    return 0;
}

static int authorise(struct call *call, struct err *e)
{
    if (access_allows(call->who.role, call->who.scope, call->route->permission,
                      call->group_key))
        return 0;
    /* Who may not see a group is not told that it exists. */
    if (*call->group_key && !access_sees(call->who.scope, call->group_key))
        return resource_not_found(e, RESOURCE_GROUP, call_param(call, "resourceGroupName"));
    return err_set(e, ERR_FORBIDDEN,
                   "the token \"%s\" has the role %s%s and may not do %s, which needs the "
                   "permission \"%s\"; ask an owner of the yard",
                   call->who.name, access_role_name(call->who.role),
                   *call->who.scope ? " of one resource group" : "", call->route->operation_id,
                   access_permission_name(call->route->permission));
}

static void drop_body(void *body)
{
    json_decref(body);
}

static int parse_form(struct call *call, const char *text, struct err *e)
{
    char *saved = NULL, *copy = arena_strdup(call->arena, text);

    call->body = json_object();
    arena_defer(call->arena, drop_body, call->body);
    for (char *part = strtok_r(copy, "&", &saved); part; part = strtok_r(NULL, "&", &saved)) {
        char *equals = strchr(part, '=');
        auto_str name = {0}, value = {0};

        if (!equals)
            continue;
        if (text_percent_decode(&name, part, (size_t)(equals - part), true, e) < 0 ||
            text_percent_decode(&value, equals + 1, strlen(equals + 1), true, e) < 0)
            return -1;
        json_object_set_new(call->body, str_text(&name), json_string(str_text(&value)));
    }
    return 0;
}

static int parse_json(struct call *call, const char *text, size_t len, struct err *e)
{
    if (strspn(text, " \t\r\n") == len)
        call->body = json_object();
    else if (json_parse(text, len, &call->body, e) < 0)
        return -1;
    arena_defer(call->arena, drop_body, call->body);
    if (!json_is_object(call->body)) {
        err_set(e, ERR_INVALID, "the body must be a JSON object, not %s",
                json_type_name(call->body));
        return err_reason(e, "InvalidRequestContent");
    }
    return 0;
}

/* A form that a foreign page posts cannot have our content types without the browser asking
 * first. */
static int check_type(struct call *call, const char *wanted, struct err *e)
{
    const char *type = http_req_header(call->req, "Content-Type");

    /* Parameters such as a charset may follow; another word may not. */
    if (type && str_starts_nocase(type, wanted) && strchr("; \t", type[strlen(wanted)]))
        return 0;
    return err_set(e, ERR_MEDIA, "Content-Type: expected %s, got %.100s", wanted,
                   type ? type : "none");
}

static int parse_body(struct call *call, struct err *e)
{
    size_t len;
    const char *text = http_req_body(call->req, &len);

    if (call->route->body == BODY_FORM)
        return check_type(call, "application/x-www-form-urlencoded", e) < 0
                   ? -1
                   : parse_form(call, text, e);
    if (len > 0 && check_type(call, "application/json", e) < 0)
        return -1;
    return parse_json(call, text, len, e);
}

static void refuse(struct call *call, const struct err *e)
{
    /* Strangers fill no tables: without a name there is no record but the log and the metrics.
     */
    if (changes_state(call) && call->who.name[0])
        call_record_refusal(call, e);
    reply_error(call, e);
}

static void body_ready(struct http_req *req)
{
    struct call *call = http_req_context(req);
    struct err e = {0};

    if (parse_body(call, &e) < 0)
        refuse(call, &e);
    else
        call->route->handle(call);
}

/* Everything before the body.  -1: answer with e. */
static int admit(struct call *call, struct err *e)
{
    const char *allow = NULL;

    if (auth_check_host(call->api, call->req, e) < 0)
        return -1;
    if (http_router_find(call->api->router, http_req_method(call->req),
                         http_req_raw_path(call->req), call->arena, &call->match, &allow,
                         e) < 0) {
        if (allow)
            http_reply_header(call->req, "Allow", allow);
        return -1;
    }
    call->route = (const struct api_route *)(const void *)call->match.route;
    if (call->route->permission == ACCESS_PUBLIC)
        return 0;
    if (auth_identify(call, e) < 0)
        return -1;
    if (read_scope(call, e) < 0)
        return -1;
    return authorise(call, e);
}

void api_on_request(struct http_req *req, void *context)
{
    struct call *call = arena_alloc(http_req_arena(req), sizeof(*call));
    struct err e = {0};

    call->api = context;
    call->req = req;
    call->arena = http_req_arena(req);
    call->started_us = clock_mono_us();
    http_req_set_context(req, call);
    if (admit(call, &e) < 0) {
        refuse(call, &e);
    } else if (call->route->body == BODY_JSON || call->route->body == BODY_FORM) {
        http_req_collect(req, call->api->config.max_body_bytes, body_ready);
    } else {
        call->route->handle(call);
    }
}

void api_on_done(struct http_req *req, int status, uint64_t bytes_out, void *context)
{
    struct call *call = http_req_context(req);

    (void)context;
    if (!call)
        return;
    metrics_count(call, status);
    log_debug("event=request id=%s peer=%s method=%s path=%s operation=%s principal=%s "
              "status=%d bytes=%llu us=%lld",
              http_req_id(req), http_req_peer(req), http_req_method(req),
              http_req_raw_path(req), call->route ? call->route->operation_id : "-",
              call->who.name[0] ? call->who.name : "-", status, (unsigned long long)bytes_out,
              (long long)(clock_mono_us() - call->started_us));
}
