/* storage-headers.h - the header lines of a request, as they come together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_HEADERS_H
#define CLI_STORAGE_HEADERS_H

#include "base/err.h"

#include <stddef.h>

struct call;

enum {
    HEADERS_MOST = 120,
    HEADERS_MOST_METADATA = 80, /* pairs; the rest is for our own */
};

struct headers {
    const char *rows[HEADERS_MOST + 1]; /* ended by NULL; does not move while lines are added */
    size_t count;
};
void headers_done(struct headers *headers);
#define auto_headers __attribute__((cleanup(headers_done))) struct headers

void headers_add(struct headers *headers, const char *format, ...) PRINTF_LIKE(2, 3);
/* A NULL-ended list; may be NULL. */
void headers_add_all(struct headers *headers, const char *const *rows);

/* --metadata a=b as "x-ms-meta-a: b". */
int headers_add_metadata(struct headers *headers, struct call *call, struct err *e);

#endif
