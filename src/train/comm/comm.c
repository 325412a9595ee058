/* comm.c - see comm.h.  On one host everything goes through the group's shared memory; over
 * several, small things go straight through MPI.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/comm/comm-internal.h"
#include "train/comm/local.h"
#include "train/comm/lookout.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_alone(const struct comm *comm)
{
    return comm->facts.ranks == 1;
}

/* --- who died --------------------------------------------------------------------------------
 */

static int say_dead(struct comm *comm, int rank, const struct group_death *death, struct err *e)
{
    const struct comm_place *place = comm->places ? &comm->places[rank] : NULL;
    char how[48] = "died";

    if (death && death->has_left)
        snprintf(how, sizeof how, "left while others still counted on it");
    else if (death && death->signal > 0)
        snprintf(how, sizeof how, "died: signal %d", death->signal);
    else if (death && death->status >= 0)
        snprintf(how, sizeof how, "died: exit status %d", death->status);
    atomic_store(&comm->is_broken, true);
    return err_set(e, ERR_BUSY, "rank %d (host %s, pid %ld) %s", rank,
                   place ? place->host_name : comm->facts.host_name,
                   place ? (long)place->pid : 0L, how);
}

/* All name the one that was seen first; how it ended is known of the ranks of this host. */
int comm_check(struct comm *comm, struct err *e)
{
    struct group_death death = {.signal = -1, .status = -1};
    int rank = -1, blamed;
    bool is_near = comm->group && group_find_dead(comm->group, &death);

    if (is_alone(comm))
        return 0;
    if (is_near)
        rank = death.rank;
    else if (!comm->lookout || !lookout_find_dead(comm->lookout, &rank))
        rank = group_blamed(comm->group);
    if (rank < 0 || rank >= comm->facts.ranks)
        return 0;
    blamed = group_blame(comm->group, rank);
    if (comm->lookout)
        lookout_tell(comm->lookout, blamed);
    return say_dead(comm, blamed, is_near && death.rank == blamed ? &death : NULL, e);
}

static int check(void *arg, struct err *e)
{
    return comm_check(arg, e);
}

/* --- the three ways in -----------------------------------------------------------------------
 */

static void become_alone(struct comm *comm)
{
    comm->facts = (struct comm_facts){.ranks = 1, .local_ranks = 1, .hosts = 1, .way = "alone"};
}

static int join_local(struct comm *comm, const char *text, char *shm_name, struct err *e)
{
    struct local_seat seat;

    if (local_parse(text, &seat, e) < 0)
        return -1;
    comm->facts = (struct comm_facts){.rank = seat.rank,
                                      .ranks = seat.ranks,
                                      .local_rank = seat.rank,
                                      .local_ranks = seat.ranks,
                                      .hosts = 1,
                                      .way = "local"};
    memcpy(shm_name, seat.name, sizeof seat.name);
    return 0;
}

static int learn_places(struct comm *comm, struct err *e)
{
    struct comm_place mine = {.pid = (int32_t)getpid(), .host = comm->facts.host};
    struct comm_place *places = xcalloc((size_t)comm->facts.ranks, sizeof *places);

    memcpy(mine.host_name, comm->facts.host_name, sizeof mine.host_name);
    if (comm_gather(comm, &mine, sizeof mine, places, e) < 0) {
        free(places);
        return -1;
    }
    comm->places = places;
    return 0;
}

/* Without it, the launcher is the only one who sees other hosts' ranks die: worth a word, not a
 * failure. */
static int place_lookout(struct comm *comm, struct err *e)
{
    struct lookout_address address = {0};
    struct err why = {0};
    double reached = 0;
    int rc = 0;

    if (comm->facts.rank == 0)
        rc = lookout_listen(&comm->lookout, &address, &why);
    if (comm_broadcast(comm, &address, sizeof address, 0, e) < 0)
        return -1;
    if (comm->facts.host != 0 && address.count > 0)
        reached = lookout_connect(&address, comm->facts.rank, &comm->lookout, &why) == 0;
    if (comm_sum(comm, &reached, 1, e) < 0)
        return -1;
    if (comm->lookout)
        rc = comm->facts.rank == 0 ? lookout_accept(comm->lookout, (int)reached, &why)
                                   : lookout_confirm(comm->lookout, &why);
    if (rc < 0)
        log_debug("event=lookout error=\"%s\"", why.msg);
    if (rc < 0 && comm->facts.rank != 0) {
        lookout_free(comm->lookout);
        comm->lookout = NULL;
    }
    return 0;
}

static int join(struct comm *comm, const char *shm_name, struct err *e)
{
    if (group_open(shm_name, comm->facts.rank, comm->facts.local_rank, comm->facts.local_ranks,
                   &comm->group, e) < 0 ||
        learn_places(comm, e) < 0)
        return -1;
    group_set_check(comm->group, check, comm);
    return comm->facts.hosts > 1 ? place_lookout(comm, e) : 0;
}

