/* node.h - the keeper of a node: one process that holds a network, a mount and a UTS namespace
 * open and looks after the node's sshd.  `yard-shim --node FOLDER`.
 *
 * The folder has the node's "node" file, a row of "key=value" fields, each ended by a NUL byte,
 * the first of them "yard-node=1":
 *
 *     hostname=   of the node
 *     bridge=     made when missing
 *     gateway=    "<address>/<prefix>" of the bridge
 *     address=    "<address>/<prefix>" of the node's eth0
 *     veth=       the other end's name
 *     from=, to=  repeated pairs: what is bound where
 *     hide=       repeated: folder under an empty file system, after all binding
 *     cgroup=     repeated: folder whose cgroup.procs the keeper writes itself into
 *     cpus=       processors to stay on, "0-3,8"
 *     sshd=       the program
 *     listen=     repeated: "<port> <configuration>" of an sshd to run, as the node sees it
 *
 * and gets, when the node stands, "keeper":
 *
 *     <pid> <start time> <boot id> <inode of the network namespace> <pid of sshd>...\n
 *
 * "lock" is held while the keeper lives.  The descriptor 3, when it is open, is told "ok" or
 * what went wrong, and closed.  sshd that ends is started again; it dies with the keeper.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_NODE_H
#define SHIM_NODE_H

#include "base/err.h"
#include "base/mem.h"
#include "shim/folder.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct str;

enum {
    SHIM_NODE_BINDS = 32,
    SHIM_NODE_LISTENERS = 2,
};

struct shim_listener {
    int port;
    const char *config;
};

struct shim_bind {
    const char *from, *to;
};

struct shim_node_spec {
    const char *hostname, *bridge, *veth, *sshd;
    const char *cpus; /* NULL = any */
    struct in_addr gateway, address;
    int prefix;
    struct shim_bind binds[SHIM_NODE_BINDS];
    size_t bind_count;
    const char *hides[4];
    size_t hide_count;
    const char *cgroups[8];
    size_t cgroup_count;
    struct shim_listener listeners[SHIM_NODE_LISTENERS];
    size_t listener_count;
};

void shim_node_format(const struct shim_node_spec *spec, struct str *out);
/* Strings are borrowed from bytes, which must end with a NUL. */
int shim_node_parse(const char *bytes,
                    size_t len,
                    struct shim_node_spec *ret_spec,
                    struct err *e);

/* A keeper as it wrote itself down. */
struct shim_keeper {
    struct shim_identity identity;
    uint64_t net;                         /* inode of its network namespace */
    pid_t listeners[SHIM_NODE_LISTENERS]; /* 0 = none */
};

void shim_keeper_format(const struct shim_keeper *keeper, struct str *out);
/* ERR_NOT_FOUND when there is none. */
int shim_keeper_read(const char *folder, struct shim_keeper *ret_keeper, struct err *e);

/* Does not return before the node's end; the exit status of the program. */
int shim_node_run(const char *folder);

#endif
