/* How an attempt ended.  SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/local/enter.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TAIL_BYTES = 2047, /* of attempt_result.tail */
    TAIL_LINES = 20,
};

void result_init(struct attempt_result *ret_result, enum attempt_end end)
{
    memset(ret_result, 0, sizeof(*ret_result));
    ret_result->end = end;
    ret_result->exit_code = -1;
    ret_result->rank = -1;
}

/* --- the first failing task --- */

static bool has_failed(const struct work *work, bool when_stopped)
{
    const struct task_report *report = &work->report;

    if (!work->has_ended)
        return false;
    if (report->end != TASK_ENDED)
        return true;
    if (report->record.was_stopped)
        return when_stopped && work->task->role != LAUNCH_SERVER;
    return report->record.code != 0 || report->record.signal;
}

static const struct work *find_first_failure(const struct attempt *attempt, bool when_stopped)
{
    const struct work *first = NULL;

    for (size_t i = 0; i < attempt->work_count; i++) {
        const struct work *work = &attempt->works[i];

        if (has_failed(work, when_stopped) &&
            (!first || work->report.record.ended_ms < first->report.record.ended_ms))
            first = work;
    }
    return first;
}

/* As a shell would say it. */
static int exit_code_of(const struct shim_record *record)
{
    return record->signal ? 128 + record->signal : record->code;
}

static bool was_run(const struct task_report *report)
{
    return report->end == TASK_ENDED && (report->record.code >= 0 || report->record.signal);
}

static void describe_failure(const struct attempt *attempt,
                             const struct work *work,
                             struct attempt_result *result)
{
    const struct shim_record *record = &work->report.record;

    result->rank = work->task->rank;
    snprintf(result->node, sizeof(result->node), "%s",
             attempt->input.nodes[work->part->index].name);
    snprintf(result->info, sizeof(result->info), "%s", work->report.error);
    if (was_run(&work->report)) {
        result->exit_code = exit_code_of(record);
        result->signal = record->signal;
        result->out_of_memory = record->out_of_memory;
        result->end = work->is_preparation ? ENDED_PREPARATION : ENDED_EXITED;
    } else if (work->report.end != TASK_LOST) {
        result->end = ENDED_SETUP;
        snprintf(result->code, sizeof(result->code), "JobLaunchFailed");
        snprintf(result->message, sizeof(result->message),
                 "The job's task %s could not be started", work->task->name);
    } else {
        result->end = ENDED_UNKNOWN;
        snprintf(result->message, sizeof(result->message),
                 "The supervisor of the task %s ended; how the task ended is not known",
                 work->task->name);
    }
}

static void note_times(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        const struct task_report *report = &attempt->works[i].report;
        int64_t started_ms =
            report->end == TASK_ENDED ? report->record.started_ms : report->started_ms;

        if (!attempt->works[i].has_ended)
            continue;
        if (started_ms > 0 && (!attempt->started_ms || started_ms < attempt->started_ms))
            attempt->started_ms = started_ms;
        if (report->end == TASK_ENDED && report->record.ended_ms > attempt->ended_ms)
            attempt->ended_ms = report->record.ended_ms;
    }
    if (!attempt->started_ms)
        attempt->started_ms = attempt->setup_ms;
    if (attempt->ended_ms < attempt->started_ms)
        attempt->ended_ms = clock_wall_ms();
}

/* An attempt that is to stop may have been done by then. */
static bool were_all_done(const struct attempt *attempt)
{
    bool is_any = false;

    for (size_t i = 0; i < attempt->work_count; i++) {
        const struct work *work = &attempt->works[i];

        if (work->is_preparation || work->task->role == LAUNCH_SERVER)
            continue;
        if (!work->has_ended || has_failed(work, true))
            return false;
        is_any = true;
    }
    return is_any;
}

static const struct work *find_cause(const struct attempt *attempt, bool is_last)
{
    const struct work *first = find_first_failure(attempt, false);

    /* Ended because it was told to, but not by us: that is no success either. */
    if (!attempt->is_unwanted)
        return first ? first : find_first_failure(attempt, true);
    /* The stop may have caused it in a way that its shim has not seen. */
    return first && is_last && first->found != SHIM_ENDED ? NULL : first;
}

void result_decide(struct attempt *attempt)
{
    bool is_last = attempt->phase == PHASE_ENDING; /* nothing is alive any more */
    const struct work *cause = find_cause(attempt, is_last);

    if (!attempt->has_result && attempt->is_unwanted && !cause && !is_last)
        return; /* when all have told their end */
    note_times(attempt);
    if (attempt->has_result)
        return;
    attempt->has_result = true;
    result_init(&attempt->result, ENDED_EXITED);
    if (cause) {
        describe_failure(attempt, cause, &attempt->result);
        attempt->failing = cause;
    } else if (attempt->is_unwanted && !were_all_done(attempt)) {
        attempt->result.end = ENDED_STOPPED;
    } else {
        attempt->result.exit_code = 0;
    }
}

/* --- the last lines --- */

struct reading {
    const struct attempt *attempt;
    const struct node *node;
    const char *path;
    struct str *out;
};

