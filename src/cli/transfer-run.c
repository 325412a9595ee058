/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-run.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/storage-verb.h"
#include "cli/term.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"
#include "cli/transfer-progress.h"
#include "cli/transfer-side.h"
#include "cli/transfer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    SHOWN_FAILURES = 20,
};

struct run {
    const struct run_config *config;
    struct transfer *transfer; /* NULL when dry */
    pthread_t finder;
    struct err find_error;
    int find_rc;
    int64_t dry_files;
    json_t *dry_rows;                       /* NULL = they are written as text */
    bool asks, replaces_all, replaces_none; /* what was answered to the prompt */
    bool is_drawn;                          /* a line of progress stands on the terminal */
};

/* --- finding --- */

/* What would be done: a line each, or for a result a row. */
static void say_dry(struct run *run, const struct item *item)
{
    auto_free char *to = side_show(run->config->destination, item->target);
    auto_free char *from =
        run->config->source ? side_show(run->config->source, item->path) : NULL;
    bool is_copy = item->what == ITEM_COPY;
    auto_str line = {0};

    if (item->what == ITEM_FOLDER)
        return;
    run->dry_files++;
    if (run->dry_rows) {
        json_array_append_new(
            run->dry_rows, json_pack("{s:s, s:s*, s:s}", "action", is_copy ? "copy" : "remove",
                                     "source", is_copy ? from : NULL, "destination", to));
        return;
    }
    if (is_copy)
        str_addf(&line, "DRYRUN: copy %s to %s\n", from, to);
    else
        str_addf(&line, "DRYRUN: remove %s\n", to);
    term_write(stdout, str_text(&line), line.len);
}

int run_add(struct run *run, struct item *item)
{
    if (run->config->is_dry) {
        say_dry(run, item);
        item_free(item);
        return 0;
    }
    return transfer_add(run->transfer, item) ? 0 : 1;
}

void run_pass(struct run *run, const char *path, const char *why)
{
    call_info(run->config->call, "passed over \"%s\": %s", path, why);
}

void run_port_config(const struct run *run, struct port_config *ret_config)
{
    *ret_config = (struct port_config){
        .options = run->config->options,
        .patience_ms = run->config->options->patience_ms,
        .stop = run->transfer ? transfer_stop_flag(run->transfer) : NULL,
        .trace = storage_trace(run->config->call),
    };
}

static void *find_all(void *context)
{
    struct run *run = context;

    run->find_rc = run->config->find(run, run->config->context, &run->find_error);
    if (run->find_rc < 0)
        transfer_stop(run->transfer);
    transfer_no_more(run->transfer);
    return NULL;
}

/* --- the terminal --- */

static void clear_line(struct run *run)
{
    if (run->is_drawn)
        fputs("\r\x1b[K", stderr);
    run->is_drawn = false;
}

static void draw(struct run *run, struct progress *progress)
{
    struct transfer_totals totals;
    struct winsize size = {0};
    auto_str line = {0};

    transfer_totals(run->transfer, &totals);
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
        size.ws_col = 80;
    progress_line(progress, &totals, clock_mono_ms(), size.ws_col, &line);
    fprintf(stderr, "\r%s\x1b[K", str_text(&line));
    fflush(stderr);
    run->is_drawn = true;
}

static bool ask_to_replace(void *context, const char *target)
{
    struct run *run = context;
    auto_free char *shown = side_show(run->config->destination, target);
    char answer[16] = "";

    while (!run->replaces_all && !run->replaces_none) {
        auto_str line = {0}, clean = {0};

        str_addf(&line, "%s is there. Replace it? (y)es, (n)o, (a)ll, n(o)ne: ", shown);
        term_clean(&clean, str_text(&line), line.len);
        clear_line(run);
        fputs(str_text(&clean), stderr);
        if (!fgets(answer, sizeof(answer), stdin))
            run->replaces_none = true;
        else if (answer[0] == 'y' || answer[0] == 'n')
            return answer[0] == 'y';
        run->replaces_all = answer[0] == 'a';
        run->replaces_none = run->replaces_none || answer[0] == 'o';
    }
    return run->replaces_all;
}

/* --- waiting --- */

/* Until all is over: draw now and then, and stop at the first Ctrl-C. */
static bool wait_for_end(struct run *run, const sigset_t *signals)
{
    bool is_shown = isatty(STDERR_FILENO) &&
                    !args_flag(run->config->call->args, "only-show-errors") && !run->asks &&
                    !run->config->is_quiet;
    auto_close int signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    struct progress progress = {0};
    struct pollfd fds[] = {{.fd = transfer_fd(run->transfer), .events = POLLIN},
                           {.fd = signal_fd, .events = POLLIN}};
    bool is_interrupted = false;

    while (!transfer_is_over(run->transfer)) {
        if (poll(fds, is_interrupted ? 1 : 2, is_shown ? PROGRESS_STEP_MS : -1) < 0 &&
            errno != EINTR)
            break;
        if (fds[1].revents & POLLIN && !is_interrupted) {
            struct signalfd_siginfo taken;

            is_interrupted = read(signal_fd, &taken, sizeof(taken)) > 0;
            transfer_stop(run->transfer);
            /* The second one ends the program. */
            pthread_sigmask(SIG_UNBLOCK, signals, NULL);
        }
        if (is_shown && !is_interrupted && !transfer_is_over(run->transfer))
            draw(run, &progress);
    }
    clear_line(run);
    return is_interrupted;
}

/* --- the end --- */

