/* batchai-nodes.h - commands on nodes, by SSH.
 *
 * The work is that of the program ssh.  A password reaches it through SSH_ASKPASS, never
 * through its arguments, which everybody can read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_NODES_H
#define CLI_BATCHAI_NODES_H

#include "base/err.h"

#include <jansson.h>

struct call;
struct str;

/* Run --exec on the node of --node-id (the first of nodes, a list of remote login information,
 * when not given) with the ports of -L, as the user of the cluster.  The exit status is that of
 * the command. */
int batchai_node_exec(struct call *call,
                      const json_t *cluster,
                      const json_t *nodes,
                      struct err *e);

/* Append text in single quotes, for a shell. */
void batchai_quote(struct str *out, const char *text);

#endif
