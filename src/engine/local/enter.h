/* enter.h - do something inside a node's namespaces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_ENTER_H
#define ENGINE_LOCAL_ENTER_H

#include "base/err.h"

/* Run fn(arg) in the mount, network and UTS namespaces of the process keeper_fd (a pidfd), on a
 * thread of its own, since a thread that has left its namespaces is fit for nothing else.  What
 * it starts is there too.  A negative keeper_fd means here: fn is just called.  Blocks.
 * ERR_NOT_FOUND when the process is gone. */
int enter_run(int keeper_fd, int (*fn)(void *arg, struct err *e), void *arg, struct err *e);

#endif
