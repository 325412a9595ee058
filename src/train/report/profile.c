/* profile.c - sums of times by kind of op and by layer, and their table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/report/report-internal.h"
#include "train/report/trace.h"

#include <string.h>

enum {
    DEAREST = 20,
};

struct rows {
    struct profile_row *row;
    int count, room;
};

struct profile {
    struct rows kinds, layers;
    double ns; /* of all ops together */
};

struct profile *profile_new(void)
{
    return xcalloc(1, sizeof(struct profile));
}

static void rows_done(struct rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        free(rows->row[i].name);
    free(rows->row);
}

void profile_free(struct profile *profile)
{
    if (!profile)
        return;
    rows_done(&profile->kinds);
    rows_done(&profile->layers);
    free(profile);
}

static struct profile_row *find(struct rows *rows, const char *name, const char *kind)
{
    auto_free char *full = kind ? xasprintf("%s %s", name, kind) : xstrdup(name);

    for (int i = 0; i < rows->count; i++)
        if (str_equal(rows->row[i].name, full))
            return &rows->row[i];
    if (rows->count == rows->room) {
        rows->room = rows->room ? 2 * rows->room : 64;
        rows->row = xreallocarray(rows->row, (size_t)rows->room, sizeof(*rows->row));
    }
    rows->row[rows->count] = (struct profile_row){.name = take_ptr(&full)};
    return &rows->row[rows->count++];
}

static void add(struct profile_row *row, double ns, double flops)
{
    row->calls++;
    row->ns += ns;
    row->flops += flops;
}

void profile_add(struct profile *profile, const struct trace_span *spans, int count)
{
    for (int i = 0; i < count; i++) {
        const struct trace_span *s = &spans[i];
        double ns = (double)(s->end_ns - s->begin_ns);

        add(find(&profile->kinds, s->kind, NULL), ns, s->flops);
        add(find(&profile->layers, s->name ? s->name : "-", s->kind), ns, s->flops);
        profile->ns += ns;
    }
}

static int dearest_first(const void *a, const void *b)
{
    double x = ((const struct profile_row *)a)->ns, y = ((const struct profile_row *)b)->ns;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void
print_row(const struct profile_row *row, int steps, double all_ns, double peak, FILE *out)
{
    double rate = row->ns > 0 ? row->flops / row->ns : 0; /* GFLOP/s */

    fprintf(out, "%-40.40s %7.1f %9.3f %5.1f %%", row->name, (double)row->calls / steps,
            row->ns / 1e6 / steps, all_ns > 0 ? 100 * row->ns / all_ns : 0);
    if (rate > 0)
        fprintf(out, " %9.1f", rate);
    if (rate > 0 && peak > 0)
        fprintf(out, "  %5.1f %%", 100e9 * rate / peak);
    fputc('\n', out);
}

static void print_rows(const struct rows *rows,
                       const char *title,
                       int most,
                       int steps,
                       const struct profile *profile,
                       double peak,
                       FILE *out)
{
    struct profile_row *sorted = xreallocarray(NULL, (size_t)rows->count + 1, sizeof(*sorted));

    if (rows->count)
        memcpy(sorted, rows->row, (size_t)rows->count * sizeof(*sorted));
    qsort(sorted, (size_t)rows->count, sizeof(*sorted), dearest_first);
    fprintf(out, "%-40s %7s %9s %7s %9s%s\n", title, "calls", "ms/step", "share", "GFLOP/s",
            peak > 0 ? "  of peak" : "");
    for (int i = 0; i < rows->count && i < most; i++)
        print_row(&sorted[i], steps, profile->ns, peak, out);
    free(sorted);
}

void profile_print(const struct profile *profile, int steps, double peak, FILE *out)
{
    if (steps < 1)
        steps = 1;
    print_rows(&profile->kinds, "op", profile->kinds.count, steps, profile, peak, out);
    fputc('\n', out);
    print_rows(&profile->layers, "layer", DEAREST, steps, profile, peak, out);
}

const struct profile_row *profile_kinds(const struct profile *profile, int *ret_count)
{
    *ret_count = profile->kinds.count;
    return profile->kinds.row;
}
