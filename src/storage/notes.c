/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "store/blob.h"
#include "store/pool.h"

int blobs_get_note(
    struct blobs *blobs, const char *account, const char *name, char **ret_text, struct err *e)
{
    auto_reader r = {0};

    if (store_pool_take(blobs->readers, &r, e) < 0)
        return -1;
    return store_get_note(r.db, account, name, ret_text, e);
}

struct note {
    const char *account, *name, *text;
};

static int apply_put(void *context, struct db *db, struct err *e)
{
    const struct note *note = context;

    return store_put_note(db, note->account, note->name, note->text, e);
}

int blobs_put_note(
    struct blobs *blobs, const char *account, const char *name, const char *text, struct err *e)
{
    struct note note = {account, name, text};

    return blobs_write(blobs, apply_put, &note, e);
}
