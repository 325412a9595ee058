/* The data of storage accounts that are gone.
 *
 * Deleting an account, or the group around it, dooms its name in the same transaction.  The
 * data goes afterwards, from the writer thread: so nobody can have made a new account of that
 * name in between.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "base/log.h"
#include "store/pool.h"
#include "store/store.h"

static int purge(struct control_change *change, struct db *db, const char *name, struct err *e)
{
    const struct control_config *config = &change->control->config;

    if (config->purge_account && config->purge_account(name, config->context, e) < 0)
        return -1;
    return store_forget_doomed(db, name, e);
}

int control_begin_empty(struct control_change *change,
                        struct db *db,
                        const char *account,
                        struct err *e)
{
    bool doomed;

    if (store_is_doomed(db, account, &doomed, e) < 0)
        return -1;
    return doomed ? purge(change, db, account, e) : 0;
}

static int apply_purge(struct control_change *change, struct db *db, struct err *e)
{
    for (;;) {
        auto_free char *name = NULL;

        if (store_first_doomed(db, &name, e) < 0)
            return -1;
        if (!name)
            return 0;
        if (purge(change, db, name, e) < 0)
            return err_wrap(e, "storage account %s", name);
    }
}

static void purged(struct control_change *change, const struct err *why)
{
    if (why->code != ERR_NONE)
        log_warning("event=purge error=\"%s\", trying again at the next start", why->msg);
    control_change_free(change);
}

/* Most deletes doom nobody: ask before the writer is bothered. */
static bool is_any_doomed(struct control *control)
{
    auto_free char *name = NULL;
    auto_reader reader = {0};
    struct err e = {0};

    if (store_pool_take(control->config.pool, &reader, &e) < 0 ||
        store_first_doomed(reader.db, &name, &e) < 0)
        log_warning("event=purge error=\"%s\", trying again at the next start", e.msg);
    return name != NULL;
}

void control_purge_doomed(struct control *control)
{
    struct control_change *change;

    if (!is_any_doomed(control))
        return;
    change = control_change_new();
    change->is_upkeep = true;
    change->apply = apply_purge;
    change->done = purged;
    control_submit(control, change);
}
