/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-wait.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/job-find.h"
#include "cli/job-stream.h"
#include "cli/job-yard.h"

#include <unistd.h>

static void say_error(struct call *call, const json_t *error)
{
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));
    const json_t *detail;
    size_t i;

    call_say(call, "%s: %s", code ? code : "Error", message ? message : "");
    json_array_foreach(json_object_get(error, "details"), i, detail)
    {
        const char *name = json_string_value(json_object_get(detail, "name"));
        const char *value = json_string_value(json_object_get(detail, "value"));

        call_say(call, "  %s: %s", name ? name : "", value ? value : "");
    }
}

void job_say_errors(struct call *call, const json_t *job)
{
    const json_t *info = json_object_get(json_object_get(job, "properties"), "executionInfo");
    const json_t *error;
    size_t i;

    json_array_foreach(json_object_get(info, "errors"), i, error) say_error(call, error);
}

static void say_state(struct call *call, const json_t *job)
{
    const json_t *info = json_object_get(json_object_get(job, "properties"), "executionInfo");
    const char *start = json_string_value(json_object_get(info, "startTime"));
    const char *end = json_string_value(json_object_get(info, "endTime"));
    const char *state = job_state(job);
    char span[32];

    if (str_equal(state, "queued"))
        call_say(call, "Job submitted at %s", job_property(job, "creationTime"));
    else if (str_equal(state, "running"))
        call_say(call, "Job started execution at %s", start ? start : "?");
    else if (job_has_ended(job))
        call_say(call, "Job %s at %s; duration was %s", state, end ? end : "?",
                 job_format_span(job_run_seconds(job), span));
    else
        call_say(call, "Job is %s", state);
}

/* How it ended, for people and for the exit status. */
static void tell_end(struct call *call, const json_t *job)
{
    call->exit_status = job_exit_status(job);
    if (call->exit_status)
        job_say_errors(call, job);
}

int job_wait(struct call *call, const char *path, long interval_s, struct err *e)
{
    auto_free char *last = xstrdup("");

    for (;;) {
        auto_json json_t *job = NULL;

        if (job_yard_get(call, path, &job, e) < 0)
            return -1;
        if (!str_equal(last, job_state(job))) {
            free(last);
            last = xstrdup(job_state(job));
            say_state(call, job);
        }
        if (job_has_ended(job)) {
            tell_end(call, job);
            return 0;
        }
        sleep((unsigned)interval_s);
    }
}

int job_wait_end(const struct call *call, const char *job_id, json_t **ret_job, struct err *e)
{
    auto_free char *path = xasprintf("%s?api-version=%s", job_id, ARM_BATCHAI);

    for (;;) {
        auto_json json_t *job = NULL;

        if (job_yard_get(call, path, &job, e) < 0)
            return -1;
        if (job_has_ended(job)) {
            *ret_job = json_incref(job);
            return 0;
        }
        job_yard_pause();
    }
}
