/* bell.c - see bell.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_core(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

uint32_t bell_value(struct bell *bell)
{
    return atomic_load_explicit(&bell->value, memory_order_acquire);
}

void bell_wake(struct bell *bell)
{
    if (atomic_load(&bell->sleepers))
        syscall(SYS_futex, &bell->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void bell_set(struct bell *bell, uint32_t value)
{
    atomic_store(&bell->value, value);
    bell_wake(bell);
}

uint32_t bell_add(struct bell *bell, uint32_t by)
{
    return atomic_fetch_add(&bell->value, by) + by;
}

bool bell_look(struct bell *bell, uint32_t seen, bool is_crowded)
{
    int64_t until = 0;

    for (int i = 0;; i++) {
        if (bell_value(bell) != seen)
            return true;
        if (is_crowded)
            sched_yield();
        else
            pause_core();
        if (i % 16 != 0) /* the clock is not free either */
            continue;
        if (until == 0)
            until = now_ns() + BELL_SPIN_US * 1000LL;
        else if (now_ns() > until)
            return false;
    }
}

/* The sleeper is counted before the kernel compares the value, and the value is changed before
 * the sleepers are counted: one of the two sees the other. */
void bell_sleep(struct bell *bell, uint32_t seen, int timeout_ms)
{
    struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

    atomic_fetch_add(&bell->sleepers, 1);
    syscall(SYS_futex, &bell->value, FUTEX_WAIT, seen, timeout_ms < 0 ? NULL : &limit, NULL, 0);
    atomic_fetch_sub(&bell->sleepers, 1);
}

/* What was waited for may have come just before the one who brought it went: so the value has
 * the last word, not the check. */
int bell_wait(struct bell *bell,
              uint32_t seen,
              const struct bell_patience *patience,
              struct err *e)
{
    if (bell_look(bell, seen, patience->is_crowded))
        return 0;
    while (bell_value(bell) == seen) {
        struct err why = {0};

        bell_sleep(bell, seen, BELL_TICK_MS);
        if (bell_value(bell) != seen)
            return 0;
        if (patience->check && patience->check(patience->arg, &why) < 0 &&
            bell_value(bell) == seen) {
            if (e)
                *e = why;
            return -1;
        }
    }
    return 0;
}

int gate_pass(struct gate *gate,
              uint32_t count,
              const struct bell_patience *patience,
              struct err *e)
{
    uint32_t round = bell_value(&gate->round);

    if (atomic_fetch_add(&gate->arrived, 1) + 1 < count)
        return bell_wait(&gate->round, round, patience, e);
    atomic_store(&gate->arrived, 0);
    bell_set(&gate->round, round + 1);
    return 0;
}
