/* storage-proto.h - what the operations of the Blob and the File service share: a call with its
 * address, its parameters and its reply, and the table by which it finds its operation.
 *
 * A call does not write to its HTTP request: it fills in a reply that is sent when the
 * operation is over.  So an operation runs the same on a loop thread, on a worker, and as one
 * part of a batch that has no request of its own.
 *
 * One service is one struct storage_table.  To add an operation, write its handler and add its
 * row; auth, bodies, threads and errors follow from the row.
 *
 * Included by the protocol files of this folder only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_STORAGE_PROTO_H
#define STORAGE_STORAGE_PROTO_H

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "core/sas.h"
#include "core/sharedkey.h"
#include "storage/blobs.h"
#include "storage/service.h"

#include <stddef.h>
#include <stdint.h>

struct storage_call;
struct xml_node;

struct storage_service {
    struct storage_config config;
};

/* --- operations --- */

enum storage_level { STORAGE_SERVICE, STORAGE_CONTAINER, STORAGE_OBJECT };

enum {
    OP_WRITES = 1,      /* changes something: not for readers, not on the secondary */
    OP_WAITS = 2,       /* goes to the disk: runs on a worker */
    OP_CREATES = 4,     /* "c" is enough as long as it replaces nothing: see may_not_replace */
    OP_SERVICE_SAS = 8, /* at the level of a container: a service SAS may do it too */
    OP_COLLECTS = 16,   /* the body is taken whole: call->body */
    OP_STREAMS = 32,    /* begin() makes call->upload, the body goes there */
    OP_SNAPSHOTS = 64,  /* can be done to a snapshot, though it writes */
};

struct storage_op {
    const char *name;
    const char *method;
    enum storage_level level;
    const char *restype, *comp; /* NULL = is not there */
    const char *header, *value; /* only when this header is there (and has this value) */
    const char *permissions;    /* as in struct sas_ask */
    const char *levels;         /* of an account SAS; NULL = the letter of the level */
    unsigned flags;
    size_t most;                                            /* bytes that OP_COLLECTS takes */
    int (*begin)(struct storage_call *call, struct err *e); /* of OP_STREAMS */
    int (*handle)(struct storage_call *call, struct err *e);
};

struct storage_table {
    const char *service; /* "blob" */
    const struct storage_op *ops;
    size_t count;
    /* The stored access policies ([{id, start, expiry, permission}]) of the container or share;
     * the caller drops *ret_policies. */
    int (*policies)(struct storage_call *call, json_t **ret_policies, struct err *e);
    bool has_root; /* an object without a container is in $root */
};
/* The tables are in blob-routes.c and file-routes.c, with the entry points of service.h that
 * use them. */

/* --- calls --- */

struct storage_param {
    const char *name, *value;
};

enum storage_by { STORAGE_BY_NOBODY, STORAGE_BY_KEY, STORAGE_BY_SAS, STORAGE_BY_BEARER };

struct storage_call {
    struct storage_service *service;
    const struct storage_table *table;
    const struct storage_op *op;
    struct http_req *req;             /* NULL for a part of a batch and a source of a copy */
    const struct storage_call *outer; /* the batch that this is a part of */
    struct arena *arena;
    int64_t now_ms;

    /* what came */
    const char *method, *raw_path, *raw_query, *host, *peer, *id;
    bool is_tls;
    const struct sharedkey_header *headers;
    size_t header_count;
    struct storage_param *params;
    size_t param_count;
    int64_t content_length; /* -1 = unknown */
    const char *body;       /* of OP_COLLECTS */
    size_t body_len;
    const char *version; /* x-ms-version, or what stands for it */

    /* where to */
    const char *account; /* without -secondary */
    bool is_secondary, is_path_style;
    enum storage_level level;
    const char *container, *object; /* decoded, NULL at the levels above */

    /* by whom */
    enum storage_by by;
    struct sas sas;
    char who[CRYPT_UUID_BYTES]; /* of a bearer */
    bool may_not_replace;

    /* the body, on its way */
    struct upload *upload;

    /* the reply */
    int status; /* 0 = none yet */
    struct storage_param *out_headers;
    size_t out_count, out_room;
    struct str out_body;
    int out_fd; /* -1 = out_body is the body */
    int64_t out_offset, out_length;
};

/* Take a request through its whole life. */
void storage_serve(struct storage_service *service,
                   const struct storage_table *table,
                   struct http_req *req);

/* A call without a request, with these facts in place of the request's: everything is borrowed.
 * It takes its service, arena, peer and time from the call that it serves. */
struct storage_call *storage_call_part(struct storage_call *of,
                                       const char *method,
                                       const char *raw_path,
                                       const char *raw_query,
                                       const struct sharedkey_header *headers,
                                       size_t header_count);
/* Find its operation.  InvalidQueryParameterValue, UnsupportedHttpVerb. */
int storage_find_op(struct storage_call *call, struct err *e);

/* --- what came --- */

/* NULL when absent; names without case. */
const char *storage_header(const struct storage_call *call, const char *name);
const char *storage_query(const struct storage_call *call, const char *name);
bool storage_is_since(const struct storage_call *call, const char *version);
/* A header that must be there: MissingRequiredHeader. */
const char *storage_need_header(struct storage_call *call, const char *name, struct err *e);
/* A whole number between least and most in a header (InvalidHeaderValue) or a parameter
 * (OutOfRangeQueryParameterValue); *ret stays as it was when it is absent. */
int storage_header_int(struct storage_call *call,
                       const char *name,
                       int64_t least,
                       int64_t most,
                       int64_t *ret,
                       struct err *e);
