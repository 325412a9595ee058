/* Time, and the daemon's life.  An event goes to the mind; what changed is recorded; then it is
 * done.  The daemon may die before each of these steps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sim/sim.h"

#include "base/str.h"
#include "engine/sim/sim-internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_EVENTS = 200000, /* of one run; usual are some 2,000 */
    CRASH_PER_MILLE = 15, /* for each event and each step of it */
};

/* --- chance --- */

/* splitmix64: small, and good enough for dice. */
static uint64_t next_random(struct sim *s)
{
    uint64_t z = (s->random += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t sim_roll(struct sim *s, int64_t below)
{
    return (int64_t)(next_random(s) % (uint64_t)below);
}

bool sim_chance(struct sim *s, int percent)
{
    return sim_roll(s, 100) < percent;
}

/* --- events --- */

static void add_event(struct sim *s, const struct sim_event *values, int64_t in_ms)
{
    struct sim_event *event = xcalloc(1, sizeof(*event));

    *event = *values;
    ordered_add(&s->events, &event->link, s->now_ms + in_ms, ++s->sequence);
}

void sim_plan(struct sim *s, enum sim_kind kind, int64_t id, int token, int64_t in_ms)
{
    add_event(s, &(struct sim_event){.kind = kind, .id = id, .token = token}, in_ms);
}

void sim_say(struct sim *s, enum sim_kind kind, int64_t id)
{
    struct sim_event event = {.kind = kind, .id = id, .life = s->life};

    add_event(s, &event, s->is_measured ? 0 : sim_roll(s, 2 * SIM_SECOND));
    if (s->has_faults && sim_chance(s, 5))
        add_event(s, &event, sim_roll(s, 10 * SIM_MINUTE));
}

void *sim_room(void *items, size_t *room, int64_t id, size_t size)
{
    size_t old = *room;

    if ((size_t)id < old)
        return items;
    *room = (size_t)id * 2 + 16;
    items = xreallocarray(items, *room, size);
    memset((char *)items + old * size, 0, (*room - old) * size);
    return items;
}

/* --- telling --- */

void sim_violate(struct sim *s, const char *format, ...)
{
    va_list args;
    auto_free char *text = NULL;

    if (s->violation.code != ERR_NONE)
        return;
    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    err_set(&s->violation, ERR_INTERNAL, "at %lld ms: %s", (long long)s->now_ms, text);
    sim_trace(s, "VIOLATION %s", text);
}

void sim_trace(struct sim *s, const char *format, ...)
{
    va_list args;

    if (!s->options.trace)
        return;
    fprintf(s->options.trace, "%12.3f  ", (double)s->now_ms / 1000);
    va_start(args, format);
    vfprintf(s->options.trace, format, args);
    va_end(args);
    fputc('\n', s->options.trace);
}

static void trace_changes(struct sim *s, const struct yard_changes *changes)
{
    static const char *const names[] = {"node_add", "node_remove", "start", "stop"};

    for (size_t i = 0; i < changes->cluster_count; i++) {
        const struct yard_cluster *c = changes->clusters[i];

        sim_trace(s, "    cluster %lld wants %d, %s %s", (long long)c->id, c->wanted,
                  c->is_steady ? "steady" : "resizing", c->error_code);
    }
    for (size_t i = 0; i < changes->node_count; i++)
        sim_trace(s, "    node %s is %s", changes->nodes[i]->name,
                  node_state_name(changes->nodes[i]->state));
    for (size_t i = 0; i < changes->job_count; i++) {
        const struct yard_job *j = changes->jobs[i];

        sim_trace(s, "    job %lld is %s %s", (long long)j->id, job_state_name(j->state),
                  j->verdict ? j->verdict : "");
    }
    for (size_t i = 0; i < changes->action_count; i++)
        sim_trace(s, "    %s %lld", names[changes->actions[i].kind],
                  (long long)changes->actions[i].id);
}

/* --- the daemon --- */

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool sim_dies_now(struct sim *s, const char *when)
{
    if (!s->has_faults || sim_roll(s, 1000) >= CRASH_PER_MILLE)
        return false;
    sim_trace(s, "the daemon dies %s", when);
    yard_free(take_ptr(&s->yard));
    s->life++;
    s->report.crashes++;
    sim_plan(s, SIM_RESTART, 0, 0, sim_roll(s, sim_chance(s, 80) ? 5000 : SIM_HOUR));
    return true;
}

/* A final job is of no more use to the mind, and a cluster that is deleted and empty goes. */
static void forget(struct sim *s, const struct yard_changes *changes)
{
    for (size_t i = 0; i < changes->job_count; i++) {
        const struct yard_job *j = changes->jobs[i];

        if (job_is_final(j->state) && (s->is_measured || j->is_deleting || j->id % 2 == 0))
            yard_forget_job(s->yard, j->id, NULL);
    }
    for (int64_t id = 1; id <= s->tables.last_cluster; id++)
        if (s->tables.clusters[id].is_deleting && yard_forget_cluster(s->yard, id, NULL) == 0)
            s->tables.clusters[id].id = 0;
}

/* The answer is for people; here it must only come, whatever state things are in. */
static void ask_why(struct sim *s)
{
    auto_str line = {0};

    for (int64_t id = 1; id <= s->tables.last_job; id++) {
        str_truncate(&line, 0);
        yard_why(s->yard, id, s->now_ms, NULL, NULL, &line);
        if (strchr(str_text(&line), '\n') || str_text(&line)[0] == '\0')
            sim_violate(s, "why of job %lld is not one line", (long long)id);
    }
}

/* Record, act: after every event. */
static void step(struct sim *s)
{
    struct yard_changes changes;
    struct err e = {0};

    if (!s->is_measured && yard_check(s->yard, &e) < 0)
        sim_violate(s, "%s", e.msg);
    if (!s->is_measured && s->report.events % 32 == 0)
        ask_why(s);
    if (sim_dies_now(s, "before it recorded"))
        return;
    yard_take_changes(s->yard, &changes);
    trace_changes(s, &changes);
    if (!s->is_measured)
        sim_record(s, &changes);
    if (sim_dies_now(s, "before it acted"))
        return;
    for (size_t i = 0; i < changes.action_count; i++) {
        sim_act(s, &changes.actions[i]);
        if (i % 2 == 1 && sim_dies_now(s, "while it acted"))
            return;
    }
    forget(s, &changes);
}

static int hear_end(struct sim *s, int64_t id, struct err *e)
{
    const struct sim_attempt *a = &s->attempts[id];
    struct attempt_result result;

    sim_result(a, &result);
    return yard_attempt_ended(s->yard, id, &result, a->started_ms, a->ended_ms, s->now_ms, e);
}

/* A report is refused when it comes too late; anything else is a fault of the mind. */
static void hear(struct sim *s, const struct sim_event *event)
{
    struct err e = {0};
    double from = seconds_now();
    int64_t id = event->id;
    int rc = 0;

    if (event->kind == SIM_SAY_NODE_UP)
        rc = yard_node_up(s->yard, id, s->now_ms, &e);
    else if (event->kind == SIM_SAY_NODE_FAILED)
        rc = yard_node_failed(s->yard, id, "NodeFailed", "it failed", "", s->now_ms, &e);
    else if (event->kind == SIM_SAY_NODE_GONE)
        rc = yard_node_gone(s->yard, id, s->now_ms, &e);
    else if (event->kind == SIM_SAY_RUNNING)
        rc = yard_attempt_running(s->yard, id, s->now_ms, &e);
    else
        rc = hear_end(s, id, &e);
    s->mind_s += seconds_now() - from;
    if (rc < 0 && e.code != ERR_CONFLICT)
        sim_violate(s, "a report was answered \"%s\"", e.msg);
    step(s);
}

static void restart(struct sim *s)
{
    sim_trace(s, "the daemon starts");
    s->yard = sim_restore(s);
    yard_resume(s->yard, s->now_ms);
    step(s);
}

/* --- time --- */

static const char *const kind_names[SIM_KINDS] = {
    [SIM_SAY_NODE_UP] = "report: up, node",
    [SIM_SAY_NODE_FAILED] = "report: failed, node",
    [SIM_SAY_NODE_GONE] = "report: gone, node",
    [SIM_SAY_RUNNING] = "report: running, attempt",
    [SIM_SAY_ENDED] = "report: ended, attempt",
    [SIM_NODE_UP] = "up: node",
    [SIM_NODE_BREAKS] = "set-up fails: node",
    [SIM_NODE_DIES] = "dies: node",
    [SIM_NODE_GOES] = "goes: node",
    [SIM_TASK_RUNS] = "runs: attempt",
    [SIM_TASK_ENDS] = "ends: attempt",
    [SIM_TASK_IS_KILLED] = "is killed: attempt",
    [SIM_CLIENT] = "client",
    [SIM_RESTART] = "restart",
    [SIM_CALM] = "calm",
    [SIM_AGAIN] = "again",
};

static void come_back_later(struct sim *s, const struct sim_event *event)
{
    sim_plan(s, event->kind, event->id, event->token, SIM_MINUTE);
}

static void happen(struct sim *s, const struct sim_event *event)
{
    sim_trace(s, "%s %lld", kind_names[event->kind], (long long)event->id);
    if (event->kind == SIM_RESTART) {
        restart(s);
    } else if (event->kind <= SIM_SAY_ENDED) {
        if (s->yard && event->life == s->life)
            hear(s, event);
    } else if (event->kind < SIM_CLIENT) {
        sim_happen(s, event);
    } else if (!s->yard) {
        come_back_later(s, event);
    } else {
        if (event->kind == SIM_CLIENT)
            sim_client(s);
        else if (event->kind == SIM_CALM)
            sim_calm(s);
        else
            sim_again(s);
        if (s->yard)
            step(s);
    }
}

static void tick(struct sim *s, int64_t when_ms)
{
    double from = seconds_now();

    if (when_ms > s->now_ms)
        s->now_ms = when_ms;
    sim_trace(s, "tick");
    yard_tick(s->yard, s->now_ms);
    s->mind_s += seconds_now() - from;
    step(s);
}

/* One event, or a tick when that is due before it.  false = nothing will happen any more. */
static bool go_on(struct sim *s)
{
    struct ordered_link *link = ordered_first(&s->events);
    int64_t tick_ms = s->yard ? yard_next_tick(s->yard) : INT64_MAX;
    struct sim_event *event;

    s->report.events++;
    if (tick_ms != INT64_MAX && (!link || tick_ms <= link->major)) {
        tick(s, tick_ms);
        return true;
    }
    if (!link)
        return false;
    event = container_of(link, struct sim_event, link);
    ordered_remove(&s->events, link);
    s->now_ms = link->major;
    happen(s, event);
    free(event);
    return true;
}

/* --- runs --- */

static void begin(struct sim *s)
{
    s->now_ms = 1500000000000;
    s->nodes = sim_room(NULL, &s->node_room, 0, sizeof(*s->nodes));
    s->attempts = sim_room(NULL, &s->attempt_room, 0, sizeof(*s->attempts));
    s->jobs = sim_room(NULL, &s->job_room, 0, sizeof(*s->jobs));
    s->yard = yard_new(&s->limits);
}

static void end(struct sim *s)
{
    struct ordered_link *link;

    while ((link = s->events.root)) {
        ordered_remove(&s->events, link);
        free(container_of(link, struct sim_event, link));
    }
    for (size_t i = 0; i < s->attempt_room; i++)
        free(s->attempts[i].nodes);
    free(s->nodes);
    free(s->attempts);
    free(s->jobs);
    sim_tables_done(&s->tables);
    yard_free(s->yard);
}

int sim_run(const struct sim_options *options, struct sim_report *ret_report, struct err *e)
{
    struct sim s = {.options = *options, .random = options->seed, .has_faults = true};

    s.limits = (struct yard_limits){
        .cores = 4 + (int)sim_roll(&s, 13),
        .gpus = (int)sim_roll(&s, 5),
        .oversubscribe = sim_chance(&s, 20),
        .most_nodes = 4 + (int)sim_roll(&s, 20),
    };
    begin(&s);
    sim_invent(&s);
    while (s.violation.code == ERR_NONE && go_on(&s))
        if (s.report.events > MOST_EVENTS)
            sim_violate(&s, "no end in sight after %d events", MOST_EVENTS);
    if (s.violation.code == ERR_NONE)
        sim_audit_end(&s);
    *ret_report = s.report;
    end(&s);
    if (s.violation.code != ERR_NONE)
        return err_set(e, ERR_INTERNAL, "%s", s.violation.msg);
    return 0;
}

/* Jobs of 1 to 64 nodes, of an hour at most: the small and short ones are many, as they are
 * everywhere. */
static void submit_one(struct sim *s, int64_t id, int most_nodes)
{
    int64_t bits = sim_roll(s, 7);
    int nodes = 1 + (int)sim_roll(s, 1 << bits);
    struct yard_job job = {
        .id = id,
        .cluster_id = 1,
        .node_count = nodes < most_nodes ? nodes : most_nodes,
        .priority = (enum job_priority)sim_roll(s, 3),
        .wall_ms = SIM_MINUTE * (1 + sim_roll(s, 60)),
        .most_attempts = 3,
    };
    double from = seconds_now();

    yard_put_job(s->yard, &job, s->now_ms);
    s->mind_s += seconds_now() - from;
    step(s);
}

int sim_measure(const struct sim_load *load, struct sim_speed *ret_speed, struct err *e)
{
    struct sim s = {.random = 1, .is_measured = true};
    char name[] = "one";
    struct yard_cluster cluster = {.id = 1, .name = name, .target = load->nodes, .cores = 1};
    int64_t from_ms;

    s.limits = (struct yard_limits){.cores = load->nodes, .most_nodes = load->nodes};
    begin(&s);
    from_ms = s.now_ms;
    yard_put_cluster(s.yard, &cluster, s.now_ms);
    step(&s);
    for (int i = 0; i < load->jobs; i++)
        submit_one(&s, i + 1, load->nodes);
    while (go_on(&s))
        continue;
    *ret_speed = (struct sim_speed){
        .events = s.report.events + load->jobs,
        .decisions = s.report.decisions,
        .mind_s = s.mind_s,
        .virtual_s = (double)(s.now_ms - from_ms) / 1000,
    };
    end(&s);
    if (ret_speed->decisions < load->jobs)
        return err_set(e, ERR_INTERNAL, "%lld of %d jobs started",
                       (long long)ret_speed->decisions, load->jobs);
    return 0;
}
