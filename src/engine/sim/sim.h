/* sim.h - the mind of the yard (core/yard.h) in a world made of numbers: virtual time, nodes
 * and tasks that fail as a seed says, a daemon that is killed between any two steps.
 *
 * One run is one seed: the same seed gives the same run, event for event.  Clusters are made,
 * resized and deleted, jobs submitted, terminated and deleted; nodes come late, never, broken,
 * die, and come back from the dead; tasks hang, fail, end twice, end after they were told to
 * stop; the daemon dies before it recorded, before it acted, in the midst of acting, and comes
 * back with what was recorded.  Then faults end, every cluster is scaled to nothing and back,
 * and everything that was ever submitted has to come to its end.
 *
 * After every event yard_check is asked, and the ledger (sim-ledger.c), which knows what really
 * happened in the world, compares it with what the yard says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_SIM_SIM_H
#define ENGINE_SIM_SIM_H

#include "base/err.h"

#include <stdint.h>
#include <stdio.h>

struct sim_options {
    uint64_t seed;
    FILE *trace; /* what happens, line by line; NULL = quiet */
};

struct sim_report {
    int64_t events, decisions; /* decisions: attempts started */
    int64_t jobs, crashes;
    int64_t succeeded, failed, waiting; /* of the jobs, at the end */
};

/* A run with faults.  ERR_INTERNAL says what was violated, and when. */
int sim_run(const struct sim_options *options, struct sim_report *ret_report, struct err *e);

struct sim_load {
    int nodes, jobs;
};

struct sim_speed {
    int64_t events, decisions;
    double mind_s;    /* in the mind */
    double virtual_s; /* that the jobs took */
};

/* One cluster, no faults, no ledger: how fast is the mind? */
int sim_measure(const struct sim_load *load, struct sim_speed *ret_speed, struct err *e);

#endif
