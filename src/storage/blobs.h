/* blobs.h - containers and blobs on disk: bytes in folders, facts in rows.  See
 * docs/design/storage.md.
 *
 * This is the store, not the protocol: names come in decoded, and errors carry the protocol's
 * own word as their reason ("BlobNotFound", "LeaseIdMissing", ...) under a code that has the
 * protocol's status.
 *
 * Threads: any.  Functions marked "waits" go to the disk and belong on a worker; the others are
 * quick enough for a loop thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_BLOBS_H
#define STORAGE_BLOBS_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct blobs; /* opaque: the blobs of all accounts */

/* root: the storage folder.  db_path: storage.db.  Empties what a crash left in the tmp
 * folders. */
int blobs_open(const char *root, const char *db_path, struct blobs **ret_blobs, struct err *e);
void blobs_free(struct blobs *blobs);
/* Call `broken` once, on a thread of the store's, when its database can no longer be trusted
 * (an I/O error): nothing is acknowledged from then on.  Set right after opening. */
void blobs_when_broken(struct blobs *blobs,
                       void (*broken)(const struct err *why, void *context),
                       void *context);

/* Everything of an account goes: rows at once, bytes after.  waits. */
int blobs_remove_account(struct blobs *blobs, const char *account, struct err *e);

/* --- leases: of containers and of blobs alike --- */

enum lease_action { LEASE_ACQUIRE, LEASE_RENEW, LEASE_CHANGE, LEASE_RELEASE, LEASE_BREAK };

struct lease {
    char id[40];        /* "" = never leased */
    int64_t expires_ms; /* 0 = infinite while held */
    int64_t breaks_ms;  /* 0 = not breaking */
    int duration_s;     /* -1 = infinite */
    bool held;
};
/* available, leased, expired, breaking, broken; and locked or unlocked. */
const char *lease_state_name(const struct lease *lease, int64_t now_ms);
bool lease_is_locked(const struct lease *lease, int64_t now_ms);

struct lease_request {
    enum lease_action action;
    const char *id;       /* of the holder, or proposed for acquire */
    const char *proposed; /* for change */
    int duration_s;       /* acquire: 15..60 or -1 */
    int break_s;          /* break: 0..60, -1 = not given */
};

/* --- conditions of a request; NULL or 0 when absent --- */

struct conditions {
    const char *if_match, *if_none_match; /* as sent: quoted, comma lists, "*" */
    int64_t if_modified_since_ms, if_unmodified_since_ms;
    const char *lease_id;
    const char *if_tags; /* x-ms-if-tags: only equality terms joined by AND */
};

/* --- containers --- */

struct container {
    int64_t id;
    char *account, *name;
    char etag[24]; /* 0x8D..., without quotes */
    int64_t created_ms, modified_ms;
    json_t *metadata; /* object of strings, never NULL */
    json_t *policies; /* [{id, start, expiry, permission}], never NULL */
    struct lease lease;
};
void container_free(struct container *container);
DEFINE_AUTOPTR(container)

/* waits.  ContainerAlreadyExists, InvalidResourceName. */
int blobs_create_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const json_t *metadata,
                           struct container **ret_container,
                           struct err *e);
/* ContainerNotFound. */
int blobs_find_container(struct blobs *blobs,
                         const char *account,
                         const char *name,
                         struct container **ret_container,
                         struct err *e);
/* In order of name, after `marker` ("" = from the first), names with the prefix, at most
 * `most`. *ret_next is the marker of the next page ("" = that was all); caller frees. */
int blobs_list_containers(struct blobs *blobs,
                          const char *account,
                          const char *prefix,
                          const char *marker,
                          size_t most,
                          void (*each)(const struct container *container, void *context),
                          void *context,
                          char **ret_next,
                          struct err *e);
/* Replace metadata or policies (NULL keeps).  waits. */
int blobs_update_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const json_t *metadata,
                           const json_t *policies,
                           const struct conditions *conditions,
                           struct container **ret_container,
                           struct err *e);
/* waits. */
int blobs_delete_container(struct blobs *blobs,
                           const char *account,
                           const char *name,
                           const struct conditions *conditions,
                           struct err *e);
/* waits.  *ret_left_s is the rest of a breaking lease. */
int blobs_lease_container(struct blobs *blobs,
                          const char *account,
                          const char *name,
                          const struct lease_request *request,
                          const struct conditions *conditions,
                          struct container **ret_container,
                          int *ret_left_s,
                          struct err *e);

/* --- blobs --- */

enum blob_type { BLOB_BLOCK, BLOB_APPEND, BLOB_PAGE };

