/* group.c - see group.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/group.h"

#include "base/mem.h"
#include "train/comm/pidfd.h"

#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct member {
    _Atomic int32_t pid; /* 0 = not there yet */
    int32_t rank;
    _Atomic bool has_left;
};

struct segment {
    struct gate gate;
    _Atomic uint32_t attached;
    _Atomic int32_t blamed; /* rank + 1 */
    struct member member[GROUP_MOST];
    _Alignas(4096) char area[GROUP_AREA_BYTES];
};

struct group {
    struct share share;
    struct segment *seg;
    int local, count;
    int pidfd[GROUP_MOST]; /* -1 = not watched */
    struct bell_patience patience;
    int (*check)(void *arg, struct err *e);
    void *arg;
};
DEFINE_AUTOPTR(group)

size_t group_bytes(void)
{
    return sizeof(struct segment);
}

static bool is_crowded(int ranks)
{
    cpu_set_t set;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    /* One core alone means pinned: that says nothing about the others' cores. */
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1)
        cores = CPU_COUNT(&set);
    return ranks > cores;
}

static int ask(void *arg, struct err *e)
{
    return group_check(arg, e);
}

/* The last one in takes the name away. */
static int enter(struct group *group, const char *name, int rank, struct err *e)
{
    struct segment *seg;
    struct member *self;

    if (share_open_named(name, &group->share, e) < 0)
        return -1;
    if (group->share.bytes < sizeof *seg)
        return err_set(e, ERR_INVALID, "shared memory \"%s\" is too small", name);
    group->seg = seg = group->share.at;
    self = &seg->member[group->local];
    self->rank = rank;
    atomic_store(&self->pid, (int32_t)getpid());
    if (atomic_fetch_add(&seg->attached, 1) + 1 == (uint32_t)group->count)
        share_unlink(name);
    return 0;
}

static int watch_peers(struct group *group, struct err *e)
{
    for (int i = 0; i < group->count; i++) {
        struct member *peer = &group->seg->member[i];

        if (i == group->local || atomic_load(&peer->has_left))
            continue;
        if (pidfd_watch(atomic_load(&peer->pid), &group->pidfd[i], e) < 0)
            return err_wrap(e, "rank %d", peer->rank);
    }
    return 0;
}

int group_open(
    const char *name, int rank, int local, int count, struct group **ret_group, struct err *e)
{
    autoptr(group) group = NULL;

    if (count < 1 || count > GROUP_MOST || local < 0 || local >= count)
        return err_set(e, ERR_INVALID, "rank %d of %d on one host: at most %d go", local, count,
                       GROUP_MOST);
    group = xcalloc(1, sizeof *group);
    group->share.fd = -1;
    group->local = local;
    group->count = count;
    memset(group->pidfd, -1, sizeof group->pidfd);
    group->patience = (struct bell_patience){is_crowded(count), ask, group};
    if (enter(group, name, rank, e) < 0 || group_barrier(group, e) < 0 ||
        watch_peers(group, e) < 0)
        return -1;
    *ret_group = take_ptr(&group);
    return 0;
}

void group_free(struct group *group)
{
    if (!group)
        return;
    if (group->seg)
        atomic_store(&group->seg->member[group->local].has_left, true);
    for (int i = 0; i < group->count; i++)
        mem_close_fd(&group->pidfd[i]);
    share_done(&group->share);
    free(group);
}

int group_barrier(struct group *group, struct err *e)
{
    return gate_pass(&group->seg->gate, (uint32_t)group->count, &group->patience, e);
}

/* Two passes a round: all have written, all have read. */
int group_broadcast(struct group *group, void *bytes, size_t len, int local, struct err *e)
{
    char *at = bytes;

    while (len > 0) {
        size_t part = len < GROUP_AREA_BYTES ? len : GROUP_AREA_BYTES;

        if (group->local == local)
            memcpy(group->seg->area, at, part);
        if (group_barrier(group, e) < 0)
            return -1;
        if (group->local != local)
            memcpy(at, group->seg->area, part);
        if (group_barrier(group, e) < 0)
            return -1;
        at += part;
        len -= part;
    }
    return 0;
}

int group_gather(struct group *group, const void *mine, size_t len, void *all, struct err *e)
{
    size_t slot = GROUP_AREA_BYTES / (size_t)group->count;

    for (size_t from = 0; from < len;) {
        size_t part = len - from < slot ? len - from : slot;

        memcpy(group->seg->area + slot * (size_t)group->local, (const char *)mine + from, part);
        if (group_barrier(group, e) < 0)
            return -1;
        for (size_t i = 0; i < (size_t)group->count; i++)
            memcpy((char *)all + i * len + from, group->seg->area + slot * i, part);
        if (group_barrier(group, e) < 0)
            return -1;
        from += part;
    }
    return 0;
}

void group_set_check(struct group *group, int (*check)(void *arg, struct err *e), void *arg)
{
    group->check = check;
    group->arg = arg;
}

bool group_find_dead(struct group *group, struct group_death *ret_death)
{
    for (int i = 0; i < group->count; i++) {
        struct member *peer = &group->seg->member[i];
        int status;

        if (group->pidfd[i] < 0 || !pidfd_has_ended(group->pidfd[i]))
            continue;
        status = pidfd_status(group->pidfd[i], atomic_load(&peer->pid));
        *ret_death = (struct group_death){
            .rank = peer->rank,
            .pid = atomic_load(&peer->pid),
            .signal = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : -1,
            .status = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .has_left = atomic_load(&peer->has_left),
        };
        return true;
    }
    return false;
}

int group_check(struct group *group, struct err *e)
{
    struct group_death death;

    if (group->check)
        return group->check(group->arg, e);
    if (!group_find_dead(group, &death))
        return 0;
    return err_set(e, ERR_BUSY, "rank %d (pid %ld) died", death.rank, (long)death.pid);
}

const struct bell_patience *group_patience(const struct group *group)
{
    return &group->patience;
}

int group_blame(struct group *group, int rank)
{
    int32_t nobody = 0;

    atomic_compare_exchange_strong(&group->seg->blamed, &nobody, rank + 1);
    return group_blamed(group);
}

int group_blamed(const struct group *group)
{
    return atomic_load(&group->seg->blamed) - 1;
}

int group_count(const struct group *group)
{
    return group->count;
}

int group_local(const struct group *group)
{
    return group->local;
}

pid_t group_pid(const struct group *group, int local)
{
    return atomic_load(&group->seg->member[local].pid);
}
