/* allreduce.c - one rank of bench/allreduce: our reducer and plain MPI_Allreduce in turns, over
 * sizes and over ResNet-50's gradients.  Run by mpirun.
 *
 * Usage: allreduce-ranks ROUNDS LARGEST_BYTES
 *
 * Rank 0 prints "<case> <bytes> <who> <best us> <median us>" lines: a round is so many calls
 * that it takes a few tens of milliseconds, its time is the slowest rank's, per call; best and
 * median are over rounds.  The rivals take turns round by round, so they see the same machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/comm/comm.h"
#include "train/comm/reducer.h"
#include "train/num/stats.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LEAST_BYTES = 4096,
    MOST_ROUNDS = 64,
    MOST_TENSORS = 200,
    MOST_WHO = 4,
};

struct place {
    struct comm *comm;
    struct reducer *reducer;
    float *arena, *plain; /* as large as the largest case */
    struct reducer_span tensors[MOST_TENSORS], buckets[MOST_TENSORS];
    int tensor_count, bucket_count;
    size_t gradients; /* floats */
    int rounds;
    size_t largest;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

_Noreturn static void die(const struct err *e)
{
    fprintf(stderr, "allreduce-ranks: %s\n", e->msg);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* --- the gradients of ResNet-50, in the order in which the backward pass has them ------------
 */

static void add(struct place *p, size_t count)
{
    p->tensors[p->tensor_count++] = (struct reducer_span){p->gradients, count};
    p->gradients += count;
}

/* Weight, then scale and shift of the batch norm behind it. */
static void add_conv(struct place *p, size_t in, size_t out, size_t side)
{
    add(p, out);
    add(p, out);
    add(p, in * out * side * side);
}

static void add_block(struct place *p, size_t in, size_t width, bool has_shortcut)
{
    add_conv(p, width, 4 * width, 1);
    add_conv(p, width, width, 3);
    add_conv(p, in, width, 1);
    if (has_shortcut)
        add_conv(p, in, 4 * width, 1);
}

static void list_gradients(struct place *p)
{
    static const int blocks[] = {3, 4, 6, 3};

    add(p, 1000);
    add(p, (size_t)2048 * 1000);
    for (int stage = 3; stage >= 0; stage--) {
        size_t width = (size_t)64 << stage;

        for (int b = blocks[stage] - 1; b > 0; b--)
            add_block(p, 4 * width, width, false);
        add_block(p, stage == 0 ? 64 : 2 * width, width, true);
    }
    add_conv(p, 3, 64, 7);
}

/* As the graph fuses them (step.h): up to the threshold, one gradient alone may be larger. */
static void fuse(struct place *p, size_t most)
{
    for (int i = 0; i < p->tensor_count; i++) {
        struct reducer_span *last = &p->buckets[p->bucket_count - 1];

        if (p->bucket_count > 0 && last->count + p->tensors[i].count <= most)
            last->count += p->tensors[i].count;
        else
            p->buckets[p->bucket_count++] = p->tensors[i];
    }
}

/* --- the rivals ------------------------------------------------------------------------------
 */

typedef void call_fn(struct place *p, size_t count);

static void ours_in_arena(struct place *p, size_t count)
{
    struct err e = {0};

    if (reducer_sum(p->reducer, p->arena, count, &e) < 0)
        die(&e);
}

static void ours_anywhere(struct place *p, size_t count)
{
    struct err e = {0};

    if (reducer_sum(p->reducer, p->plain, count, &e) < 0)
        die(&e);
}

static void mpi(struct place *p, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, p->plain, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_each(struct place *p, size_t count)
{
    (void)count;
    for (int i = 0; i < p->tensor_count; i++)
        MPI_Allreduce(MPI_IN_PLACE, p->plain + p->tensors[i].offset, (int)p->tensors[i].count,
                      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_pieces(struct place *p, size_t count)
{
    const size_t piece = 1 << 18;

    for (size_t at = 0; at < count; at += piece)
        MPI_Allreduce(MPI_IN_PLACE, p->plain + at,
                      (int)(count - at < piece ? count - at : piece), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
}

static void ours_buckets(struct place *p, size_t count)
{
    struct err e = {0};

    (void)count;
    for (int b = 0; b < p->bucket_count; b++)
        reducer_start(p->reducer, b);
    for (int b = 0; b < p->bucket_count; b++)
        if (reducer_wait(p->reducer, b, &e) < 0)
            die(&e);
}

struct who {
    const char *name;
    call_fn *call;
};

/* --- measuring -------------------------------------------------------------------------------
 */

static double time_round(struct place *p, call_fn *call, size_t count, int calls)
{
    double mine, slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    mine = now_s();
    for (int i = 0; i < calls; i++)
        call(p, count);
    mine = (now_s() - mine) / calls * 1e6;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* About 30 ms a round, by one trial; the same on all ranks. */
static int calls_for(struct place *p, call_fn *call, size_t count)
{
    double us = time_round(p, call, count, 3);
    int calls = (int)(30e3 / (us + 0.1)) + 1;

    return calls < 20000 ? calls : 20000;
}

static void
measure(struct place *p, const char *name, size_t count, const struct who *who, int who_count)
{
    double us[MOST_WHO][MOST_ROUNDS];
    int calls[MOST_WHO];

    for (int w = 0; w < who_count; w++)
        calls[w] = calls_for(p, who[w].call, count);
    for (int round = 0; round < p->rounds; round++)
        for (int w = 0; w < who_count; w++)
            us[w][round] = time_round(p, who[w].call, count, calls[w]);
    if (comm_facts(p->comm)->rank != 0)
        return;
    for (int w = 0; w < who_count; w++)
        printf("%s %zu %s %.3f %.3f\n", name, count * sizeof(float), who[w].name,
               stats_quantile(us[w], (size_t)p->rounds, 0),
               stats_median(us[w], (size_t)p->rounds));
    fflush(stdout);
}

/* A benchmark of wrong sums would be worth nothing. */
static void check(struct place *p, const struct who *who, const float *values, size_t count)
{
    struct err e = {0};
    float want = 0;

    for (size_t i = 0; i < count; i++)
        p->arena[i] = p->plain[i] = (float)(comm_facts(p->comm)->rank + 1) * (float)(i % 1000);
    for (int r = 0; r < comm_facts(p->comm)->ranks; r++)
        want += (float)(r + 1);
    who->call(p, count);
    for (size_t i = 0; i < count; i++)
        if (values[i] != want * (float)(i % 1000)) {
            err_set(&e, ERR_INTERNAL, "%s: element %zu of %zu is %g, not %g", who->name, i,
                    count, values[i], want * (float)(i % 1000));
            die(&e);
        }
    memset(p->arena, 0, count * sizeof(float));
    memset(p->plain, 0, count * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void set_up(struct place *p)
{
    struct reducer_options options;
    struct err e = {0};
    size_t bytes;

    if (comm_open(&p->comm, &e) < 0 || reducer_defaults(&options, &e) < 0 ||
        reducer_new(p->comm, &options, &p->reducer, &e) < 0)
        die(&e);
    list_gradients(p);
    fuse(p, (size_t)options.fusion_bytes / sizeof(float));
    bytes =
        p->largest > p->gradients * sizeof(float) ? p->largest : p->gradients * sizeof(float);
    p->plain = xcalloc(1, bytes);
    if (reducer_arena(p->reducer, bytes, &p->arena, &e) < 0 ||
        reducer_attach(p->reducer, p->buckets, p->bucket_count, &e) < 0)
        die(&e);
}

int main(int count, char **words)
{
    static const struct who plain[] = {
        {"ours", ours_in_arena}, {"mpi", mpi}, {"ours-anywhere", ours_anywhere}};
    static const struct who set[] = {{"ours", ours_buckets},
                                     {"mpi", mpi},
                                     {"mpi-pieces", mpi_pieces},
                                     {"mpi-each", mpi_each}};
    struct place p = {0};

    if (count != 3)
        return 2;
    p.rounds = atoi(words[1]) < MOST_ROUNDS ? atoi(words[1]) : MOST_ROUNDS;
    p.largest = strtoull(words[2], NULL, 10);
    set_up(&p);
    if (comm_facts(p.comm)->rank == 0)
        printf("# %d tensors, %zu floats, %d buckets, %d ranks, %d hosts\n", p.tensor_count,
               p.gradients, p.bucket_count, comm_facts(p.comm)->ranks,
               comm_facts(p.comm)->hosts);
    for (size_t bytes = LEAST_BYTES; bytes <= p.largest; bytes *= 4) {
        check(&p, &plain[0], p.arena, bytes / sizeof(float));
        check(&p, &plain[2], p.plain, bytes / sizeof(float));
        measure(&p, "size", bytes / sizeof(float), plain, ARRAY_SIZE(plain));
    }
    check(&p, &set[0], p.arena, p.gradients);
    measure(&p, "resnet50", p.gradients, set, ARRAY_SIZE(set));
    reducer_free(p.reducer);
    free(p.plain);
    comm_free(p.comm);
    return 0;
}
