/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

static void split(int64_t wall_ms, struct tm *tm, int *ret_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);

    *ret_ms = (int)(wall_ms % 1000);
    if (*ret_ms < 0) {
        *ret_ms += 1000;
        seconds--;
    }
    gmtime_r(&seconds, tm);
}

/* The last `width` digits.  Times are written into every answer, several to each: printf would
 * be a good part of it. */
static char *put(char *p, int number, int width)
{
    unsigned left = (unsigned)number;

    for (int i = width; i > 0; i--) {
        p[i - 1] = (char)('0' + left % 10);
        left /= 10;
    }
    return p + width;
}

static char *put_after(char *p, char separator, int number, int width)
{
    *p = separator;
    return put(p + 1, number, width);
}

const char *clock_format_iso(int64_t wall_ms, char buf[CLOCK_ISO_BYTES])
{
    struct tm tm;
    char *p;
    int ms;

    split(wall_ms, &tm, &ms);
    p = put(buf, tm.tm_year + 1900, 4);
    p = put_after(p, '-', tm.tm_mon + 1, 2);
    p = put_after(p, '-', tm.tm_mday, 2);
    p = put_after(p, 'T', tm.tm_hour, 2);
    p = put_after(p, ':', tm.tm_min, 2);
    p = put_after(p, ':', tm.tm_sec, 2);
    if (ms) {
        p = put_after(p, '.', ms, 3);
        while (p[-1] == '0')
            p--;
    }
    p[0] = 'Z';
    p[1] = '\0';
    return buf;
}

/* Not strftime's %a and %b: those follow the locale. */
static const char day_names[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char month_names[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

const char *clock_format_http(int64_t wall_ms, char buf[CLOCK_HTTP_BYTES])
{
    struct tm tm;
    char *p;
    int ms;

    split(wall_ms, &tm, &ms);
    memcpy(buf, day_names[tm.tm_wday], 3);
    buf[3] = ',';
    p = put_after(buf + 4, ' ', tm.tm_mday, 2);
    *p = ' ';
    memcpy(p + 1, month_names[tm.tm_mon], 3);
    p = put_after(p + 4, ' ', tm.tm_year + 1900, 4);
    p = put_after(p, ' ', tm.tm_hour, 2);
    p = put_after(p, ':', tm.tm_min, 2);
    p = put_after(p, ':', tm.tm_sec, 2);
    memcpy(p, " GMT", sizeof(" GMT"));
    return buf;
}

/* Read exactly count digits. */
static bool digits(const char **p, int count, int *ret)
{
    int value = 0;

    for (int i = 0; i < count; i++) {
        if (!isdigit((unsigned char)(*p)[i]))
            return false;
        value = value * 10 + ((*p)[i] - '0');
    }
    *p += count;
    *ret = value;
    return true;
}

static bool literal(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool parse_fraction(const char **p, int *ret_ms)
{
    int scale = 100;

    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p); (*p)++, scale /= 10)
        *ret_ms += (**p - '0') * scale;
    return true;
}

static bool parse_zone(const char **p, int *ret_minutes)
{
    int hours, minutes = 0;
    char sign = **p;

    if (!sign || literal(p, 'Z'))
        return true;
    if (sign != '+' && sign != '-')
        return false;
    (*p)++;
    if (!digits(p, 2, &hours) || !literal(p, ':') || !digits(p, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    return true;
}

static bool parse_clock(const char **p, struct tm *tm, int *ret_ms, int *ret_zone)
{
    if (!digits(p, 2, &tm->tm_hour) || !literal(p, ':') || !digits(p, 2, &tm->tm_min))
        return false;
    if (literal(p, ':')) {
        if (!digits(p, 2, &tm->tm_sec))
            return false;
        if (literal(p, '.') && !parse_fraction(p, ret_ms))
            return false;
    }
    return parse_zone(p, ret_zone);
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

int clock_parse_iso(const char *text, int64_t *ret_wall_ms, struct err *e)
{
    const char *p = text;
    struct tm tm = {0};
    int year, month, ms = 0, zone = 0;
    bool ok = digits(&p, 4, &year) && literal(&p, '-') && digits(&p, 2, &month) &&
              literal(&p, '-') && digits(&p, 2, &tm.tm_mday);

    if (ok && *p)
        ok = literal(&p, 'T') && parse_clock(&p, &tm, &ms, &zone);
    ok = ok && !*p && month >= 1 && month <= 12 && tm.tm_mday >= 1 &&
         tm.tm_mday <= days_in(year, month) && tm.tm_hour < 24 && tm.tm_min < 60 &&
         tm.tm_sec <= 60;
    if (!ok)
        return err_set(e, ERR_INVALID, "\"%.64s\" is not a time; write 2030-01-31T23:59:00Z",
                       text);
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    *ret_wall_ms = ((int64_t)timegm(&tm) - zone * 60) * 1000 + ms;
    return 0;
}

static bool parse_month(const char **p, int *ret_month)
{
    for (int i = 0; i < 12; i++)
        if (strncmp(*p, month_names[i], 3) == 0) {
            *p += 3;
            *ret_month = i;
            return true;
        }
    return false;
}

int clock_parse_http(const char *text, int64_t *ret_wall_ms, struct err *e)
{
    struct tm tm = {0};
    const char *p = strlen(text) > 5 && text[3] == ',' && text[4] == ' ' ? text + 5 : "";
    int year;
    bool ok = digits(&p, 2, &tm.tm_mday) && literal(&p, ' ') && parse_month(&p, &tm.tm_mon) &&
              literal(&p, ' ') && digits(&p, 4, &year) && literal(&p, ' ') &&
              digits(&p, 2, &tm.tm_hour) && literal(&p, ':') && digits(&p, 2, &tm.tm_min) &&
              literal(&p, ':') && digits(&p, 2, &tm.tm_sec) && strcmp(p, " GMT") == 0;

    ok = ok && tm.tm_mday >= 1 && tm.tm_mday <= days_in(year, tm.tm_mon + 1) &&
         tm.tm_hour < 24 && tm.tm_min < 60 && tm.tm_sec <= 60;
    if (!ok)
        return err_set(e, ERR_INVALID,
                       "\"%.64s\" is not a date; write Wed, 06 Jun 2018 18:39:26 GMT", text);
    tm.tm_year = year - 1900;
    *ret_wall_ms = (int64_t)timegm(&tm) * 1000;
    return 0;
}