int comm_open(struct comm **ret_comm, struct err *e)
{
    struct comm *comm = xcalloc(1, sizeof *comm);
    const char *local = getenv(LOCAL_VARIABLE);
    char shm_name[SHARE_NAME_BYTES] = "";
    int rc = 0;

    if (local)
        rc = join_local(comm, local, shm_name, e);
    else if (mpi_way_is_launched())
        rc = mpi_way_open(&comm->mpi, &comm->facts, shm_name, e);
    else
        become_alone(comm);
    if (rc == 0) {
        gethostname(comm->facts.host_name, sizeof comm->facts.host_name - 1);
        rc = shm_name[0] ? join(comm, shm_name, e) : 0;
    }
    if (rc < 0) {
        atomic_store(&comm->is_broken, true);
        comm_free(comm);
        return -1;
    }
    *ret_comm = comm;
    return 0;
}

/* MPI ends in step; before that the group meets once more, so that nobody's end looks like a
 * death to one who still waits. */
void comm_free(struct comm *comm)
{
    if (!comm)
        return;
    if (!is_alone(comm) && !atomic_load(&comm->is_broken) && comm_barrier(comm, NULL) < 0)
        atomic_store(&comm->is_broken, true);
    lookout_free(comm->lookout);
    group_free(comm->group);
    mpi_way_free(comm->mpi, !atomic_load(&comm->is_broken));
    free(comm->places);
    free(comm);
}

_Noreturn void comm_abort(struct comm *comm, const struct err *why)
{
    int status = err_info(why->code)->exit_status;

    if (status == 0)
        status = 1;
    if (is_alone(comm))
        fprintf(stderr, "yardbench: %s\n", why->msg);
    else
        fprintf(stderr, "yardbench: rank %d (host %s): %s\n", comm->facts.rank,
                comm->facts.host_name, why->msg);
    fflush(NULL);
    if (comm->group && group_blamed(comm->group) < 0)
        group_blame(comm->group, comm->facts.rank);
    if (comm->mpi)
        mpi_way_abort(comm->mpi, status);
    _exit(status);
}

const struct comm_facts *comm_facts(const struct comm *comm)
{
    return &comm->facts;
}

/* --- collectives -----------------------------------------------------------------------------
 */

static bool is_spread(const struct comm *comm)
{
    return comm->facts.hosts > 1;
}

int comm_barrier(struct comm *comm, struct err *e)
{
    if (is_alone(comm))
        return 0;
    if (is_spread(comm))
        return mpi_way_barrier(comm->mpi, group_patience(comm->group), e);
    return group_barrier(comm->group, e);
}

int comm_broadcast(struct comm *comm, void *bytes, size_t len, int root, struct err *e)
{
    if (is_alone(comm))
        return 0;
    if (is_spread(comm))
        return mpi_way_broadcast(comm->mpi, bytes, len, root, group_patience(comm->group), e);
    return group_broadcast(comm->group, bytes, len, root, e);
}

int comm_gather(struct comm *comm, const void *mine, size_t len, void *all, struct err *e)
{
    if (is_alone(comm)) {
        memcpy(all, mine, len);
        return 0;
    }
    if (is_spread(comm))
        return mpi_way_gather(comm->mpi, mine, len, all, group_patience(comm->group), e);
    return group_gather(comm->group, mine, len, all, e);
}

static double sum_two(double a, double b)
{
    return a + b;
}

static double more_of_two(double a, double b)
{
    return a > b || a != a ? a : b;
}

/* In order of rank, so that all get the same bits. */
static int fold(struct comm *comm,
                double *values,
                int count,
                double (*two)(double a, double b),
                struct err *e)
{
    size_t n = (size_t)count, ranks = (size_t)comm->facts.ranks;
    double few[256]; /* a step shares a few numbers and shall not allocate */
    auto_free double *many =
        n * ranks > ARRAY_SIZE(few) ? xcalloc(n * ranks, sizeof *many) : NULL;
    double *all = many ? many : few;

    if (comm_gather(comm, values, n * sizeof *values, all, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        values[i] = all[i];
        for (size_t r = 1; r < ranks; r++)
            values[i] = two(values[i], all[r * n + i]);
    }
    return 0;
}

int comm_sum(struct comm *comm, double *values, int count, struct err *e)
{
    return fold(comm, values, count, sum_two, e);
}

int comm_most(struct comm *comm, double *values, int count, struct err *e)
{
    return fold(comm, values, count, more_of_two, e);
}

/* FNV-1a over the text: enough to tell two programs apart. */
static uint64_t hash(const char *text)
{
    uint64_t sum = 14695981039346656037ULL;

    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 1099511628211ULL;
    return sum;
}

int comm_agree(struct comm *comm, const char *what, const char *text, struct err *e)
{
    struct print {
        uint64_t hash, len;
    } mine = {hash(text), strlen(text)};
    auto_free struct print *all = xcalloc((size_t)comm->facts.ranks, sizeof *all);
    auto_str odd = {0};
    int count = 0;

    if (comm_gather(comm, &mine, sizeof mine, all, e) < 0)
        return -1;
    for (int r = 1; r < comm->facts.ranks; r++) {
        if (all[r].hash == all[0].hash && all[r].len == all[0].len)
            continue;
        if (++count <= 8)
            str_addf(&odd, "%s%d", count > 1 ? ", " : "", r);
    }
    if (count == 0)
        return 0;
    return err_set(e, ERR_CONFLICT, "%s: rank%s %s%s differ%s from rank 0", what,
                   count > 1 ? "s" : "", str_text(&odd), count > 8 ? ", ..." : "",
                   count > 1 ? "" : "s");
}