/* What a client says about a blob's content.  NULL members are unset (they are not kept from
 * before, except where a function says so). */
struct blob_headers {
    char *content_type, *content_encoding, *content_language, *content_disposition,
        *cache_control;
    char *content_md5; /* base64 */
};

struct blob {
    char *name;
    char *snapshot; /* its time, "" = the blob itself */
    enum blob_type type;
    struct blob_headers headers;
    json_t *metadata; /* object of strings, NULL = none */
    json_t *tags;     /* likewise */
    char *tier;       /* NULL = inferred Hot */
    char etag[24];
    int64_t size_bytes;
    int64_t created_ms, modified_ms;
    int64_t sequence;    /* page blobs */
    int64_t block_count; /* append blobs: committed blocks */
    struct lease lease;
    char *copy_id, *copy_source; /* of the last copy into it, NULL when there was none */
    int64_t copied_ms;
};
void blob_free(struct blob *blob);
DEFINE_AUTOPTR(blob)

/* A blob by its address. */
struct blob_address {
    const char *account, *container, *name;
    const char *snapshot; /* NULL or "" = the blob itself */
};

/* Find a blob and, when ret_fd is given, open it for reading (caller closes).  Conditions are
 * those of a read: ERR_NOT_MODIFIED is told by *ret_unchanged (may be NULL: then a 412).
 * BlobNotFound, ContainerNotFound, ConditionNotMet. */
int blobs_find(struct blobs *blobs,
               const struct blob_address *at,
               const struct conditions *conditions,
               struct blob **ret_blob,
               int *ret_fd,
               bool *ret_unchanged,
               struct err *e);

/* An upload on its way: bytes go to a temporary file, hashed as they come. */
struct upload;
int upload_begin(struct blobs *blobs,
                 const char *account,
                 const char *container,
                 struct upload **ret_upload,
                 struct err *e);
/* Before the first write: which checksums will be asked for.  Both are reckoned as bytes come
 * unless told otherwise here; one that is asked for all the same costs a second reading. */
void upload_expect(struct upload *upload, bool md5, bool crc);
int upload_write(struct upload *upload, const void *bytes, size_t len, struct err *e);
/* Check what the client said of the bytes (base64; NULL = nothing).  Md5Mismatch,
 * Crc64Mismatch. */
int upload_check(struct upload *upload, const char *md5, const char *crc64, struct err *e);
/* MD5 and CRC-64 of what came, base64; borrowed. */
const char *upload_md5(struct upload *upload);
const char *upload_crc64(struct upload *upload);
uint64_t upload_size(const struct upload *upload);
/* Throws away what was not committed; NULL is fine. */
void upload_free(struct upload *upload);
DEFINE_AUTOPTR(upload)

struct blob_put {
    struct blob_headers headers;
    const json_t *metadata, *tags; /* NULL = none */
    const char *tier;
};
/* The upload becomes a block blob, replacing what is there.  waits. */
int blobs_put(struct blobs *blobs,
              const struct blob_address *at,
              struct upload *upload,
              const struct blob_put *put,
              const struct conditions *conditions,
              struct blob **ret_blob,
              struct err *e);
/* An empty append blob, or a page blob of that many zero bytes.  waits. */
int blobs_create(struct blobs *blobs,
                 const struct blob_address *at,
                 enum blob_type type,
                 int64_t size_bytes,
                 const struct blob_put *put,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 struct err *e);

/* The upload becomes an uncommitted block.  id: base64, as sent.  waits.  InvalidBlobOrBlock,
 * ... */
int blobs_stage_block(struct blobs *blobs,
                      const struct blob_address *at,
                      const char *id,
                      struct upload *upload,
                      const char *lease_id,
                      struct err *e);
enum block_source { BLOCK_LATEST, BLOCK_COMMITTED, BLOCK_UNCOMMITTED };
struct block_ref {
    const char *id;
    enum block_source source;
};
/* The blob becomes these blocks, in this order.  waits.  InvalidBlockList. */
int blobs_commit_blocks(struct blobs *blobs,
                        const struct blob_address *at,
                        const struct block_ref *blocks,
                        size_t count,
                        const struct blob_put *put,
                        const struct conditions *conditions,
                        struct blob **ret_blob,
                        struct err *e);
/* Each block: its id, its size, whether it is committed; the committed first.  *ret_blob may
 * stay NULL when there are uncommitted blocks only. */
