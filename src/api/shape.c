/* Resources as the wire has them: the order of members, the spelling of states, nothing that is
 * null.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

json_t *shape_time(int64_t wall_ms)
{
    char text[CLOCK_ISO_BYTES];

    return json_string(clock_format_iso(wall_ms, text));
}

/* Written straight, and without formats: trees of JSON for a thousand rows of a list, or for
 * every write's answer, cost more than all the rest of the answer. */
static void add_name(struct str *out, const char *name)
{
    str_add_len(out, ",\"", 2);
    str_add(out, name);
    str_add_len(out, "\":", 2);
}

void shape_add(struct str *out, const char *name, const char *value)
{
    add_name(out, name);
    json_write_string(out, value, strlen(value));
}

void shape_write_time(struct str *out, int64_t wall_ms)
{
    char text[CLOCK_ISO_BYTES];

    str_add_char(out, '"');
    str_add(out, clock_format_iso(wall_ms, text));
    str_add_char(out, '"');
}

void shape_add_time(struct str *out, const char *name, int64_t wall_ms)
{
    add_name(out, name);
    shape_write_time(out, wall_ms);
}

void shape_add_value(struct str *out, const char *name, const json_t *value)
{
    if (!value)
        return;
    add_name(out, name);
    json_write(out, value);
}

void shape_add_envelope(struct str *out, const struct resource *r)
{
    str_add(out, "{\"id\":");
    json_write_string(out, r->arm_id, strlen(r->arm_id));
    shape_add(out, "name", r->name);
    shape_add(out, "type", resource_kind_info(r->kind)->type);
    if (r->location)
        shape_add(out, "location", r->location);
    shape_add_value(out, "tags", r->tags);
}

static void write_group(struct str *out, const struct resource *r)
{
    shape_add_envelope(out, r);
    str_addf(out, ",\"properties\":{\"provisioningState\":\"%s\"}}",
             r->state == RESOURCE_DELETING ? "Deleting" : "Succeeded");
}

static void write_batchai(struct str *out, const struct resource *r)
{
    shape_add_envelope(out, r);
    str_add(out, ",\"properties\":{\"provisioningState\":");
    str_add(out, r->state == RESOURCE_DELETING ? "\"deleting\"" : "\"succeeded\"");
    shape_add_time(out, "provisioningStateTransitionTime", r->state_ms);
    shape_add_time(out, "creationTime", r->created_ms);
    str_add(out, "}}");
}

/* "http://127.0.0.1:10000/account/" */
static json_t *shape_endpoint(const char *url, const struct resource *r)
{
    return json_sprintf("%s/%s/", url, r->name);
}

/* An account keeps what its client said in sku, kind and properties; the rest is told by the
 * server. */
static json_t *shape_account_properties(const struct api *api, const struct resource *r)
{
    json_t *properties =
        json_pack("{s:s, s:o, s:s, s:s}", "provisioningState", "Succeeded", "creationTime",
                  shape_time(r->created_ms), "primaryLocation", r->location ? r->location : "",
                  "statusOfPrimary", "available");

    if (api->blob_url)
        json_object_set_new(properties, "primaryEndpoints",
                            json_pack("{s:o, s:o}", "blob", shape_endpoint(api->blob_url, r),
                                      "file", shape_endpoint(api->file_url, r)));
    json_object_update(properties, json_object_get(r->properties, "properties"));
    return properties;
}

static void write_account(struct str *out, const struct api *api, const struct resource *r)
{
    auto_json json_t *properties = shape_account_properties(api, r);

    shape_add_envelope(out, r);
    if (!r->tags)
        str_add(out, ",\"tags\":{}");
    shape_add_value(out, "sku", json_object_get(r->properties, "sku"));
    shape_add_value(out, "kind", json_object_get(r->properties, "kind"));
    shape_add_value(out, "properties", properties);
    str_add_char(out, '}');
}

int shape_resource(struct str *out,
                   const struct api *api,
                   struct db *db,
                   const struct resource *r,
                   struct err *e)
{
    switch (r->kind) {
    case RESOURCE_GROUP:
        write_group(out, r);
        break;
    case RESOURCE_STORAGE_ACCOUNT:
        write_account(out, api, r);
        break;
    case RESOURCE_WORKSPACE:
    case RESOURCE_EXPERIMENT:
        write_batchai(out, r);
        break;
    case RESOURCE_CLUSTER:
        return shape_cluster(out, db, r, e);
    case RESOURCE_JOB:
        return shape_job(out, db, r, e);
    case RESOURCE_FILE_SERVER:
        shape_file_server(out, api, r);
        break;
    case RESOURCE_KINDS:
        assert(!"no kind");
    }
    return 0;
}
