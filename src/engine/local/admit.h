/* admit.h - who may run an image that was fetched with credentials.
 *
 * What the runtime has on its disk it runs for everybody.  So it is noted which images came
 * with credentials, and with which: a job that shows none of these must have its own taken by
 * the registry first, though the image is here.
 *
 *     <folder>/<image id>   a line for each: "<salt> <HMAC of server, user and password>"
 *     <folder>/<SHA-256 of a name>.coming   it is being fetched with credentials
 *
 * Noted by the image's id, so that another name of it leads to the same.  The id is known when
 * the image is here: a daemon that dies before the note has left the mark of its name.
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

/* An image of this name is about to be fetched with credentials: until it is settled, what is
 * here under the name is not everybody's. */
int admit_expect(const char *folder, const char *name, struct err *e);
bool admit_is_expected(const char *folder, const char *name);
/* It was noted, or did not come. */
void admit_settle(const char *folder, const char *name);

#endif
