/* signal.h - signals as events of a loop, by signalfd.
 *
 * loop_signals_watch blocks the signals in the calling thread; threads started afterwards
 * inherit that, so call it before there are any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOP_SIGNAL_H
#define LOOP_SIGNAL_H

#include "loop/loop.h"

#include <signal.h>

struct loop_signals {
    void (*caught)(struct loop_signals *signals, int signal);
    struct loop_watch watch; /* private */
};

/* Watch the signals of the list, which ends with 0: (const int[]){SIGTERM, SIGINT, 0}.  caught
 * is set by the caller before. */
int loop_signals_watch(struct loop *loop,
                       struct loop_signals *signals,
                       const int *list,
                       struct err *e);
/* The signals stay blocked: what comes after the loop's end must not kill a tidy shutdown. */
void loop_signals_unwatch(struct loop_signals *signals);

#endif
