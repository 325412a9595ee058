/* clock.h - the time, and its written forms.
 *
 * Time-outs use the monotonic clock; what people read uses the wall clock.  Order is never
 * taken from either: rows have sequence numbers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970, UTC */
int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);

enum {
    CLOCK_ISO_BYTES = 32,
    CLOCK_HTTP_BYTES = 32,
};

/* 2018-06-06T18:39:26.49Z: milliseconds, trailing zeros trimmed, as Azure writes it. */
const char *clock_format_iso(int64_t wall_ms, char buf[CLOCK_ISO_BYTES]);
/* Wed, 06 Jun 2018 18:39:26 GMT */
const char *clock_format_http(int64_t wall_ms, char buf[CLOCK_HTTP_BYTES]);
/* Takes a date alone, minutes, seconds, fractions; Z or +hh:mm or nothing (UTC). */
int clock_parse_iso(const char *text, int64_t *ret_wall_ms, struct err *e);
/* The form that clock_format_http writes; the day of the week is not checked. */
int clock_parse_http(const char *text, int64_t *ret_wall_ms, struct err *e);

#endif