/* In the node; a job's log may be anything by now. */
static int read_tail(void *arg, struct err *e)
{
    struct reading *r = arg;
    auto_close int fd = -1;
    char buffer[TAIL_BYTES];
    struct stat st;
    off_t from;
    ssize_t n;

    if (path_open(r->attempt, r->node, r->path, O_RDONLY | O_NONBLOCK, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_NOT_FOUND, "there is no log \"%.200s\"", r->path);
    from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
    n = pread(fd, buffer, sizeof(buffer), from);
    if (n > 0)
        str_add_len(r->out, buffer, (size_t)n);
    return 0;
}

/* From the start of a line, at most so many of them. */
static const char *last_lines(const char *text, size_t len, bool is_cut)
{
    const char *end = text + len, *at = end;
    int lines = 0;

    while (at > text && lines <= TAIL_LINES) {
        at--;
        if (*at == '\n' && at + 1 < end && ++lines == TAIL_LINES)
            return at + 1;
    }
    if (is_cut && (at = memchr(text, '\n', len)) && at + 1 < end)
        return at + 1;
    return text;
}

/* How long the UTF-8 character is, 0 for what is none. */
static size_t character(const char *at, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++) {
        if (text_is_utf8(at, n))
            return n;
    }
    return 0;
}

static void sanitise(const char *text, size_t len, char *ret_text, size_t room)
{
    size_t out = 0;

    for (size_t i = 0; i < len && out + 4 < room;) {
        size_t n = character(text + i, len - i);
        unsigned char c = (unsigned char)text[i];

        if (n == 0 || (c < 32 && c != '\n' && c != '\t') || c == 127) {
            ret_text[out++] = '?';
            i++;
        } else {
            memcpy(ret_text + out, text + i, n);
            out += n;
            i += n;
        }
    }
    while (out > 0 && ret_text[out - 1] == '\n')
        out--;
    ret_text[out] = '\0';
}

void result_tail(const struct attempt *attempt,
                 const struct node *node,
                 const struct launch_task *task,
                 char *ret_text,
                 size_t room)
{
    const char *paths[] = {task->stderr_path, task->stdout_path};
    const char *from;

    /* Who fails says so on stderr; who does not, has said his last on stdout. */
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        auto_str text = {0};
        struct reading r = {attempt, node, paths[i], &text};

        if (enter_run(node->keeper_fd, read_tail, &r, NULL) < 0 || text.len == 0)
            continue;
        from = last_lines(text.data, text.len, text.len == TAIL_BYTES);
        sanitise(from, text.len - (size_t)(from - text.data), ret_text, room);
        if (*ret_text)
            return;
    }
}

/* --- kept, so that a second telling is the same as the first --- */

int result_save(const struct attempt *attempt, struct err *e)
{
    const struct attempt_result *r = &attempt->result;
    auto_free char *path = xasprintf("%s/result", attempt->folder);
    auto_free char *temporary = xasprintf("%s.new", path);
    auto_json json_t *value = json_pack(
        "{s:i,s:i,s:i,s:b,s:i,s:I,s:s,s:s,s:s,s:s,s:s,s:I,s:I}", "end", (int)r->end, "exitCode",
        r->exit_code, "signal", r->signal, "outOfMemory", (int)r->out_of_memory, "rank",
        r->rank, "badNode", (json_int_t)r->bad_node, "node", r->node, "code", r->code,
        "message", r->message, "info", r->info, "tail", r->tail, "startedMs",
        (json_int_t)attempt->started_ms, "endedMs", (json_int_t)attempt->ended_ms);
    auto_str text = {0};

    if (!value)
        return err_set(e, ERR_INTERNAL, "the result is no JSON");
    json_write(&text, value);
    if (folder_write(temporary, text.data, text.len, 0600, e) < 0)
        return -1;
    if (rename(temporary, path) < 0)
        return err_sys(e, errno, "could not keep the result");
    return 0;
}

static void get_text(const json_t *value, const char *key, char *ret_text, size_t room)
{
    const char *text = json_string_value(json_object_get(value, key));

    snprintf(ret_text, room, "%s", text ? text : "");
}

static int64_t get_int(const json_t *value, const char *key)
{
    return json_integer_value(json_object_get(value, key));
}

int result_load(struct attempt *attempt, struct err *e)
{
    auto_free char *path = xasprintf("%s/result", attempt->folder);
    struct attempt_result *r = &attempt->result;
    auto_json json_t *value = NULL;
    auto_str text = {0};

    if (fs_read(path, 1 << 16, &text, e) < 0 || json_parse(text.data, text.len, &value, e) < 0)
        return -1;
    result_init(r, (enum attempt_end)get_int(value, "end"));
    r->exit_code = (int)get_int(value, "exitCode");
    r->signal = (int)get_int(value, "signal");
    r->out_of_memory = json_is_true(json_object_get(value, "outOfMemory"));
    r->rank = (int)get_int(value, "rank");
    r->bad_node = get_int(value, "badNode");
    get_text(value, "node", r->node, sizeof(r->node));
    get_text(value, "code", r->code, sizeof(r->code));
    get_text(value, "message", r->message, sizeof(r->message));
    get_text(value, "info", r->info, sizeof(r->info));
    get_text(value, "tail", r->tail, sizeof(r->tail));
    attempt->started_ms = get_int(value, "startedMs");
    attempt->ended_ms = get_int(value, "endedMs");
    return 0;
}