int storage_query_int(struct storage_call *call,
                      const char *name,
                      int64_t least,
                      int64_t most,
                      int64_t *ret,
                      struct err *e);
/* Is the word in the comma list of the parameter? */
bool storage_query_has(const struct storage_call *call, const char *name, const char *word);

/* If-Match and the others, the lease, x-ms-if-tags; prefix "x-ms-source-" reads those of a
 * source. */
int storage_conditions(struct storage_call *call,
                       const char *prefix,
                       struct conditions *ret_conditions,
                       struct err *e);
/* x-ms-meta-*; *ret_metadata is NULL when there is none and never_null is not set.  The object
 * is dropped with the call.  InvalidMetadata, MetadataTooLarge. */
int storage_metadata(struct storage_call *call,
                     bool never_null,
                     json_t **ret_metadata,
                     struct err *e);
/* Keep a JSON value until the call is over. */
json_t *storage_keep_json(struct storage_call *call, json_t *value);
/* x-ms-range, else Range, against the size: 1 and the span, 0 when there is none, -1 with
 * InvalidRange (and Content-Range in the reply). */
int storage_range(struct storage_call *call,
                  int64_t size,
                  int64_t *ret_first,
                  int64_t *ret_len,
                  struct err *e);
/* Content-MD5 and x-ms-content-crc64: at most one, of the right size.  NULL when absent. */
int storage_hashes(struct storage_call *call,
                   const char **ret_md5,
                   const char **ret_crc64,
                   struct err *e);
/* Compare what they say with call->body.  Md5Mismatch, Crc64Mismatch. */
int storage_check_body(struct storage_call *call,
                       const char *md5,
                       const char *crc64_text,
                       struct err *e);
/* Append the hash in base64. */
void storage_md5(const void *bytes, size_t len, struct str *out);
void storage_crc64(const void *bytes, size_t len, struct str *out);
/* The action and its parameters of comp=lease. */
int storage_lease_request(struct storage_call *call,
                          struct lease_request *ret_request,
                          struct err *e);
/* 201, 200 or 202 with the headers of a lease that was acted on. */
int storage_reply_lease(struct storage_call *call,
                        const struct lease_request *request,
                        const struct lease *lease,
                        int left_s);

/* --- the reply --- */

/* Names are borrowed, values copied.  NULL values are left out. */
void storage_reply_header(struct storage_call *call, const char *name, const char *value);
void storage_reply_headerf(struct storage_call *call, const char *name, const char *format, ...)
    PRINTF_LIKE(3, 4);
void storage_reply_date(struct storage_call *call, const char *name, int64_t wall_ms);
void storage_reply_etag(struct storage_call *call, const char *etag, int64_t modified_ms);
void storage_reply_metadata(struct storage_call *call, const json_t *metadata);
/* Content-Type and the like; a SAS may say its own. */
void storage_reply_labels(struct storage_call *call, const struct blob_headers *h);
/* The MD5 or CRC-64 of the range itself, when the client wants one and the range is small. */
int storage_reply_range_hash(
    struct storage_call *call, int fd, int64_t first, int64_t len, struct err *e);
/* <Metadata> of a listing. */
void storage_write_metadata(struct str *out, const json_t *metadata);
void storage_reply_lease_state(struct storage_call *call, const struct lease *lease);
/* These return 0: return storage_reply(call, 201). */
int storage_reply(struct storage_call *call, int status);
int storage_reply_xml(struct storage_call *call, int status); /* out_body is the document */
int storage_reply_unchanged(struct storage_call *call);       /* 304 */

/* Fill in the reply of an error, whatever was filled in before. */
void storage_reply_error(struct storage_call *call, const struct err *e);
/* Send what is filled in; on the request's own thread. */
void storage_send(struct storage_call *call);
/* Write what is filled in as one part of a batch's answer. */
void storage_write_part(struct storage_call *call, struct str *out);

/* err_set and err_reason in one. */
int storage_refuse(struct err *e,
                   enum err_code code,
                   const char *reason,
                   const char *format,
                   ...) PRINTF_LIKE(4, 5);
#define storage_refuse(...) err_always_fails(storage_refuse(__VA_ARGS__)) /* as in err.h */

/* --- who and where --- */

/* Host and path say which account, container and object. */
int storage_resolve(struct storage_call *call, struct err *e);
/* The address of the service for this account, as the client wrote it, with a slash at its end;
 * in the arena. */
const char *storage_endpoint(struct storage_call *call);
/* x-ms-copy-source: must be an object of this service in this yard, and the client must be
 * allowed to read it.  Nothing is ever fetched: CannotVerifyCopySource for the rest. */
int storage_copy_source(struct storage_call *call,
                        struct storage_call **ret_source,
                        struct err *e);

int storage_authorise(struct storage_call *call, struct err *e);

/* --- both services have these --- */

int storage_op_account_info(struct storage_call *call, struct err *e);
int storage_op_get_properties(struct storage_call *call, struct err *e);
int storage_op_set_properties(struct storage_call *call, struct err *e);
int storage_op_delegation_key(struct storage_call *call, struct err *e);

/* The service properties that the account has set; *ret_root is NULL when it has none. */
int storage_load_properties(struct storage_call *call,
                            const struct xml_node **ret_root,
                            struct err *e);

/* Stored policies from and to XML (SignedIdentifiers).  *ret_policies: the caller drops it. */
int storage_read_policies(struct storage_call *call, json_t **ret_policies, struct err *e);
void storage_write_policies(struct str *out, const json_t *policies);

/* The answer to OPTIONS, and the headers that a browser wants with the others. */
int storage_preflight(struct storage_call *call, struct err *e);
void storage_reply_cors(struct storage_call *call);

#endif
