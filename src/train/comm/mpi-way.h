/* mpi-way.h - all that is done with MPI; the only header between us and it.  Without MPI at
 * build time, mpi-none.c stands in and says so.
 *
 * Two communicators: one for the main thread's collectives, one for the progress thread's lanes
 * (reducer.h).  A lane is the set of ranks with the same place on their hosts: place l of host
 * h talks to place l of the other hosts.
 *
 * Every wait is a loop over MPI_Test that sleeps between and asks whether all are still alive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_MPI_WAY_H
#define TRAIN_COMM_MPI_WAY_H

#include "base/err.h"
#include "train/comm/bell.h"
#include "train/comm/comm.h"

#include <stddef.h>

struct mpi_way; /* opaque */

enum {
    MPI_WAY_SLOTS = 8, /* exchanges of a lane at the same time */
};

/* Were we started as one of several by an MPI launcher?  Reads the environment only. */
bool mpi_way_is_launched(void);

/* MPI_Init, and who is where.  shm_name gets the name of the segment in which the ranks of this
 * host meet: made here by the first of them. */
int mpi_way_open(struct mpi_way **ret_way,
                 struct comm_facts *ret_facts,
                 char ret_shm_name[],
                 struct err *e);
/* is_good: all ranks do the same now; else MPI is left as it is. */
void mpi_way_free(struct mpi_way *way, bool is_good);
_Noreturn void mpi_way_abort(struct mpi_way *way, int status);

/* Collectives of the main thread. */
int mpi_way_barrier(struct mpi_way *way, const struct bell_patience *patience, struct err *e);
int mpi_way_broadcast(struct mpi_way *way,
                      void *bytes,
                      size_t len,
                      int root,
                      const struct bell_patience *patience,
                      struct err *e);
int mpi_way_gather(struct mpi_way *way,
                   const void *mine,
                   size_t len,
                   void *all,
                   const struct bell_patience *patience,
                   struct err *e);

/* How many lanes there are: the least number of ranks on a host. */
int mpi_way_lanes(const struct mpi_way *way);
/* Send to one host and receive from another in this rank's lane, from the progress thread; then
 * ask until it is done.  Slots are independent of each other; within a slot one at a time. */
struct mpi_hop {
    const float *send;
    size_t send_count;
    int to; /* host */
    float *receive;
    size_t receive_count;
    int from;
    int tag;
};
int mpi_way_start(struct mpi_way *way, int slot, const struct mpi_hop *hop, struct err *e);
int mpi_way_is_done(struct mpi_way *way, int slot, bool *ret_is_done, struct err *e);

#endif
