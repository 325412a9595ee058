/* report-internal.h - what the files of this folder share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_REPORT_INTERNAL_H
#define TRAIN_REPORT_REPORT_INTERNAL_H

#include "train/report/report.h"
#include "train/report/trace.h"

struct str;

struct profile_row {
    char *name;
    int64_t calls;
    double ns, flops;
};
const struct profile_row *profile_kinds(const struct profile *profile, int *ret_count);

struct report_entry { /* one figure of the JSON */
    char *path;       /* "seconds.plan" */
    char *text;       /* NULL = a number */
    double number;
};

struct report {
    struct report_options options;
    struct report_facts facts;
    struct timing timing;
    struct report_step *steps;
    size_t step_count, step_room;
    struct report_entry *entries;
    size_t entry_count, entry_room;
    struct profile_row *ops; /* with --profile */
    int op_count, op_steps;
    double wall_s, total; /* of the loop; 0 = not ended */
    double began_s;       /* of the first step, for the progress line */
    bool has_progress;    /* a progress line is on the terminal */
};

void report_format_json(const struct report *report, const struct err *why, struct str *out);

#endif
