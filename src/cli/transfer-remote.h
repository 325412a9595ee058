/* transfer-remote.h - what the two remote sides of a transfer have in common.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_REMOTE_H
#define CLI_TRANSFER_REMOTE_H

#include "base/err.h"
#include "cli/storage-headers.h"

#include <stddef.h>
#include <stdint.h>

struct facts;
struct item;
struct port;

/* Keep an ETag, in quotes as headers want it. */
void remote_etag(struct facts *facts, const char *etag);

/* HEAD. */
int remote_look(struct port *port,
                const char *path,
                const char *query,
                struct facts *ret_facts,
                bool *ret_found,
                struct err *e);

/* GET of a range.  header: one more, or "".  etag, when not NULL, is filled with that of the
 * answer. */
int remote_read(struct port *port,
                const struct item *item,
                const char *header,
                int64_t offset,
                void *buf,
                size_t len,
                char *etag,
                struct err *e);

/* Let the server copy from the source's URL, and wait until it has. */
int remote_fetch(struct port *port,
                 struct port *source,
                 const struct item *item,
                 const char *header,
                 struct err *e);

/* The content type of a file, by its name unless the options say it.  Borrowed. */
const char *remote_type(const struct port *port, const char *path);

#endif
