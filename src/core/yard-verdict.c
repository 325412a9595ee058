/* What the end of an attempt means for its job: the state, the wire's code and message, and one
 * line for a person.  The rules for ends that cross a stop are those in the head of yard.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_LINE_BYTES = 240, /* of what the task wrote, in a verdict */
};

static const char *const signal_names[] = {
    [1] = "SIGHUP",   [2] = "SIGINT",   [3] = "SIGQUIT",  [4] = "SIGILL",   [5] = "SIGTRAP",
    [6] = "SIGABRT",  [7] = "SIGBUS",   [8] = "SIGFPE",   [9] = "SIGKILL",  [10] = "SIGUSR1",
    [11] = "SIGSEGV", [12] = "SIGUSR2", [13] = "SIGPIPE", [14] = "SIGALRM", [15] = "SIGTERM",
    [24] = "SIGXCPU", [25] = "SIGXFSZ", [31] = "SIGSYS",
};

/* --- texts --- */

/* Foreign text goes on terminals and into JSON: one line of whole characters.  Error messages
 * have the same rule, and err_set keeps it. */
static void add_clean(struct str *out, const char *text, size_t len)
{
    struct err e = {0};
    auto_free char *part = xstrndup(text, len < MOST_LINE_BYTES ? len : MOST_LINE_BYTES);

    err_set(&e, ERR_INTERNAL, "%s", part);
    str_add(out, e.msg);
    if (len > MOST_LINE_BYTES)
        str_add(out, "...");
}

/* The last line with something on it; a ruler, as mpirun draws one, is nothing. */
static void add_last_line(struct str *out, const char *tail)
{
    const char *end = tail + strlen(tail), *begin;

    while (end > tail && strchr(" \t\r\n-=", end[-1]))
        end--;
    for (begin = end; begin > tail && begin[-1] != '\n' && begin[-1] != '\r';)
        begin--;
    if (begin == end)
        return;
    str_add(out, "; last line: ");
    add_clean(out, begin, (size_t)(end - begin));
}

static void add_place(struct str *out, const struct attempt_result *r)
{
    if (r->rank >= 0)
        str_addf(out, "rank %d ", r->rank);
    if (r->node[0])
        str_addf(out, "on node %s ", r->node);
    if (r->rank < 0 && !r->node[0])
        str_add(out, "its command ");
}

static void add_signal(struct str *out, int signal)
{
    if (signal > 0 && (size_t)signal < ARRAY_SIZE(signal_names) && signal_names[signal])
        str_add(out, signal_names[signal]);
    else
        str_addf(out, "signal %d", signal);
}

static void add_how(struct str *out, const struct attempt_result *r)
{
    if (r->out_of_memory)
        str_add(out, "ran out of memory");
    else if (r->signal != 0)
        str_add(out, "was killed by ");
    else
        str_addf(out, "failed with exit code %d", r->exit_code);
    if (r->signal != 0 && r->out_of_memory)
        str_add(out, " and was killed by ");
    if (r->signal != 0)
        add_signal(out, r->signal);
}

static void add_message(struct str *out, const struct attempt_result *r)
{
    str_add(out, ": ");
    add_clean(out, r->message, strlen(r->message));
    if (r->info[0]) {
        str_add(out, ": ");
        add_clean(out, r->info, strlen(r->info));
    }
}

static void keep(char *to, size_t size, const char *text)
{
    struct err e = {0};

    /* A character that is cut becomes '?'. */
    err_set(&e, ERR_INTERNAL, "%.*s", (int)size - 1, text);
    snprintf(to, size, "%s", e.msg);
}

/* --- outcomes --- */

static void fail(struct outcome *o, int exit_code, const char *code, const char *message)
{
    o->event = JOB_EV_FAIL;
    o->exit_code = exit_code;
    o->code = code;
    keep(o->message, sizeof(o->message), message);
}

/* As a shell has it when a signal ended the command. */
static int exit_code_of(const struct attempt_result *r)
{
    return r->exit_code < 0 && r->signal > 0 ? 128 + r->signal : r->exit_code;
}

static void judge_unknown(const struct attempt_result *r, struct outcome *o, struct str *line)
{
    fail(o, -1, "JobStateUnknown", "Nobody knows how the job ended");
    str_add(line, "nobody knows how it ended: the supervisor of ");
    add_place(line, r);
    str_add(line, "died before it could say");
    add_last_line(line, r->tail);
}

static void judge_exit(const struct attempt_result *r, struct outcome *o, struct str *line)
{
    int exit_code = exit_code_of(r);

    if (exit_code == 0 && r->signal == 0) {
        o->event = JOB_EV_SUCCEED;
        o->exit_code = 0;
    } else if (exit_code <= 0) {
        judge_unknown(r, o, line); /* an exit without a code: never an invented 0 */
    } else {
        fail(o, exit_code, "JobFailed", "Job failed with non-zero exit code");
        add_place(line, r);
        add_how(line, r);
        add_last_line(line, r->tail);
    }
}

static void
judge_preparation(const struct attempt_result *r, struct outcome *o, struct str *line)
{
    int exit_code = exit_code_of(r);

    fail(o, exit_code > 0 ? exit_code : -1, "JobPreparationFailed",
         "Job preparation task failed with non-zero exit code");
    str_add(line, "preparation ");
    if (r->node[0])
        str_addf(line, "on node %s ", r->node);
    add_how(line, r);
    add_last_line(line, r->tail);
}

static void judge_setup(const struct attempt_result *r, struct outcome *o, struct str *line)
{
    fail(o, -1, r->code[0] ? r->code : "JobSetupFailed",
         r->message[0] ? r->message : "The job could not be set up");
    keep(o->info, sizeof(o->info), r->info);
    str_add(line, "could not be set up");
    if (r->node[0])
        str_addf(line, " on node %s", r->node);
    add_message(line, r);
    add_last_line(line, r->tail);
}

