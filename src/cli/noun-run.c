/* yard run: this folder, this command, on nodes of the yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/crypt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/arm.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/runs-job.h"
#include "cli/runs-place.h"
#include "cli/runs-snapshot.h"
#include "cli/runs-watch.h"
#include "cli/storage-account.h"

#include <limits.h>

static const struct option_row command = {
    .names = "COMMAND",
    .help = "What to run, after --: ./train --epochs 3",
    .kind = OPTION_LIST,
    .required = true,
};
static const struct option_row nodes = {
    .names = "--nodes",
    .help = "On how many nodes.",
    .default_text = "1",
};
static const struct option_row procs = {
    .names = "--procs",
    .help = "How many processes in all; from two on, MPI starts them. As many as nodes when "
            "not given.",
};
static const struct option_row name = {
    .names = "--name -n",
    .help = "Name of the job; made from the command when not given.",
};
static const struct option_row image = {
    .names = "--image -i",
    .help = "Container image to run in; the nodes' own system when not given.",
};
static const struct option_row size = {
    .names = "--size",
    .help = "Size of the machines: host (this machine) when not given, or for example "
            "Standard_NC6.",
};
static const struct option_row env = {
    .names = "--env",
    .help = "Environment variable of the job: NAME=VALUE. May be given several times.",
    .repeats = true,
};
static const struct option_row out = {
    .names = "--out",
    .help = "Folder here that gets what the job has written to $AZ_BATCHAI_OUTPUT_OUT.",
};
static const struct option_row cluster = {
    .names = "--cluster -c",
    .help = "Cluster to run on; one for the size of machine when not given.",
};
static const struct option_row detach = {
    .names = "--detach",
    .help = "Submit it and do not wait.",
    .kind = OPTION_FLAG,
};
static const struct option_row resource_group = {
    .names = "--resource-group -g",
    .help = "Name of the resource group.",
    .default_key = "group",
    .default_text = "yard",
};
static const struct option_row workspace = {
    .names = "--workspace -w",
    .help = "Name of the workspace.",
    .default_key = "workspace",
    .default_text = "yard",
};
static const struct option_row experiment = {
    .names = "--experiment -e",
    .help = "Name of the experiment.",
    .default_key = "experiment",
    .default_text = "run",
};
static const struct option_row location = {
    .names = "--location -l",
    .help = "Location of what is made.",
    .default_key = "location",
    .default_text = "local",
};

/* Everything that was typed, looked at before anything is asked of the yard. */
static int read_wishes(struct call *call, struct runs_job *job, struct err *e)
{
    const char *const *words = args_list(call->args, "COMMAND", &job->word_count);

    job->words = words;
    job->nodes = 1;
    if (batchai_number(call, "nodes", 1, 10000, &job->nodes, e) < 0)
        return -1;
    job->procs = job->nodes;
    if (batchai_number(call, "procs", 1, 1000000, &job->procs, e) < 0)
        return -1;
    if (job->procs < job->nodes)
        return args_fail(e, "--procs", "--procs: %ld processes do not fill %ld nodes",
                         job->procs, job->nodes);
    job->image = args_get(call->args, "image");
    job->env = args_list(call->args, "env", &job->env_count);
    if (args_has(call->args, "name"))
        job->name = xstrdup(args_get(call->args, "name"));
    else
        job->name = runs_job_name(words[0]);
    return runs_job_check(job, e);
}

static int submit(struct call *call,
                  const struct runs_job *job,
                  const struct runs_place *place,
                  json_t **ret_job,
                  struct err *e)
{
    auto_json json_t *body = runs_job_body(job, place);
    auto_str path = {0};
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    str_addf(&path, "%s/", place->jobs);
    text_percent(&path, job->name);
    str_add(&path, "?api-version=" ARM_BATCHAI);
    return rest_long(rest, "PUT", str_text(&path), body, true, ret_job, e);
}

static int run(struct call *call, json_t **ret_result, struct err *e)
{
    auto_runs_job job = {0};
    auto_runs_place place = {0};
    auto_json json_t *submitted = NULL;
    struct snapshot snapshot = {.folder = ".", .share = RUNS_SHARE};

    if (read_wishes(call, &job, e) < 0 || runs_place_make(call, job.nodes, &place, e) < 0)
        return -1;
    snapshot.account = place.account;
    snapshot.path = job.folder;
    if (snapshot_take(call, &snapshot, e) < 0 || submit(call, &job, &place, &submitted, e) < 0)
        return -1;
    if (!args_flag(call->args, "detach"))
        return runs_watch(call, submitted, place.account, args_get(call->args, "out"), e);
    if (!call_wants_text(call))
        *ret_result = take_ptr(&submitted);
    else
        call_say(call, "%s is submitted. Follow it with: yard logs -f %s", job.name, job.name);
    return 0;
}

const struct command run_commands[] = {
    {
        .path = "run",
        .summary = "Run a command with a copy of this folder on nodes of the yard.",
        .options = OPTIONS(&command,
                           &nodes,
                           &procs,
                           &name,
                           &image,
                           &size,
                           &env,
                           &out,
                           &cluster,
                           &detach,
                           &resource_group,
                           &workspace,
                           &experiment,
                           &location),
        .examples = {{"One process.", "yard run -- ./train --epochs 3"},
                     {"Four MPI processes on two nodes.",
                      "yard run --nodes 2 --procs 4 -- ./train --epochs 3"},
                     {"In a container, with variables; the results come here.",
                      "yard run --image python:3.11 --env SEED=1 --env LR=0.1 --out results -- "
                      "python train.py"},
                     {"Submit, come back later.", "yard run --detach -n night -- ./train"}},
        .run = run,
        .shape = &batchai_job_shape,
        .table = batchai_job_table,
    },
    {0},
};
