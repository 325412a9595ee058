/* reducer-net.c - sums over several hosts: the progress thread of a rank that has a lane.
 *
 * Chunk c is lane c mod lanes's.  A job takes one chunk through: add up the arenas of this host
 * into our own, the hops of hop.h with the same lane of the other hosts, write the result into
 * the other arenas of this host.  Up to MPI_WAY_SLOTS jobs are under way at once.
 *
 * All hosts have the same row of chunks, so a chunk's number is its tag.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "train/comm/hop.h"
#include "train/comm/reducer-internal.h"
#include "train/comm/sum.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

struct job {
    bool is_busy;
    uint32_t chunk;
    struct reducer_piece piece;
    int step;
    float *incoming; /* what is to be added, options.piece_bytes */
};

struct reducer_net {
    struct mpi_way *way;
    int lanes;
    bool has_lane;
    uint32_t next;   /* chunk */
    int64_t idle_ns; /* since when nothing has moved; 0 = something has */
    struct job jobs[MPI_WAY_SLOTS];
};

int reducer_net_new(struct reducer *reducer, struct reducer_net **ret_net, struct err *e)
{
    struct reducer_net *net = xcalloc(1, sizeof *net);

    (void)e;
    net->way = reducer->comm->mpi;
    net->lanes = mpi_way_lanes(net->way);
    net->has_lane = reducer->local < net->lanes;
    net->next = (uint32_t)reducer->local;
    for (int i = 0; net->has_lane && i < MPI_WAY_SLOTS; i++)
        net->jobs[i].incoming = xmalloc((size_t)reducer->options.piece_bytes);
    *ret_net = net;
    return 0;
}

void reducer_net_free(struct reducer_net *net)
{
    if (!net)
        return;
    for (int i = 0; i < MPI_WAY_SLOTS; i++)
        free(net->jobs[i].incoming);
    free(net);
}

static float *own(const struct reducer *reducer, const struct job *job)
{
    return reducer_arena_of(reducer, reducer->local) + job->piece.at[reducer->local];
}

/* Where blocks first..first+count begin, and how many floats they are. */
static size_t block(
    const struct reducer *reducer, const struct job *job, int first, int count, size_t *ret_len)
{
    size_t from = hop_block(job->piece.count, reducer->hosts, first);

    *ret_len = hop_block(job->piece.count, reducer->hosts, first + count) - from;
    return from;
}

static int start_hop(struct reducer *reducer, int slot, struct err *e)
{
    enum {
        MOST_TAGS = 1 << 15, /* the least that MPI promises */
    };
    struct job *job = &reducer->net->jobs[slot];
    struct mpi_hop out = {.tag = (int)(job->chunk % MOST_TAGS)};
    float *values = own(reducer, job);
    struct hop hop;

    hop_at(reducer->hosts, reducer->comm->facts.host, job->step, &hop);
    out.to = hop.to;
    out.from = hop.from;
    out.send = values + block(reducer, job, hop.send_first, hop.send_count, &out.send_count);
    out.receive =
        values + block(reducer, job, hop.receive_first, hop.receive_count, &out.receive_count);
    if (hop.adds)
        out.receive = job->incoming;
    return mpi_way_start(reducer->net->way, slot, &out, e);
}

static void end_hop(struct reducer *reducer, struct job *job)
{
    struct hop hop;
    size_t at, len;

    hop_at(reducer->hosts, reducer->comm->facts.host, job->step, &hop);
    at = block(reducer, job, hop.receive_first, hop.receive_count, &len);
    if (hop.adds)
        sum_add(own(reducer, job) + at, job->incoming, len);
    job->step++;
}

static void add_up_host(struct reducer *reducer, struct job *job)
{
    const float *all[GROUP_MOST];
    float *mine = own(reducer, job);

    for (int i = 0; i < reducer->comm->facts.local_ranks; i++)
        all[i] = reducer_arena_of(reducer, i) + job->piece.at[i];
    sum_spread(all, reducer->comm->facts.local_ranks, &mine, 1, job->piece.count);
}

