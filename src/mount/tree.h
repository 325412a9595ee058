/* tree.h - what is known of the names below the mount: folders, files, and how fresh that is.
 *
 * A folder is known as a whole, from one listing, or not at all; so a name that is not in a
 * fresh folder does not exist, and no file is ever asked for by itself.  What this mount does
 * is entered at once; a listing that was under way meanwhile does not undo it.
 *
 * In a container a file with another ETag is another node: a node is one version, and what the
 * kernel keeps of it stays right.  In a share a file changes in place: the node stays, its
 * version is raised.
 *
 * A node lives as long as somebody counts on it (node_ref): its folder, the kernel, a handle.
 *
 * Threads: everything but node_ref needs the lock.  Lock order: tree, then reader.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_TREE_H
#define MOUNT_TREE_H

#include "base/err.h"
#include "base/mem.h"
#include "mount/blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct str;
struct writing;
struct streams;

struct node {
    atomic_llong refs;
    struct node *parent;      /* NULL: the root, or no longer in the tree */
    struct node *prev, *next; /* all nodes of the tree */
    char *name;               /* "" = the root */
    char *etag;               /* NULL = not known */
    uint64_t number;          /* for stat */
    int64_t size_bytes;
    int64_t mtime_ns;
    int64_t changed_ms;        /* when this mount changed it, monotonic; 0 = never */
    uint64_t version;          /* of the content; raised when it changes in place */
    uint64_t kernel_version;   /* of the content that the kernel may hold; 0 = none */
    struct folder *folder;     /* NULL = a file */
    struct writing *writing;   /* bytes on their way; NULL = none */
    struct streams *streams;   /* of the reader; NULL = none */
    struct block_owner blocks; /* of the reader */
    int opens;                 /* handles */
    int changes;               /* of it, or of all below it, that this mount has under way */
    bool is_gone;              /* replaced or removed by somebody else: ESTALE */
    bool is_hidden;            /* removed while open: lives under another name until closed */
};

struct folder {
    struct node *node;
    struct folder *newer, *older; /* in order of use */
    struct node **children;       /* sorted by name */
    size_t count, room;
    int64_t listed_ms; /* when the last whole listing began, monotonic; TREE_NEVER */
    int64_t began_ms;  /* when the running one did */
    int64_t cost_ms;   /* how long it took */
    size_t last_read;  /* place of the file that was opened last ... */
    unsigned in_order; /* ... and how many were so one after the other */
    bool is_listing;
    bool is_expired; /* since the running one began: it is too old already */
    bool is_local;   /* made here; a container knows no empty folders */
    char **removed;  /* by this mount since the running listing began */
    size_t removed_count;
};

#define TREE_NEVER (INT64_MIN / 2)

/* One line of a listing. */
struct listed {
    char *name;
    char *etag;
    int64_t size_bytes;
    int64_t mtime_ns;
    bool is_folder;
};

struct listed_rows {
    struct listed *rows;
    size_t count, room;
};
/* Takes the strings over. */
void listed_add(struct listed_rows *rows, const struct listed *row);
void listed_done(struct listed_rows *rows);
#define auto_listed __attribute__((cleanup(listed_done))) struct listed_rows

struct tree {
    pthread_mutex_t lock;
    pthread_cond_t listed; /* a listing ended, or a change */
    struct node *root;
    struct node nodes; /* head of the ring of all */
    size_t count;
    struct folder newest; /* head of the ring of folders */
    uint64_t next_number;
    bool is_share;     /* files change in place, names do not care for case */
    size_t most_nodes; /* above, folders not in use are forgotten */
    /* Told that a node ends.  Called with the lock held. */
    void (*on_free)(void *context, struct node *node);
    void *context;
};

void tree_init(struct tree *tree, bool is_share);
void tree_done(struct tree *tree);

struct node *node_ref(struct node *node);
void node_unref(struct tree *tree, struct node *node, uint64_t count);

/* The child of that name, or NULL.  Borrowed. */
struct node *tree_find(struct tree *tree, struct node *parent, const char *name);

/* A file is opened for the first time: the ones that will be next, if files of its folder are
 * being read in order: at most `most`, with a reference each.  Returns how many. */
size_t tree_guess_next(struct tree *tree, struct node *node, struct node *next[], size_t most);

/* Append the path from the root, "" for the root; false when the node is no longer in the
 * tree. */
bool tree_path(const struct node *node, struct str *out);

/* Enter a new file or folder, made by this mount.  A child of that name must not be there.
 * Borrowed. */
struct node *tree_add(struct tree *tree, struct node *parent, const char *name, bool is_folder);
/* Take a node out of its folder: removed by this mount. */
void tree_remove(struct tree *tree, struct node *node);
/* Move it, over what is at the new place. */
void tree_move(struct tree *tree, struct node *node, struct node *parent, const char *name);

/* This mount changes the node at the server, or moves it with all that is below it.  Until that
 * has ended the server's refusals say nothing about others. */
void tree_begin_change(struct node *node);
void tree_end_change(struct tree *tree, struct node *node);
bool tree_is_changing(const struct node *node);
/* Wait until there is none; lets go of the lock meanwhile. */
void tree_wait_for_changes(struct tree *tree, const struct node *node);

/* Is the folder's listing at most that old?  A listing that took long may be ten times as old
 * as it took, so that large folders do not spend their time being listed. */
bool tree_is_fresh(const struct node *node, int64_t now_ms, int64_t most_age_ms);
/* For how long is it still? */
int64_t tree_fresh_for(const struct node *node, int64_t now_ms, int64_t most_age_ms);
/* The next question lists it again, whatever a running listing says. */
void tree_expire(struct node *node);

/* A listing begins: then call tree_merge with what was found, or tree_give_up.  While one is
 * under way, wait for tree->listed. */
void tree_begin(struct node *node, int64_t now_ms);
void tree_merge(struct tree *tree, struct node *node, struct listed_rows *rows, int64_t now_ms);
void tree_give_up(struct tree *tree, struct node *node);

/* This mount wrote it: what it is now.  etag NULL = not known. */
void node_set_facts(struct node *node, const char *etag, int64_t size_bytes, int64_t mtime_ns);

#endif
