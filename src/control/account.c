/* The keys of storage accounts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/crypt.h"
#include "base/str.h"
#include "base/text.h"
#include "control/vault.h"
#include "store/store.h"

enum {
    ACCOUNT_KEY_BYTES = 64, /* as the original: 88 characters of base64 */
};

static int put_fresh_key(struct control_change *change,
                         struct db *db,
                         int64_t account_row,
                         const char *name,
                         struct err *e)
{
    unsigned char raw[ACCOUNT_KEY_BYTES];
    auto_str key = {0};

    crypt_random(raw, sizeof(raw));
    text_base64(&key, raw, sizeof(raw));
    return vault_put(change->control->config.vault, db, account_row, name, str_text(&key),
                     change->now_ms, e);
}

int control_make_keys(struct control_change *change,
                      struct db *db,
                      int64_t account_row,
                      struct err *e)
{
    if (put_fresh_key(change, db, account_row, "key1", e) < 0)
        return -1;
    return put_fresh_key(change, db, account_row, "key2", e);
}

struct rotation {
    const char *account_id, *key_name;
};

static int apply_rotation(struct control_change *change, struct db *db, struct err *e)
{
    const struct rotation *rotation = change->request;

    if (store_find_resource(db, resource_key(change->arena, rotation->account_id),
                            &change->resource, e) < 0)
        return -1;
    if (!change->resource)
        return resource_not_found(e, RESOURCE_STORAGE_ACCOUNT, rotation->account_id);
    if (control_check_standing(db, change->resource, change->now_ms, e) < 0)
        return -1;
    return put_fresh_key(change, db, change->resource->id, rotation->key_name, e);
}

void control_rotate_key(struct control *control,
                        struct control_change *change,
                        const char *account_id,
                        const char *key_name)
{
    struct rotation *rotation = arena_alloc(change->arena, sizeof(*rotation));

    rotation->account_id = arena_strdup(change->arena, account_id);
    rotation->key_name = arena_strdup(change->arena, key_name);
    change->request = rotation;
    change->apply = apply_rotation;
    control_submit(control, change);
}
