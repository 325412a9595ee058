/* file-service.c - the service as a whole: its shares.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/clock.h"
#include "base/mem.h"
#include "storage/xml.h"

#include <string.h>

enum {
    MOST_SHARES = 5000,
};

struct listing {
    struct storage_call *call;
    bool metadata;
};

static void write_date(struct str *out, const char *name, int64_t ms)
{
    char text[CLOCK_HTTP_BYTES];

    xml_element(out, name, clock_format_http(ms, text));
}

static void on_share(const struct share *share, void *context)
{
    struct listing *listing = context;
    struct str *out = &listing->call->out_body;
    int64_t now_ms = listing->call->now_ms;
    const char *state = lease_state_name(&share->lease, now_ms);

    xml_open(out, "Share");
    xml_element(out, "Name", share->name);
    xml_open(out, "Properties");
    write_date(out, "Last-Modified", share->modified_ms);
    str_addf(out, "<Etag>\"%s\"</Etag>", share->etag);
    xml_number(out, "Quota", share->quota_gib);
    xml_element(out, "AccessTier", share->tier);
    write_date(out, "AccessTierChangeTime", share->created_ms);
    xml_element(out, "LeaseStatus",
                lease_is_locked(&share->lease, now_ms) ? "locked" : "unlocked");
    xml_element(out, "LeaseState", state);
    if (strcmp(state, "leased") == 0)
        xml_element(out, "LeaseDuration", share->lease.duration_s < 0 ? "infinite" : "fixed");
    xml_element(out, "EnabledProtocols", share->protocols);
    xml_close(out, "Properties");
    if (listing->metadata)
        storage_write_metadata(out, share->metadata);
    xml_close(out, "Share");
}

static void write_head(struct storage_call *call, int64_t most)
{
    const char *prefix = storage_query(call, "prefix"), *marker = storage_query(call, "marker");
    struct str *out = &call->out_body;

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
    xml_open(out, "Shares");
}

int file_op_list_shares(struct storage_call *call, struct err *e)
{
    struct listing listing = {call, storage_query_has(call, "include", "metadata")};
    const char *prefix = storage_query(call, "prefix"), *marker = storage_query(call, "marker");
    auto_free char *next = NULL;
    int64_t most = MOST_SHARES;

    if (storage_query_int(call, "maxresults", 1, INT32_MAX, &most, e) < 0)
        return -1;
    write_head(call, most);
    if (files_list_shares(files_of(call), call->account, prefix ? prefix : "",
                          marker ? marker : "",
                          (size_t)(most < MOST_SHARES ? most : MOST_SHARES), on_share, &listing,
                          &next, e) < 0)
        return -1;
    xml_close(&call->out_body, "Shares");
    xml_element(&call->out_body, "NextMarker", next);
    xml_close(&call->out_body, "EnumerationResults");
    return storage_reply_xml(call, 200);
}