static void give_to_host(struct reducer *reducer, struct job *job)
{
    const float *mine = own(reducer, job);

    for (int i = 0; i < reducer->comm->facts.local_ranks; i++)
        if (i != reducer->local)
            memcpy(reducer_arena_of(reducer, i) + job->piece.at[i], mine,
                   job->piece.count * sizeof(float));
    reducer_mark_done(reducer, &job->piece);
    job->is_busy = false;
}

static int begin_job(struct reducer *reducer, int slot, struct err *e)
{
    struct reducer_net *net = reducer->net;
    struct job *job = &net->jobs[slot];

    job->is_busy = true;
    job->chunk = net->next;
    job->step = 0;
    net->next += (uint32_t)net->lanes;
    reducer_find(reducer, job->chunk, &job->piece);
    if (job->piece.is_first)
        atomic_store_explicit(&reducer->shared->bucket[job->piece.bucket].begun_ns,
                              reducer_now_ns(), memory_order_relaxed);
    add_up_host(reducer, job);
    return start_hop(reducer, slot, e);
}

/* One job a little further, if its messages are through. */
static int move_job(struct reducer *reducer, int slot, bool *moved, struct err *e)
{
    struct job *job = &reducer->net->jobs[slot];
    bool is_done = false;

    if (mpi_way_is_done(reducer->net->way, slot, &is_done, e) < 0)
        return -1;
    if (!is_done)
        return 0;
    *moved = true;
    end_hop(reducer, job);
    if (job->step < hop_count(reducer->hosts))
        return start_hop(reducer, slot, e);
    give_to_host(reducer, job);
    return 0;
}

static int move_all(struct reducer *reducer, bool *ret_moved, bool *ret_busy, struct err *e)
{
    struct reducer_net *net = reducer->net;

    for (int i = 0; i < MPI_WAY_SLOTS; i++) {
        struct job *job = &net->jobs[i];
        uint32_t available = bell_value(&reducer->shared->available);

        if (!job->is_busy && (int32_t)(net->next - available) < 0) {
            *ret_moved = true;
            if (begin_job(reducer, i, e) < 0)
                return -1;
        } else if (job->is_busy && move_job(reducer, i, ret_moved, e) < 0) {
            return -1;
        }
        *ret_busy |= job->is_busy;
    }
    return 0;
}

/* MPI has nothing to sleep on: look for a moment, then nap between looks. */
static void rest(struct reducer_net *net, bool moved)
{
    const struct timespec nap = {0, 30000};
    int64_t now = reducer_now_ns();

    if (moved || net->idle_ns == 0)
        net->idle_ns = now;
    else if (now - net->idle_ns > BELL_SPIN_US * 1000LL)
        nanosleep(&nap, NULL);
}

static int work(struct reducer *reducer, struct err *e)
{
    struct reducer_net *net = reducer->net;
    int64_t begun = reducer_now_ns();
    uint32_t seen = bell_value(&reducer->shared->work);
    bool moved = false, is_busy = false;

    if (net->has_lane && move_all(reducer, &moved, &is_busy, e) < 0)
        return -1;
    if (is_busy || moved) {
        rest(net, moved);
        atomic_fetch_add_explicit(&reducer->busy_ns, reducer_now_ns() - begun,
                                  memory_order_relaxed);
    } else {
        bell_sleep(&reducer->shared->work, seen, -1);
        if (reducer->options.cycle_ms > 0) {
            int64_t ns = (int64_t)(reducer->options.cycle_ms * 1e6);
            struct timespec company = {ns / 1000000000, ns % 1000000000};

            nanosleep(&company, NULL);
        }
    }
    return 0;
}

void *reducer_net_progress(void *arg)
{
    struct reducer *reducer = arg;

    prctl(PR_SET_TIMERSLACK, 1000); /* ns; the usual 50 us would be most of a nap */
    while (!atomic_load(&reducer->stops) && !atomic_load(&reducer->comm->is_broken))
        if (work(reducer, &reducer->failure) < 0) {
            atomic_store(&reducer->has_failed, true);
            break;
        }
    atomic_store(&reducer->has_stopped, true);
    return NULL;
}
