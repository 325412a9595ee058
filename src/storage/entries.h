/* entries.h - what a folder holds, sorted as blob names sort, and kept until the folder
 * changes.
 *
 * A page of a listing wants a few thousand names out of perhaps a million: reading and sorting
 * the folder again for every page would be quadratic.  A snapshot is believed as long as the
 * folder has the inode, birth and modification time it had when it was read, and if that time
 * was well in the past then (a clock that ticks every few milliseconds cannot tell two changes
 * within a tick).
 *
 * Threads: any.  A snapshot is read only, and counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_ENTRIES_H
#define STORAGE_ENTRIES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    ENTRIES_MOST_BYTES = 256 << 20, /* of snapshots kept: several folders of a million names */
};

struct entry {
    uint64_t key; /* private: the first bytes that differ between names, for fast comparing */
    uint32_t offset;
    uint16_t len;
    bool is_folder;
};

struct entries {
    struct entry *items; /* regular files and folders; in byte order of name, or name + "/" */
    size_t count;
    char *names; /* NUL-terminated each */
};

static inline const char *entry_name(const struct entries *entries, size_t i)
{
    return entries->names + entries->items[i].offset;
}

struct entries_cache; /* opaque */

struct entries_cache *entries_cache_new(size_t most_bytes);
/* All snapshots must be back. */
void entries_cache_free(struct entries_cache *cache);

/* The snapshot of an open folder; give it back with entries_drop. */
int entries_take(struct entries_cache *cache,
                 int fd,
                 const struct entries **ret_entries,
                 struct err *e);
void entries_drop(struct entries_cache *cache, const struct entries *entries);

/* The first entry that comes after `text`; a folder counts as before what lies in it. */
size_t entries_after(const struct entries *entries, const char *text);
/* The first entry that does not come before `text`. */
size_t entries_from(const struct entries *entries, const char *text);

#endif
