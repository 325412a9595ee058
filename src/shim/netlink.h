/* netlink.h - the few things a yard wants from the kernel's network: a bridge, pairs of veth,
 * addresses, a route.
 *
 * A socket belongs to the network namespace it was opened in, wherever its owner goes then: so
 * the keeper of a node works on both sides of the wall.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_NETLINK_H
#define SHIM_NETLINK_H

#include "base/err.h"

#include <netinet/in.h>
#include <sys/types.h>

int netlink_open(int *ret_fd, struct err *e);

/* An existing one of that name is fine. */
int netlink_make_bridge(int fd, const char *name, struct err *e);
/* A pair: name here, in the bridge; peer in the network namespace of a process. */
int netlink_make_veth(int fd,
                      const char *name,
                      const char *bridge,
                      const char *peer,
                      pid_t peer_pid,
                      struct err *e);
int netlink_up(int fd, const char *name, struct err *e);
/* An address that is there already is fine. */
int netlink_add_address(
    int fd, const char *name, struct in_addr address, int prefix, struct err *e);
int netlink_add_default_route(int fd, struct in_addr gateway, struct err *e);
/* A missing one is fine. */
int netlink_remove(int fd, const char *name, struct err *e);
/* How many interfaces are ports of the bridge; 0 when it is not there. */
int netlink_count_ports(const char *bridge);

#endif
