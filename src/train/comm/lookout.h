/* lookout.h - the watch over ranks of other hosts: a TCP connection from each of them to rank
 * 0.
 *
 * The kernel closes a dead process's connection, and answers keep-alives for one that is slow
 * or stopped: so an end of a connection is a death and never slowness.  A host that vanishes
 * stops answering: three keep-alives without an answer end the connection (about 4 s).  Rank 0
 * tells the others who died; who loses rank 0 knows that much by itself.
 *
 * Calling sequence: rank 0 lookout_listen(), all exchange the address (over MPI), ranks of
 * other hosts lookout_connect(), rank 0 lookout_accept() for as many as came through, these
 * lookout_confirm().
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_LOOKOUT_H
#define TRAIN_COMM_LOOKOUT_H

#include "base/err.h"

#include <stdint.h>

enum {
    LOOKOUT_MOST_ADDRESSES = 8,
};

struct lookout; /* opaque */

struct lookout_address {                      /* goes over the wire as it is */
    uint8_t token[16];                        /* who does not know it is not let in */
    uint32_t address[LOOKOUT_MOST_ADDRESSES]; /* IPv4, network order */
    uint16_t port;                            /* network order */
    uint16_t count;                           /* 0 = nobody listens */
};

int lookout_listen(struct lookout **ret_lookout,
                   struct lookout_address *ret_address,
                   struct err *e);
int lookout_accept(struct lookout *lookout, int count, struct err *e);
int lookout_connect(const struct lookout_address *address,
                    int rank,
                    struct lookout **ret_lookout,
                    struct err *e);
int lookout_confirm(struct lookout *lookout, struct err *e);
/* Says good-bye, so that the end is not taken for a death. */
void lookout_free(struct lookout *lookout);

/* Has somebody died?  Tells the others, at rank 0. */
bool lookout_find_dead(struct lookout *lookout, int *ret_rank);
/* Rank 0: tell the others about a death that was seen otherwise.  Elsewhere it does nothing. */
void lookout_tell(struct lookout *lookout, int rank);

#endif
