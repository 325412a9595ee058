/* The loop side of an attempt: its phases.
 *
 *     waiting      for its nodes
 *     set-up       a look at what there is of it; on each node folders, mounts, container
 *     preparation  on each node
 *     tasks        until one of the essential ones fails, or all are done
 *     ending       what is alive is told to stop
 *     cleaning     on each node: what is left is killed, mounts are undone
 *
 * A decision (has_result) is made once and leads to the end from wherever the attempt is.
 * Everything moves in step(), which is run after whatever happened, and never within a call
 * from outside.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "engine/local/local-internal.h"
#include "engine/local/sweep.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* An errand for an attempt, or for one of its parts. */
struct attempt_errand {
    struct errand errand;
    struct attempt *attempt;
    struct part *part;
    int rc;
    struct attempt_result result;
    bool has_tail;
    char tail[sizeof(((struct attempt_result *)NULL)->tail)];
    char journal[]; /* lines to write */
};

void attempt_look_again(struct attempt *attempt)
{
    loop_task_add(attempt->local->loop, &attempt->step);
}

static void submit_to(struct errands *errands,
                      struct attempt *attempt,
                      struct part *part,
                      void (*work)(struct errand *errand),
                      void (*done)(struct errand *errand))
{
    const char *lines = part ? str_text(&part->journal) : "";
    size_t len = strlen(lines) + 1;
    struct attempt_errand *errand = xcalloc(1, sizeof(*errand) + len);

    errand->errand.work = work;
    errand->errand.done = done;
    errand->attempt = attempt;
    errand->part = part;
    memcpy(errand->journal, lines, len);
    attempt->errands++;
    errand_submit(errands, &errand->errand);
}

static void submit(struct attempt *attempt,
                   struct part *part,
                   void (*work)(struct errand *errand),
                   void (*done)(struct errand *errand))
{
    submit_to(attempt->local->errands, attempt, part, work, done);
}

static void finish(struct errand *errand)
{
    struct attempt *attempt = ((struct attempt_errand *)errand)->attempt;

    attempt->errands--;
    attempt_look_again(attempt);
    free(errand);
}

/* --- decisions --- */

static void decide(struct attempt *attempt,
                   enum attempt_end end,
                   int64_t bad_node,
                   const char *node,
                   const char *message)
{
    struct attempt_result *result = &attempt->result;

    if (attempt->has_result)
        return;
    attempt->has_result = true;
    result_init(result, end);
    result->bad_node = bad_node;
    snprintf(result->node, sizeof(result->node), "%s", node ? node : "");
    snprintf(result->message, sizeof(result->message), "%s", message);
}

static void decide_lost(struct attempt *attempt, const struct part *part)
{
    const struct node *node = part->node;

    decide(attempt, ENDED_NODE_LOST, attempt->told.nodes[part->index], node ? node->name : NULL,
           "a node of the job was lost");
}

/* --- waiting --- */

static void hold_nodes(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        struct part *part = &attempt->parts[i];

        part->node = local_find_node(attempt->local, attempt->told.nodes[i]);
        if (part->node && part->node->stage == NODE_IS_LEAVING)
            part->node = NULL;
        if (part->node)
            part->node->attempt = attempt;
    }
}

/* false: some are on their way. */
static bool are_nodes_ready(struct attempt *attempt)
{
    bool is_waiting = false;

    for (size_t i = 0; i < attempt->told.node_count; i++) {
        const struct part *part = &attempt->parts[i];

        if (!part->node || part->node->stage == NODE_IS_BROKEN)
            decide_lost(attempt, part);
        else if (part->node->stage != NODE_IS_READY)
            is_waiting = true;
    }
    return attempt->has_result || !is_waiting;
}

