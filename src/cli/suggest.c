/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void suggest_init(struct suggest *suggest, const char *typed)
{
    *suggest = (struct suggest){.typed = typed, .distance = SIZE_MAX};
}

void suggest_see(struct suggest *suggest, const char *candidate)
{
    size_t typed_len = strlen(suggest->typed), len = strlen(candidate);
    size_t distance = str_distance(suggest->typed, candidate);
    /* A third of the letters may be wrong, and always one: "shwo" is show, "xyz" is nothing. */
    size_t most = (typed_len > len ? typed_len : len) / 3;

    if (most < 1)
        most = 1;
    /* A word cut short or grown long ("create-new") is near, too, but any typing error is
     * nearer. */
    if (distance > most && typed_len >= 3 && len >= 3 &&
        (str_starts(candidate, suggest->typed) || str_starts(suggest->typed, candidate)))
        distance = most = typed_len + len;
    if (distance > most || distance >= suggest->distance || len >= sizeof(suggest->best))
        return;
    suggest->distance = distance;
    snprintf(suggest->best, sizeof(suggest->best), "%s", candidate);
}
