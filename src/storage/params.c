/* params.c - headers and query parameters as the values they stand for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-proto.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/mem.h"
#include "base/text.h"
#include "http/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_METADATA_BYTES = 8 * 1024,
    MD5_BYTES = 16,
    CRC64_BYTES = 8,
};

/* --- plain --- */

/* strcasecmp knows of locales, and costs accordingly.  Most names differ in their first letter.
 */
static bool is_name(const char *a, const char *b)
{
    return (*a | 32) == (*b | 32) && strcasecmp(a, b) == 0;
}

const char *storage_header(const struct storage_call *call, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < call->header_count; i++) {
        if (!is_name(call->headers[i].name, name))
            continue;
        value = !value ? call->headers[i].value
                       : arena_printf(call->arena, "%s,%s", value, call->headers[i].value);
    }
    return value;
}

const char *storage_query(const struct storage_call *call, const char *name)
{
    for (size_t i = 0; i < call->param_count; i++)
        if (is_name(call->params[i].name, name))
            return call->params[i].value;
    return NULL;
}

bool storage_is_since(const struct storage_call *call, const char *version)
{
    return strcmp(call->version, version) >= 0;
}

static int bad_header(struct err *e, const char *name, const char *value)
{
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                   "\"%.64s\" is not a value for the header %s", value, name);
    return err_target(e, name);
}

const char *storage_need_header(struct storage_call *call, const char *name, struct err *e)
{
    const char *value = storage_header(call, name);

    if (value && *value)
        return value;
    storage_refuse(e, ERR_INVALID, "MissingRequiredHeader", "the header %s is missing", name);
    err_target(e, name);
    return NULL;
}

/* A whole number and nothing else. */
static bool parse_int(const char *text, int64_t *ret)
{
    char *end;

    if (!isdigit((unsigned char)*text) && *text != '-')
        return false;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && end != text && !*end;
}

int storage_header_int(struct storage_call *call,
                       const char *name,
                       int64_t least,
                       int64_t most,
                       int64_t *ret,
                       struct err *e)
{
    const char *text = storage_header(call, name);
    int64_t value;

    if (!text || !*text)
        return 0;
    if (!parse_int(text, &value) || value < least || value > most)
        return bad_header(e, name, text);
    *ret = value;
    return 0;
}

int storage_query_int(struct storage_call *call,
                      const char *name,
                      int64_t least,
                      int64_t most,
                      int64_t *ret,
                      struct err *e)
{
    const char *text = storage_query(call, name);
    int64_t value;

    if (!text || !*text)
        return 0;
    if (!parse_int(text, &value)) {
        storage_refuse(e, ERR_INVALID, "InvalidQueryParameterValue", "%s=%.64s is not a number",
                       name, text);
        return err_target(e, name);
    }
    if (value < least || value > most) {
        storage_refuse(e, ERR_INVALID, "OutOfRangeQueryParameterValue",
                       "%s must be from %lld to %lld", name, (long long)least, (long long)most);
        return err_target(e, name);
    }
    *ret = value;
    return 0;
}

