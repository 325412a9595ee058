/* admit.h - who may run an image that was fetched with credentials.
 *
 * What the runtime has on its disk it runs for everybody.  So it is noted which images came
 * with credentials, and with which: a job that shows none of these must have its own taken by
 * the registry first, though the image is here.
 *
 *     <folder>/<image id>   a line for each: "<salt> <HMAC of server, user and password>"
 *
 * Noted by the image's id, so that another name of it leads to the same.
 *
 * For errands: blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_ADMIT_H
#define ENGINE_LOCAL_ADMIT_H

#include "base/err.h"

/* user NULL = none. */
struct credentials {
    const char *server, *user, *password;
};

/* Everybody's, or these credentials were taken before.  What cannot be read is not. */
bool admit_is_known(const char *folder, const char *image_id, const struct credentials *who);
/* The registry has given the image for these credentials: note it.  Without credentials it is
 * everybody's from now on. */
int admit_note(const char *folder,
               const char *image_id,
               const struct credentials *who,
               struct err *e);

#endif
