/* shape.h - from the shape of the wire to the shape that az prints.
 *
 * The wire nests most members under "properties" and leaves out what is not set; az shows the
 * members of the SDK's models: flat, each of them always there (null when not set), times as
 * 2018-06-16T01:24:13.629000+00:00, "resourceGroup" added wherever there is a resource id, keys
 * sorted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SHAPE_H
#define CLI_SHAPE_H

#include "base/err.h"

#include <jansson.h>

/* The members of an object within: always there, renamed. */
struct shape_part {
    const char *at;      /* "mountVolumes", or with the one above it "setupTask/secrets"; of an
                            array each item is meant */
    const char *members; /* as in struct shape */
    const char *renames; /* as there */
};

struct shape {
    bool flat;                      /* lift the members of "properties" to the top */
    const char *members;            /* always there; separated by spaces */
    const char *times;              /* the ones that are times, wherever they stand */
    const char *durations;          /* the same for durations: P7D is "7 days, 0:00:00" */
    const char *renames;            /* "networkAcls=networkRuleSet": wire name, printed name */
    const struct shape_part *parts; /* ended by one without `at`; NULL = none */
};

/* Apply it to one object, or to each of an array; other values are returned as they are.  The
 * caller owns the result; value is untouched. */
json_t *shape_apply(const struct shape *shape, json_t *value);

/* Deep copy with the keys of every object in order. */
json_t *shape_sorted(json_t *value);

/* A duration of the wire as Python's str() of a timedelta; NULL when it is none.  The caller
 * frees. */
char *shape_duration(const char *wire);

/* A time of the wire as Python's isoformat writes it; NULL when it is no time.  The caller
 * frees. */
char *shape_time(const char *wire);

#endif
