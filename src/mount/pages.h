/* pages.h - walk all pages of a list of the storage service.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_PAGES_H
#define MOUNT_PAGES_H

#include "base/err.h"
#include "core/listing.h"

struct remote;

/* GET path?query, page by page; query has no marker. */
int pages_walk(struct remote *remote,
               const char *path,
               const char *query,
               listing_see *see,
               void *context,
               struct err *e);

/* The ETag of an entry without its quotes; the caller frees; NULL when the list has none. */
char *pages_etag(const struct listing_entry *entry);

#endif
