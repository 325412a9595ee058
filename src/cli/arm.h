/* arm.h - the paths and ids of Azure Resource Manager.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ARM_H
#define CLI_ARM_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

struct args;
struct call;

#define ARM_RESOURCES "2021-04-01"
#define ARM_STORAGE   "2021-09-01"
#define ARM_BATCHAI   "2018-05-01"

/* Make "/subscriptions/<id><pattern>?api-version=<version>", where each {key} in the pattern
 * stands for the option of that key, percent-encoded.  The caller frees *ret_path. */
int arm_path(struct call *call,
             const char *pattern,
             const char *version,
             char **ret_path,
             struct err *e);

/* The segment after `type` in an id ("resourceGroups", without case), or NULL.  The caller
 * frees. */
char *arm_id_part(const char *id, const char *type);

/* Fill options from a resource id, by a command's ids row: "resourceGroups=resource-group
 * workspaces=name".  Also takes the subscription.  A usage error when the id has other parts.
 */
int arm_use_id(struct args *args, const char *id, const char *parts, struct err *e);

/* --tags a=b c=d as an object; NULL when the option was not given. */
json_t *arm_tags(const struct args *args);

#endif
