/* leftover.h - end what a task left behind whose shim is dead.
 *
 * Found by the task's cgroups, by its word YARD_TASK=... in the environment (both from its
 * spec), by the command's session, and below any of these.
 *
 * For errands: blocks, but not for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_LEFTOVER_H
#define ENGINE_LOCAL_LEFTOVER_H

#include "base/err.h"

#include <stdint.h>

struct errands;

#define TASK_WORD "YARD_TASK="

/* KILL until none is left.  is_fresh: the shim was seen to die just now, so that the number of
 * the command's session cannot be another's yet.  errands (may be NULL) tells when to give up.
 * ERR_TIMEOUT: some do not end; ERR_BUSY: given up. */
int leftover_kill(const char *folder,
                  bool is_fresh,
                  struct errands *errands,
                  int64_t timeout_ms,
                  struct err *e);

#endif