bool storage_query_has(const struct storage_call *call, const char *name, const char *word)
{
    const char *p = storage_query(call, name);
    size_t len = strlen(word);

    while (p && *p) {
        p += strspn(p, ", ");
        if (strncasecmp(p, word, len) == 0 && (!p[len] || strchr(", ", p[len])))
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

/* --- conditions --- */

static int
read_date(struct storage_call *call, const char *name, int64_t *ret_ms, struct err *e)
{
    const char *text = storage_header(call, name);

    if (!text || !*text || clock_parse_http(text, ret_ms, NULL) == 0)
        return 0;
    return bad_header(e, name, text);
}

static const char *not_empty(const char *text)
{
    return text && *text ? text : NULL;
}

int storage_conditions(struct storage_call *call,
                       const char *prefix,
                       struct conditions *ret_conditions,
                       struct err *e)
{
    const char *names[4] = {"If-Match", "If-None-Match", "If-Modified-Since",
                            "If-Unmodified-Since"};
    struct conditions c = {0};
    const char *lease;

    for (size_t i = 0; *prefix && i < ARRAY_SIZE(names); i++)
        names[i] = arena_printf(call->arena, "%s%s", prefix, names[i]);
    c.if_match = not_empty(storage_header(call, names[0]));
    c.if_none_match = not_empty(storage_header(call, names[1]));
    if (read_date(call, names[2], &c.if_modified_since_ms, e) < 0 ||
        read_date(call, names[3], &c.if_unmodified_since_ms, e) < 0)
        return -1;
    if (!*prefix) {
        lease = not_empty(storage_header(call, "x-ms-lease-id"));
        if (lease && !crypt_is_uuid(lease))
            return bad_header(e, "x-ms-lease-id", lease);
        c.lease_id = lease;
        c.if_tags = not_empty(storage_header(call, "x-ms-if-tags"));
    }
    *ret_conditions = c;
    return 0;
}

/* --- metadata --- */

/* Names become members of programs: letters, digits, '_', and no digit in front. */
static bool is_identifier(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static void drop_json(void *p)
{
    json_decref(p);
}

json_t *storage_keep_json(struct storage_call *call, json_t *value)
{
    if (value)
        arena_defer(call->arena, drop_json, value);
    return value;
}

/* The name in the object that differs in case only, as header names do not. */
static const char *same_name(json_t *object, const char *name)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) if (strcasecmp(key, name) == 0) return key;
    return name;
}

static int add_metadata(json_t *object, const char *name, const char *value, struct err *e)
{
    const char *key = same_name(object, name);
    const char *before = json_string_value(json_object_get(object, key));
    auto_free char *joined = before ? xasprintf("%s,%s", before, value) : NULL;

    if (!is_identifier(name) || !text_is_utf8(value, strlen(value)))
        return storage_refuse(e, ERR_INVALID, "InvalidMetadata",
                              "\"%.64s\" is no name or value for metadata", name);
    json_object_set_new(object, key, json_string(joined ? joined : value));
    return 0;
}

int storage_metadata(struct storage_call *call,
                     bool never_null,
                     json_t **ret_metadata,
                     struct err *e)
{
    static const char prefix[] = "x-ms-meta-";
    json_t *object = storage_keep_json(call, json_object());
    size_t bytes = 0;

    for (size_t i = 0; i < call->header_count; i++) {
        const struct sharedkey_header *header = &call->headers[i];

        if (!str_starts_nocase(header->name, prefix))
            continue;
        if (!header->name[strlen(prefix)])
            return storage_refuse(e, ERR_INVALID, "EmptyMetadataKey",
                                  "metadata needs a name after x-ms-meta-");
        bytes += strlen(header->name) - strlen(prefix) + strlen(header->value);
        if (add_metadata(object, header->name + strlen(prefix), header->value, e) < 0)
            return -1;
    }
    if (bytes > MOST_METADATA_BYTES)
        return storage_refuse(e, ERR_INVALID, "MetadataTooLarge",
                              "the metadata is larger than %d bytes", MOST_METADATA_BYTES);
    *ret_metadata = never_null || json_object_size(object) ? object : NULL;
    return 0;
}

/* --- ranges and hashes --- */

int storage_range(struct storage_call *call,
                  int64_t size,
                  int64_t *ret_first,
                  int64_t *ret_len,
                  struct err *e)
{
    const char *text = not_empty(storage_header(call, "x-ms-range"));
    uint64_t first, len;
    int rc;

    if (!text)
        text = not_empty(storage_header(call, "Range"));
    if (!text)
        return 0;
    rc = http_range_parse(text, (uint64_t)size, &first, &len, e);
    if (rc < 0) {
        storage_reply_headerf(call, "Content-Range", "bytes */%lld", (long long)size);
        return err_reason(e, "InvalidRange");
    }
    if (rc > 0) {
        *ret_first = (int64_t)first;
        *ret_len = (int64_t)len;
    }
    return rc;
}

static int check_hash(const char *text, size_t want, const char *reason, struct err *e)
{
    auto_str raw = {0};

    if (!text || (text_base64_decode(&raw, text, NULL) == 0 && raw.len == want))
        return 0;
    return storage_refuse(e, ERR_INVALID, reason, "\"%.64s\" is not the base64 of %zu bytes",
                          text, want);
}

int storage_hashes(struct storage_call *call,
                   const char **ret_md5,
                   const char **ret_crc64,
                   struct err *e)
{
    const char *md5 = not_empty(storage_header(call, "Content-MD5"));
    const char *crc64 = not_empty(storage_header(call, "x-ms-content-crc64"));

    if (md5 && crc64)
        return storage_refuse(e, ERR_INVALID, "BothCrc64AndMd5HeaderPresent",
                              "Content-MD5 and x-ms-content-crc64 exclude each other");
    if (check_hash(md5, MD5_BYTES, "InvalidMd5", e) < 0 ||
        check_hash(crc64, CRC64_BYTES, "InvalidCrc64", e) < 0)
        return -1;
    *ret_md5 = md5;
    *ret_crc64 = crc64;
    return 0;
}

/* --- leases --- */

static int
read_id(struct storage_call *call, const char *name, const char **ret_id, struct err *e)
{
    const char *id = storage_need_header(call, name, e);

    if (!id)
        return -1;
    if (!crypt_is_uuid(id))
        return bad_header(e, name, id);
    *ret_id = id;
    return 0;
}

static int read_acquire(struct storage_call *call, struct lease_request *r, struct err *e)
{
    int64_t duration_s = 0;

    if (!storage_need_header(call, "x-ms-lease-duration", e) ||
        storage_header_int(call, "x-ms-lease-duration", -1, 60, &duration_s, e) < 0)
        return -1;
    if (duration_s != -1 && duration_s < 15)
        return bad_header(e, "x-ms-lease-duration",
                          storage_header(call, "x-ms-lease-duration"));
    r->duration_s = (int)duration_s;
    if (not_empty(storage_header(call, "x-ms-proposed-lease-id")))
        return read_id(call, "x-ms-proposed-lease-id", &r->id, e);
    r->id = crypt_uuid(arena_alloc(call->arena, CRYPT_UUID_BYTES));
    return 0;
}

static int read_break(struct storage_call *call, struct lease_request *r, struct err *e)
{
    int64_t break_s = -1;

    if (storage_header_int(call, "x-ms-lease-break-period", 0, 60, &break_s, e) < 0)
        return -1;
    r->break_s = (int)break_s;
    return 0;
}

static const struct {
    const char *name;
    enum lease_action action;
    int status;
} actions[] = {
    {"acquire", LEASE_ACQUIRE, 201}, {"renew", LEASE_RENEW, 200}, {"change", LEASE_CHANGE, 200},
    {"release", LEASE_RELEASE, 200}, {"break", LEASE_BREAK, 202},
};

int storage_lease_request(struct storage_call *call,
                          struct lease_request *ret_request,
                          struct err *e)
{
    const char *name = storage_need_header(call, "x-ms-lease-action", e);
    struct lease_request r = {.break_s = -1};
    size_t i = 0;
    int rc;

    if (!name)
        return -1;
    while (i < ARRAY_SIZE(actions) && strcasecmp(actions[i].name, name) != 0)
        i++;
    if (i == ARRAY_SIZE(actions))
        return bad_header(e, "x-ms-lease-action", name);
    r.action = actions[i].action;
    if (r.action == LEASE_ACQUIRE)
        rc = read_acquire(call, &r, e);
    else if (r.action == LEASE_BREAK)
        rc = read_break(call, &r, e);
    else
        rc = read_id(call, "x-ms-lease-id", &r.id, e);
    if (rc == 0 && r.action == LEASE_CHANGE)
        rc = read_id(call, "x-ms-proposed-lease-id", &r.proposed, e);
    if (rc < 0)
        return -1;
    *ret_request = r;
    return 0;
}

int storage_reply_lease(struct storage_call *call,
                        const struct lease_request *request,
                        const struct lease *lease,
                        int left_s)
{
    if (request->action == LEASE_BREAK)
        storage_reply_headerf(call, "x-ms-lease-time", "%d", left_s);
    else if (request->action != LEASE_RELEASE)
        storage_reply_header(call, "x-ms-lease-id", lease->id);
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (actions[i].action == request->action)
            return storage_reply(call, actions[i].status);
    return 0;
}
