/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai-internal.h"
#include "core/batchai.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_DAYS = 36500, /* a hundred years: enough, and far from what int64_t holds */
};

/* Digits of a count, perhaps with a fraction, in thousandths; false when there is none or too
 * much of it. */
static bool read_count(const char **text, int64_t *ret_thousandths)
{
    const char *p = *text;
    int64_t whole = 0, fraction = 0, weight = 100;

    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        whole = whole * 10 + (*p - '0');
        if (whole > (int64_t)MOST_DAYS * 86400)
            return false;
    }
    if ((*p == '.' || *p == ',') && isdigit((unsigned char)p[1])) {
        for (p++; isdigit((unsigned char)*p); p++, weight /= 10)
            fraction += (*p - '0') * weight;
    }
    *text = p;
    *ret_thousandths = whole * 1000 + fraction;
    return true;
}

/* P[nW] or P[nD][T[nH][nM][nS]].  Years and months have no length of their own. */
static bool read_iso(const char *text, int64_t *ret_ms)
{
    static const struct {
        char letter;
        bool is_time;
        int64_t seconds;
    } units[] = {
        {'W', false, 604800}, {'D', false, 86400}, {'H', true, 3600},
        {'M', true, 60},      {'S', true, 1},
    };
    const char *p = text + 1;
    bool is_time = false, has_part = false;
    size_t next = 0;
    int64_t ms = 0;

    while (*p) {
        int64_t count;

        if (*p == 'T' && !is_time) {
            is_time = true;
            has_part = false;
            p++;
            continue;
        }
        if (!read_count(&p, &count))
            return false;
        while (next < ARRAY_SIZE(units) &&
               (units[next].letter != *p || units[next].is_time != is_time))
            next++;
        if (next == ARRAY_SIZE(units))
            return false;
        ms += count * units[next++].seconds;
        has_part = true;
        p++;
    }
    *ret_ms = ms;
    return has_part;
}

/* [d.]hh:mm:ss[.fff], as the service's own description writes its default. */
static bool read_clock(const char *text, int64_t *ret_ms)
{
    int days = 0, hours = 0, minutes = 0, used = 0;
    int64_t seconds;
    const char *p = text;

    if (!isdigit((unsigned char)*p))
        return false;
    if (p[strspn(p, "0123456789")] == '.') {
        if (sscanf(p, "%6d.%n", &days, &used) != 1 || used == 0)
            return false;
        p += used;
    }
    used = 0;
    if (!isdigit((unsigned char)*p) || sscanf(p, "%2d:%2d:%n", &hours, &minutes, &used) != 2 ||
        used == 0 || minutes < 0)
        return false;
    p += used;
    if (!read_count(&p, &seconds) || *p || hours > 23 || minutes > 59 || seconds >= 60000)
        return false;
    *ret_ms = (((int64_t)days * 24 + hours) * 60 + minutes) * 60000 + seconds;
    return true;
}

int duration_read(const char *text, int64_t *ret_ms, bool *ret_is_iso, struct err *e)
{
    bool is_iso = text[0] == 'P';
    int64_t ms = 0;

    if (!(is_iso ? read_iso(text, &ms) : read_clock(text, &ms)) || ms <= 0 ||
        ms > (int64_t)MOST_DAYS * 86400 * 1000) {
        err_set(
            e, ERR_INVALID,
            "\"%.64s\" is no duration; take one such as \"PT12H\", \"P7D\" or \"P1DT2H30M\"",
            text);
        return err_reason(e, "InvalidParameterValue");
    }
    *ret_ms = ms;
    *ret_is_iso = is_iso;
    return 0;
}

char *duration_iso(int64_t ms)
{
    if (ms % 86400000 == 0)
        return xasprintf("P%lldD", (long long)(ms / 86400000));
    if (ms % 1000 == 0)
        return xasprintf("PT%lldS", (long long)(ms / 1000));
    return xasprintf("PT%lld.%03lldS", (long long)(ms / 1000), (long long)(ms % 1000));
}

int batchai_read_duration(const char *text, int64_t *ret_ms, struct err *e)
{
    bool is_iso;

    return duration_read(text, ret_ms, &is_iso, e);
}
