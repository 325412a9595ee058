/* runs-ignore.h - what `yard run` leaves out of a snapshot: the simple patterns of .gitignore.
 *
 *   name       a file or folder of that name, wherever it is; * ? [] as in a shell
 *   name/      folders only
 *   a/b, /a    from the top of the folder
 *   dir/[**]   everything below; ** before a slash stands for any folders
 *   !name      not left out after all; the last line that fits decides
 *
 * What is in a folder that is left out is left out, whatever the lines after it say.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUNS_IGNORE_H
#define CLI_RUNS_IGNORE_H

#include "base/err.h"
#include "base/mem.h"

struct ignore; /* opaque */

/* The rules of the folder's .yardignore, else of its .gitignore, else none; .git is always left
 * out. */
int ignore_read(const char *folder, struct ignore **ret_ignore, struct err *e);
struct ignore *ignore_parse(const char *text);
void ignore_free(struct ignore *ignore);
DEFINE_AUTOPTR(ignore)

/* Is this path (relative to the folder) itself left out?  Those above it are not looked at. */
bool ignore_skips(const struct ignore *ignore, const char *path, bool is_folder);

#endif
