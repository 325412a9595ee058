/* api.h - the REST surface: one table of routes, one file per resource.
 *
 * Every request takes the same way: Host is checked (421), the route is found (404, 405), the
 * token is known (401), the role allows it (403, or 404 when the caller may not even know), the
 * body is read and parsed (413, 415, 400); only then does the handler of the row see it.
 * Handlers read through the pool and change through control; none of them blocks a loop thread
 * on a disk.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef API_API_H
#define API_API_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct api; /* opaque */
struct blobs;
struct control;
struct files;
struct http_req;
struct http_server;
struct store_pool;
struct vault;

struct api_config {
    const char *home; /* the data folder */
    const char *db_path;
    const char *subscription_id, *tenant_id;
    struct control *control;
    struct store_pool *pool;
    const struct vault *vault;
    const char *const *hosts; /* names and addresses this yard answers to */
    size_t host_count;
    size_t max_body_bytes; /* of a JSON request */
    /* The files that a backup carries besides the database, relative to home; NULL ends. */
    const char *const *backup_files;
    /* Stop serving and start anew, to take over a restored database. */
    void (*restart)(void *context);
    /* Compare all stored data with what is known of it: one finding for what holds, one for
     * each that does not.  Waits for the disk.  May be NULL. */
    int (*scrub)(void (*finding)(const char *name, bool ok, const char *detail, void *to),
                 void *to,
                 void *context,
                 struct err *e);
    void *context;
};

/* The config's strings are borrowed until api_free. */
struct api *api_new(const struct api_config *config);
void api_free(struct api *api);
/* Wait for the work that requests began beside the loop threads: after the server was drained,
 * before anything of the config is freed.  Control tells the api nothing any more. */
void api_wait(struct api *api);
/* For metrics: the server whose connections are to be counted. */
void api_set_server(struct api *api, struct http_server *server);

/* Where the accounts' data is served, "http://127.0.0.1:10000"; borrowed. */
void api_set_storage(struct api *api, const char *blob_url, const char *file_url);
/* The data itself, for what jobs write; borrowed.  Without it output files cannot be seen. */
void api_set_stores(struct api *api, struct blobs *blobs, struct files *files);
/* Break off replies that would go on as long as a job does, so that a server can be drained;
 * their clients ask again.  Before http_server_drain. */
void api_cut_streams(struct api *api);

/* The callbacks of a struct http_config; the context is the api. */
void api_on_request(struct http_req *req, void *context);
void api_on_done(struct http_req *req, int status, uint64_t bytes_out, void *context);

/* The OpenAPI document as text; caller frees.  What /openapi.json serves. */
char *api_openapi(const char *version);

#endif
