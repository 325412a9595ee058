/* blob-batch.c - many deletions, or many changes of tier, in one request.
 *
 * The body is multipart/mixed, each part an HTTP request: a head of its own, a blank line, a
 * request line, headers.  Each part is done as if it had come alone, under a signature of its
 * own or under what the batch came with, and each has its own answer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/blob-ops.h"

#include "base/crypt.h"
#include "base/mem.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_PARTS = 256,
    MOST_HEADERS = 64,
};

struct part {
    const char *content_id; /* NULL = none */
    struct storage_call *call;
};

struct batch {
    struct storage_call *call;
    struct part parts[MOST_PARTS];
    size_t count;
};

static int bad_batch(struct err *e, const char *why)
{
    return storage_refuse(e, ERR_INVALID, "InvalidInput", "the batch makes no sense: %s", why);
}

/* --- reading --- */

/* The next line without its end, NUL-terminated in place; NULL at the end of the text. */
static char *next_line(char **text)
{
    char *line = *text, *end;

    if (!*line)
        return NULL;
    end = strchr(line, '\n');
    *text = end ? end + 1 : line + strlen(line);
    if (!end)
        end = line + strlen(line);
    *end = '\0';
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    return line;
}

/* "name: value"; false when it is none. */
static bool split_header(char *line, struct sharedkey_header *ret)
{
    char *colon = strchr(line, ':'), *value;
    size_t len;

    if (!colon || colon == line)
        return false;
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    len = strlen(value);
    while (len && isspace((unsigned char)value[len - 1]))
        value[--len] = '\0';
    *ret = (struct sharedkey_header){line, value};
    return true;
}

/* "DELETE /container/blob?query HTTP/1.1" */
static bool split_request(char *line, char **ret_method, char **ret_path, char **ret_query)
{
    char *path = strchr(line, ' '), *end = path ? strrchr(path + 1, ' ') : NULL, *query;

    if (!end)
        return false;
    *path++ = '\0';
    *end = '\0';
    query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    *ret_method = line;
    *ret_path = path;
    *ret_query = query ? query : end; /* end is an empty string now */
    return *path == '/';
}

static int read_headers(struct arena *arena,
                        char **text,
                        struct sharedkey_header **ret_headers,
                        size_t *ret_count,
                        struct err *e)
{
    struct sharedkey_header *headers = arena_alloc(arena, MOST_HEADERS * sizeof(*headers));
    size_t count = 0;
    char *line;

    while ((line = next_line(text)) != NULL && *line) {
        if (count == MOST_HEADERS || !split_header(line, &headers[count++]))
            return bad_batch(e, "a header cannot be read");
    }
    *ret_headers = headers;
    *ret_count = count;
    return 0;
}

static int add_part(struct batch *batch, char *text, struct err *e)
{
    struct arena *arena = batch->call->arena;
    struct part *part = &batch->parts[batch->count];
    struct sharedkey_header *outer, *headers;
    char *line, *method, *path, *query;
    size_t outer_count, count;

    if (batch->count == MOST_PARTS)
        return storage_refuse(e, ERR_INVALID, "ExceedsMaxBatchRequestCount",
                              "a batch has at most %d parts", MOST_PARTS);
    if (read_headers(arena, &text, &outer, &outer_count, e) < 0)
        return -1;
    while ((line = next_line(&text)) != NULL && !*line)
        ;
    if (!line || !split_request(line, &method, &path, &query))
        return bad_batch(e, "a part has no request line");
    if (read_headers(arena, &text, &headers, &count, e) < 0)
        return -1;
    for (size_t i = 0; i < outer_count; i++)
        if (strcasecmp(outer[i].name, "Content-ID") == 0)
            part->content_id = outer[i].value;
    part->call = storage_call_part(batch->call, method, path, query, headers, count);
    part->call->outer = batch->call;
    batch->count++;
    return 0;
}

static int read_boundary(struct storage_call *call, const char **ret_boundary, struct err *e)
{
    const char *type = storage_need_header(call, "Content-Type", e);
    const char *p;
    size_t len;

    if (!type)
        return -1;
    p = str_starts_nocase(type, "multipart/mixed") ? strcasestr(type, "boundary=") : NULL;
    if (p) {
        p += strlen("boundary=");
        p += *p == '"';
        len = strcspn(p, "\"; ");
        if (len && len <= 70) {
            *ret_boundary = arena_printf(call->arena, "--%.*s", (int)len, p);
            return 0;
        }
    }
    storage_refuse(e, ERR_INVALID, "InvalidHeaderValue",
                   "a batch is multipart/mixed with a boundary");
    return err_target(e, "Content-Type");
}

