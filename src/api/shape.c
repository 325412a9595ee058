/* Resources as the wire has them: the order of members, the spelling of states, nothing that is
 * null.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"

json_t *shape_time(int64_t wall_ms)
{
    char text[CLOCK_ISO_BYTES];

    return json_string(clock_format_iso(wall_ms, text));
}

static json_t *envelope(const struct resource *r)
{
    json_t *out = json_pack("{s:s, s:s, s:s}", "id", r->arm_id, "name", r->name, "type",
                            resource_kind_info(r->kind)->type);

    if (r->location)
        json_object_set_new(out, "location", json_string(r->location));
    if (r->tags)
        json_object_set(out, "tags", r->tags);
    return out;
}

static json_t *shape_group(const struct resource *r)
{
    json_t *out = envelope(r);

    json_object_set_new(out, "properties",
                        json_pack("{s:s}", "provisioningState",
                                  r->state == RESOURCE_DELETING ? "Deleting" : "Succeeded"));
    return out;
}

static json_t *shape_batchai(const struct resource *r)
{
    json_t *out = envelope(r);

    json_object_set_new(out, "properties",
                        json_pack("{s:s, s:o, s:o}", "provisioningState",
                                  r->state == RESOURCE_DELETING ? "deleting" : "succeeded",
                                  "provisioningStateTransitionTime", shape_time(r->state_ms),
                                  "creationTime", shape_time(r->created_ms)));
    return out;
}

/* An account keeps what its client said in sku, kind and properties; the rest is told by the
 * server. */
/* "http://127.0.0.1:10000/account/" */
static json_t *shape_endpoint(const char *url, const struct resource *r)
{
    return json_sprintf("%s/%s/", url, r->name);
}

static json_t *shape_account(const struct api *api, const struct resource *r)
{
    json_t *out = envelope(r);
    json_t *said = json_object_get(r->properties, "properties");
    json_t *properties =
        json_pack("{s:s, s:o, s:s, s:s}", "provisioningState", "Succeeded", "creationTime",
                  shape_time(r->created_ms), "primaryLocation", r->location ? r->location : "",
                  "statusOfPrimary", "available");

    if (!r->tags)
        json_object_set_new(out, "tags", json_object());
    json_object_set(out, "sku", json_object_get(r->properties, "sku"));
    json_object_set(out, "kind", json_object_get(r->properties, "kind"));
    if (api->blob_url)
        json_object_set_new(properties, "primaryEndpoints",
                            json_pack("{s:o, s:o}", "blob", shape_endpoint(api->blob_url, r),
                                      "file", shape_endpoint(api->file_url, r)));
    json_object_update(properties, said);
    json_object_set_new(out, "properties", properties);
    return out;
}

json_t *shape_resource(const struct api *api, const struct resource *r)
{
    switch (r->kind) {
    case RESOURCE_GROUP:
        return shape_group(r);
    case RESOURCE_STORAGE_ACCOUNT:
        return shape_account(api, r);
    case RESOURCE_WORKSPACE:
    case RESOURCE_EXPERIMENT:
        return shape_batchai(r);
    case RESOURCE_KINDS:
        break;
    }
    return envelope(r);
}
