/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-progress.h"

#include "base/str.h"
#include "cli/transfer.h"

#include <math.h>
#include <stddef.h>

enum {
    BAR_COLUMNS = 20,
    LEAST_MS = 400, /* a rate of less time than this says nothing */
};

void progress_bytes(struct str *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    if (unit == 0)
        str_addf(out, "%.0f %s", bytes, units[unit]);
    else
        str_addf(out, "%.1f %s", bytes, units[unit]);
}

void progress_time(struct str *out, int64_t seconds)
{
    long long s = seconds;

    if (s >= 3600)
        str_addf(out, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        str_addf(out, "%lld:%02lld", s / 60, s % 60);
}

static void add_bar(struct str *out, double part)
{
    int full = (int)(part * BAR_COLUMNS);

    str_add_char(out, '[');
    for (int i = 0; i < BAR_COLUMNS; i++)
        str_add_char(out, i < full ? '#' : i == full ? '>' : '.');
    str_addf(out, "] %3d%%  ", (int)(part * 100));
}

/* Small files take their time whatever their size: go by the worse of both. */
static int64_t seconds_left(const struct transfer_totals *t, double byte_rate, double file_rate)
{
    double bytes_left = (double)(t->found_bytes - t->moved_bytes);
    double files_left =
        (double)(t->found_files - t->files - t->before - t->skipped - t->failed);
    double seconds = byte_rate > 0 ? bytes_left / byte_rate : -1;

    if (file_rate > 0 && files_left / file_rate > seconds && byte_rate <= 0)
        seconds = files_left / file_rate;
    return seconds < 0 ? -1 : (int64_t)ceil(seconds);
}

void progress_line(struct progress *p,
                   const struct transfer_totals *t,
                   int64_t now_ms,
                   int columns,
                   struct str *out)
{
    int64_t files = t->files + t->before;
    int newest = p->count++ % PROGRESS_SAMPLES;
    int oldest = p->count > PROGRESS_SAMPLES ? p->count % PROGRESS_SAMPLES : 0;
    double part = 0, byte_rate = 0, file_rate = 0;
    int64_t passed_ms, left_s;

    p->samples[newest].at_ms = now_ms;
    p->samples[newest].bytes = t->moved_bytes;
    p->samples[newest].files = files;
    passed_ms = now_ms - p->samples[oldest].at_ms;
    if (passed_ms >= LEAST_MS) {
        byte_rate =
            (double)(t->moved_bytes - p->samples[oldest].bytes) * 1000 / (double)passed_ms;
        file_rate = (double)(files - p->samples[oldest].files) * 1000 / (double)passed_ms;
    }
    if (t->found_bytes > 0)
        part = fmin(1, fmax(0, (double)t->moved_bytes / (double)t->found_bytes));
    if (t->is_all_found)
        add_bar(out, part);
    str_addf(out, "%lld/%lld%s files  ", (long long)files, (long long)t->found_files,
             t->is_all_found ? "" : "+");
    progress_bytes(out, (double)t->moved_bytes);
    if (byte_rate > 0) {
        str_add(out, "  ");
        progress_bytes(out, byte_rate);
        str_add(out, "/s");
    }
    left_s = t->is_all_found ? seconds_left(t, byte_rate, file_rate) : -1;
    if (left_s >= 0 && byte_rate > 0) {
        str_add(out, "  ");
        progress_time(out, left_s);
        str_add(out, " left");
    }
    if (t->failed)
        str_addf(out, "  %lld failed", (long long)t->failed);
    if (columns > 1 && out->len >= (size_t)columns)
        str_truncate(out, (size_t)columns - 1);
}

static void add_count(struct str *out, int64_t count, const char *what)
{
    if (count)
        str_addf(out, ", %lld %s", (long long)count, what);
}

void progress_removed(struct str *out, const struct transfer_totals *t, int64_t elapsed_ms)
{
    str_addf(out, "Removed %lld file%s in %.1f s", (long long)t->removed,
             t->removed == 1 ? "" : "s", (double)elapsed_ms / 1000);
    add_count(out, t->failed, "failed");
    str_add_char(out, '.');
}

void progress_summary(struct str *out, const struct transfer_totals *t, int64_t elapsed_ms)
{
    double seconds = (double)(elapsed_ms > 0 ? elapsed_ms : 1) / 1000;

    str_addf(out, "Copied %lld file%s", (long long)t->files, t->files == 1 ? "" : "s");
    str_add(out, ", ");
    progress_bytes(out, (double)t->bytes);
    str_addf(out, " in %.1f s (", seconds);
    progress_bytes(out, (double)t->bytes / seconds);
    str_add(out, "/s)");
    add_count(out, t->before, "of an earlier run");
    add_count(out, t->removed, "removed");
    add_count(out, t->skipped, "skipped");
    add_count(out, t->failed, "failed");
    str_add_char(out, '.');
}
