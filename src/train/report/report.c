/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/report.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/report/report-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

int report_new(const struct report_options *options, struct report **ret_report, struct err *e)
{
    struct report *report;
    FILE *file;

    /* Now rather than after hours: can the report be written? */
    if (options->json_file) {
        file = fopen(options->json_file, "ae");
        if (!file)
            return err_sys(e, errno, "could not open \"%.200s\"", options->json_file);
        fclose(file);
    }
    report = xcalloc(1, sizeof(*report));
    report->options = *options;
    *ret_report = report;
    return 0;
}

void report_free(struct report *report)
{
    if (!report)
        return;
    timing_done(&report->timing);
    for (size_t i = 0; i < report->entry_count; i++) {
        free(report->entries[i].path);
        free(report->entries[i].text);
    }
    for (int i = 0; i < report->op_count; i++)
        free(report->ops[i].name);
    free(report->ops);
    free(report->entries);
    free(report->steps);
    free(report);
}

static void clear_progress(struct report *report)
{
    if (report->has_progress)
        fputs("\r\x1b[K", stderr);
    report->has_progress = false;
}

/* In one write: ranks share a pipe, and lines must stay whole. */
static void put(struct report *report, struct str *text)
{
    clear_progress(report);
    fwrite(str_text(text), 1, text->len, report->options.out);
    fflush(report->options.out);
}

static void put_line(struct report *report, const char *text)
{
    auto_str line = {0};

    str_addf(&line, "%s\n", text);
    put(report, &line);
}

static void add_devices(struct str *out, const struct report_facts *f)
{
    bool is_horovod = str_equal(f->variables, "horovod");

    str_add(out, "Devices:     [");
    for (int i = 0; i < f->ranks; i++)
        str_addf(out, "%s'%s/%s:%d'", i ? ", " : "", is_horovod ? "horovod" : "",
                 f->device_kind, i);
    str_add(out, "]\n");
}

static bool has_all_reduce(const char *variables)
{
    return str_equal(variables, "replicated") ||
           str_equal(variables, "distributed_all_reduce") ||
           str_equal(variables, "collective_all_reduce");
}

static void add_block(struct str *out, const struct report_facts *f)
{
    str_add(out, "TensorFlow:  1.8\n");
    str_addf(out, "Model:       %s\n", f->model);
    str_addf(out, "Dataset:     %s\n", f->dataset);
    str_addf(out, "Mode:        %s\n", f->mode);
    str_add(out, "SingleSess:  False\n");
    str_addf(out, "Batch size:  %" PRId64 " global\n", f->global_batch);
    str_addf(out, "             %" PRId64 " per device\n", f->device_batch);
    str_addf(out, "Num batches: %" PRId64 "\n", f->batches);
    str_addf(out, "Num epochs:  %.2f\n", f->epochs);
    add_devices(out, f);
    str_add(out, "NUMA bind:   False\n");
    str_addf(out, "Data format: %s\n", f->data_format);
    str_addf(out, "Optimizer:   %s\n", f->optimizer);
    str_addf(out, "Variables:   %s\n", f->variables);
    if (has_all_reduce(f->variables))
        str_add(out, "AllReduce:   None\n");
    if (str_equal(f->variables, "horovod") && f->horovod_device && f->horovod_device[0])
        str_addf(out, "Horovod on:  %s\n", f->horovod_device);
}

static void add_verbose(struct str *out, const struct report_facts *f)
{
    double mib = 1 << 20;

    str_addf(out, "Backend:     %s, %s, %s\n", f->backend, f->library, f->device);
    str_addf(out, "Precision:   %s\n", f->precision);
    str_addf(out,
             "Memory:      %.1f MiB params, %.1f MiB gradients, %.1f MiB activations (at "
             "least %.1f)\n",
             (double)f->params_bytes / mib, (double)f->grads_bytes / mib,
             (double)f->activations_bytes / mib, (double)f->at_least_bytes / mib);
}

void report_header(struct report *report, const struct report_facts *facts)
{
    auto_str block = {0};

    report->facts = *facts;
    add_block(&block, facts);
    if (facts->is_verbose)
        add_verbose(&block, facts);
    str_add(&block, "==========\n");
    put(report, &block);
}

void report_phase(struct report *report, const char *text)
{
    put_line(report, text);
}

void report_columns(struct report *report)
{
    auto_str line = {0};

    str_addf(&line, "Step\tImg/sec\t%s%s", report->facts.loss_name,
             report->facts.shows_accuracy ? "\ttop_1_accuracy\ttop_5_accuracy" : "");
    put_line(report, str_text(&line));
}

static void add_speed(const struct report *report, struct str *line)
{
    struct timing_speed speed;

    timing_speed(&report->timing, (double)report->facts.device_batch, report->options.ewma,
                 &speed);
    str_addf(line, "images/sec: %.1f +/- %.1f (jitter = %.1f)", speed.mean, speed.uncertainty,
             speed.jitter);
}