int blobs_list_blocks(struct blobs *blobs,
                      const struct blob_address *at,
                      void (*each)(const char *id, int64_t size, bool committed, void *context),
                      void *context,
                      struct blob **ret_blob,
                      struct err *e);

/* Add the upload to the end of an append blob.  at_most / at_offset: -1 = no condition.  waits.
 * *ret_offset is where it went. */
int blobs_append(struct blobs *blobs,
                 const struct blob_address *at,
                 struct upload *upload,
                 int64_t max_size,
                 int64_t at_offset,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 int64_t *ret_offset,
                 struct err *e);

/* Write or clear (upload NULL) pages; both multiples of 512.  waits. */
int blobs_put_pages(struct blobs *blobs,
                    const struct blob_address *at,
                    int64_t offset,
                    int64_t len,
                    struct upload *upload,
                    const struct conditions *conditions,
                    struct blob **ret_blob,
                    struct err *e);
/* The spans that hold data, in order. */
int blobs_list_pages(struct blobs *blobs,
                     const struct blob_address *at,
                     void (*each)(int64_t first, int64_t last, void *context),
                     void *context,
                     struct blob **ret_blob,
                     struct err *e);

/* Change facts and leave the bytes; NULL keeps.  `size` resizes a page blob (-1 keeps).  Tags
 * and tier change no ETag.  waits. */
struct blob_change {
    const struct blob_headers *headers; /* all six are replaced */
    const json_t *metadata, *tags;
    const char *tier;
    int64_t size;
};
int blobs_change(struct blobs *blobs,
                 const struct blob_address *at,
                 const struct blob_change *change,
                 const struct conditions *conditions,
                 struct blob **ret_blob,
                 struct err *e);

/* A read-only copy as it is now.  waits. */
int blobs_snapshot(struct blobs *blobs,
                   const struct blob_address *at,
                   const json_t *metadata,
                   const struct conditions *conditions,
                   struct blob **ret_snapshot,
                   struct err *e);

enum snapshot_choice { SNAPSHOTS_REFUSE, SNAPSHOTS_INCLUDE, SNAPSHOTS_ONLY };
/* waits.  SnapshotsPresent. */
int blobs_delete(struct blobs *blobs,
                 const struct blob_address *at,
                 enum snapshot_choice snapshots,
                 const struct conditions *conditions,
                 struct err *e);

/* Copy within the yard.  put: NULL members of headers and a NULL metadata come from the source.
 * source_url NULL: the blob does not say that it is a copy (Put Blob From URL).  waits. */
int blobs_copy(struct blobs *blobs,
               const struct blob_address *from,
               const struct conditions *from_conditions,
               const char *source_url,
               const struct blob_address *to,
               const struct blob_put *put,
               const struct conditions *conditions,
               struct blob **ret_blob,
               struct err *e);

int blobs_lease(struct blobs *blobs,
                const struct blob_address *at,
                const struct lease_request *request,
                const struct conditions *conditions,
                struct blob **ret_blob,
                int *ret_left_s,
                struct err *e);

struct blob_listing {
    const char *prefix;          /* "" = all */
    const char *delimiter;       /* "" = flat */
    const char *marker;          /* "" = from the first */
    size_t most;                 /* blobs and prefixes together */
    bool snapshots, uncommitted; /* list those too */
    /* In byte order of name; one of the two for each item. */
    void (*blob)(const struct blob *blob, void *context);
    void (*prefix_found)(const char *prefix, void *context);
    void *context;
};
/* waits (a page of a cold folder).  *ret_next as above. */
int blobs_list(struct blobs *blobs,
               const char *account,
               const char *container,
               const struct blob_listing *listing,
               char **ret_next,
               struct err *e);

/* --- notes: small texts of an account that are no blob's (service properties) --- */

/* *ret_text is NULL when there is no such note; caller frees. */
int blobs_get_note(
    struct blobs *blobs, const char *account, const char *name, char **ret_text, struct err *e);
/* waits. */
int blobs_put_note(struct blobs *blobs,
                   const char *account,
                   const char *name,
                   const char *text,
                   struct err *e);

/* --- upkeep --- */

/* Throw away blocks staged before that time.  waits. */
int blobs_collect_staged(struct blobs *blobs, int64_t before_ms, struct err *e);
/* Where a container lies, for a bind mount; caller frees. */
char *blobs_tree_path(struct blobs *blobs, const char *account, const char *container);
/* Rows without files, files that no row or name explains, sizes that differ: call finding for
 * each.  waits. */
int blobs_scrub(struct blobs *blobs,
                void (*finding)(const char *what, const char *where, void *context),
                void *context,
                struct err *e);

#endif
