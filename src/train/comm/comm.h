/* comm.h - the ranks of a run: who they are, and the small things they say to each other.
 *
 * Three ways in, as comm_open() finds them:
 *   alone   nobody launched us as one of several: no MPI call is made at all
 *   mpi     under mpirun, srun --mpi=pmix or Hydra (OMPI_COMM_WORLD_SIZE, PMIX_RANK, PMI_SIZE,
 *           ... say so): MPI_Init_thread(MPI_THREAD_MULTIPLE); less is an error that says which
 *           level the library gave, unless all ranks share one host
 *   local   started by `yardbench scale` (YARDBENCH_LOCAL=<rank>:<ranks>:<shm name>): one host,
 *           shared memory only, milliseconds instead of mpirun's half second
 * Ranks of one host always meet in shared memory (POSIX shm, unlinked as soon as all have
 * mapped it, so that nothing stays behind); between hosts it is MPI.
 *
 * A rank that dies: every wait watches the peers of its host (pidfd), and between hosts a TCP
 * connection to rank 0, whose keep-alives the kernel answers (lookout.h); the survivors fail
 * with ERR_BUSY "rank 3 (host node-2, pid 4711) died: signal 9" within COMM_DEATH_SECONDS, and
 * so does everybody else who waits.  Nothing mistakes a slow or stopped rank for a dead one.
 *
 * Threads: everything here is called from the main thread; the reducer (reducer.h) has its own
 * progress thread and its own communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_COMM_H
#define TRAIN_COMM_COMM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct comm; /* opaque */

enum {
    COMM_DEATH_SECONDS = 5,
};

struct comm_facts {
    int rank, ranks;
    int local_rank, local_ranks; /* on this host */
    int host, hosts;             /* number of this host, by its lowest rank */
    char host_name[64];
    const char *way; /* "alone", "mpi", "local" */
};

int comm_open(struct comm **ret_comm, struct err *e);
/* Leaves the group; with MPI, finalizes. */
void comm_free(struct comm *comm);
/* End the whole run because of an error here: the message reaches the others' stderr through
 * the launcher, all ranks end with a status that is not 0.  Does not return. */
_Noreturn void comm_abort(struct comm *comm, const struct err *why);

const struct comm_facts *comm_facts(const struct comm *comm); /* borrowed, lives as long */

/* Collective: every rank calls the same ones in the same order. */
int comm_barrier(struct comm *comm, struct err *e);
int comm_broadcast(struct comm *comm, void *bytes, size_t len, int root, struct err *e);
int comm_sum(struct comm *comm, double *values, int count, struct err *e); /* in place */
int comm_most(struct comm *comm, double *values, int count, struct err *e);
/* Each rank's len bytes, in order of rank, into all (ranks * len). */
int comm_gather(struct comm *comm, const void *mine, size_t len, void *all, struct err *e);
/* Fails on every rank, naming the ranks that differ, unless all have the same text: model,
 * graph, bucket sizes, layout of the gradients. */
int comm_agree(struct comm *comm, const char *what, const char *text, struct err *e);

#endif
