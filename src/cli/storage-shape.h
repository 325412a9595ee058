/* storage-shape.h - containers, blobs, shares and files as az prints them.
 *
 * The same facts come as elements of a list or as headers of an answer; one table names both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_SHAPE_H
#define CLI_STORAGE_SHAPE_H

#include <jansson.h>

struct http_answer;
struct listing_entry;
struct wire;

/* An entry of a list: Container, Blob, BlobPrefix, Share, File or Directory.  container is the
 * one that blobs are in; NULL for others. */
json_t *storage_shape_entry(const struct listing_entry *entry, const char *container);

/* An answer with its headers.  kind as above. */
json_t *storage_shape_answer(const struct http_answer *answer,
                             const char *kind,
                             const char *name,
                             const char *container);

extern const char storage_container_table[], storage_blob_table[], storage_share_table[],
    storage_file_table[];

/* Wed, 06 Jun 2018 18:39:26 GMT as 2018-06-06T18:39:26+00:00; null when it is no time. */
json_t *storage_shape_time(const char *http);

#endif
