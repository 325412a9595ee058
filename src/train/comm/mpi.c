/* mpi.c - see mpi-way.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/mpi-way.h"

#include "base/mem.h"
#include "train/comm/group.h"
#include "train/comm/share.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct mpi_way {
    MPI_Comm all, lane;
    int lanes;
    MPI_Request request[MPI_WAY_SLOTS][2];
};

static int failed(struct err *e, int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;

    MPI_Error_string(rc, text, &len);
    return err_set(e, ERR_BUSY, "could not %s: %s", what, text);
}

/* --- who is where ----------------------------------------------------------------------------
 */

static int init(struct comm_facts *facts, int *ret_level, struct err *e)
{
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, ret_level);

    if (rc != MPI_SUCCESS)
        return failed(e, rc, "start MPI");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &facts->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &facts->ranks);
    return 0;
}

/* YARDBENCH_RANKS_PER_HOST parts a host into several, so that the way between hosts can be
 * tested and measured on one. */
static int split_host(const struct comm_facts *facts, MPI_Comm *ret_node, struct err *e)
{
    const char *text = getenv("YARDBENCH_RANKS_PER_HOST");
    int most = text ? atoi(text) : 0, place, rc;
    MPI_Comm node;

    rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, facts->rank, MPI_INFO_NULL,
                             &node);
    if (rc != MPI_SUCCESS)
        return failed(e, rc, "find the ranks of this host");
    if (text && most < 1) {
        MPI_Comm_free(&node);
        return err_set(e, ERR_INVALID, "YARDBENCH_RANKS_PER_HOST is \"%s\": a number from 1 on",
                       text);
    }
    if (text) {
        MPI_Comm whole = node;

        MPI_Comm_rank(whole, &place);
        rc = MPI_Comm_split(whole, place / most, facts->rank, &node);
        MPI_Comm_free(&whole);
        if (rc != MPI_SUCCESS)
            return failed(e, rc, "part the ranks of this host");
    }
    *ret_node = node;
    return 0;
}

/* A host is known by its lowest rank; hosts are numbered in the order of those. */
static void number_hosts(MPI_Comm node, struct comm_facts *facts)
{
    int first = facts->rank;
    auto_free int *firsts = xcalloc((size_t)facts->ranks, sizeof *firsts);

    MPI_Comm_rank(node, &facts->local_rank);
    MPI_Comm_size(node, &facts->local_ranks);
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    MPI_Allgather(&first, 1, MPI_INT, firsts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < facts->ranks; i++) {
        facts->hosts += firsts[i] == i;
        facts->host += firsts[i] == i && i < first;
    }
}

