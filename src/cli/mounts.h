/* mounts.h - the containers and shares mounted on this machine, as the kernel tells it.
 *
 * A mount is {"folder", "source", "readOnly", "type"}: the source is a URL and the type yardfs,
 * or a path and bind, when it is the tree of a container or share itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MOUNTS_H
#define CLI_MOUNTS_H

#include "base/err.h"

#include <jansson.h>

/* The caller owns *ret_mounts, an array. */
int mounts_list(json_t **ret_mounts, struct err *e);

/* Is there one on this folder, given absolutely?  *ret_mount, unless NULL, is the caller's. */
bool mounts_find(const char *folder, json_t **ret_mount);

/* Understand the text of /proc/self/mountinfo. */
json_t *mounts_parse(const char *text);

#endif
