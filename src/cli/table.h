/* table.h - a map from strings to pointers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

struct table; /* opaque */

/* free_value is called for values that are replaced or left at the end; NULL = nothing is. */
struct table *table_new(void (*free_value)(void *value));
void table_free(struct table *table);
DEFINE_AUTOPTR(table)

/* NULL when it is not there. */
void *table_get(const struct table *table, const char *key);
/* The key is copied.  value must not be NULL. */
void table_set(struct table *table, const char *key, void *value);
bool table_remove(struct table *table, const char *key);
size_t table_count(const struct table *table);
/* Walk all: *at is 0 at first; false at the end.  The order means nothing. */
bool table_next(const struct table *table, size_t *at, const char **ret_key, void **ret_value);

#endif
