/* What a job writes, for people: yard logs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/job-find.h"
#include "cli/job-stream.h"

#include <stdio.h>

static const struct option_row follow = {
    .names = "--follow -f",
    .help = "Go on showing it as it is written, until the job ends.",
    .kind = OPTION_FLAG,
};
static const struct option_row file = {
    .names = "--file",
    .help = "Name of the file; the job's standard output when not given.",
};
static const struct option_row directory = {
    .names = "--output-directory-id -d",
    .help = "Id of one of its output directories; stdouterr is where the logs are.",
    .default_text = "stdouterr",
};
static const struct option_row path = {
    .names = "--path -p",
    .help = "Folder below the output directory.",
    .default_text = ".",
};

/* Toolkits with several tasks have a file for each: the first one's is the most telling. */
static const char *usual_file(const json_t *job)
{
    const char *tool = job_property(job, "toolType");
    const json_t *torch =
        json_object_get(json_object_get(job, "properties"), "pyTorchSettings");
    const char *backend = json_string_value(json_object_get(torch, "communicationBackend"));

    if (str_equal(tool, "tensorflow"))
        return "stdout-wk-0.txt";
    if (str_equal(tool, "caffe2") ||
        (str_equal(tool, "pytorch") && !(backend && str_equal_nocase(backend, "mpi"))))
        return "stdout-0.txt";
    return "stdout.txt";
}

static int logs(struct call *call, json_t **ret_result, struct err *e)
{
    auto_json json_t *job = NULL;
    auto_free char *line = NULL;
    struct job_stream stream = {
        .call = call,
        .file = args_get(call->args, "file"),
        .directory = args_get(call->args, "output-directory-id"),
        .path = args_get(call->args, "path"),
        .follows = args_flag(call->args, "follow"),
        .out = stdout,
    };

    (void)ret_result;
    if (job_find(call, args_get(call->args, "JOB"), &job, e) < 0)
        return -1;
    stream.job_id = job_id(job);
    if (!stream.file)
        stream.file = usual_file(job);
    line = xasprintf("The job goes on. Come back with: yard logs -f %s --file %s",
                     args_get(call->args, "JOB"), stream.file);
    if (stream.follows && !job_has_ended(job))
        job_leave_on_interrupt(line);
    return job_stream(&stream, e);
}

const struct command logs_commands[] = {
    {
        .path = "logs",
        .summary = "Show what a job has written, or writes.",
        .options = OPTIONS(&job_positional, &follow, &file, &directory, &path),
        .examples = {{"What it has written so far.", "yard logs bench"},
                     {"As it is written.", "yard logs -f bench"},
                     {"Its errors, of a job in one experiment.",
                      "yard logs -f horovod/bench --file stderr.txt"}},
        .run = logs,
    },
    {0},
};
