/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-find.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/arm.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"
#include "cli/rest.h"
#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum {
    NO_EXIT_CODE = 255, /* az exits with -1 */
    MOST_PAGES = 1000,
};

const struct option_row job_positional = {
    .names = "JOB",
    .help = "Name of the job (the newest of that name), experiment/name, or its id.",
    .required = true,
};

const char *job_id(const json_t *job)
{
    const char *id = json_string_value(json_object_get(job, "id"));

    return id ? id : "";
}

const char *job_name(const json_t *job)
{
    const char *name = json_string_value(json_object_get(job, "name"));

    return name ? name : "";
}

const char *job_property(const json_t *job, const char *name)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(job, "properties"), name));

    return text ? text : "";
}

const char *job_state(const json_t *job)
{
    return job_property(job, "executionState");
}

char *job_short_name(const char *id)
{
    auto_free char *experiment = arm_id_part(id, "experiments");
    auto_free char *name = arm_id_part(id, "jobs");

    return xasprintf("%s/%s", experiment ? experiment : "?", name ? name : "?");
}

/* --- finding --- */

struct wanted {
    const char *name, *experiment; /* experiment NULL = any */
    json_t *found;                 /* borrowed from the page */
    size_t others;
    struct suggest near;
};

static void look(struct wanted *wanted, json_t *job)
{
    auto_free char *experiment = arm_id_part(job_id(job), "experiments");

    suggest_see(&wanted->near, job_name(job));
    if (!str_equal_nocase(job_name(job), wanted->name) ||
        (wanted->experiment &&
         (!experiment || !str_equal_nocase(experiment, wanted->experiment))))
        return;
    if (wanted->found)
        wanted->others++;
    else
        wanted->found = job;
}

/* The jobs come newest first: the page that has one of the name has the newest. */
static int search(struct call *call, struct wanted *wanted, json_t **ret_job, struct err *e)
{
    auto_free char *next = xstrdup("/yard/jobs?maxresults=1000");
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    for (int pages = 0; next && pages < MOST_PAGES; pages++) {
        auto_json json_t *page = NULL;
        const char *link;
        json_t *job;
        size_t i;

        if (rest_call(rest, "GET", next, NULL, &page, e) < 0)
            return -1;
        json_array_foreach(json_object_get(page, "value"), i, job) look(wanted, job);
        if (wanted->found) {
            *ret_job = json_incref(wanted->found);
            return 0;
        }
        link = json_string_value(json_object_get(page, "nextLink"));
        link = link ? strstr(link, "/yard/jobs") : NULL;
        free(next);
        next = link ? xstrdup(link) : NULL;
    }
    return err_set(e, ERR_NOT_FOUND,
                   "there is no job \"%s%s%.100s\"%s%s%s see them with: yard jobs",
                   wanted->experiment ? wanted->experiment : "", wanted->experiment ? "/" : "",
                   wanted->name, wanted->near.best[0] ? "; did you mean " : ";",
                   wanted->near.best, wanted->near.best[0] ? "? Or" : "");
}

static int find_id(struct call *call, const char *id, json_t **ret_job, struct err *e)
{
    auto_free char *path = xasprintf("%s?api-version=%s", id, ARM_BATCHAI);
    auto_free char *name = arm_id_part(id, "jobs");
    struct rest *rest;

    if (!name || strpbrk(id, "?# "))
        return err_set(e, ERR_INVALID, "\"%.200s\" is not the id of a job", id);
    if (call_rest(call, &rest, e) < 0)
        return -1;
    return rest_call(rest, "GET", path, NULL, ret_job, e);
}

int job_find(struct call *call, const char *text, json_t **ret_job, struct err *e)
{
    const char *slash = strchr(text, '/');
    auto_free char *experiment = slash ? xstrndup(text, (size_t)(slash - text)) : NULL;
    struct wanted wanted = {.name = slash ? slash + 1 : text, .experiment = experiment};

    if (batchai_is_id(text))
        return find_id(call, text, ret_job, e);
    suggest_init(&wanted.near, wanted.name);
    if (search(call, &wanted, ret_job, e) < 0)
        return -1;
    if (wanted.others) {
        auto_free char *shown = job_short_name(job_id(*ret_job));

        call_say(call, "There are %zu jobs \"%s\"; this is the newest: %s", wanted.others + 1,
                 wanted.name, shown);
    }
    return 0;
}

/* --- how it ended --- */

bool job_has_ended(const json_t *job)
{
    const char *state = job_state(job);

    return str_equal(state, "succeeded") || str_equal(state, "failed");
}

static const json_t *info_of(const json_t *job)
{
    return json_object_get(json_object_get(job, "properties"), "executionInfo");
}

int job_exit_status(const json_t *job)
{
    const json_t *code = json_object_get(info_of(job), "exitCode");
    int low = (int)(json_integer_value(code) & 0xff);

    if (str_equal(job_state(job), "succeeded"))
        return 0;
    if (!json_is_integer(code))
        return NO_EXIT_CODE;
    return low ? low : 1; /* 256 is not 0 */
}

long long job_run_seconds(const json_t *job)
{
    const char *start = json_string_value(json_object_get(info_of(job), "startTime"));
    const char *end = json_string_value(json_object_get(info_of(job), "endTime"));
    int64_t start_ms, end_ms = clock_wall_ms();

    if (!start || clock_parse_iso(start, &start_ms, NULL) < 0)
        return -1;
    if (end && clock_parse_iso(end, &end_ms, NULL) < 0)
        return -1;
    return end_ms > start_ms ? (end_ms - start_ms + 500) / 1000 : 0;
}

const char *job_format_span(long long seconds, char buf[32])
{
    if (seconds < 0)
        snprintf(buf, 32, "-");
    else if (seconds < 60)
        snprintf(buf, 32, "%lld s", seconds);
    else if (seconds < 3600)
        snprintf(buf, 32, "%lld min %lld s", seconds / 60, seconds % 60);
    else if (seconds < 2 * 86400)
        snprintf(buf, 32, "%lld h %lld min", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(buf, 32, "%lld days", seconds / 86400);
    return buf;
}