static int make_plan(struct attempt *attempt, struct err *e)
{
    const struct engine_attempt *told = &attempt->told;
    struct launch_node *nodes = arena_alloc(attempt->arena, told->node_count * sizeof(*nodes));
    const char *slash;

    for (size_t i = 0; i < told->node_count; i++)
        nodes[i] = node_launch(attempt->parts[i].node);
    attempt->input = (struct launch_input){
        .job = told->spec,
        .workspace = told->workspace,
        .experiment = told->experiment,
        .name = told->job,
        .cluster = told->cluster->name,
        .segment = told->segment,
        .nodes = nodes,
        .node_count = told->node_count,
        .is_container = told->image != NULL,
        .has_ssh = attempt->local->has_ssh,
        .attempt = told->number,
    };
    if (launch_plan(&attempt->input, attempt->arena, &attempt->plan, e) < 0)
        return -1;
    slash = strrchr(attempt->plan.work_folder, '/');
    attempt->mounts =
        arena_printf(attempt->arena, "%.*s/mounts", (int)(slash - attempt->plan.work_folder),
                     attempt->plan.work_folder);
    return 0;
}

static void list_works(struct attempt *attempt)
{
    const struct launch_plan *plan = &attempt->plan;
    size_t count = plan->preparation_count + plan->task_count;

    attempt->works = arena_alloc(attempt->arena, (count + 1) * sizeof(*attempt->works));
    attempt->work_count = count;
    for (size_t i = 0; i < count; i++) {
        struct work *work = &attempt->works[i];

        work->attempt = attempt;
        work->is_preparation = i < plan->preparation_count;
        work->task = work->is_preparation ? &plan->preparations[i]
                                          : &plan->tasks[i - plan->preparation_count];
        work->part = &attempt->parts[work->task->node];
        work->folder = arena_printf(attempt->arena, "%s/%s", attempt->folder, work->task->name);
    }
}

/* --- set-up --- */

static void work_set_up(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;

    self->rc = attempt_set_up(self->part, &self->result);
}

/* A set-up that was cut short because nobody wants it has not failed. */
static void note_failure(const struct attempt_errand *self)
{
    struct attempt *attempt = self->attempt;

    if (self->rc == 0 || attempt->has_result || attempt->is_unwanted)
        return;
    attempt->has_result = true;
    attempt->result = self->result;
}

static void done_set_up(struct errand *errand)
{
    FAULT("attempt.set-up");
    note_failure((struct attempt_errand *)errand);
    finish(errand);
}

static void set_up_parts(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->told.node_count; i++)
        submit(attempt, &attempt->parts[i], work_set_up, done_set_up);
}

static void work_fetch(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;

    self->rc = attempt_fetch(self->part, &self->result);
}

static void done_fetch(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;

    note_failure(self);
    if (self->rc == 0 && !self->attempt->is_unwanted)
        set_up_parts(self->attempt);
    finish(errand);
}

static void work_look(struct errand *errand)
{
    attempt_look(((struct attempt_errand *)errand)->attempt);
}

static void done_look(struct errand *errand)
{
    struct attempt *attempt = ((struct attempt_errand *)errand)->attempt;

    FAULT("attempt.looked");
    if (attempt->is_lost)
        decide(attempt, ENDED_NODE_LOST, 0, NULL, "the machine was restarted");
    if (!attempt->has_result && attempt->told.image && !attempt->was_begun)
        submit_to(attempt->local->slow, attempt, &attempt->parts[0], work_fetch, done_fetch);
    else if (!attempt->has_result)
        set_up_parts(attempt);
    finish(errand);
}

static void begin(struct attempt *attempt)
{
    struct err e = {0};

    attempt->phase = PHASE_SETUP;
    attempt->setup_ms = clock_wall_ms();
    if (attempt->has_result)
        return;
    if (make_plan(attempt, &e) < 0) {
        decide(attempt, ENDED_SETUP, 0, NULL, e.msg);
        snprintf(attempt->result.code, sizeof(attempt->result.code), "JobLaunchFailed");
        return;
    }
    list_works(attempt);
    submit(attempt, NULL, work_look, done_look);
}

/* --- tasks --- */

static void work_journal(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;

    journal_write(self->part, self->journal);
}