static void put_row(struct report *report, const struct report_step *step)
{
    auto_str line = {0};

    str_addf(&line, "%" PRId64 "\t", step->step);
    add_speed(report, &line);
    str_addf(&line, "\t%.3f", step->loss);
    if (report->facts.shows_accuracy)
        str_addf(&line, "\t%.3f\t%.3f", step->top1, step->top5);
    put_line(report, str_text(&line));
}

static void show_progress(struct report *report, const struct report_step *step)
{
    double now = (double)clock_mono_ms() / 1000;
    double done = (double)step->step, all = (double)report->facts.batches;
    int64_t left;

    if (report->began_s == 0)
        report->began_s = now - step->seconds;
    left = (int64_t)((now - report->began_s) / (double)report->step_count * (all - done));
    fprintf(stderr,
            "\r\x1b[Kstep %" PRId64 " of %" PRId64 "  %.1f images/sec  loss %.3f  %" PRId64
            ":%02" PRId64 " left",
            step->step, report->facts.batches, step->rate, step->loss, left / 60, left % 60);
    fflush(stderr);
    report->has_progress = true;
}

void report_step(struct report *report, const struct report_step *step)
{
    static const size_t least_room = 1024;

    timing_add(&report->timing, step->seconds);
    if (report->step_count == report->step_room) {
        report->step_room = report->step_room ? 2 * report->step_room : least_room;
        report->steps = xreallocarray(report->steps, report->step_room, sizeof(*report->steps));
    }
    report->steps[report->step_count++] = *step;
    if (step->is_shown)
        put_row(report, step);
    if (report->options.shows_progress)
        show_progress(report, step);
}

static void put_total(struct report *report, double images_per_second)
{
    auto_str text = {0};
    char dashes[65];

    memset(dashes, '-', sizeof(dashes) - 1);
    dashes[sizeof(dashes) - 1] = '\0';
    str_addf(&text, "%s\ntotal images/sec: %.2f\n%s\n", dashes, images_per_second, dashes);
    put(report, &text);
}

void report_total(struct report *report, double wall_s, bool is_shown)
{
    double images = (double)report->facts.ranks * (double)report->facts.device_batch *
                    (double)report->step_count;

    report->wall_s = wall_s;
    report->total = wall_s > 0 ? images / wall_s : 0;
    if (is_shown)
        put_total(report, report->total);
    else
        clear_progress(report);
}

void report_eval(struct report *report,
                 int64_t examples,
                 double seconds,
                 double top1,
                 double top5,
                 int64_t step,
                 bool shows_total)
{
    auto_str line = {0};

    str_addf(&line, "Accuracy @ 1 = %.4f Accuracy @ 5 = %.4f [%" PRId64 " examples]", top1,
             top5, examples);
    put_line(report, str_text(&line));
    if (shows_total)
        put_total(report, (double)examples / seconds);
    report_number(report, "eval.top_1_accuracy", top1);
    report_number(report, "eval.top_5_accuracy", top5);
    report_number(report, "eval.examples", (double)examples);
    report_number(report, "eval.seconds", seconds);
    report_number(report, "eval.step", (double)step);
}

static struct report_entry *entry_of(struct report *report, const char *path)
{
    for (size_t i = 0; i < report->entry_count; i++)
        if (str_equal(report->entries[i].path, path))
            return &report->entries[i];
    if (report->entry_count == report->entry_room) {
        report->entry_room = report->entry_room ? 2 * report->entry_room : 32;
        report->entries =
            xreallocarray(report->entries, report->entry_room, sizeof(*report->entries));
    }
    report->entries[report->entry_count] = (struct report_entry){.path = xstrdup(path)};
    return &report->entries[report->entry_count++];
}

void report_number(struct report *report, const char *path, double value)
{
    struct report_entry *entry = entry_of(report, path);

    free(entry->text);
    entry->text = NULL;
    entry->number = value;
}

void report_text(struct report *report, const char *path, const char *value)
{
    struct report_entry *entry = entry_of(report, path);

    free(entry->text);
    entry->text = xstrdup(value);
}

void report_profile(struct report *report, const struct profile *profile, int steps)
{
    const struct profile_row *rows = profile_kinds(profile, &report->op_count);

    report->op_steps = steps > 0 ? steps : 1;
    report->ops = xcalloc((size_t)report->op_count + 1, sizeof(*report->ops));
    for (int i = 0; i < report->op_count; i++) {
        report->ops[i] = rows[i];
        report->ops[i].name = xstrdup(rows[i].name);
    }
}

int report_end(struct report *report, const struct err *why, struct err *e)
{
    auto_str text = {0};

    clear_progress(report);
    if (!report->options.json_file)
        return 0;
    report_format_json(report, why, &text);
    if (fs_write_durably(report->options.json_file, str_text(&text), text.len, 0666, e) < 0)
        return err_wrap(e, "could not write the report");
    return 0;
}
