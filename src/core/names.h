/* names.h - what names, places and tags may look like.
 *
 * Each check fails with ERR_INVALID, naming the field, the value and the rule.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "base/err.h"
#include "core/resource.h"

#include <jansson.h>

/* The name of a resource of that kind. */
int names_check(enum resource_kind kind, const char *name, struct err *e);
/* Why a storage account name is bad, as checkNameAvailability says it; NULL when it is good. */
const char *names_account_problem(const char *name);
int names_check_subscription(const char *id, struct err *e);
/* A location, as "East US" or "eastus", becomes its short form in the arena. */
int names_location(struct arena *arena,
                   const char *location,
                   char **ret_location,
                   struct err *e);
/* An object of strings: at most 50, keys up to 512 characters, values up to 256. */
int names_check_tags(const json_t *tags, struct err *e);
/* The name of an access token: 1 to 64 of letters, digits, '-', '_', '.'. */
int names_check_token(const char *name, struct err *e);

#endif
