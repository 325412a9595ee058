/* SPDX-License-Identifier: Apache-2.0 */
#include "core/access.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>

static const char *const role_names[ACCESS_ROLES] = {
    [ACCESS_READER] = "reader",
    [ACCESS_CONTRIBUTOR] = "contributor",
    [ACCESS_OWNER] = "owner",
};

static const struct {
    const char *name;
    enum access_role least;
} permissions[ACCESS_PERMISSIONS] = {
    [ACCESS_PUBLIC] = {"public", ACCESS_READER},
    [ACCESS_READ] = {"read", ACCESS_READER},
    [ACCESS_WRITE] = {"write", ACCESS_CONTRIBUTOR},
    [ACCESS_SECRETS] = {"secrets", ACCESS_CONTRIBUTOR},
    [ACCESS_ADMIN] = {"admin", ACCESS_OWNER},
};

const char *access_role_name(enum access_role role)
{
    assert(role < ACCESS_ROLES);
    return role_names[role];
}

const char *access_permission_name(enum access_permission permission)
{
    assert(permission < ACCESS_PERMISSIONS);
    return permissions[permission].name;
}

int access_role_parse(const char *text, enum access_role *ret_role, struct err *e)
{
    for (size_t i = 0; i < ACCESS_ROLES; i++) {
        if (str_equal_nocase(text, role_names[i])) {
            *ret_role = (enum access_role)i;
            return 0;
        }
    }
    err_set(e, ERR_INVALID, "role: \"%.64s\" is unknown; take owner, contributor or reader",
            text);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "role");
}

bool access_sees(const char *scope, const char *group_key)
{
    return !*scope || str_equal(scope, group_key);
}

bool access_allows(enum access_role role,
                   const char *scope,
                   enum access_permission permission,
                   const char *group_key)
{
    if (permission == ACCESS_PUBLIC)
        return true;
    if (role < permissions[permission].least)
        return false;
    if (permission == ACCESS_ADMIN)
        return !*scope;
    /* What belongs to no group (subscriptions, providers, lists that are filtered) everybody
     * may read; only principals of the whole yard may change it. */
    if (!*group_key)
        return permission == ACCESS_READ || !*scope;
    return access_sees(scope, group_key);
}
