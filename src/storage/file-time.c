/* file-time.c - times of files as the protocol writes them: in steps of 100 ns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/file-ops.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const int64_t second = 1000000000;

const char *file_time_format(int64_t ns, char buf[FILE_TIME_BYTES])
{
    int64_t rest = ns % second;
    struct tm tm;
    time_t at;

    if (rest < 0)
        rest += second;
    at = (time_t)((ns - rest) / second);
    gmtime_r(&at, &tm);
    snprintf(buf, FILE_TIME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%07dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(rest / 100));
    return buf;
}

/* The digits after the point, beyond what clock_parse_iso gives. */
static int64_t fraction_of(const char *text)
{
    const char *point = strchr(text, '.');
    int64_t ns = 0, unit = second / 10;

    for (const char *p = point ? point + 1 : ""; isdigit((unsigned char)*p); p++) {
        ns += (*p - '0') * unit;
        unit /= 10;
    }
    return ns;
}

int file_time_parse(const char *text, int64_t *ret_ns, struct err *e)
{
    int64_t ms, rest;

    if (clock_parse_iso(text, &ms, e) < 0)
        return -1;
    /* What 64 bits of nanoseconds hold; Windows counts from 1601. */
    if (ms < INT64_C(-9223372036000) || ms > INT64_C(9223372036000))
        return err_set(e, ERR_INVALID, "\"%.40s\" is too far away", text);
    rest = ms % 1000;
    if (rest < 0)
        rest += 1000;
    *ret_ns = (ms - rest) * 1000000 + fraction_of(text);
    return 0;
}
