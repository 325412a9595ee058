/* suggest.h - did you mean ...?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

struct suggest {
    const char *typed;
    char best[64]; /* "" when nothing is near enough */
    size_t distance;
};

void suggest_init(struct suggest *suggest, const char *typed);
/* Offer a candidate. */
void suggest_see(struct suggest *suggest, const char *candidate);

#endif
