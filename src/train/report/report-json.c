/* report-json.c - every figure of a run as one JSON object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/record/json-plain.h"
#include "train/report/report-internal.h"

#include <string.h>
#include <sys/resource.h>

static void add_facts(struct jsonw *w, const struct report_facts *f)
{
    const struct {
        const char *key, *value;
    } texts[] = {
        {"model", f->model},         {"dataset", f->dataset},
        {"mode", f->mode},           {"optimizer", f->optimizer},
        {"variables", f->variables}, {"backend", f->backend},
        {"device", f->device},       {"library", f->library},
        {"precision", f->precision}, {"data_format", f->data_format},
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        jsonw_text(w, texts[i].key, texts[i].value);
    jsonw_int(w, "batch", f->device_batch);
    jsonw_int(w, "global_batch", f->global_batch);
    jsonw_int(w, "batches", f->batches);
    jsonw_double(w, "epochs", f->epochs);
    jsonw_int(w, "rank", f->rank);
    jsonw_int(w, "ranks", f->ranks);
    jsonw_int(w, "threads", f->threads);
    jsonw_int(w, "params", f->params);
}

static void add_speed(struct jsonw *w, const struct report *report)
{
    struct timing_speed speed;

    timing_speed(&report->timing, (double)report->facts.device_batch, report->options.ewma,
                 &speed);
    jsonw_open_object(w, "images_per_second");
    jsonw_double(w, "mean", speed.mean);
    jsonw_double(w, "uncertainty", speed.uncertainty);
    jsonw_double(w, "jitter", speed.jitter);
    jsonw_double(w, "total", report->total);
    jsonw_close(w);
}

static void add_memory(struct jsonw *w, const struct report_facts *f)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    jsonw_open_object(w, "memory");
    jsonw_int(w, "params", f->params_bytes);
    jsonw_int(w, "grads", f->grads_bytes);
    jsonw_int(w, "activations", f->activations_bytes);
    jsonw_int(w, "at_least", f->at_least_bytes);
    jsonw_int(w, "resident", usage.ru_maxrss * 1024);
    jsonw_close(w);
}

static void add_steps(struct jsonw *w, const struct report *report)
{
    jsonw_open_array(w, "steps");
    for (size_t i = 0; i < report->step_count; i++) {
        const struct report_step *s = &report->steps[i];

        jsonw_open_object(w, NULL);
        jsonw_int(w, "step", s->step);
        jsonw_double(w, "seconds", s->seconds);
        jsonw_double(w, "loss", s->loss);
        jsonw_double(w, "top1", s->top1);
        jsonw_double(w, "top5", s->top5);
        jsonw_double(w, "rate", s->rate);
        jsonw_double(w, "learning_rate", s->learning_rate);
        jsonw_close(w);
    }
    jsonw_close(w);
}

static void write_ops(struct jsonw *w, const struct profile_row *rows, int count, int steps)
{
    jsonw_open_array(w, "ops");
    for (int i = 0; i < count; i++) {
        jsonw_open_object(w, NULL);
        jsonw_text(w, "op", rows[i].name);
        jsonw_double(w, "calls", (double)rows[i].calls / steps);
        jsonw_double(w, "seconds", rows[i].ns / 1e9 / steps);
        jsonw_double(w, "flops", rows[i].flops / steps);
        jsonw_close(w);
    }
    jsonw_close(w);
}

void profile_json(const struct profile *profile, int steps, struct jsonw *w)
{
    int count;
    const struct profile_row *rows = profile_kinds(profile, &count);

    write_ops(w, rows, count, steps > 0 ? steps : 1);
}

static void add_entry(struct jsonw *w, const struct report_entry *entry, const char *key)
{
    if (entry->text)
        jsonw_text(w, key, entry->text);
    else
        jsonw_double(w, key, entry->number);
}

/* Has an entry before i the same first part?  Then it was written with that one. */
static bool is_written(const struct report *report, size_t i, size_t len)
{
    for (size_t j = 0; j < i; j++)
        if (strncmp(report->entries[j].path, report->entries[i].path, len + 1) == 0)
            return true;
    return false;
}

static void add_group(struct jsonw *w, const struct report *report, size_t first, size_t len)
{
    const char *prefix = report->entries[first].path;
    auto_free char *name = xstrndup(prefix, len);

    jsonw_open_object(w, name);
    for (size_t i = first; i < report->entry_count; i++)
        if (strncmp(report->entries[i].path, prefix, len + 1) == 0)
            add_entry(w, &report->entries[i], report->entries[i].path + len + 1);
    jsonw_close(w);
}

static void add_entries(struct jsonw *w, const struct report *report)
{
    for (size_t i = 0; i < report->entry_count; i++) {
        const char *path = report->entries[i].path;
        size_t len = strcspn(path, ".");

        if (!path[len])
            add_entry(w, &report->entries[i], path);
        else if (!is_written(report, i, len))
            add_group(w, report, i, len);
    }
}

void report_format_json(const struct report *report, const struct err *why, struct str *out)
{
    struct jsonw w;

    jsonw_begin(&w, out);
    jsonw_text(&w, "error", why ? why->msg : NULL);
    if (report->facts.model) {
        add_facts(&w, &report->facts);
        add_speed(&w, report);
        add_memory(&w, &report->facts);
    }
    add_entries(&w, report);
    if (report->ops)
        write_ops(&w, report->ops, report->op_count, report->op_steps);
    add_steps(&w, report);
    jsonw_end(&w);
    str_add_char(out, '\n');
}
