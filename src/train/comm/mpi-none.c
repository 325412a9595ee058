/* mpi-none.c - stands in for mpi.c where there is no MPI to build with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/mpi-way.h"

#include <stdlib.h>

static int none(struct err *e)
{
    return err_set(e, ERR_METHOD,
                   "started by an MPI launcher, but this yardbench was built without MPI");
}

int mpi_way_open(struct mpi_way **ret_way,
                 struct comm_facts *ret_facts,
                 char ret_shm_name[],
                 struct err *e)
{
    (void)ret_way, (void)ret_facts, (void)ret_shm_name;
    return none(e);
}

void mpi_way_free(struct mpi_way *way, bool is_good)
{
    (void)way, (void)is_good;
}

_Noreturn void mpi_way_abort(struct mpi_way *way, int status)
{
    (void)way;
    exit(status);
}

int mpi_way_barrier(struct mpi_way *way, const struct bell_patience *patience, struct err *e)
{
    (void)way, (void)patience;
    return none(e);
}

int mpi_way_broadcast(struct mpi_way *way,
                      void *bytes,
                      size_t len,
                      int root,
                      const struct bell_patience *patience,
                      struct err *e)
{
    (void)way, (void)bytes, (void)len, (void)root, (void)patience;
    return none(e);
}

int mpi_way_gather(struct mpi_way *way,
                   const void *mine,
                   size_t len,
                   void *all,
                   const struct bell_patience *patience,
                   struct err *e)
{
    (void)way, (void)mine, (void)len, (void)all, (void)patience;
    return none(e);
}

int mpi_way_lanes(const struct mpi_way *way)
{
    (void)way;
    return 0;
}

int mpi_way_start(struct mpi_way *way, int slot, const struct mpi_hop *hop, struct err *e)
{
    (void)way, (void)slot, (void)hop;
    return none(e);
}

int mpi_way_is_done(struct mpi_way *way, int slot, bool *ret_is_done, struct err *e)
{
    (void)way, (void)slot, (void)ret_is_done;
    return none(e);
}
