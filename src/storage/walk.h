/* walk.h - the names in tree/, in byte order of the whole name, one after another.
 *
 * "a.b" comes before "a/b" and that before "a0": a folder stands where its name with '/' does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_WALK_H
#define STORAGE_WALK_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

struct entries;
struct entries_cache;

struct walk_level {
    int fd;
    const struct entries *entries;
    size_t next;
    size_t path_len; /* of the folder's path, with its '/' */
};

struct walk {
    struct entries_cache *cache;
    const char *prefix, *after; /* borrowed */
    struct walk_level *levels;
    size_t depth, room;
    /* The name the walk stands at; a folder's ends in '/'. */
    struct str name;
    bool is_folder;
};

/* Names that begin with prefix and come after `after` ("" = from the first). */
int walk_begin(struct walk *walk,
               struct entries_cache *cache,
               int tree_fd,
               const char *prefix,
               const char *after,
               struct err *e);
/* Go to the next file, or folder; 0 = no more.  A folder's names come only after walk_enter. */
int walk_next(struct walk *walk);
/* Go into the folder the walk stands at. */
int walk_enter(struct walk *walk, struct err *e);
/* The folder that holds what the walk stands at, and its name there. */
int walk_folder_fd(const struct walk *walk);
const char *walk_leaf(const struct walk *walk);
void walk_done(struct walk *walk);

/* Does the folder the walk stands at have a file in it, at any depth? */
bool walk_has_file(const struct walk *walk);

#endif
