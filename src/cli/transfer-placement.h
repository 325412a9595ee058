/* transfer-placement.h - where things go: azcopy's rules.
 *
 *   copy -r dir  URL/c       dir/a       becomes  c/dir/a
 *   copy -r dir/[*] URL/c     dir/a       becomes  c/a         (so does ., and --as-subdir
 * false) copy a.txt   URL/c       a.txt       becomes  c/a.txt     (also for URL/c/d/, a
 * folder) copy a.txt   URL/c/b     a.txt       becomes  c/b copy -r URL/c  here      c/a
 * becomes  here/c/a
 *
 * Pure: what is there was found out before.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_PLACEMENT_H
#define CLI_TRANSFER_PLACEMENT_H

#include "base/err.h"

struct address;

struct placement_ask {
    const struct address *source, *destination;
    bool source_is_folder;      /* or container; not asked when there is a pattern */
    bool destination_is_folder; /* there is one */
    bool is_recursive;
    bool is_subdir; /* a folder goes under its own name */
};

struct placement {
    char *source_root; /* below it everything is found */
    char *single;      /* the one file in it that is meant; NULL = all */
    char *destination_root;
    char *sub;  /* goes before every target; "" = nothing */
    char *name; /* the target of the single file */
};

int placement_find(const struct placement_ask *ask,
                   struct placement *ret_placement,
                   struct err *e);
void placement_done(struct placement *placement);
#define auto_placement __attribute__((cleanup(placement_done))) struct placement

/* The target of a path.  The caller frees. */
char *placement_target(const struct placement *placement, const char *path);

#endif
