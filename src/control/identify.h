/* identify.h - whose token is it?
 *
 * Threads: any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_IDENTIFY_H
#define CONTROL_IDENTIFY_H

#include "base/err.h"
#include "control/principals.h"

struct vault;

/* The principal of a static token or of a signed word of ours (vault.h).  ERR_UNAUTHORIZED when
 * it is unknown, forged, expired or revoked. */
int identify_token(struct principals *principals,
                   const struct vault *vault,
                   const char *token,
                   struct identity *ret_identity,
                   struct err *e);

#endif
