/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Digits alone; false for more than a set holds. */
static bool read_number(const char **p, int *ret)
{
    char *end;
    long value;

    if (**p < '0' || **p > '9')
        return false;
    value = strtol(*p, &end, 10);
    if (value >= CPU_SETSIZE)
        return false;
    *p = end;
    *ret = (int)value;
    return true;
}

static bool read_range(const char **p, cpu_set_t *set)
{
    int first, last;

    if (!read_number(p, &first))
        return false;
    last = first;
    if (**p == '-') {
        ++*p;
        if (!read_number(p, &last) || last < first)
            return false;
    }
    for (int i = first; i <= last; i++)
        CPU_SET(i, set);
    return true;
}

int shim_cpus_parse(const char *text, cpu_set_t *ret_set, struct err *e)
{
    const char *p = text;
    cpu_set_t set;

    CPU_ZERO(&set);
    while (read_range(&p, &set)) {
        if (*p == '\0') {
            *ret_set = set;
            return 0;
        }
        if (*p++ != ',')
            break;
    }
    return err_set(e, ERR_INVALID, "\"%.64s\" is not a list of processors", text);
}

/* The last of the run of processors that begins here. */
static int end_of_run(const cpu_set_t *set, int first)
{
    while (first + 1 < CPU_SETSIZE && CPU_ISSET(first + 1, set))
        first++;
    return first;
}

void shim_cpus_format(const cpu_set_t *set, char *ret_text, size_t room)
{
    size_t len = 0;

    ret_text[0] = '\0';
    for (int i = 0, last; i < CPU_SETSIZE; i = last + 1) {
        char run[32];
        int bytes;

        last = i;
        if (!CPU_ISSET(i, set))
            continue;
        last = end_of_run(set, i);
        bytes = last > i ? snprintf(run, sizeof(run), "%s%d-%d", len ? "," : "", i, last)
                         : snprintf(run, sizeof(run), "%s%d", len ? "," : "", i);
        if (len + (size_t)bytes >= room)
            return;
        len += (size_t)snprintf(ret_text + len, room - len, "%s", run);
    }
}

void shim_cpus_settle_on(const char *list)
{
    cpu_set_t set;

    if (list && shim_cpus_parse(list, &set, NULL) == 0 &&
        sched_setaffinity(0, sizeof(set), &set) < 0)
        errno = 0;
}
