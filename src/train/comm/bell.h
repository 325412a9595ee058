/* bell.h - waiting for a number in shared memory to change, and for everybody to come.
 *
 * A bell is a counter that threads of several processes watch.  Who waits looks for a few
 * microseconds, then sleeps in a futex; who changes it pays for a system call only when
 * somebody sleeps.  All zeros is a good bell, so fresh shared memory needs no preparation.
 *
 * A wait has no time limit of its own: every BELL_TICK_MS it asks `check` whether there is
 * still anybody to wait for, and goes on until that says no.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_BELL_H
#define TRAIN_COMM_BELL_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    BELL_TICK_MS = 50,
    BELL_SPIN_US = 20, /* about what a sleep and a wake-up cost */
};

struct bell {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
};

struct bell_patience {
    bool is_crowded; /* more ranks than cores: give the core away instead of looking on */
    /* Fails when waiting makes no sense any more; NULL = never. */
    int (*check)(void *arg, struct err *e);
    void *arg;
};

uint32_t bell_value(struct bell *bell);
/* Set, or add to, the value, and wake whoever sleeps. */
void bell_set(struct bell *bell, uint32_t value);
uint32_t bell_add(struct bell *bell, uint32_t by); /* the new value; wakes nobody */
void bell_wake(struct bell *bell);
/* Is it another than `seen` within the time that looking is worth? */
bool bell_look(struct bell *bell, uint32_t seen, bool is_crowded);
/* Sleep while the value is `seen`: at most timeout_ms (-1 = no limit), or until a wake-up.  May
 * return early. */
void bell_sleep(struct bell *bell, uint32_t seen, int timeout_ms);
/* Return 0 once the value is another than `seen`. */
int bell_wait(struct bell *bell,
              uint32_t seen,
              const struct bell_patience *patience,
              struct err *e);

/* A gate opens when `count` threads have come to it, again and again. */
struct gate {
    _Atomic uint32_t arrived;
    struct bell round;
};
int gate_pass(struct gate *gate,
              uint32_t count,
              const struct bell_patience *patience,
              struct err *e);

#endif
