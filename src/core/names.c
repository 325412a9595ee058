/* SPDX-License-Identifier: Apache-2.0 */
#include "core/names.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

/* Are all bytes ASCII letters, digits or of `also`? */
static bool made_of(const char *s, const char *also)
{
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && !strchr(also, *s))
            return false;
    }
    return true;
}

static int invalid(struct err *e, const char *target, const char *value, const char *rule)
{
    err_set(e, ERR_INVALID, "%s: \"%.100s\" is not allowed: %s", target, value, rule);
    err_reason(e, "InvalidResourceName");
    return err_target(e, target);
}

const char *names_account_problem(const char *name)
{
    size_t len = strlen(name);

    if (len >= 3 && len <= 24) {
        size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

        if (good == len)
            return NULL;
    }
    return "Storage account name must be between 3 and 24 characters in length and use numbers "
           "and lower-case letters only.";
}

static int check_account(const char *name, struct err *e)
{
    const char *problem = names_account_problem(name);

    if (!problem)
        return 0;
    err_set(e, ERR_INVALID, "%.100s is not a valid storage account name. %s", name, problem);
    err_reason(e, "AccountNameInvalid");
    return err_target(e, "accountName");
}

static int check_group(const char *name, struct err *e)
{
    size_t len = strlen(name);

    if (len < 1 || len > 90 || !made_of(name, "-_.()") || name[len - 1] == '.')
        return invalid(e, "resourceGroupName", name,
                       "take 1 to 90 letters, digits, '-', '_', '(', ')' and '.', not ending "
                       "in '.'");
    return 0;
}

static int check_short(const char *target, const char *name, const char *also, struct err *e)
{
    size_t len = strlen(name);

    if (len < 1 || len > 64 || !made_of(name, also))
        return invalid(e, target, name,
                       strchr(also, '.') ? "take 1 to 64 letters, digits, '-', '_' and '.'"
                                         : "take 1 to 64 letters, digits, '-' and '_'");
    return 0;
}

int names_check(enum resource_kind kind, const char *name, struct err *e)
{
    switch (kind) {
    case RESOURCE_GROUP:
        return check_group(name, e);
    case RESOURCE_STORAGE_ACCOUNT:
        return check_account(name, e);
    case RESOURCE_WORKSPACE:
        return check_short("workspaceName", name, "-_", e);
    case RESOURCE_EXPERIMENT:
        return check_short("experimentName", name, "-_", e);
    case RESOURCE_CLUSTER:
        return check_short("clusterName", name, "-_", e);
    case RESOURCE_FILE_SERVER:
        return check_short("fileServerName", name, "-_", e);
    case RESOURCE_JOB:
        return check_short("jobName", name, "-_", e);
    case RESOURCE_KINDS:
        break;
    }
    return err_set(e, ERR_INTERNAL, "no kind %d", (int)kind);
}

int names_check_subscription(const char *id, struct err *e)
{
    if (crypt_is_uuid(id))
        return 0;
    err_set(e, ERR_INVALID,
            "subscriptionId: \"%.100s\" is not a UUID; \"yard account show\" prints yours", id);
    err_reason(e, "InvalidSubscriptionId");
    return err_target(e, "subscriptionId");
}

int names_location(struct arena *arena,
                   const char *location,
                   char **ret_location,
                   struct err *e)
{
    char *shorter;
    size_t len = 0;

    if (strlen(location) > 64 || !made_of(location, "-_. "))
        return invalid(e, "location", location,
                       "take 1 to 64 letters, digits, '-', '_' and '.', such as eastus");
    shorter = arena_strdup(arena, location);
    for (const char *p = location; *p; p++) {
        if (*p != ' ')
            shorter[len++] = (char)tolower((unsigned char)*p);
    }
    shorter[len] = '\0';
    if (len == 0)
        return invalid(e, "location", location, "it is empty; take a name such as eastus");
    *ret_location = shorter;
    return 0;
}

/* How many characters a UTF-8 text has: its bytes less those that continue one. */
static size_t characters(const char *s)
{
    size_t count = 0;

    for (; *s; s++)
        count += ((unsigned char)*s & 0xc0) != 0x80;
    return count;
}

static int bad_tag(struct err *e, const char *key, const char *rule)
{
    err_set(e, ERR_INVALID, "tags: \"%.100s\": %s", key, rule);
    err_reason(e, "InvalidTag");
    return err_target(e, "tags");
}

int names_check_tags(const json_t *tags, struct err *e)
{
    const char *key;
    json_t *value;

    if (!json_is_object(tags)) {
        err_set(e, ERR_INVALID, "tags: expected an object of strings, got %s",
                json_type_name(tags));
        err_reason(e, "InvalidRequestContent");
        return err_target(e, "tags");
    }
    if (json_object_size(tags) > 50)
        return bad_tag(e, "...", "there may be at most 50 tags");
    json_object_foreach((json_t *)tags, key, value)
    {
        if (!json_is_string(value))
            return bad_tag(e, key, "the value must be a string");
        if (!*key || characters(key) > 512 || strpbrk(key, "<>%&\\?/"))
            return bad_tag(e, key, "the name must have 1 to 512 characters, none of <>%&\\?/");
        if (characters(json_string_value(value)) > 256)
            return bad_tag(e, key, "the value must have at most 256 characters");
    }
    return 0;
}

int names_check_token(const char *name, struct err *e)
{
    return check_short("tokenName", name, "-_.", e);
}
