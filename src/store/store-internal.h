/* store-internal.h - what the files of store/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include "store/store.h"

/* Generated from schema/. */
extern const struct db_migration store_schema[];
extern const size_t store_schema_count;

/* A copy of a column's text, NULL for SQL null; caller frees. */
char *store_dup(struct db_query *q, int column);

#endif