/* One at a time, or lines would change places. */
static void flush_journals(struct attempt *attempt)
{
    for (size_t i = 0; attempt->errands == 0 && i < attempt->told.node_count; i++) {
        struct part *part = &attempt->parts[i];

        if (part->journal.len == 0)
            continue;
        submit(attempt, part, work_journal, finish);
        str_truncate(&part->journal, 0);
    }
}

static void run_tasks(struct attempt *attempt)
{
    const struct engine_events *events = &attempt->local->events;

    attempt->phase = PHASE_TASKS;
    FAULT("attempt.tasks");
    if (!attempt->is_said_running) {
        attempt->is_said_running = true;
        events->attempt_running(events->context, attempt->told.id);
    }
    works_start(attempt, false);
}

/* --- ending --- */

static void work_term(struct errand *errand)
{
    const struct node *node = ((struct attempt_errand *)errand)->part->node;

    /* podman passes no signal on to what it executes. */
    if (node->net_fd >= 0)
        sweep_signal_contained(&(struct sweep){.net = node->keeper.net}, SIGTERM);
}

static void begin_ending(struct attempt *attempt)
{
    result_decide(attempt);
    attempt->phase = PHASE_ENDING;
    FAULT("attempt.ending");
    works_adopt(attempt);
    works_stop(attempt);
    for (size_t i = 0; attempt->told.image && i < attempt->told.node_count; i++) {
        if (attempt->parts[i].node)
            submit(attempt, &attempt->parts[i], work_term, finish);
    }
}

/* --- cleaning --- */

static void work_clean(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;
    const struct work *failing = self->attempt->failing;

    if (failing && failing->part == self->part && self->part->node) {
        self->has_tail = true;
        result_tail(self->attempt, self->part->node, failing->task, self->tail,
                    sizeof(self->tail));
    }
    attempt_clean(self->part, self->journal);
}

static void done_clean(struct errand *errand)
{
    struct attempt_errand *self = (struct attempt_errand *)errand;

    if (self->has_tail)
        memcpy(self->attempt->result.tail, self->tail, sizeof(self->tail));
    finish(errand);
}

static void begin_cleaning(struct attempt *attempt)
{
    const struct attempt_result *result = &attempt->result;

    /* The end of a task that was stopped came after the decision. */
    result_decide(attempt);
    attempt->phase = PHASE_CLEANING;
    FAULT("attempt.cleaning");
    if (result->end == ENDED_EXITED)
        journal_add_all(attempt, "job: exit code %d", result->exit_code);
    else if (result->end == ENDED_SETUP)
        journal_add_all(attempt, "job: %s on %s: %s", result->message, result->node,
                        result->info);
    else if (result->end == ENDED_PREPARATION)
        journal_add_all(attempt, "job: preparation failed on %s", result->node);
    else
        journal_add_all(attempt, "job: %s", result->message[0] ? result->message : "stopped");
    for (size_t i = 0; i < attempt->told.node_count; i++)
        submit(attempt, &attempt->parts[i], work_clean, done_clean);
}

static void work_save(struct errand *errand)
{
    struct attempt *attempt = ((struct attempt_errand *)errand)->attempt;
    struct err e = {0};

    if (attempt->folder && result_save(attempt, &e) < 0)
        log_debug("event=result-save error=\"%s\"", e.msg);
}

static void end(struct attempt *attempt)
{
    struct local *local = attempt->local;
    const struct engine_events *events = &local->events;
    struct attempt **at;

    FAULT("attempt.ended");
    for (at = &local->attempts; *at != attempt;)
        at = &(*at)->next;
    *at = attempt->next;
    events->attempt_ended(events->context, attempt->told.id, &attempt->result,
                          attempt->started_ms, attempt->ended_ms);
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        if (attempt->parts[i].node)
            node_let_go(attempt->parts[i].node);
    }
    attempt_free(attempt);
}

/* --- moving --- */

static void look_at_nodes(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        const struct part *part = &attempt->parts[i];

        if (part->node && part->node->stage == NODE_IS_BROKEN)
            decide_lost(attempt, part);
    }
}

