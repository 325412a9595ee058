/* comm-internal.h - what the reducer sees of a comm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_COMM_INTERNAL_H
#define TRAIN_COMM_COMM_INTERNAL_H

#include "train/comm/comm.h"
#include "train/comm/group.h"
#include "train/comm/mpi-way.h"

struct lookout;

struct comm_place { /* where a rank lives */
    char host_name[64];
    int32_t pid, host;
};

struct comm {
    struct comm_facts facts;
    struct group *group;       /* NULL when alone */
    struct mpi_way *mpi;       /* NULL unless MPI launched us */
    struct lookout *lookout;   /* several hosts, and reached */
    struct comm_place *places; /* of every rank; NULL until known */
    _Atomic bool is_broken;    /* somebody died: nothing collective can be done any more */
};

/* Fails, with the name of the rank, when one died.  From the main thread. */
int comm_check(struct comm *comm, struct err *e);

#endif
