/* cpus.h - lists of processors as the kernel writes them: "0-3,8".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_CPUS_H
#define SHIM_CPUS_H

#include "base/err.h"

#include <sched.h>
#include <stddef.h>

/* ERR_INVALID for what is no list, or an empty one. */
int shim_cpus_parse(const char *text, cpu_set_t *ret_set, struct err *e);
/* As much of it as there is room for; "" for none. */
void shim_cpus_format(const cpu_set_t *set, char *ret_text, size_t room);
/* The calling thread, and what it forks, stays on these.  Where none of them is left (they were
 * taken off the machine) it goes on with what there is. */
void shim_cpus_settle_on(const char *list);

#endif
