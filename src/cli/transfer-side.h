/* transfer-side.h - the two ends of a transfer: a folder here, a container or a share there.
 *
 * A side has a root, a folder; everything on it is named by a path below that root, with '/'
 * between the parts; "" is the root itself.  What can be done with a side is in its
 * struct side_ops, one for each kind; a transfer is any source read and any destination written
 * by these, so that each pair of kinds works by itself.
 *
 * Large files travel in pieces, each of them by whatever thread has time.
 *
 * Threads: a side does not change and is shared; each thread has a struct port on it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_SIDE_H
#define CLI_TRANSFER_SIDE_H

#include "base/err.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>

struct side;
struct side_memory;
struct storage_account;
struct transfer_options;
struct wire;

enum side_kind {
    SIDE_LOCAL,
    SIDE_BLOB,
    SIDE_FILE,
};

enum {
    FACTS_ETAG_BYTES = 72,
    FACTS_MD5_BYTES = 28, /* base64 of 16 bytes, with its NUL */
};

/* What is known of a file. */
struct facts {
    int64_t size_bytes;
    int64_t modified_ns; /* since 1970; -1 = not told */
    char etag[FACTS_ETAG_BYTES];
    char md5[FACTS_MD5_BYTES]; /* "" = none is kept */
    bool is_folder;
};

enum item_what {
    ITEM_COPY,
    ITEM_FOLDER, /* make sure that there is one */
    ITEM_REMOVE, /* from the destination; path is not used */
};

struct item {
    enum item_what what;
    char *path;   /* below the source's root */
    char *target; /* below the destination's root */
    struct facts facts;
};

struct item *
item_new(enum item_what what, const char *path, const char *target, const struct facts *facts);
void item_free(struct item *item);
DEFINE_AUTOPTR(item)

/* A file that travels in pieces. */
struct parts {
    struct item *item;
    int64_t piece_bytes;
    size_t count;
    unsigned char *is_done;    /* one for each piece; some may be there from an earlier run */
    char tag[17];              /* of this source at this time, in hex */
    char md5[FACTS_MD5_BYTES]; /* of the whole, where it was asked for */
};
size_t parts_len(const struct parts *parts, size_t index);

/* One thread's access to a side. */
struct port {
    const struct side *side;
    const struct transfer_options *options;
    struct wire *wire; /* NULL on a local side */
};

/* Returning anything but 0 ends the walk: a positive number well, -1 as a failure that set e.
 */
typedef int side_see(void *context, const char *path, const struct facts *facts, struct err *e);

struct side_walk {
    bool is_recursive;
    bool shows_folders;  /* tell those at the first level, too, when it is not recursive */
    bool follows_links;  /* of a local side; else they are passed over */
    const char *pattern; /* for the first part of each path; NULL = any */
    side_see *see;
    /* Of a local side: is this folder looked into?  NULL = each is. */
    bool (*enters)(void *context, const char *path);
    void *context;
    void (*pass)(void *context,
                 const char *path,
                 const char *why); /* told of what is left out */
};

struct side_ops {
    /* Tell everything below the root; folders come before what is in them. */
    int (*walk)(struct port *port, const struct side_walk *walk, struct err *e);
    /* *ret_found is false when nothing is there. */
    int (*look)(struct port *port,
                const char *path,
                struct facts *ret_facts,
                bool *ret_found,
                struct err *e);
    /* Exactly len bytes of the file as its facts describe it: one that has changed fails. */
    int (*read)(struct port *port,
                const struct item *item,
                int64_t offset,
                void *buf,
                size_t len,
                struct err *e);
    /* A whole file at once, replacing what is there.  With is_new it must not be there:
     * ERR_CONFLICT. */
    int (*put)(struct port *port,
               const struct item *item,
               const void *bytes,
               size_t len,
               bool is_new,
               struct err *e);
    /* In pieces: begin marks what is there already.  Nobody sees the file before finish where
     * the side can do that. */
    int (*begin)(struct port *port, struct parts *parts, struct err *e);
    int (*put_piece)(struct port *port,
                     const struct parts *parts,
                     size_t index,
                     const void *bytes,
                     size_t len,
                     struct err *e);
    int (*finish)(struct port *port, const struct parts *parts, struct err *e);
    int (*make_folder)(struct port *port, const char *path, struct err *e);
    int (*remove)(struct port *port, const char *path, bool is_folder, struct err *e);
    /* Let the destination fetch it itself.  NULL = it cannot. */
    int (*fetch)(struct port *port,
                 struct port *source,
                 const struct item *item,
                 struct err *e);
    /* The MD5 of a whole file: of the source's, or of what the pieces have made.  NULL = it
     * would have to be fetched again. */
    int (*hash)(struct port *port, struct parts *parts, bool is_source, struct err *e);
    int64_t most_piece_bytes;
};

extern const struct side_ops side_local_ops, side_blob_ops, side_file_ops;

struct side {
    enum side_kind kind;
    const struct side_ops *ops;
    char *root;                            /* a local path, or one below the container */
    const struct storage_account *account; /* NULL on a local side; borrowed */
    char *container;
    struct side_memory *memory; /* what was learnt of it: the one thing that changes */
};

int side_new_local(const char *root, struct side **ret_side, struct err *e);
struct side *side_new_remote(enum side_kind kind,
                             const struct storage_account *account,
                             const char *container,
                             const char *root);
void side_free(struct side *side);
DEFINE_AUTOPTR(side)

/* Root and path together.  The caller frees. */
char *side_path(const struct side *side, const char *path);
/* The same as people write it: a local path, or a URL without secrets.  The caller frees. */
char *side_show(const struct side *side, const char *path);

struct port_config {
    const struct transfer_options *options;
    int64_t patience_ms;
    const atomic_bool *stop;
    void (*trace)(const char *line);
    void (*moved)(void *context, int64_t bytes);
    void *context;
};
int port_open(const struct side *side,
              const struct port_config *config,
              struct port *ret_port,
              struct err *e);
void port_close(struct port *port);

/* Make sure that the folder is there, with those above it, asking once for each. */
int side_need_folder(struct port *port, const char *path, struct err *e);
/* Of a file's path: the folder it is in. */
int side_need_parent(struct port *port, const char *path, struct err *e);

/* Some servers know no CRC-64: seen once, known. */
bool side_lacks_crc64(const struct side *side);
void side_note_no_crc64(const struct side *side);

/* Does the first part of the path fit the pattern? */
bool side_fits(const char *pattern, const char *path);

#endif
