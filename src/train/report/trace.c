/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/trace.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"

#include <string.h>

static const char *const tracks[] = {"compute", "reorder", "communication", "loader"};

static void add_track_name(struct jsonw *w, int rank, int track)
{
    jsonw_open_object(w, NULL);
    jsonw_text(w, "name", "thread_name");
    jsonw_text(w, "ph", "M");
    jsonw_int(w, "pid", rank);
    jsonw_int(w, "tid", track);
    jsonw_open_object(w, "args");
    jsonw_text(w, "name", tracks[track]);
    jsonw_close(w);
    jsonw_close(w);
}

static void add_span(struct jsonw *w, int rank, const struct trace_span *span, int64_t begin)
{
    double ns = (double)(span->end_ns - span->begin_ns);

    jsonw_open_object(w, NULL);
    jsonw_text(w, "name", span->name && span->name[0] ? span->name : span->kind);
    jsonw_text(w, "cat", span->kind);
    jsonw_text(w, "ph", "X");
    jsonw_double(w, "ts", (double)(span->begin_ns - begin) / 1000);
    jsonw_double(w, "dur", ns / 1000);
    jsonw_int(w, "pid", rank);
    jsonw_int(w, "tid", span->track);
    jsonw_open_object(w, "args");
    jsonw_text(w, "op", span->kind);
    if (span->flops > 0 && ns > 0)
        jsonw_double(w, "gflops_per_second", span->flops / ns);
    jsonw_close(w);
    jsonw_close(w);
}

static int64_t first_ns(const struct trace_span *spans, int count)
{
    int64_t first = count ? spans[0].begin_ns : 0;

    for (int i = 1; i < count; i++)
        if (spans[i].begin_ns < first)
            first = spans[i].begin_ns;
    return first;
}

/* The folder of a path, made when it is missing. */
static int make_folder_of(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    auto_free char *folder = slash ? xstrndup(path, (size_t)(slash - path)) : NULL;

    return folder && folder[0] ? fs_make_folders(folder, 0777, e) : 0;
}

int trace_write(
    const char *path, int rank, const struct trace_span *spans, int count, struct err *e)
{
    int64_t begin = first_ns(spans, count);
    auto_str text = {0};
    struct jsonw w;

    jsonw_begin(&w, &text);
    jsonw_text(&w, "displayTimeUnit", "ms");
    jsonw_open_array(&w, "traceEvents");
    for (size_t t = 0; t < ARRAY_SIZE(tracks); t++)
        add_track_name(&w, rank, (int)t);
    for (int i = 0; i < count; i++)
        add_span(&w, rank, &spans[i], begin);
    jsonw_close(&w);
    jsonw_end(&w);
    str_add_char(&text, '\n');
    if (make_folder_of(path, e) < 0 ||
        fs_write_durably(path, str_text(&text), text.len, 0666, e) < 0)
        return err_wrap(e, "could not write the trace");
    return 0;
}
