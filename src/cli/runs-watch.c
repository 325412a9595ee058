/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs-watch.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/job-find.h"
#include "cli/job-stream.h"
#include "cli/job-wait.h"
#include "cli/job-yard.h"
#include "cli/runs-place.h"
#include "cli/storage-account.h"
#include "cli/storage-move.h"
#include "cli/transfer-options.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    QUIET_S = 3, /* so long nobody wonders why nothing happens */
};

struct watcher {
    struct job_stream stream;
    pthread_t thread;
    struct err e;
    int rc;
};

static void *watch(void *context)
{
    struct watcher *watcher = context;

    watcher->rc = job_stream(&watcher->stream, &watcher->e);
    return NULL;
}

static void start(struct watcher *watcher,
                  const struct call *call,
                  const json_t *job,
                  const char *file,
                  FILE *out)
{
    sigset_t all, old;

    *watcher = (struct watcher){
        .stream =
            {
                .call = call,
                .job_id = job_id(job),
                .file = file,
                .follows = true,
                .out = out,
            },
    };
    /* Ctrl-C is taken by the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&watcher->thread, NULL, watch, watcher) != 0)
        abort(); /* as when there is no memory: not even one thread */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A job that does not begin: say why, once. */
static void say_why(struct call *call, const json_t *job)
{
    auto_free char *path = xasprintf("%s?api-version=%s", job_id(job), ARM_BATCHAI);
    auto_free char *why = xasprintf("%s/why?api-version=%s", job_id(job), ARM_BATCHAI);
    auto_json json_t *now = NULL, *answer = NULL;
    const char *line;

    if (job_yard_get(call, path, &now, NULL) < 0 || !str_equal(job_state(now), "queued") ||
        job_yard_get(call, why, &answer, NULL) < 0)
        return;
    line = json_string_value(json_object_get(answer, "why"));
    call_say(call, "%s waits: %s", job_name(job), line ? line : "it is queued");
}

/* Its thread has been joined. */
static void tell_failure(struct call *call, const struct watcher *watcher)
{
    /* A job that ended before it began has no such file. */
    if (watcher->rc < 0 && watcher->e.code != ERR_NOT_FOUND)
        call_say(call, "could not follow %s: %s", watcher->stream.file, watcher->e.msg);
}

static void watch_both(struct call *call, const json_t *job)
{
    struct watcher output, errors;
    struct timespec until;

    start(&output, call, job, "stdout.txt", stdout);
    start(&errors, call, job, "stderr.txt", stderr);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += QUIET_S;
    if (pthread_timedjoin_np(output.thread, NULL, &until) != 0) {
        say_why(call, job);
        pthread_join(output.thread, NULL);
    }
    pthread_join(errors.thread, NULL);
    tell_failure(call, &output);
    tell_failure(call, &errors);
}

/* The verdict of a job that failed, with a colon before it; "" when there is none. */
static char *verdict(struct call *call, const json_t *job)
{
    auto_free char *path = xasprintf("%s/why?api-version=%s", job_id(job), ARM_BATCHAI);
    auto_json json_t *answer = NULL;
    const char *why = NULL;

    if (!str_equal(job_state(job), "succeeded") && job_yard_get(call, path, &answer, NULL) == 0)
        why = json_string_value(json_object_get(answer, "why"));
    return why ? xasprintf(": %s", why) : xstrdup("");
}

static char *outputs_of(const json_t *job)
{
    return xasprintf("%s/outputs", job_property(job, "jobOutputDirectoryPathSegment"));
}

static void say_end(struct call *call, const json_t *job, const struct storage_account *account)
{
    auto_free char *outputs = outputs_of(job);
    auto_free char *why = verdict(call, job);
    const char *url = account->endpoints[STORAGE_FILE];
    char span[32];

    call_say(call, "%s %s after %s%s. Outputs: %s%s" RUNS_SHARE "/%s", job_name(job),
             job_state(job), job_format_span(job_run_seconds(job), span), why, url ? url : "",
             url && str_ends(url, "/") ? "" : "/", outputs);
}

static int fetch(struct call *call,
                 const json_t *job,
                 const struct storage_account *account,
                 const char *folder,
                 struct err *e)
{
    auto_free char *outputs = outputs_of(job);
    struct transfer_options options;
    const struct storage_batch batch = {
        .move =
            {
                .kind = SIDE_FILE,
                .account = account,
                .container = RUNS_SHARE,
                .path = outputs,
                .file = folder,
                .options = &options,
            },
    };

    transfer_options_init(&options);
    if (storage_download_all(call, &batch, e) < 0)
        return err_wrap(e, "fetching the outputs");
    return 0;
}

int runs_watch(struct call *call,
               const json_t *job,
               const struct storage_account *account,
               const char *out,
               struct err *e)
{
    auto_free char *line =
        xasprintf("%s goes on. Come back with: yard logs -f %s", job_name(job), job_name(job));
    auto_json json_t *ended = NULL;

    job_leave_on_interrupt(line);
    watch_both(call, job);
    if (job_wait_end(call, job_id(job), &ended, e) < 0)
        return -1;
    job_leave_on_interrupt(NULL);
    if (out && fetch(call, ended, account, out, e) < 0)
        return -1;
    say_end(call, ended, account);
    call->exit_status = job_exit_status(ended);
    return 0;
}
