/* launched.c - what the environment says about who started us; see mpi-way.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/mpi-way.h"

#include "base/mem.h"

#include <stdlib.h>

bool mpi_way_is_launched(void)
{
    /* Each launcher's word for how many ranks there are. */
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        const char *size = getenv(sizes[i]);

        if (size)
            return atoi(size) > 1;
    }
    /* srun --mpi=pmix says which rank we are; how many there are, Slurm says. */
    return getenv("PMIX_RANK") && (!tasks || atoi(tasks) > 1);
}
