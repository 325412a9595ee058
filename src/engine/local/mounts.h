/* mounts.h - volumes at their places in a node.
 *
 * In a namespace a volume is a bind mount: cloned where its source is seen, set down where the
 * node sees its folders, with no link followed on either side.  Without root it is a symbolic
 * link.  An unmanaged one is the user's own command, run by bash in the node with the place as
 * its last argument and nothing of the daemon's environment.
 *
 * For errands: blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_MOUNTS_H
#define ENGINE_LOCAL_MOUNTS_H

#include "base/err.h"
#include "engine/engine.h"

#include <stdatomic.h>
#include <stddef.h>

struct errands;

/* Where: a folder of a node. */
struct mount_place {
    int keeper_fd;      /* negative = links on this host */
    const char *root;   /* AZ_BATCHAI_ROOT as the node sees it */
    const char *folder; /* relative to it: "mounts" */
    struct errands *errands;
    const atomic_bool *is_cancelled; /* NULL = never */
};

/* Why a volume could not be had. */
struct mount_failure {
    char code[64], message[512], info[512];
};

/* All volumes, in their order.  What was there before is undone first. */
int mounts_add(const struct mount_place *place,
               const struct engine_volume *volumes,
               size_t count,
               struct mount_failure *ret_failure);
/* The folder of this machine that a volume shows, with no link in it, for those who mount by
 * name; in the arena. */
int mounts_resolve(const struct engine_volume *volume,
                   struct arena *arena,
                   const char **ret_path,
                   bool *ret_read_only,
                   struct err *e);
/* A folder of ours at `folder` itself. */
int mounts_bind(const struct mount_place *place, const char *source, struct err *e);
/* Take away everything that is mounted beneath the folder. */
int mounts_undo(const struct mount_place *place, struct err *e);

#endif
