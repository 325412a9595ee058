/* check.h - what was checked: rows that ranks send to rank 0.
 *
 * Plain values of one size, so that they can be gathered as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_CHECK_H
#define TRAIN_PREFLIGHT_CHECK_H

#include "base/err.h"

enum verdict {
    VERDICT_UNKNOWN, /* could not be judged */
    VERDICT_OK,
    VERDICT_LOOK, /* odd, worth a look, no reason to refuse */
    VERDICT_BAD,
};
const char *verdict_word(enum verdict verdict); /* "-", "ok", "look", "BAD" */

struct check {
    char subject[80]; /* "node-1 gpu 0", "node-1 cpu, rank 3" */
    char device[112]; /* its name */
    char name[24];
    char unit[12];
    double value; /* NaN = there is no number */
    double least; /* NaN = not judged by a bound */
    enum verdict verdict;
    char note[160];
};

struct checks {
    struct check *all;
    int count, room;
    char subject[80], device[112]; /* of the checks that follow */
};

void checks_done(struct checks *checks);
#define auto_checks __attribute__((cleanup(checks_done))) struct checks

void checks_subject(struct checks *checks, const char *device, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A number that must reach `least`; NaN = it cannot be judged.  The note says where `least`
 * comes from. */
void checks_least(struct checks *checks,
                  const char *name,
                  double value,
                  double least,
                  const char *unit,
                  const char *format,
                  ...) PRINTF_LIKE(6, 7);
/* Anything else; value may be NaN. */
void checks_add(struct checks *checks,
                enum verdict verdict,
                const char *name,
                double value,
                const char *unit,
                const char *format,
                ...) PRINTF_LIKE(6, 7);

/* The worst among rows from `first` on that have the subject of row `first`; *ret_next is the
 * first row of another. */
enum verdict check_worst(const struct check *rows, int count, int first, int *ret_next);

#endif
