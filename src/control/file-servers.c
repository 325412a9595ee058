/* The trees of file servers that are gone.
 *
 * A tree is named after the row of its file server, and rows are never used again: what has no
 * row may go.  That is looked for after every delete and once after a start, so a crash in
 * between leaves nothing behind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor-internal.h"

#include "base/log.h"
#include "core/resource.h"
#include "store/pool.h"
#include "store/store.h"

#include <dirent.h>
#include <stdlib.h>

/* What cannot be looked up stays. */
static bool is_gone(struct db *db, int64_t id)
{
    autoptr(resource) r = NULL;
    struct err e = {0};

    if (store_find_resource_by_id(db, id, &r, &e) < 0) {
        log_warning("event=file-servers error=\"%s\", ignoring", e.msg);
        return false;
    }
    return !r;
}

static void look_at(struct conductor *c, struct db *db, const char *name)
{
    auto_free char *folder = NULL;
    char *end;
    int64_t id = strtoll(name, &end, 10);

    if (id <= 0 || *end || !is_gone(db, id))
        return;
    folder = xasprintf("%s/%s", c->control->config.file_servers, name);
    c->engine->ops->discard(c->engine, folder);
}

void conductor_sweep_file_servers(struct conductor *c)
{
    const char *path = c->control->config.file_servers;
    DIR *dir = path && c->engine ? opendir(path) : NULL;
    auto_reader reader = {0};
    struct dirent *entry;
    struct err e = {0};

    if (!dir)
        return; /* no file server was ever mounted */
    if (store_pool_take(c->control->config.pool, &reader, &e) < 0)
        log_warning("event=file-servers error=\"%s\", ignoring", e.msg);
    while (reader.db && (entry = readdir(dir)))
        look_at(c, reader.db, entry->d_name);
    closedir(dir);
}
