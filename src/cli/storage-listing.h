/* storage-listing.h - the lists of the storage service, page by page; an entry is as in
 * core/listing.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_LISTING_H
#define CLI_STORAGE_LISTING_H

#include "base/err.h"
#include "core/listing.h"

struct wire;

/* Walk all pages of GET container/path?query.  query has no marker. */
int listing_walk(struct wire *wire,
                 const char *container,
                 const char *path,
                 const char *query,
                 listing_see *see,
                 void *context,
                 struct err *e);

#endif
