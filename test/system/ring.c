/* ring.c - what a distributed job does at the least: an all-reduce, and a message that goes
 * round.
 *
 * Each rank says who and where it is, what it saw, and how many bytes left its node's eth0
 * meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COUNT = 1 << 20, /* doubles: 8 MiB, more than any handshake */
};

static long long sent_bytes(void)
{
    FILE *file = fopen("/proc/self/net/dev", "r");
    char line[512];
    long long sent = -1;

    while (file && fgets(line, sizeof(line), file)) {
        if (strstr(line, "eth0:"))
            sscanf(strchr(line, ':') + 1, "%*d %*d %*d %*d %*d %*d %*d %*d %lld", &sent);
    }
    if (file)
        fclose(file);
    return sent;
}

static double all_reduce(double *numbers, int rank)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = rank + 1;
    MPI_Allreduce(MPI_IN_PLACE, numbers, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 1; i < COUNT; i++) {
        if (numbers[i] != numbers[0])
            return -1;
    }
    return numbers[0];
}

/* Each adds its number to a message on its way round. */
static int ring(int rank, int size)
{
    int message = 0;

    if (rank > 0)
        MPI_Recv(&message, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    message += rank + 1;
    MPI_Send(&message, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&message, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return message;
}

int main(int argc, char **argv)
{
    double *numbers = malloc(COUNT * sizeof(*numbers));
    const char *node = getenv("AZ_BATCH_NODE_ID");
    char host[256] = "";
    long long before = sent_bytes();
    int rank, size, round;
    double sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof(host) - 1);
    sum = all_reduce(numbers, rank);
    round = ring(rank, size);
    printf("rank %d of %d on %s as %s: sum %g ring %d sent %lld\n", rank, size, host,
           node ? node : "?", sum, round, sent_bytes() - before);
    free(numbers);
    MPI_Finalize();
    return argc > 1 && rank == size - 1 ? atoi(argv[1]) : 0;
}
