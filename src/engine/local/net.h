/* net.h - the network of the nodes: one bridge for a yard, one address for a node.
 *
 * The bridge's name follows from the data folder, so that several yards on one machine do not
 * meet; the subnet is the configured one, or the first of 10.64.0.0/16 ... 10.127.0.0/16, begun
 * at a place that follows from the data folder, that no route of the machine touches.  It is
 * kept in <home>/nodes/.subnet: nodes that live have addresses of it.  A file in /run/trainyard
 * says whose a subnet is, while that yard runs or has nodes.
 *
 * Threads: any, but for net_new and net_free.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_NET_H
#define ENGINE_LOCAL_NET_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdint.h>

struct net; /* opaque */

enum {
    NET_ADDRESS_BYTES = 16,
    NET_NAME_BYTES = 16, /* of an interface, with its NUL */
};

int net_new(const char *home, const char *subnet, struct net **ret_net, struct err *e);
void net_free(struct net *net);

/* A free address, as text.  ERR_NO_SPACE. */
int net_take(struct net *net, char ret_address[NET_ADDRESS_BYTES], struct err *e);
/* The address is in use: found after a restart. */
void net_claim(struct net *net, const char *address);
void net_give(struct net *net, const char *address);

const char *net_bridge(const struct net *net);
struct in_addr net_gateway(const struct net *net);
int net_prefix(const struct net *net);
/* Name of the host's end of a node's wire. */
void net_veth(const struct net *net, const char *address, char ret_name[NET_NAME_BYTES]);
/* Cut a node's wire: the kernel takes its time to do that by itself. */
void net_cut(const struct net *net, const char *address);
/* The first bytes of the addresses, for patterns: "10.77.*". */
void net_pattern(const struct net *net, char ret_pattern[NET_ADDRESS_BYTES]);
/* Around the making of a node: the bridge stays. */
void net_hold(struct net *net);
void net_let_go(struct net *net);
/* Remove the bridge when nothing hangs on it and nobody holds it. */
void net_sweep(struct net *net);

#endif
