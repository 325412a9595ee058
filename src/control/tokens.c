/* Principals: who holds which token.  Their list in memory follows every commit that changes
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/crypt.h"
#include "base/str.h"
#include "base/text.h"
#include "control/principals.h"
#include "store/store.h"

enum {
    TOKEN_BYTES = 32,
};

static int check_group(struct control_change *change,
                       struct db *db,
                       const char *group_id,
                       char **ret_scope,
                       struct err *e)
{
    autoptr(resource) group = NULL;
    char *key;

    if (!group_id) {
        *ret_scope = xstrdup("");
        return 0;
    }
    key = resource_key(change->arena, group_id);
    if (store_find_resource(db, key, &group, e) < 0)
        return -1;
    if (!group || group->kind != RESOURCE_GROUP)
        return resource_not_found(e, RESOURCE_GROUP,
                                  resource_group_part(change->arena, group_id));
    *ret_scope = xstrdup(key);
    return 0;
}

static int apply_put(struct control_change *change, struct db *db, struct err *e)
{
    struct control_principal *wanted = (struct control_principal *)change->request;
    autoptr(principal) p = xcalloc(1, sizeof(*p));
    char id[CRYPT_UUID_BYTES], hash[2 * CRYPT_SHA256_BYTES + 1];

    if (check_group(change, db, wanted->group_id, &p->scope, e) < 0)
        return -1;
    if (wanted->token) {
        change->secret = xstrdup(wanted->token);
    } else {
        unsigned char raw[TOKEN_BYTES];
        auto_str token = {0};

        crypt_random(raw, sizeof(raw));
        text_base64url(&token, raw, sizeof(raw));
        change->secret = str_take(&token);
    }
    principals_hash_token(change->secret, hash);
    p->name = xstrdup(wanted->name);
    p->client_id = xstrdup(crypt_uuid(id));
    p->token_hash = xstrdup(hash);
    p->role = wanted->role;
    p->created_ms = change->now_ms;
    p->expires_ms = wanted->lifetime_ms ? change->now_ms + wanted->lifetime_ms : 0;
    wanted->client_id = arena_strdup(change->arena, p->client_id);
    wanted->expires_ms = p->expires_ms;
    change->principals_changed = true;
    return store_put_principal(db, p, e);
}

void control_put_principal(struct control *control,
                           struct control_change *change,
                           struct control_principal *principal)
{
    change->request = principal;
    change->apply = apply_put;
    control_submit(control, change);
}

static int apply_remove(struct control_change *change, struct db *db, struct err *e)
{
    const char *name = change->request;
    bool found;

    if (str_equal(name, change->caller.principal)) {
        err_set(e, ERR_CONFLICT,
                "the token \"%.64s\" is the one in use; delete it with another owner's token",
                name);
        return err_target(e, "tokenName");
    }
    if (store_remove_principal(db, name, &found, e) < 0)
        return -1;
    if (!found)
        return err_set(e, ERR_NOT_FOUND, "there is no token \"%.64s\"", name);
    change->principals_changed = true;
    return 0;
}

void control_remove_principal(struct control *control,
                              struct control_change *change,
                              const char *name)
{
    change->request = arena_strdup(change->arena, name);
    change->apply = apply_remove;
    control_submit(control, change);
}
