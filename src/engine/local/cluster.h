/* cluster.h - what the nodes of a cluster have in common: host keys, ssh configuration,
 * accounts, names.
 *
 *     <home>/clusters/<id>/members/<node>   its address
 *                          hosts            bound over /etc/hosts
 *                          passwd, shadow   bound over /etc/...
 *                          ssh/             bound over /etc/ssh
 *
 * All nodes of a cluster have one host key and one key to log in with, so that each knows and
 * trusts all, whenever they come.
 *
 * For errands: blocks.  The caller sees to it that one works on a cluster at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_CLUSTER_H
#define ENGINE_LOCAL_CLUSTER_H

#include "base/err.h"
#include "engine/engine.h"

/* Below AZ_BATCHAI_ROOT: how to get into the container. */
#define CLUSTER_ENTER "configs/enter"

/* Make what is missing.  pattern is of the nodes' addresses ("10.77.*"). */
int cluster_make(const char *home,
                 const struct engine_cluster *cluster,
                 const char *pattern,
                 struct err *e);
/* A node comes or goes (address NULL); the last to go takes the cluster's files along. */
int cluster_set_member(const char *home,
                       const struct engine_cluster *cluster,
                       const char *node,
                       const char *address,
                       struct err *e);

#endif
