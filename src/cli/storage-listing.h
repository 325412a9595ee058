/* storage-listing.h - the lists of the storage service, page by page.
 *
 * An entry is a container, share, blob, prefix, file, folder or block: its kind is the name of
 * its XML element.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_LISTING_H
#define CLI_STORAGE_LISTING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct wire;
struct listing_entry; /* opaque; borrowed during the call of see */

/* "Blob", "BlobPrefix", "Container", "Share", "File", "Directory", "Block". */
const char *listing_kind(const struct listing_entry *entry);
const char *listing_name(const struct listing_entry *entry);
/* The text of an element below it: "Properties/Content-Length", "Deleted"; NULL when it is not
 * there. */
const char *listing_get(const struct listing_entry *entry, const char *path);
/* Walk all elements: index from 0; false at the end. */
bool listing_at(const struct listing_entry *entry,
                size_t index,
                const char **ret_path,
                const char **ret_text);

/* The size; 0 for what has none. */
int64_t listing_size(const struct listing_entry *entry);
/* When it was changed, or -1 when the list does not tell. */
int64_t listing_modified_ms(const struct listing_entry *entry);

/* Returning anything but 0 ends the walk: a positive number well, -1 as a failure that set e. */
typedef int listing_see(void *context, const struct listing_entry *entry, struct err *e);

/* Read one document.  *ret_marker, which the caller frees, is NULL on the last page. */
int listing_parse(const char *text,
                  size_t len,
                  listing_see *see,
                  void *context,
                  char **ret_marker,
                  struct err *e);

/* Walk all pages of GET container/path?query.  query has no marker. */
int listing_walk(struct wire *wire,
                 const char *container,
                 const char *path,
                 const char *query,
                 listing_see *see,
                 void *context,
                 struct err *e);

#endif
