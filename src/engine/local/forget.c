/* Removing what is of no more use: run folders of attempts whose result is recorded, and nodes
 * that nobody knows any more (a backup was put back).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <dirent.h>

struct removal {
    struct errand errand;
    char folder[];
};

static void work_remove(struct errand *errand)
{
    struct err e = {0};

    if (folder_remove(((struct removal *)errand)->folder, &e) < 0)
        log_warning("event=forget error=\"%s\", ignoring", e.msg);
}

static void done_remove(struct errand *errand)
{
    free(errand);
}

void local_discard(struct local *local, const char *folder)
{
    size_t len = strlen(folder) + 1;
    struct removal *removal = xcalloc(1, sizeof(*removal) + len);

    removal->errand.work = work_remove;
    removal->errand.done = done_remove;
    memcpy(removal->folder, folder, len);
    errand_submit(local->errands, &removal->errand);
}

void attempt_forget(struct local *local, const char *uuid)
{
    auto_free char *folder = xasprintf("%s/attempts/%s", local->home, uuid);

    local_discard(local, folder);
}

static bool is_live(const struct local *local, const char *uuid)
{
    for (const struct attempt *a = local->attempts; a; a = a->next) {
        if (str_equal(a->told.uuid, uuid))
            return true;
    }
    return false;
}

void attempts_sweep(struct local *local)
{
    auto_free char *path = xasprintf("%s/attempts", local->home);
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.' && !is_live(local, entry->d_name))
            attempt_forget(local, entry->d_name);
    }
    if (folder)
        closedir(folder);
}