static void judge_loss(const struct yard_job *job,
                       const struct yard_attempt *attempt,
                       struct outcome *o,
                       struct str *line)
{
    const struct attempt_result *r = &attempt->result;
    int losses = job->losses + 1;

    o->is_loss = true;
    o->exit_code = -1;
    o->event = JOB_EV_REQUEUE;
    str_addf(line, "attempt %d: ", attempt->number);
    str_addf(line, "%s %s was lost", r->node[0] ? "node" : "a", r->node[0] ? r->node : "node");
    if (losses < job->most_attempts) {
        str_add(line, "; queued again");
        return;
    }
    fail(o, -1, "NodeLost", "A node of the job was lost, and it may not be tried again");
    if (losses == 1)
        str_add(line, "; it may not be tried again");
    else
        str_addf(line, "; that was the last of %d tries", losses);
}

static void judge_own(const struct yard_job *job,
                      const struct yard_attempt *attempt,
                      struct outcome *o,
                      struct str *line)
{
    const struct attempt_result *r = &attempt->result;

    switch (r->end) {
    case ENDED_EXITED:
        judge_exit(r, o, line);
        return;
    case ENDED_PREPARATION:
        judge_preparation(r, o, line);
        return;
    case ENDED_SETUP:
        judge_setup(r, o, line);
        return;
    case ENDED_NODE_LOST:
        judge_loss(job, attempt, o, line);
        return;
    case ENDED_STOPPED: /* though nobody told it to */
    case ENDED_UNKNOWN:
        judge_unknown(r, o, line);
        return;
    }
}

static bool ended_by_itself(const struct attempt_result *r)
{
    return r->end == ENDED_EXITED || r->end == ENDED_PREPARATION || r->end == ENDED_SETUP;
}

static void add_own_end(struct str *line, const struct attempt_result *r)
{
    if (r->end == ENDED_EXITED && r->exit_code >= 0)
        str_addf(line, "; it had just ended by itself with exit code %d", r->exit_code);
}

/* Somebody's word: the cause, whatever the attempt did. */
static void judge_word(const struct yard_job *job,
                       enum stop_reason reason,
                       const char *when,
                       struct outcome *o,
                       struct str *line)
{
    if (reason == STOP_DELETED && !job->is_deleting) {
        fail(o, -1, "ClusterDeleted", "The cluster of the job was deleted");
        str_addf(line, "ended %s: its cluster was deleted", when);
    } else if (reason == STOP_SHRINK) {
        fail(o, -1, "JobTerminated", "The job was ended because its cluster was made smaller");
        str_addf(line, "ended %s: its cluster was made smaller", when);
    } else {
        fail(o, -1, "JobTerminated", "The specified job has been terminated by the user");
        str_addf(line,
                 job->is_deleting ? "ended %s: it is being deleted"
                                  : "terminated by the user %s",
                 when);
    }
}

static void judge_wall_clock(const struct yard_job *job,
                             const struct yard_attempt *attempt,
                             struct outcome *o,
                             struct str *line)
{
    fail(o, -1, "JobExceededMaxWallClockTime", "The job ran longer than its maxWallClockTime");
    str_add(line, "stopped at its wall-clock limit of ");
    mind_add_duration(line, job->wall_ms);
    add_last_line(line, attempt->result.tail);
}

static void judge(const struct yard_job *job,
                  const struct yard_attempt *attempt,
                  struct outcome *o,
                  struct str *line)
{
    const struct attempt_result *r = &attempt->result;

    switch (attempt->stop) {
    case STOP_USER:
    case STOP_SHRINK:
    case STOP_DELETED:
        judge_word(job, attempt->stop, "while it ran", o, line);
        add_own_end(line, r);
        return;
    case STOP_NODE_LOST:
        if (r->end == ENDED_EXITED && r->exit_code == 0)
            judge_own(job, attempt, o, line);
        else
            judge_loss(job, attempt, o, line);
        return;
    case STOP_WALL_CLOCK:
        if (ended_by_itself(r))
            judge_own(job, attempt, o, line);
        else
            judge_wall_clock(job, attempt, o, line);
        return;
    case STOP_REQUEUE:
        if (ended_by_itself(r)) {
            judge_own(job, attempt, o, line);
            return;
        }
        o->event = JOB_EV_REQUEUE;
        o->exit_code = -1;
        str_addf(line, "attempt %d was stopped: its nodes were wanted back; queued again",
                 attempt->number);
        return;
    case STOP_NONE:
        judge_own(job, attempt, o, line);
        return;
    }
}

void outcome_of_attempt(const struct yard_job *job,
                        const struct yard_attempt *attempt,
                        struct outcome *ret)
{
    auto_str line = {0};

    *ret = (struct outcome){.event = JOB_EV_FAIL, .exit_code = -1};
    judge(job, attempt, ret, &line);
    keep(ret->verdict, sizeof(ret->verdict), str_text(&line));
}

void outcome_of_queued(const struct yard_job *job, enum stop_reason reason, struct outcome *ret)
{
    auto_str line = {0};

    *ret = (struct outcome){.event = JOB_EV_FAIL, .exit_code = -1};
    judge_word(job, reason, "before it started", ret, &line);
    keep(ret->verdict, sizeof(ret->verdict), str_text(&line));
}

void outcome_of_missing(struct outcome *ret)
{
    *ret = (struct outcome){.event = JOB_EV_FAIL, .exit_code = -1};
    fail(ret, -1, "JobStateUnknown", "Nobody knows how the job ended");
    keep(ret->verdict, sizeof(ret->verdict), "nobody knows how it ended: its attempt is lost");
}