static json_t *
totals_json(const struct transfer_totals *t, int64_t elapsed_ms, const char *state)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s}", "files", (json_int_t)t->files,
                     "bytes", (json_int_t)t->bytes, "earlierFiles", (json_int_t)t->before,
                     "removed", (json_int_t)t->removed, "skipped", (json_int_t)t->skipped,
                     "failed", (json_int_t)t->failed, "seconds", (double)elapsed_ms / 1000,
                     "state", state);
}

static void tell_failures(struct run *run, const struct transfer_totals *totals)
{
    const struct err *why;
    const char *target;

    for (size_t i = 0; i < SHOWN_FAILURES && transfer_failure(run->transfer, i, &target, &why);
         i++) {
        auto_free char *shown = side_show(run->config->destination, target);

        term_say("FAILED: %s: %s", shown, why->msg);
    }
    if (totals->failed > SHOWN_FAILURES)
        term_say("FAILED: ... and %lld more", (long long)totals->failed - SHOWN_FAILURES);
}

/* The one file there was: its failure is that of the verb. */
static int single_failed(const struct run *run, struct err *e)
{
    const struct err *why;
    const char *target;

    if (e && transfer_failure(run->transfer, 0, &target, &why))
        *e = *why;
    return -1;
}

static int broke_off(const struct run *run, bool is_interrupted, struct err *e)
{
    const char *why = transfer_gave_up(run->transfer);
    const char *id = run->config->journal ? journal_id(run->config->journal) : NULL;

    if (run->find_rc < 0) {
        *e = run->find_error;
        return -1;
    }
    if (id)
        return err_set(e, ERR_BUSY, "%s%s; go on with: yard copy resume %.8s",
                       is_interrupted ? "interrupted" : "gave up: ", is_interrupted ? "" : why,
                       id);
    return err_set(e, ERR_BUSY, "%s%s",
                   is_interrupted ? "interrupted" : "gave up: ", is_interrupted ? "" : why);
}

static int end(struct run *run,
               bool is_interrupted,
               int64_t elapsed_ms,
               struct run_result *result,
               struct err *e)
{
    bool is_broken = is_interrupted || run->find_rc < 0 || transfer_gave_up(run->transfer);
    struct transfer_totals totals;

    transfer_totals(run->transfer, &totals);
    if (run->config->is_single && !is_broken && totals.failed)
        return single_failed(run, e);
    tell_failures(run, &totals);
    result->is_well = !is_broken && totals.failed == 0;
    result->state = is_broken         ? "Interrupted"
                    : result->is_well ? "Completed"
                                      : "CompletedWithErrors";
    result->totals = totals_json(&totals, elapsed_ms, result->state);
    if (run->config->journal &&
        journal_end(run->config->journal, result->state, result->totals, e) < 0)
        return -1;
    if (call_wants_text(run->config->call) && run->config->has_summary) {
        auto_str line = {0};

        (run->config->source ? progress_summary : progress_removed)(&line, &totals, elapsed_ms);
        printf("%s\n", str_text(&line));
    }
    return is_broken ? broke_off(run, is_interrupted, e) : 0;
}

static int run_dry(struct run *run, struct run_result *result, struct err *e)
{
    auto_json json_t *rows = call_wants_text(run->config->call) ? NULL : json_array();

    run->dry_rows = rows;
    if (run->config->find(run, run->config->context, e) < 0)
        return -1;
    result->is_well = true;
    result->state = "DryRun";
    result->totals = json_pack("{s:I, s:s, s:O*}", "files", (json_int_t)run->dry_files, "state",
                               "DryRun", "plan", rows);
    return 0;
}

int run_transfer(const struct run_config *config, struct run_result *ret_result, struct err *e)
{
    struct run run = {.config = config, .asks = config->options->overwrite == OVERWRITE_PROMPT};
    struct transfer_config transfer = {
        .source = config->source,
        .destination = config->destination,
        .options = config->options,
        .journal = config->journal,
        .trace = storage_trace(config->call),
        .may_replace = ask_to_replace,
        .context = &run,
    };
    int64_t begun_ms = clock_mono_ms();
    bool is_interrupted;
    sigset_t signals, before;
    int rc;

    if (config->is_dry)
        return run_dry(&run, ret_result, e);
    if (run.asks && !isatty(STDIN_FILENO))
        return args_fail(e, "--overwrite", "--overwrite prompt needs a terminal to ask on");
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, &before); /* the threads inherit it */
    rc = transfer_new(&transfer, &run.transfer, e);
    if (rc == 0 && pthread_create(&run.finder, NULL, find_all, &run) != 0)
        rc = err_set(e, ERR_INTERNAL, "could not start a thread");
    if (rc == 0) {
        is_interrupted = wait_for_end(&run, &signals);
        pthread_join(run.finder, NULL);
        rc = end(&run, is_interrupted, clock_mono_ms() - begun_ms, ret_result, e);
    }
    transfer_free(run.transfer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int run_and_tell(const struct run_config *config, json_t **ret_result, struct err *e)
{
    struct run_result result = {0};
    int rc = run_transfer(config, &result, e);
    auto_json json_t *totals = result.totals;

    if (rc < 0)
        return -1;
    if (!result.is_well)
        config->call->exit_status = 1;
    if (call_wants_text(config->call))
        return 0;
    if (config->journal)
        json_object_set_new(totals, "jobId", json_string(journal_id(config->journal)));
    *ret_result = json_incref(totals);
    return 0;
}
