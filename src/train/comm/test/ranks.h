/* ranks.h - ranks as forked processes, for the tests of this folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_TEST_RANKS_H
#define TRAIN_COMM_TEST_RANKS_H

#include "train/comm/comm.h"
#include "train/comm/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RANKS_MOST = 16,
};

/* A rank's work: 0 when all was well. */
typedef int ranks_fn(struct comm *comm, void *arg);

/* cmocka cannot fail across processes: say it and return. */
#define CHECK(is_true)                                                                         \
    do {                                                                                       \
        if (!(is_true)) {                                                                      \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_true);              \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)
#define CHECK_OK(call)                                                                         \
    do {                                                                                       \
        if ((call) < 0) {                                                                      \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, e.msg);              \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

static inline int ranks_be(const struct local_seat *seat, ranks_fn *fn, void *arg)
{
    char text[LOCAL_TEXT_BYTES];
    struct comm *comm = NULL;
    struct err e = {0};
    int rc;

    setenv(LOCAL_VARIABLE, local_format(seat, text), 1);
    CHECK_OK(comm_open(&comm, &e));
    rc = fn(comm, arg);
    comm_free(comm);
    return rc;
}

/* How each of them ended (wait status) goes to ret_status; returns how many failed. */
static inline int ranks_run(int ranks, ranks_fn *fn, void *arg, int ret_status[RANKS_MOST])
{
    struct local_seat seat = {.ranks = ranks};
    pid_t pid[RANKS_MOST];
    int failed = 0;

    if (local_prepare(seat.name, NULL) < 0)
        return -1;
    for (int r = 0; r < ranks; r++) {
        seat.rank = r;
        pid[r] = fork();
        if (pid[r] == 0)
            _exit(ranks_be(&seat, fn, arg));
    }
    for (int r = 0; r < ranks; r++) {
        int status = -1;

        waitpid(pid[r], &status, 0);
        failed += status != 0;
        if (ret_status)
            ret_status[r] = status;
    }
    local_forget(seat.name);
    return failed;
}

#endif
