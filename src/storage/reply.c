/* reply.c - what a call answers, and how an error looks on the wire.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/clock.h"
#include "base/mem.h"
#include "http/request.h"
#include "http/server.h"
#include "storage/xml.h"

#include <stdio.h>
#include <string.h>

/* Words of the protocol whose status the table of errors does not have. */
static const struct {
    const char *reason;
    int status;
} statuses[] = {
    {"ConditionNotMet", 412}, {"InvalidRange", 416},     {"MissingContentLengthHeader", 411},
    {"NotImplemented", 501},  {"InvalidPageRange", 416}, {"PublicAccessNotPermitted", 409},
};

/* What the protocol calls an error that has no word of its own. */
static const char *const words[ERR_CODES] = {
    [ERR_INVALID] = "InvalidInput",           [ERR_UNAUTHORIZED] = "InvalidAuthenticationInfo",
    [ERR_FORBIDDEN] = "AuthorizationFailure", [ERR_METHOD] = "UnsupportedHttpVerb",
    [ERR_PRECONDITION] = "ConditionNotMet",   [ERR_INTERNAL] = "InternalError",
    [ERR_MISDIRECT] = "InvalidHostName",      [ERR_TIMEOUT] = "OperationTimedOut",
};

int(storage_refuse)(
    struct err *e, enum err_code code, const char *reason, const char *format, ...)
{
    char text[sizeof(e->msg)];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    err_set(e, code, "%s", text);
    return err_reason(e, reason);
}

/* --- filling it in --- */

void storage_reply_header(struct storage_call *call, const char *name, const char *value)
{
    if (!value)
        return;
    if (call->out_count == call->out_room) {
        size_t room = call->out_room ? call->out_room * 2 : 32;
        struct storage_param *more = arena_alloc(call->arena, room * sizeof(*more));

        if (call->out_count)
            memcpy(more, call->out_headers, call->out_count * sizeof(*more));
        call->out_headers = more;
        call->out_room = room;
    }
    call->out_headers[call->out_count++] =
        (struct storage_param){name, arena_strdup(call->arena, value)};
}

void storage_reply_headerf(struct storage_call *call, const char *name, const char *format, ...)
{
    auto_str value = {0};
    va_list args;

    va_start(args, format);
    str_vaddf(&value, format, args);
    va_end(args);
    storage_reply_header(call, name, str_text(&value));
}

void storage_reply_date(struct storage_call *call, const char *name, int64_t wall_ms)
{
    char text[CLOCK_HTTP_BYTES];

    storage_reply_header(call, name, clock_format_http(wall_ms, text));
}

void storage_reply_etag(struct storage_call *call, const char *etag, int64_t modified_ms)
{
    char quoted[64];

    snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
    storage_reply_header(call, "ETag", quoted);
    storage_reply_date(call, "Last-Modified", modified_ms);
}

void storage_reply_metadata(struct storage_call *call, const json_t *metadata)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)metadata, name, value) storage_reply_header(
        call, arena_printf(call->arena, "x-ms-meta-%s", name), json_string_value(value));
}

void storage_write_metadata(struct str *out, const json_t *metadata)
{
    const char *name;
    json_t *value;

    if (!json_object_size(metadata)) {
        str_add(out, "<Metadata/>");
        return;
    }
    xml_open(out, "Metadata");
    json_object_foreach((json_t *)metadata, name, value)
        xml_element(out, name, json_string_value(value));
    xml_close(out, "Metadata");
}

void storage_reply_lease_state(struct storage_call *call, const struct lease *lease)
{
    const char *state = lease_state_name(lease, call->now_ms);

    storage_reply_header(call, "x-ms-lease-status",
                         lease_is_locked(lease, call->now_ms) ? "locked" : "unlocked");
    storage_reply_header(call, "x-ms-lease-state", state);
    if (strcmp(state, "leased") == 0)
        storage_reply_header(call, "x-ms-lease-duration",
                             lease->duration_s < 0 ? "infinite" : "fixed");
}

int storage_reply(struct storage_call *call, int status)
{
    call->status = status;
    return 0;
}

int storage_reply_xml(struct storage_call *call, int status)
{
    storage_reply_header(call, "Content-Type", "application/xml");
    return storage_reply(call, status);
}

