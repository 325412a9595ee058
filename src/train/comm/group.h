/* group.h - the ranks of one host: a segment of shared memory in which they meet, small
 * collectives over it, and the watch over each other's lives.
 *
 * The segment has a table of members (rank, pid), a gate, the number of the rank that died
 * first, and an exchange area.  Messages longer than the area go in rounds.
 *
 * Death: a pidfd of each peer, asked at every tick of a wait.  The first who sees one writes
 * its number down, so that all name the same one and not those who ended because of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_GROUP_H
#define TRAIN_COMM_GROUP_H

#include "base/err.h"
#include "train/comm/bell.h"
#include "train/comm/share.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    GROUP_MOST = 256, /* ranks of a host */
    GROUP_AREA_BYTES = 1 << 20,
};

struct group; /* opaque */

/* What is known of a rank that ended. */
struct group_death {
    int rank;
    pid_t pid;
    int signal, status; /* -1 = not known */
    bool has_left;      /* it went in good order, while others still counted on it */
};

/* Bytes of the segment; share_create_named() makes it, the launcher or the host's first rank.
 */
size_t group_bytes(void);
/* Join: rank is the number in the whole run, local the place on this host.  Waits for all. */
int group_open(
    const char *name, int rank, int local, int count, struct group **ret_group, struct err *e);
/* Leave in good order. */
void group_free(struct group *group);

int group_barrier(struct group *group, struct err *e);
int group_broadcast(struct group *group, void *bytes, size_t len, int local, struct err *e);
int group_gather(struct group *group, const void *mine, size_t len, void *all, struct err *e);

/* Called at every tick of a wait, and by group_check(); fails when the run cannot go on for
 * reasons beyond this host. */
void group_set_check(struct group *group, int (*check)(void *arg, struct err *e), void *arg);
/* Fails when a rank of the host, or one that group_blame() named, is dead. */
int group_check(struct group *group, struct err *e);
const struct bell_patience *group_patience(const struct group *group);

/* Write down that a rank died; the first one stays.  Returns who is written down. */
int group_blame(struct group *group, int rank);
int group_blamed(const struct group *group); /* -1 = nobody */

int group_count(const struct group *group);
int group_local(const struct group *group);
pid_t group_pid(const struct group *group, int local);

/* Looks at the peers; true and the first dead one, if there is one. */
bool group_find_dead(struct group *group, struct group_death *ret_death);

#endif
