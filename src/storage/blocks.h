/* blocks.h - what staging, committing and collecting blocks share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_BLOCKS_H
#define STORAGE_BLOCKS_H

#include "storage/storage-internal.h"

enum {
    STAGED_PATH_BYTES = 80, /* "staged/" and a hash */
};

/* The folder of a name's uncommitted blocks, beneath the container's. */
void staged_folder(const char *name, char path[STAGED_PATH_BYTES]);
/* Each uncommitted block of a name: its folder, its file there, its id. */
int staged_each(struct folder *folder,
                const char *name,
                void (*each)(int fd, const char *file, const char *id, void *context),
                void *context,
                struct err *e);

/* --- staging.c --- */

struct staged_count {
    size_t count, id_len;
};
/* What is known of a name's uncommitted blocks; false = nothing yet. */
bool staging_find(struct staging *staging,
                  int64_t container_id,
                  const char *hash,
                  struct staged_count *ret_known);
/* From here on it is known; what somebody else began already stays. */
void staging_begin(struct staging *staging,
                   int64_t container_id,
                   const char *hash,
                   const struct staged_count *known);
/* One block more. */
void staging_add(struct staging *staging,
                 int64_t container_id,
                 const char *hash,
                 size_t id_len);
void staging_forget(struct staging *staging, int64_t container_id, const char *hash);

/* --- commit.c --- */

/* The committed blocks of a blob, as a row keeps them: see store/blob.h. */
struct block_list {
    void *bytes;
    size_t len, room;
};
struct block_entry {
    char id[BLOCK_ID_MOST];
    int64_t size;
};
/* Empty when the blob was changed in place since. */
int block_list_read(struct blobs *blobs,
                    struct folder *folder,
                    const char *name,
                    const char *snapshot,
                    const struct found *found,
                    struct block_list *ret_list,
                    struct err *e);
/* Read the entry at *at and move on; false at the end. */
bool block_list_next(const struct block_list *list, size_t *at, struct block_entry *ret_entry);
void block_list_add(struct block_list *list, const char *id, int64_t size);

/* InvalidBlobType. */
int wrong_type(struct err *e);

#endif