int storage_reply_unchanged(struct storage_call *call)
{
    storage_reply_header(call, "x-ms-error-code", "ConditionNotMet");
    return storage_reply(call, 304);
}

/* --- errors --- */

static int status_of(const struct err *e, const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (strcmp(statuses[i].reason, word) == 0)
            return statuses[i].status;
    return err_info(e->code)->http_status;
}

/* Some errors name the header or parameter at fault in an element of its own. */
static void write_error(struct storage_call *call, const struct err *e, const char *word)
{
    struct str *out = &call->out_body;
    char now[CLOCK_ISO_BYTES];

    xml_begin(out);
    xml_open(out, "Error");
    xml_element(out, "Code", word);
    xml_open(out, "Message");
    xml_text(out, e->msg);
    str_addf(out, "\nRequestId:%s\nTime:%s", call->id, clock_format_iso(call->now_ms, now));
    xml_close(out, "Message");
    if (e->target[0])
        xml_element(out, strstr(word, "Query") ? "QueryParameterName" : "HeaderName",
                    e->target);
    xml_close(out, "Error");
}

void storage_reply_error(struct storage_call *call, const struct err *e)
{
    const char *word = e->reason        ? e->reason
                       : words[e->code] ? words[e->code]
                                        : err_reason_of(e);
    const char *range = NULL;
    int status = status_of(e, word);

    for (size_t i = 0; i < call->out_count; i++)
        if (strcmp(call->out_headers[i].name, "Content-Range") == 0)
            range = call->out_headers[i].value;
    call->out_count = 0;
    str_truncate(&call->out_body, 0);
    mem_close_fd(&call->out_fd);
    call->out_fd = -1;
    storage_reply_header(call, "x-ms-error-code", word);
    if (status == 416)
        storage_reply_header(call, "Content-Range", range);
    if (e->code == ERR_UNAUTHORIZED)
        storage_reply_header(call, "WWW-Authenticate", "Bearer realm=\"trainyard\"");
    if (strcmp(call->method, "HEAD") != 0) {
        write_error(call, e, word);
        storage_reply_header(call, "Content-Type", "application/xml");
    }
    call->status = status;
    call->out_length = 0;
}

/* --- sending it --- */

static void usual_headers(struct storage_call *call)
{
    storage_reply_header(call, "Server", "Trainyard-Storage/" YARD_VERSION);
    storage_reply_header(call, "x-ms-version", call->version);
    storage_reply_header(call, "x-ms-client-request-id",
                         storage_header(call, "x-ms-client-request-id"));
    /* What people stored is shown by nobody as something else than it says it is. */
    storage_reply_header(call, "X-Content-Type-Options", "nosniff");
}

void storage_send(struct storage_call *call)
{
    struct http_req *req = call->req;
    bool is_head = strcmp(call->method, "HEAD") == 0;

    usual_headers(call);
    if (storage_header(call, "Origin"))
        storage_reply_cors(call);
    for (size_t i = 0; i < call->out_count; i++)
        http_reply_header(req, call->out_headers[i].name, call->out_headers[i].value);
    if (call->out_fd >= 0)
        http_reply_file(req, call->status, take_fd(&call->out_fd), call->out_offset,
                        (size_t)call->out_length);
    else if (is_head && call->out_length)
        http_reply(req, call->status, NULL, (size_t)call->out_length);
    else
        http_reply(req, call->status, str_text(&call->out_body), call->out_body.len);
}

void storage_write_part(struct storage_call *call, struct str *out)
{
    usual_headers(call);
    str_addf(out, "HTTP/1.1 %d %s\r\n", call->status, http_status_text(call->status));
    str_addf(out, "x-ms-request-id: %s\r\n", call->id);
    for (size_t i = 0; i < call->out_count; i++)
        str_addf(out, "%s: %s\r\n", call->out_headers[i].name, call->out_headers[i].value);
    if (call->out_body.len)
        str_addf(out, "Content-Length: %zu\r\n", call->out_body.len);
    str_add(out, "\r\n");
    if (call->out_body.len) {
        str_add_len(out, str_text(&call->out_body), call->out_body.len);
        str_add(out, "\r\n");
    }
}
