/* access.h - who may do what, and where.
 *
 * A principal has one role, over the whole yard (scope "") or over one resource group (scope =
 * the group's key).  A reader reads, a contributor also changes and sees keys, an owner also
 * administers the yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ACCESS_H
#define CORE_ACCESS_H

#include "base/err.h"

#include <stdint.h>

enum access_role {
    ACCESS_READER,
    ACCESS_CONTRIBUTOR,
    ACCESS_OWNER,
    ACCESS_ROLES,
};

enum access_permission {
    ACCESS_PUBLIC, /* no token needed */
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_SECRETS, /* read keys, make signatures */
    ACCESS_ADMIN,   /* tokens, audit, backup: owners of the whole yard only */
    ACCESS_PERMISSIONS,
};

const char *access_role_name(enum access_role role);
int access_role_parse(const char *text, enum access_role *ret_role, struct err *e);
const char *access_permission_name(enum access_permission permission);

/* May a principal with that role and scope use the permission on the group key (""= what
 * belongs to no group)?  `sees` below says whether it may even know that the thing exists. */
bool access_allows(enum access_role role,
                   const char *scope,
                   enum access_permission permission,
                   const char *group_key);
bool access_sees(const char *scope, const char *group_key);

#endif
