/* transfer-find.h - finding what is to be copied or removed, for run_transfer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_FIND_H
#define CLI_TRANSFER_FIND_H

#include "base/err.h"
#include "cli/transfer-filter.h"
#include "cli/transfer-placement.h"

struct run;
struct side;
struct table;

struct find {
    const struct side *side; /* where to look: the source, or where things are removed */
    struct placement placement;
    struct filter filter;
    bool removes; /* files are to be removed, not copied */
    bool is_recursive, follows_links;
    const char *pattern;   /* for the first part of each path; NULL = any */
    struct table *targets; /* NULL, or collects the targets of files; the values mean nothing */
    struct table *folders; /* the same for folders that are left when all files are removed */
};

/* The find of a struct run_config; context is a struct find. */
int find_all(struct run *run, void *context, struct err *e);

#endif
