/* yard-sim - run the mind of the yard against a world with faults, or measure it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "engine/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct options {
    uint64_t first, count;
    bool is_verbose;
    struct sim_load load;
};

static const char usage[] =
    "usage: yard-sim --seeds COUNT [--from SEED]    runs with faults, one for each seed\n"
    "       yard-sim --seed SEED [--verbose]        one of them again\n"
    "       yard-sim --nodes COUNT --jobs COUNT     how fast are decisions?\n";

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add(struct sim_report *sum, const struct sim_report *one)
{
    sum->events += one->events;
    sum->decisions += one->decisions;
    sum->jobs += one->jobs;
    sum->crashes += one->crashes;
    sum->succeeded += one->succeeded;
    sum->failed += one->failed;
    sum->waiting += one->waiting;
}

static int run_seeds(const struct options *o)
{
    struct sim_report sum = {0};
    double from = seconds_now();
    int violations = 0;

    for (uint64_t i = 0; i < o->count; i++) {
        struct sim_options options = {o->first + i, o->is_verbose ? stdout : NULL};
        struct sim_report report;
        struct err e = {0};

        if (sim_run(&options, &report, &e) < 0) {
            violations++;
            printf("seed %llu: %s\n  again: yard-sim --seed %llu --verbose\n",
                   (unsigned long long)options.seed, e.msg, (unsigned long long)options.seed);
        }
        add(&sum, &report);
    }
    printf(
        "%llu seeds, %d violations: %lld events, %lld jobs (%lld succeeded, %lld failed, %lld "
        "too large for their machine), %lld attempts, %lld crashes, %.1f s\n",
        (unsigned long long)o->count, violations, (long long)sum.events, (long long)sum.jobs,
        (long long)sum.succeeded, (long long)sum.failed, (long long)sum.waiting,
        (long long)sum.decisions, (long long)sum.crashes, seconds_now() - from);
    return violations > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int measure(const struct options *o)
{
    struct sim_speed speed;
    struct rusage used;
    struct err e = {0};

    if (sim_measure(&o->load, &speed, &e) < 0) {
        fprintf(stderr, "yard-sim: %s\n", e.msg);
        return EXIT_FAILURE;
    }
    getrusage(RUSAGE_SELF, &used);
    printf("%d nodes, %d jobs: %lld decisions in %.3f s of the mind, %.0f decisions/s, %.0f "
           "events/s;"
           " %.1f h of the jobs' time, at most %ld MiB\n",
           o->load.nodes, o->load.jobs, (long long)speed.decisions, speed.mind_s,
           (double)speed.decisions / speed.mind_s, (double)speed.events / speed.mind_s,
           speed.virtual_s / 3600, used.ru_maxrss / 1024);
    return EXIT_SUCCESS;
}

static bool read_number(const char *text, uint64_t *ret)
{
    char *end;

    if (!text || text[0] < '0' || text[0] > '9')
        return false;
    *ret = strtoull(text, &end, 10);
    return *end == '\0';
}

static bool read_option(struct options *o, const char *name, uint64_t value)
{
    if (strcmp(name, "--seeds") == 0)
        o->count = value;
    else if (strcmp(name, "--from") == 0)
        o->first = value;
    else if (strcmp(name, "--seed") == 0)
        *o = (struct options){.first = value, .count = 1, .is_verbose = o->is_verbose};
    else if (strcmp(name, "--nodes") == 0 && value <= 1000000)
        o->load.nodes = (int)value;
    else if (strcmp(name, "--jobs") == 0 && value <= 100000000)
        o->load.jobs = (int)value;
    else
        return false;
    return true;
}

static bool read_options(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        uint64_t value;

        if (strcmp(argv[i], "--verbose") == 0)
            o->is_verbose = true;
        else if (read_number(argv[i + 1], &value) && read_option(o, argv[i], value))
            i++;
        else
            return false;
    }
    return o->count > 0 || (o->load.nodes > 0 && o->load.jobs > 0);
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1};

    if (!read_options(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    return o.count > 0 ? run_seeds(&o) : measure(&o);
}
