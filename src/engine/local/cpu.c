/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cpu.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "shim/cpus.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A processor and where it sits. */
struct cpu {
    int number;
    int package, core;
    int nodes; /* that have it; guarded */
};

struct cpus {
    struct cpu list[CPU_SETSIZE]; /* by package, core, number */
    int count;
    pthread_mutex_t lock;
};

/* --- the machine --- */

static int topology(int number, const char *file)
{
    auto_free char *path = xasprintf("/sys/devices/system/cpu/cpu%d/topology/%s", number, file);
    auto_str text = {0};

    return fs_read(path, 32, &text, NULL) == 0 ? atoi(str_text(&text)) : 0;
}

static int compare(const void *a, const void *b)
{
    const struct cpu *x = a, *y = b;

    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

struct cpus *cpus_new_of(const cpu_set_t *set)
{
    struct cpus *cpus = xcalloc(1, sizeof(*cpus));

    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, set))
            cpus->list[cpus->count++] = (struct cpu){
                .number = i,
                .package = topology(i, "physical_package_id"),
                .core = topology(i, "core_id"),
            };
    }
    qsort(cpus->list, (size_t)cpus->count, sizeof(cpus->list[0]), compare);
    pthread_mutex_init(&cpus->lock, NULL);
    return cpus;
}

struct cpus *cpus_new(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return cpus_new_of(&set);
}

void cpus_free(struct cpus *cpus)
{
    if (!cpus)
        return;
    pthread_mutex_destroy(&cpus->lock);
    free(cpus);
}

int cpus_count(const struct cpus *cpus)
{
    return cpus->count;
}

/* --- nodes --- */

/* The one that the fewest nodes have, of those not in the set: the first of equals. */
static struct cpu *least_used(struct cpus *cpus, const cpu_set_t *set)
{
    struct cpu *best = NULL;

    for (int i = 0; i < cpus->count; i++) {
        struct cpu *cpu = &cpus->list[i];

        if (!CPU_ISSET(cpu->number, set) && (!best || cpu->nodes < best->nodes))
            best = cpu;
    }
    return best;
}

void cpus_take(struct cpus *cpus, int count, char ret_list[CPU_LIST_BYTES])
{
    cpu_set_t set;
    struct cpu *cpu;

    CPU_ZERO(&set);
    pthread_mutex_lock(&cpus->lock);
    for (int i = 0; i < count && (cpu = least_used(cpus, &set)); i++) {
        CPU_SET(cpu->number, &set);
        cpu->nodes++;
    }
    pthread_mutex_unlock(&cpus->lock);
    shim_cpus_format(&set, ret_list, CPU_LIST_BYTES);
}

static int count_of(const struct cpus *cpus, const cpu_set_t *set)
{
    int count = 0;

    for (int i = 0; i < cpus->count; i++)
        count += CPU_ISSET(cpus->list[i].number, set) != 0;
    return count;
}

bool cpus_have(const struct cpus *cpus, const char *list)
{
    cpu_set_t set;

    return shim_cpus_parse(list, &set, NULL) == 0 && count_of(cpus, &set) == CPU_COUNT(&set);
}

static void add_node(struct cpus *cpus, const char *list, int more)
{
    cpu_set_t set;

    if (shim_cpus_parse(list, &set, NULL) < 0)
        return;
    pthread_mutex_lock(&cpus->lock);
    for (int i = 0; i < cpus->count; i++) {
        if (CPU_ISSET(cpus->list[i].number, &set))
            cpus->list[i].nodes += more;
    }
    pthread_mutex_unlock(&cpus->lock);
}

void cpus_claim(struct cpus *cpus, const char *list)
{
    add_node(cpus, list, 1);
}

void cpus_give(struct cpus *cpus, const char *list)
{
    add_node(cpus, list, -1);
}

int cpu_list_count(const char *list)
{
    cpu_set_t set;

    return shim_cpus_parse(list, &set, NULL) == 0 ? CPU_COUNT(&set) : 0;
}
