/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-placement.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/storage-address.h"

#include <string.h>

void placement_done(struct placement *placement)
{
    free(placement->source_root);
    free(placement->single);
    free(placement->destination_root);
    free(placement->sub);
    free(placement->name);
    *placement = (struct placement){0};
}

/* The folder a path is in: "." for a local name without one, "" for a remote one. */
static char *folder_of(const struct address *a)
{
    size_t end = strlen(a->path);

    while (end && a->path[end - 1] == '/')
        end--;
    while (end && a->path[end - 1] != '/')
        end--;
    while (end > 1 && a->path[end - 1] == '/')
        end--;
    if (!end)
        return xstrdup(a->is_local ? "." : "");
    return xstrndup(a->path, end);
}

/* The name that a folder goes under; "" when it has none worth keeping. */
static char *name_of_folder(const struct address *a)
{
    auto_free char *base = address_base(a->path);

    if (!a->is_local && !*base)
        return xstrdup(a->container);
    if (str_equal(base, ".") || str_equal(base, ".."))
        return xstrdup("");
    return take_ptr(&base);
}

/* One file: into a folder under its own name, else under the name that was given. */
static void place_single(const struct placement_ask *ask, struct placement *p)
{
    const struct address *to = ask->destination;
    bool into =
        ask->destination_is_folder || to->ends_in_slash || (!to->is_local && !*to->path);

    p->source_root = folder_of(ask->source);
    p->single = address_base(ask->source->path);
    p->destination_root = into ? xstrdup(to->path) : folder_of(to);
    p->name = into ? xstrdup(p->single) : address_base(to->path);
    p->sub = xstrdup("");
}

int placement_find(const struct placement_ask *ask,
                   struct placement *ret_placement,
                   struct err *e)
{
    const struct address *from = ask->source;

    if (ask->destination->pattern)
        return err_set(e, ERR_INVALID, "a destination has no wildcards");
    if (from->pattern || ask->source_is_folder) {
        if (!from->pattern && !ask->is_recursive)
            return err_set(
                e, ERR_INVALID,
                "the source is a folder: take -r for all in it, or end it with /* for "
                "the files directly in it");
        ret_placement->source_root = xstrdup(from->path);
        ret_placement->destination_root = xstrdup(ask->destination->path);
        ret_placement->sub =
            from->pattern || !ask->is_subdir ? xstrdup("") : name_of_folder(from);
        return 0;
    }
    place_single(ask, ret_placement);
    return 0;
}

char *placement_target(const struct placement *p, const char *path)
{
    if (p->single)
        return xstrdup(p->name);
    return *p->sub ? xasprintf("%s/%s", p->sub, path) : xstrdup(path);
}