/* Where the boundary next stands at the start of a line; NULL when it does not. */
static char *find_boundary(char *text, char *start, const char *boundary)
{
    for (char *p = start; (p = strstr(p, boundary)) != NULL; p++)
        if (p == text || p[-1] == '\n')
            return p;
    return NULL;
}

static int read_batch(struct batch *batch, struct err *e)
{
    struct storage_call *call = batch->call;
    char *text = arena_strndup(call->arena, call->body, call->body_len);
    const char *boundary;
    char *p, *next;

    if (read_boundary(call, &boundary, e) < 0)
        return -1;
    if (memchr(call->body, '\0', call->body_len))
        return bad_batch(e, "it holds a NUL");
    p = find_boundary(text, text, boundary);
    while (p && !str_starts(p + strlen(boundary), "--")) {
        char *start = strchr(p, '\n');

        next = start ? find_boundary(text, start + 1, boundary) : NULL;
        if (!next)
            return bad_batch(e, "its last boundary is missing");
        /* The line end before a boundary belongs to the boundary. */
        next[-1] = '\0';
        if (add_part(batch, start + 1, e) < 0)
            return -1;
        p = next;
    }
    return p && batch->count ? 0 : bad_batch(e, "there are no parts");
}

/* --- doing --- */

static bool is_batchable(const struct storage_op *op)
{
    return strcmp(op->name, "DeleteBlob") == 0 || strcmp(op->name, "SetBlobTier") == 0;
}

/* What kind of parts these are must be clear before the first is done. */
static int check_parts(struct batch *batch, struct err *e)
{
    const struct storage_op *first = NULL;

    for (size_t i = 0; i < batch->count; i++) {
        struct storage_call *part = batch->parts[i].call;

        if (storage_resolve(part, e) < 0 || storage_find_op(part, e) < 0)
            return -1;
        if (!is_batchable(part->op))
            return bad_batch(e, "only deletions and changes of tier can be its parts");
        if (first && first != part->op)
            return storage_refuse(e, ERR_INVALID, "AllBatchSubRequestsShouldBeSameApi",
                                  "all parts of a batch must be of the same kind");
        first = part->op;
        if (batch->call->container && strcmp(part->container, batch->call->container) != 0)
            return bad_batch(e, "a part is for another container");
    }
    return 0;
}

static void do_part(struct storage_call *part)
{
    struct err e = {0};

    if (storage_authorise(part, &e) == 0) {
        if (part->is_secondary)
            storage_refuse(&e, ERR_FORBIDDEN, "InsufficientAccountPermissions",
                           "the secondary is there for reading only");
        else if (part->op->handle(part, &e) == 0)
            return;
    }
    storage_reply_error(part, &e);
}

static void write_answer(struct batch *batch)
{
    struct storage_call *call = batch->call;
    struct str *out = &call->out_body;
    char id[CRYPT_UUID_BYTES];

    crypt_uuid(id);
    for (size_t i = 0; i < batch->count; i++) {
        struct part *part = &batch->parts[i];

        str_addf(out, "--batchresponse_%s\r\nContent-Type: application/http\r\n", id);
        if (part->content_id)
            str_addf(out, "Content-ID: %s\r\n", part->content_id);
        str_add(out, "\r\n");
        storage_write_part(part->call, out);
    }
    str_addf(out, "--batchresponse_%s--\r\n", id);
    storage_reply_headerf(call, "Content-Type", "multipart/mixed; boundary=batchresponse_%s",
                          id);
}

int blob_op_batch(struct storage_call *call, struct err *e)
{
    struct batch *batch = arena_alloc(call->arena, sizeof(*batch));

    batch->call = call;
    if (read_batch(batch, e) < 0 || check_parts(batch, e) < 0)
        return -1;
    for (size_t i = 0; i < batch->count; i++)
        do_part(batch->parts[i].call);
    write_answer(batch);
    return storage_reply(call, 202);
}