static int make_lanes(struct mpi_way *way, const struct comm_facts *facts, struct err *e)
{
    int rc, least = facts->local_ranks;

    MPI_Allreduce(&least, &way->lanes, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    rc = MPI_Comm_dup(MPI_COMM_WORLD, &way->all);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_split(MPI_COMM_WORLD,
                            facts->local_rank < way->lanes ? facts->local_rank : MPI_UNDEFINED,
                            facts->host, &way->lane);
    return rc == MPI_SUCCESS ? 0 : failed(e, rc, "make communicators");
}

/* The first rank of the host makes the segment; an empty name says that it could not. */
static int meet(MPI_Comm node, const struct comm_facts *facts, char *name, struct err *e)
{
    struct err why = {0};

    name[0] = '\0';
    if (facts->local_rank == 0 && share_create_named(group_bytes(), name, &why) < 0)
        name[0] = '\0';
    MPI_Bcast(name, SHARE_NAME_BYTES, MPI_CHAR, 0, node);
    if (name[0])
        return 0;
    return err_set(e, ERR_BUSY, "%s",
                   why.msg[0] ? why.msg : "the first rank of this host has no shared memory");
}

static int
settle(struct mpi_way *way, int level, struct comm_facts *facts, char *shm_name, struct err *e)
{
    static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
    MPI_Comm node;
    int rc = 0;

    if (split_host(facts, &node, e) < 0)
        return -1;
    number_hosts(node, facts);
    if (facts->hosts > 1 && level < MPI_THREAD_MULTIPLE)
        rc = err_set(e, ERR_METHOD,
                     "%d hosts need MPI_THREAD_MULTIPLE, this MPI gives \"%s\" only",
                     facts->hosts, level >= 0 && level < 4 ? names[level] : "?");
    if (rc == 0)
        rc = make_lanes(way, facts, e);
    if (rc == 0)
        rc = meet(node, facts, shm_name, e);
    MPI_Comm_free(&node);
    return rc;
}

int mpi_way_open(struct mpi_way **ret_way,
                 struct comm_facts *ret_facts,
                 char ret_shm_name[],
                 struct err *e)
{
    struct mpi_way *way = xcalloc(1, sizeof *way);
    struct comm_facts facts = {.way = "mpi"};
    int level = 0;

    way->all = way->lane = MPI_COMM_NULL;
    for (int i = 0; i < MPI_WAY_SLOTS; i++)
        way->request[i][0] = way->request[i][1] = MPI_REQUEST_NULL;
    if (init(&facts, &level, e) < 0 || settle(way, level, &facts, ret_shm_name, e) < 0) {
        mpi_way_free(way, false);
        return -1;
    }
    *ret_way = way;
    *ret_facts = facts;
    return 0;
}

void mpi_way_free(struct mpi_way *way, bool is_good)
{
    if (!way)
        return;
    if (is_good) {
        if (way->lane != MPI_COMM_NULL)
            MPI_Comm_free(&way->lane);
        MPI_Comm_free(&way->all);
        MPI_Finalize();
    }
    free(way);
}

_Noreturn void mpi_way_abort(struct mpi_way *way, int status)
{
    (void)way;
    MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

/* --- collectives -----------------------------------------------------------------------------
 */

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int finish(MPI_Request *request,
                  const struct bell_patience *patience,
                  const char *what,
                  struct err *e)
{
    const struct timespec nap = {0, 50000};
    int64_t begun = now_us(), asked = begun;

    for (;;) {
        int is_done = 0, rc = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        int64_t now = now_us();

        if (rc != MPI_SUCCESS)
            return failed(e, rc, what);
        if (is_done)
            return 0;
        if (now - begun > BELL_SPIN_US)
            nanosleep(&nap, NULL);
        if (now - asked < BELL_TICK_MS * 1000LL)
            continue;
        asked = now;
        if (patience->check && patience->check(patience->arg, e) < 0)
            return -1;
    }
}

int mpi_way_barrier(struct mpi_way *way, const struct bell_patience *patience, struct err *e)
{
    MPI_Request request;
    int rc = MPI_Ibarrier(way->all, &request);

    return rc == MPI_SUCCESS ? finish(&request, patience, "meet the other ranks", e)
                             : failed(e, rc, "meet the other ranks");
}

enum {
    MOST_AT_ONCE = 1 << 24, /* MPI counts with int, and large messages cost large buffers */
};

int mpi_way_broadcast(struct mpi_way *way,
                      void *bytes,
                      size_t len,
                      int root,
                      const struct bell_patience *patience,
                      struct err *e)
{
    for (char *at = bytes; len > 0;) {
        size_t part = len < MOST_AT_ONCE ? len : MOST_AT_ONCE;
        MPI_Request request;
        int rc = MPI_Ibcast(at, (int)part, MPI_BYTE, root, way->all, &request);

        if (rc != MPI_SUCCESS)
            return failed(e, rc, "broadcast");
        if (finish(&request, patience, "broadcast", e) < 0)
            return -1;
        at += part;
        len -= part;
    }
    return 0;
}

int mpi_way_gather(struct mpi_way *way,
                   const void *mine,
                   size_t len,
                   void *all,
                   const struct bell_patience *patience,
                   struct err *e)
{
    MPI_Request request;
    int rc;

    if (len > MOST_AT_ONCE)
        return err_set(e, ERR_TOO_LARGE, "cannot gather %zu bytes from each rank", len);
    rc = MPI_Iallgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, way->all, &request);
    return rc == MPI_SUCCESS ? finish(&request, patience, "gather", e)
                             : failed(e, rc, "gather");
}

/* --- lanes -----------------------------------------------------------------------------------
 */

int mpi_way_lanes(const struct mpi_way *way)
{
    return way->lanes;
}

int mpi_way_start(struct mpi_way *way, int slot, const struct mpi_hop *hop, struct err *e)
{
    MPI_Request *request = way->request[slot];
    int rc = MPI_Irecv(hop->receive, (int)hop->receive_count, MPI_FLOAT, hop->from, hop->tag,
                       way->lane, &request[0]);

    if (rc == MPI_SUCCESS)
        rc = MPI_Isend(hop->send, (int)hop->send_count, MPI_FLOAT, hop->to, hop->tag, way->lane,
                       &request[1]);
    return rc == MPI_SUCCESS ? 0 : failed(e, rc, "exchange gradients");
}

int mpi_way_is_done(struct mpi_way *way, int slot, bool *ret_is_done, struct err *e)
{
    int is_done = 0;
    int rc = MPI_Testall(2, way->request[slot], &is_done, MPI_STATUSES_IGNORE);

    if (rc != MPI_SUCCESS)
        return failed(e, rc, "exchange gradients");
    *ret_is_done = is_done;
    return 0;
}
