/* The OpenAPI document and the small pages, made from the table of routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include <ctype.h>
#include <string.h>

static json_t *path_params(const char *pattern)
{
    json_t *out = json_array();

    for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{')) {
        size_t len = strcspn(p + 1, "}");
        json_t *param = json_pack("{s:s%, s:s, s:b, s:{s:s}}", "name", p + 1, len, "in", "path",
                                  "required", 1, "schema", "type", "string");

        json_array_append_new(out, param);
    }
    return out;
}

static json_t *shape_route(const struct api_route *r)
{
    json_t *out =
        json_pack("{s:s, s:s, s:s, s:o, s:{s:{s:s}, s:{s:s, s:{s:{s:{s:s}}}}}}", "operationId",
                  r->operation_id, "summary", r->summary, "x-permission",
                  access_permission_name(r->permission), "parameters",
                  path_params(r->route.pattern), "responses", "2XX", "description",
                  "done or accepted", "default", "description", "the error envelope", "content",
                  "application/json", "schema", "$ref", "#/components/schemas/Error");

    if (r->permission == ACCESS_PUBLIC)
        json_object_set_new(out, "security", json_array());
    if (r->body == BODY_JSON || r->body == BODY_FORM)
        json_object_set_new(out, "requestBody",
                            json_pack("{s:{s:{s:{s:s}}}}", "content",
                                      r->body == BODY_JSON
                                          ? "application/json"
                                          : "application/x-www-form-urlencoded",
                                      "schema", "type", "object"));
    return out;
}

char *api_openapi(const char *version)
{
    auto_json json_t *paths = json_object();
    auto_json json_t *document = NULL;
    auto_str text = {0};

    for (size_t i = 0; i < api_route_count; i++) {
        const struct api_route *r = &api_routes[i];
        json_t *path = json_object_get(paths, r->route.pattern);
        auto_free char *method = str_lower(r->route.method);

        if (!path) {
            path = json_object();
            json_object_set_new(paths, r->route.pattern, path);
        }
        json_object_set_new(path, method, shape_route(r));
    }
    document = json_pack(
        "{s:s, s:{s:s, s:s, s:s}, s:[{s:[]}], s:O,"
        " s:{s:{s:{s:s, s:s}}, s:{s:{s:s, s:{s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}}}}}}}",
        "openapi", "3.0.3", "info", "title", "Trainyard", "version", version, "description",
        "Segments of a path are matched without case; every api-version is taken.", "security",
        "bearer", "paths", paths, "components", "securitySchemes", "bearer", "type", "http",
        "scheme", "bearer", "schemas", "Error", "type", "object", "properties", "error", "type",
        "object", "properties", "code", "type", "string", "message", "type", "string", "target",
        "type", "string");
    json_write(&text, document);
    return str_take(&text);
}

void handle_openapi(struct call *call)
{
    reply_text(call, 200, "application/json; charset=utf-8", call->api->openapi);
}

void handle_health(struct call *call)
{
    reply_json(call, 200, json_pack("{s:s}", "status", "ok"));
}

void handle_page(struct call *call)
{
    http_reply_header(call->req, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    http_reply_header(call->req, "Referrer-Policy", "no-referrer");
    reply_text(call, 200, "text/html; charset=utf-8",
               "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
               "<title>Trainyard</title>"
               "<style>body{font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;"
               "padding:0 1em}code{background:#eee;padding:.1em .3em}</style>"
               "<h1>Trainyard is running</h1>"
               "<p>This is the service itself. Drive it with <code>yard</code>: begin with "
               "<code>yard status</code> and <code>yard --help</code>.</p>"
               "<p>The API is described in <a href=\"/openapi.json\">openapi.json</a>; every "
               "call wants the token that <code>yard status</code> points to.</p></html>\n");
}
