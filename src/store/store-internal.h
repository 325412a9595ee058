/* store-internal.h - what the files of store/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include "store/store.h"

/* Generated from schema/ and from schema-storage/. */
extern const struct db_migration store_schema[];
extern const size_t store_schema_count;
extern const struct db_migration storage_schema[];
extern const size_t storage_schema_count;

/* A query that counts what must not be. */
struct store_invariant {
    const char *name, *sql;
};
/* Of clusters and jobs; a zeroed row ends them. */
extern const struct store_invariant store_work_invariants[];

/* A copy of a column's text, NULL for SQL null; caller frees. */
char *store_dup(struct db_query *q, int column);

#endif