static void step_tasks(struct attempt *attempt)
{
    if (attempt->phase == PHASE_SETUP) {
        attempt->phase = PHASE_PREPARATION;
        works_start(attempt, true);
    }
    if (attempt->phase == PHASE_PREPARATION && works_are_over(attempt, true)) {
        if (works_have_failed(attempt))
            begin_ending(attempt);
        else
            run_tasks(attempt);
    } else if (attempt->phase == PHASE_TASKS && works_are_over(attempt, false)) {
        begin_ending(attempt);
    }
    flush_journals(attempt);
}

static void step(struct loop_task *task)
{
    struct attempt *attempt = container_of(task, struct attempt, step);

    if (attempt->phase == PHASE_WAITING) {
        hold_nodes(attempt);
        if (!are_nodes_ready(attempt))
            return;
        begin(attempt);
    }
    /* While a set-up is under way its errands own what they look at. */
    if (attempt->phase < PHASE_ENDING &&
        (attempt->errands == 0 || attempt->phase > PHASE_SETUP)) {
        look_at_nodes(attempt);
        if (attempt->has_result || attempt->is_unwanted)
            begin_ending(attempt);
        else
            step_tasks(attempt);
    }
    if (attempt->phase == PHASE_ENDING && attempt->errands == 0 && !works_are_alive(attempt))
        begin_cleaning(attempt);
    if (attempt->phase == PHASE_CLEANING && attempt->errands == 0) {
        if (attempt->is_saved) {
            end(attempt);
            return;
        }
        attempt->is_saved = true;
        submit(attempt, NULL, work_save, finish);
    }
}

void attempt_node_changed(struct attempt *attempt, struct node *node)
{
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        if (attempt->told.nodes[i] != node->id)
            continue;
        if (node->stage == NODE_IS_BROKEN)
            atomic_store(&attempt->is_cancelled, true);
        attempt_look_again(attempt);
    }
}

/* --- told --- */

static struct attempt *attempt_new(struct local *local)
{
    struct attempt *attempt = xcalloc(1, sizeof(*attempt));

    attempt->local = local;
    attempt->arena = arena_new();
    attempt->step.run = step;
    attempt->next = local->attempts;
    local->attempts = attempt;
    return attempt;
}

void attempt_start(struct local *local, const struct engine_attempt *told)
{
    struct attempt *attempt = local_find_attempt(local, told->id);

    if (attempt)
        return;
    attempt = attempt_new(local);
    copy_attempt(told, attempt->arena, &attempt->told);
    attempt->folder =
        arena_printf(attempt->arena, "%s/attempts/%s", local->home, attempt->told.uuid);
    attempt->parts =
        arena_alloc(attempt->arena, (told->node_count + 1) * sizeof(*attempt->parts));
    for (size_t i = 0; i < told->node_count; i++) {
        attempt->parts[i].attempt = attempt;
        attempt->parts[i].index = i;
        attempt->parts[i].arena = arena_new();
    }
    attempt_look_again(attempt);
}

void attempt_stop(struct local *local, int64_t id)
{
    struct attempt *attempt = local_find_attempt(local, id);

    if (!attempt) {
        /* Never started since the start of the daemon, or over: nothing of it is known. */
        attempt = attempt_new(local);
        attempt->told.id = id;
        attempt->phase = PHASE_SETUP;
        decide(attempt, ENDED_STOPPED, 0, NULL, "");
    }
    attempt->is_unwanted = true;
    atomic_store(&attempt->is_cancelled, true);
    attempt_look_again(attempt);
}

void attempt_unwatch(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++)
        task_free(take_ptr(&attempt->works[i].live));
}

void attempt_free(struct attempt *attempt)
{
    loop_task_cancel(&attempt->step);
    attempt_unwatch(attempt);
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        str_done(&attempt->parts[i].journal);
        arena_free(attempt->parts[i].arena);
    }
    arena_free(attempt->arena);
    free(attempt);
}
