/* pidfd.h - is that process still there, and how did it end?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_PIDFD_H
#define TRAIN_COMM_PIDFD_H

#include "base/err.h"

#include <sys/types.h>

int pidfd_watch(pid_t pid, int *ret_fd, struct err *e);
bool pidfd_has_ended(int fd);
/* The wait status of a process that has ended, as far as somebody who is not its parent can
 * know it: from the pidfd (Linux 6.15), or while nobody has waited for it.  -1 = not known. */
int pidfd_status(int fd, pid_t pid);

#endif
