/* man.h - manual pages, made from the table of commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MAN_H
#define CLI_MAN_H

#include "base/err.h"

struct str;

/* The page of a top-level group, or of the program (""). */
void man_page(struct str *out, const char *path);

/* Write yard.1 and a page yard-<group>.1 per top-level group into a folder. */
int man_write(const char *folder, struct err *e);

#endif
