/* blob-service.c - the service as a whole: its containers, its state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>

enum {
    MOST_CONTAINERS = 5000,
};

struct listing {
    struct storage_call *call;
    bool metadata;
};

static void on_container(const struct container *container, void *context)
{
    struct listing *listing = context;
    struct str *out = &listing->call->out_body;
    int64_t now_ms = listing->call->now_ms;
    const char *state = lease_state_name(&container->lease, now_ms);

    xml_open(out, "Container");
    xml_element(out, "Name", container->name);
    xml_open(out, "Properties");
    xml_date(out, "Last-Modified", container->modified_ms);
    str_addf(out, "<Etag>\"%s\"</Etag>", container->etag);
    xml_element(out, "LeaseStatus",
                lease_is_locked(&container->lease, now_ms) ? "locked" : "unlocked");
    xml_element(out, "LeaseState", state);
    if (strcmp(state, "leased") == 0)
        xml_element(out, "LeaseDuration",
                    container->lease.duration_s < 0 ? "infinite" : "fixed");
    xml_bool(out, "HasImmutabilityPolicy", false);
    xml_bool(out, "HasLegalHold", false);
    xml_close(out, "Properties");
    if (listing->metadata)
        storage_write_metadata(out, container->metadata);
    xml_close(out, "Container");
}

int blob_op_list_containers(struct storage_call *call, struct err *e)
{
    struct listing listing = {call, storage_query_has(call, "include", "metadata")};
    const char *prefix = storage_query(call, "prefix"), *marker = storage_query(call, "marker");
    auto_free char *next = NULL;
    struct str *out = &call->out_body;
    int64_t most = MOST_CONTAINERS;

    if (storage_query_int(call, "maxresults", 1, INT32_MAX, &most, e) < 0)
        return -1;
    xml_begin(out);
    str_add(out, "<EnumerationResults ServiceEndpoint=\"");
    xml_text(out, storage_endpoint(call));
    str_add(out, "\">");
    if (prefix && *prefix)
        xml_name(out, "Prefix", prefix);
    if (marker && *marker)
        xml_name(out, "Marker", marker);
    if (storage_query(call, "maxresults"))
        xml_number(out, "MaxResults", most);
    xml_open(out, "Containers");
    if (blobs_list_containers(blobs_of(call), call->account, prefix ? prefix : "",
                              marker ? marker : "",
                              (size_t)(most < MOST_CONTAINERS ? most : MOST_CONTAINERS),
                              on_container, &listing, &next, e) < 0)
        return -1;
    xml_close(out, "Containers");
    xml_element(out, "NextMarker", next ? next : "");
    xml_close(out, "EnumerationResults");
    return storage_reply_xml(call, 200);
}

/* There is one copy of everything: the secondary is the primary, and always up to date. */
int blob_op_stats(struct storage_call *call, struct err *e)
{
    struct str *out = &call->out_body;

    if (!call->is_secondary)
        return storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue",
                              "comp=stats is for the secondary address only");
    xml_begin(out);
    xml_open(out, "StorageServiceStats");
    xml_open(out, "GeoReplication");
    xml_element(out, "Status", "live");
    xml_date(out, "LastSyncTime", call->now_ms);
    xml_close(out, "GeoReplication");
    xml_close(out, "StorageServiceStats");
    return storage_reply_xml(call, 200);
}
