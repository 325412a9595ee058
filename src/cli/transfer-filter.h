/* transfer-filter.h - which of the files found are meant.
 *
 * Lists are written as azcopy's users know them: parts separated by ';'.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_FILTER_H
#define CLI_TRANSFER_FILTER_H

#include "base/mem.h"

#include <stdbool.h>

struct filter {
    /* Against the last part of a path: "*.jpg;*.png".  NULL = all; "" is the same. */
    const char *include_pattern, *exclude_pattern;
    /* Folders or files below the root: "train;val/a.jpg". */
    const char *include_path, *exclude_path;
    const char *whole_pattern; /* one, against the whole path, as az's --pattern */
};

bool filter_takes(const struct filter *filter, const char *path);
/* Is a folder of its own to be made? */
bool filter_takes_folder(const struct filter *filter, const char *path);

#endif
