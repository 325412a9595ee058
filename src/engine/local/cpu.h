/* cpu.h - the machine's processors: which node has which.
 *
 * A node gets processors of its own for as long as there are any that no node has.  When there
 * are none, it shares: those that the fewest nodes have, so that all are shared evenly.  One
 * that asks for more than there are gets all of them.  Threads of one core, and cores of one
 * package, go together.
 *
 * Lists are written as the kernel does: "0-3,8".
 *
 * Threads: any, but for cpus_new and cpus_free.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_CPU_H
#define ENGINE_LOCAL_CPU_H

#include <sched.h>
#include <stdbool.h>

enum {
    CPU_LIST_BYTES = 4096, /* every other one of 1024, and more */
};

struct cpus; /* opaque */

/* Those that this process may use. */
struct cpus *cpus_new(void);
/* Of these; for tests. */
struct cpus *cpus_new_of(const cpu_set_t *set);
void cpus_free(struct cpus *cpus);
int cpus_count(const struct cpus *cpus);

void cpus_take(struct cpus *cpus, int count, char ret_list[CPU_LIST_BYTES]);
/* Are all of these there, and is the list not empty? */
bool cpus_have(const struct cpus *cpus, const char *list);
/* The listed ones are a node's: found after a restart.  Those that are not there any more are
 * left out. */
void cpus_claim(struct cpus *cpus, const char *list);
void cpus_give(struct cpus *cpus, const char *list);

/* How many a list names. */
int cpu_list_count(const char *list);

#endif
