/* keeper.h - a node's keeper, seen from the engine: started, found, ended.
 *
 * For errands: blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_KEEPER_H
#define ENGINE_LOCAL_KEEPER_H

#include "base/err.h"
#include "shim/node.h"

/* Write the spec into the node's folder and start a keeper; returns when the node stands. */
int keeper_start(const char *shim,
                 const char *folder,
                 const struct shim_node_spec *spec,
                 struct err *e);
/* A pidfd of this very process; -1 when it has ended. */
int keeper_open(const struct shim_keeper *keeper, int *ret_fd);
/* Not known to have ended. */
bool keeper_lives(const struct shim_keeper *keeper);
/* Kill it, and wait until it is gone. */
void keeper_end(int keeper_fd);
int keeper_address(const char *text, struct in_addr *ret_address, struct err *e);

#endif
