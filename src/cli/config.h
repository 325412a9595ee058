/* config.h - what the command line remembers: defaults, a remote yard, the chosen subscription.
 *
 * The file is cli.ini in the data folder, mode 0600 since it may hold a token:
 *     [defaults]
 *     group = recipes
 * Lines that are not understood are an error naming the line, never dropped in silence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>

struct config; /* opaque */

/* Read the file in folder; a missing file is an empty configuration. */
int config_open(const char *folder, struct config **ret_config, struct err *e);
void config_free(struct config *config);
DEFINE_AUTOPTR(config)

/* NULL when it is not set; borrowed until the next change. */
const char *config_get(const struct config *config, const char *section, const char *key);
/* value NULL or "" takes it away.  Nothing is on disk before config_save. */
int config_set(struct config *config,
               const char *section,
               const char *key,
               const char *value,
               struct err *e);
void config_clear(struct config *config, const char *section);
/* Walk a section: index from 0; false at the end. */
bool config_at(const struct config *config,
               const char *section,
               size_t index,
               const char **ret_key,
               const char **ret_value);
int config_save(const struct config *config, struct err *e);
const char *config_path(const struct config *config);

#endif
