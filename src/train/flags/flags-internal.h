/* flags-internal.h - what the files of this folder share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_FLAGS_FLAGS_INTERNAL_H
#define TRAIN_FLAGS_FLAGS_INTERNAL_H

#include "train/flags/flags.h"

extern const struct flag_table flags_table;

/* Across flags: what the original refuses. */
int flags_check(const struct flags *flags, struct str *notes, struct err *e);

#endif
