/* The yard at a glance: top, jobs, why.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/job-find.h"
#include "cli/job-table.h"
#include "cli/job-yard.h"
#include "cli/rest.h"
#include "cli/term.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    MOST_JOBS = 100000,
    MIB = 1024 * 1024,
};

static const struct option_row interval = {
    .names = "--interval",
    .help = "Seconds between two pictures on a terminal.",
    .default_text = "2",
};
static const struct option_row once = {
    .names = "--once",
    .help = "One picture, also on a terminal.",
    .kind = OPTION_FLAG,
};
static const struct option_row state = {
    .names = "--state",
    .help = "Only jobs in this state; active is what has not ended.",
    .choices = "queued running terminating succeeded failed active",
};
static const struct option_row most = {
    .names = "--most",
    .help = "At most so many.",
    .default_text = "50",
};

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text ? text : "";
}

/* How long ago a time of the wire was. */
static const char *since(const char *time, char buf[32])
{
    int64_t then_ms;

    if (clock_parse_iso(time, &then_ms, NULL) < 0)
        return "-";
    return job_format_span((clock_wall_ms() - then_ms) / 1000, buf);
}

static void look_of_stdout(struct job_table_look *look)
{
    struct winsize size = {0};

    *look = (struct job_table_look){
        .colour = term_has_colour(stdout),
        .clean = isatty(STDOUT_FILENO),
    };
    if (look->clean && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        look->width = size.ws_col;
}

/* --- jobs --- */

static int read_jobs(struct call *call, long count, json_t **ret_jobs, struct err *e)
{
    const char *wanted = args_get(call->args, "state");
    auto_free char *path =
        xasprintf("/yard/jobs?maxresults=%ld%s%s", count < 1000 ? count : 1000,
                  wanted ? "&state=" : "", wanted ? wanted : "");
    auto_json json_t *page = NULL, *jobs = NULL;
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    if (count > 1000)
        return rest_list(rest, path, ret_jobs, e);
    if (rest_call(rest, "GET", path, NULL, &page, e) < 0)
        return -1;
    jobs = json_incref(json_object_get(page, "value"));
    *ret_jobs = jobs ? take_ptr(&jobs) : json_array();
    return 0;
}

static void print_jobs(const json_t *jobs)
{
    static const char *const titles[] = {"NAME",  "EXPERIMENT", "CLUSTER",   "TOOL", "NODES",
                                         "STATE", "RAN",        "SUBMITTED", NULL};
    struct job_table_look look;
    auto_job_table table;
    auto_str out = {0};
    const json_t *job;
    size_t i;

    job_table_init(&table, titles);
    json_array_foreach(jobs, i, job)
    {
        const json_t *properties = json_object_get(job, "properties");
        const char *cluster_id = text_of(json_object_get(properties, "cluster"), "id");
        auto_free char *experiment = arm_id_part(job_id(job), "experiments");
        auto_free char *cluster = arm_id_part(cluster_id, "clusters");
        char ran[32], ago[32];

        job_table_add(&table, "%s", job_name(job));
        job_table_add(&table, "%s", experiment ? experiment : "");
        job_table_add(&table, "%s", cluster ? cluster : "");
        job_table_add(&table, "%s", job_property(job, "toolType"));
        job_table_add(&table, "%lld",
                      (long long)json_integer_value(json_object_get(properties, "nodeCount")));
        job_table_add(&table, "%s", job_state(job));
        job_table_add(&table, "%s", job_format_span(job_run_seconds(job), ran));
        job_table_add(&table, "%s ago", since(job_property(job, "creationTime"), ago));
    }
    look_of_stdout(&look);
    job_table_format(&out, &table, &look);
    fwrite(str_text(&out), 1, out.len, stdout);
}

static int jobs(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *found = NULL;
    long count = 50;

    if (batchai_number(call, "most", 1, MOST_JOBS, &count, e) < 0 ||
        read_jobs(call, count, &found, e) < 0)
        return -1;
    if (!call_wants_text(call))
        *ret_result = take_ptr(&found);
    else if (json_array_size(found))
        print_jobs(found);
    else
        call_say(call, "There are no jobs.");
    return 0;
}

/* --- top --- */

static void add_machine(struct str *out, const json_t *top)
{
    const json_t *machine = json_object_get(top, "machine");
    long long gpus = json_integer_value(json_object_get(machine, "gpus"));
    const json_t *queued = json_object_get(top, "queuedCount");

    if (!queued)
        queued = json_integer((json_int_t)json_array_size(json_object_get(top, "queued")));
    else
        json_incref((json_t *)(void *)queued);
    str_addf(out, "%zu nodes, %zu jobs running, %lld waiting",
             json_array_size(json_object_get(top, "nodes")),
             json_array_size(json_object_get(top, "running")),
             (long long)json_integer_value(queued));
    json_decref((json_t *)(void *)queued);
    if (machine) {
        str_addf(out, "; this machine has %lld cores, %lld MiB",
                 (long long)json_integer_value(json_object_get(machine, "cores")),
                 (long long)json_integer_value(json_object_get(machine, "memoryMib")));
        if (gpus)
            str_addf(out, ", %lld GPUs", gpus);
    }
    str_add(out, "\n\n");
}

static void add_nodes(struct str *out, const json_t *nodes, const struct job_table_look *look)
{
    static const char *const titles[] = {"NODE",   "CLUSTER", "STATE", "CORES",
                                         "MEMORY", "SINCE",   "JOB",   NULL};
    auto_job_table table;
    const json_t *node;
    size_t i;

    job_table_init(&table, titles);
    json_array_foreach(nodes, i, node)
    {
        const json_t *cores = json_object_get(node, "coresUsed");
        const json_t *memory = json_object_get(node, "memoryBytes");
        const char *job = text_of(node, "job");
        char ago[32];

        job_table_add(&table, "%s", text_of(node, "name"));
        job_table_add(&table, "%s", text_of(node, "cluster"));
        job_table_add(&table, "%s", text_of(node, "state"));
        if (cores)
            job_table_add(&table, "%.1f", json_number_value(cores));
        else
            job_table_add(&table, "-");
        if (memory)
            job_table_add(&table, "%lld MiB", (long long)json_integer_value(memory) / MIB);
        else
            job_table_add(&table, "-");
        job_table_add(&table, "%s", since(text_of(node, "since"), ago));
        job_table_add(&table, "%s", *job ? job : text_of(node, "error"));
    }
    if (table.count)
        job_table_format(out, &table, look);
}

static void add_jobs(struct str *out, const json_t *rows, const struct job_table_look *look)
{
    static const char *const titles[] = {"JOB", "EXPERIMENT", "NODES", "STATE", "SINCE", NULL};
    auto_job_table table;
    const json_t *row;
    size_t i;

    job_table_init(&table, titles);
    json_array_foreach(rows, i, row)
    {
        char ago[32];

        job_table_add(&table, "%s", text_of(row, "name"));
        job_table_add(&table, "%s", text_of(row, "experiment"));
        job_table_add(&table, "%lld",
                      (long long)json_integer_value(json_object_get(row, "nodeCount")));
        job_table_add(&table, "%s", text_of(row, "state"));
        job_table_add(&table, "%s", since(text_of(row, "since"), ago));
    }
    if (!table.count)
        return;
    str_add_char(out, '\n');
    job_table_format(out, &table, look);
}

static void print_top(const json_t *top, bool is_again)
{
    struct job_table_look look;
    auto_str out = {0};

    look_of_stdout(&look);
    if (is_again)
        str_add(&out, "\x1b[H\x1b[2J"); /* from the upper left corner on, an empty screen */
    add_machine(&out, top);
    add_nodes(&out, json_object_get(top, "nodes"), &look);
    add_jobs(&out, json_object_get(top, "running"), &look);
    add_jobs(&out, json_object_get(top, "queued"), &look);
    fwrite(str_text(&out), 1, out.len, stdout);
    fflush(stdout);
}

/* A table shows one kind of thing: the nodes. */
static bool wants_rows(const struct call *call)
{
    const char *format = args_get(call->args, "output");

    return format && str_equal(format, "table") && !args_has(call->args, "query");
}

static int top(struct call *call, json_t **ret_result, struct err *e)
{
    bool goes_on =
        isatty(STDOUT_FILENO) && call_wants_text(call) && !args_flag(call->args, "once");
    long seconds = 2;

    if (batchai_number(call, "interval", 1, 3600, &seconds, e) < 0)
        return -1;
    for (;;) {
        auto_json json_t *now = NULL;
        struct rest *rest;

        /* Who watches is not sent away by a restart. */
        if (goes_on ? job_yard_get(call, "/yard/top", &now, e) < 0
                    : call_rest(call, &rest, e) < 0 ||
                          rest_call(rest, "GET", "/yard/top", NULL, &now, e) < 0)
            return -1;
        if (!call_wants_text(call)) {
            *ret_result = json_incref(wants_rows(call) ? json_object_get(now, "nodes") : now);
            return 0;
        }
        print_top(now, goes_on);
        if (!goes_on || ferror(stdout))
            return 0;
        sleep((unsigned)seconds);
    }
}

/* --- why --- */

static int why(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *job = NULL, *answer = NULL;
    auto_free char *path = NULL;
    auto_str line = {0};
    struct rest *rest;

    if (job_find(call, args_get(call->args, "JOB"), &job, e) < 0 ||
        call_rest(call, &rest, e) < 0)
        return -1;
    path = xasprintf("%s/why?api-version=%s", job_id(job), ARM_BATCHAI);
    if (rest_call(rest, "GET", path, NULL, &answer, e) < 0)
        return -1;
    if (!call_wants_text(call)) {
        *ret_result = take_ptr(&answer);
        return 0;
    }
    str_addf(&line, "%s: %s\n", job_name(job), text_of(answer, "why"));
    term_write(stdout, str_text(&line), line.len);
    return 0;
}

const struct command top_commands[] = {
    {
        .path = "jobs",
        .summary = "List all jobs, newest first.",
        .options = OPTIONS(&state, &most),
        .examples = {{"The newest ones.", "yard jobs"},
                     {"What runs or waits.", "yard jobs --state active"},
                     {"Names of the ones that failed.",
                      "yard jobs --state failed --query [].name -o tsv"}},
        .run = jobs,
        .shape = &batchai_job_shape,
        .table = batchai_job_table,
    },
    {
        .path = "top",
        .summary = "Watch the nodes, what they do, and who waits for them.",
        .options = OPTIONS(&interval, &once),
        .examples = {{"Watch.", "yard top"}, {"Once, for programs.", "yard top -o json"}},
        .run = top,
        .table = "{Node: name, Cluster: cluster, State: state, Cores: coresUsed, Memory: "
                 "memoryBytes, Job: job}",
    },
    {
        .path = "why",
        .summary = "Say what a job waits for, or how it ended.",
        .options = OPTIONS(&job_positional),
        .examples = {{"Why does it not begin?", "yard why bench"}},
        .run = why,
    },
    {0},
};
