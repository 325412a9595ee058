/* Clusters: how many nodes, which of them go, when.
 *
 * A cluster is looked at (settle) when something that concerns it changed, in this order:
 *   1. it is being deleted: its jobs end, its nodes go
 *   2. it has more nodes than it may: those without work go, then, as the deallocation option
 *      says, work is stopped
 *   3. it has fewer than it wants: nodes are made, as far as the limits allow
 *   4. queued jobs start
 *   5. an automatic one lets nodes go that were of no use for too long
 *
 * Several clusters may compete for one machine.  An automatic one then takes nodes only when
 * they complete a gang, and gives idle ones up after idle_ms even though jobs wait that it
 * cannot serve: otherwise two of them could hold half of what each needs, for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int min(int a, int b)
{
    return a < b ? a : b;
}

static int max(int a, int b)
{
    return a > b ? a : b;
}

int mind_live_nodes(const struct cluster *c)
{
    return c->count[NODE_CREATING] + c->count[NODE_IDLE] + c->count[NODE_RUNNING] +
           c->count[NODE_UNUSABLE] - c->lost;
}

/* --- limits --- */

/* What a node needs of something of which there is so much: how many fit? */
static int fitting(int free_units, int per_node)
{
    return per_node <= 0 ? INT_MAX : max(0, free_units) / per_node;
}

int mind_machine_room(const struct yard *y, const struct yard_cluster *c)
{
    int by_cores = y->limits.oversubscribe ? INT_MAX : fitting(y->limits.cores, c->cores);

    return min(y->limits.most_nodes, min(by_cores, fitting(y->limits.gpus, c->gpus)));
}

struct room {
    int nodes;
    const char *code, *unit; /* what is short */
    int per_node, free_units, units;
};

static void
narrow(struct room *room, const char *code, const char *unit, int per_node, int units, int used)
{
    int nodes = fitting(units - used, per_node);

    if (nodes < room->nodes)
        *room = (struct room){nodes, code, unit, per_node, max(0, units - used), units};
}

static struct room room_now(const struct yard *y, const struct cluster *c)
{
    int left = max(0, y->limits.most_nodes - y->node_count);
    struct room room = {left, "NodeQuotaReached", "nodes", 1, left, y->limits.most_nodes};

    if (!y->limits.oversubscribe)
        narrow(&room, "CoreQuotaReached", "cores", c->it.cores, y->limits.cores, y->cores);
    narrow(&room, "GpuQuotaReached", "GPUs", c->it.gpus, y->limits.gpus, y->gpus);
    return room;
}

static void clear_error(struct yard *y, struct cluster *c)
{
    if (!c->it.error_code[0])
        return;
    c->it.error_code[0] = c->it.error_message[0] = '\0';
    mind_changed_cluster(y, c);
}

static void note_error(struct yard *y, struct cluster *c, const struct room *room)
{
    char message[sizeof(c->it.error_message)];

    snprintf(
        message, sizeof(message),
        "the cluster has %d of %d nodes: each takes %d %s, and %d of the yard's %d are free",
        mind_live_nodes(c), c->it.wanted, room->per_node, room->unit, room->free_units,
        room->units);
    if (strcmp(c->it.error_code, room->code) == 0 && strcmp(c->it.error_message, message) == 0)
        return;
    snprintf(c->it.error_code, sizeof(c->it.error_code), "%s", room->code);
    snprintf(c->it.error_message, sizeof(c->it.error_message), "%s", message);
    mind_changed_cluster(y, c);
}

/* --- how many --- */

static int broken_nodes(const struct cluster *c)
{
    return c->count[NODE_UNUSABLE] - c->lost;
}

/* What its jobs need; those that wait need more than what is broken. */
static int demand(const struct cluster *c)
{
    int64_t nodes = c->queued_nodes + c->held + (c->queued_nodes > 0 ? broken_nodes(c) : 0);
    int64_t most = c->it.most;

    return max(c->it.least, (int)(nodes < most ? nodes : most));
}

static int goal(const struct cluster *c)
{
    int nodes;

    if (c->it.is_deleting)
        return 0;
    if (!c->it.is_automatic)
        return max(0, c->it.target);
    nodes = max(demand(c), min(mind_live_nodes(c), c->it.most));
    return c->is_new ? max(nodes, min(c->it.initial, c->it.most)) : nodes;
}

static void set_wanted(struct yard *y, struct cluster *c, int wanted)
{
    if (c->it.wanted == wanted)
        return;
    c->it.wanted = wanted;
    mind_changed_cluster(y, c);
}

/* --- fewer --- */

/* The youngest node in one of these states that nobody works on. */
static struct node *spare_node(const struct cluster *c, enum node_state state)
{
    struct ordered_link *link;

    if (c->count[state] == 0)
        return NULL;
    for (link = ordered_last(&c->nodes); link; link = ordered_previous(&c->nodes, link)) {
        struct node *n = container_of(link, struct node, in_cluster);

        if (n->it.state == state && n->it.attempt_id == 0)
            return n;
    }
    return NULL;
}

/* Broken ones first, then those whose making is lost the least. */
static bool let_spare_go(struct yard *y, struct cluster *c)
{
    static const enum node_state order[] = {NODE_UNUSABLE, NODE_CREATING, NODE_IDLE};

    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        struct node *n = spare_node(c, order[i]);

        if (n) {
            mind_let_node_go(y, n);
            return true;
        }
    }
    return false;
}

static int stopping_nodes(const struct cluster *c)
{
    struct ordered_link *link = ordered_first(&c->holds);
    int nodes = 0;

    for (; link; link = ordered_next(&c->holds, link)) {
        const struct attempt *a = mind_attempt_of_hold(link);

        if (a->it.state == ATTEMPT_STOPPING)
            nodes += (int)a->hold.node_count;
    }
    return nodes;
}

/* Whose work is stopped first: the lowest priority, of those the youngest. */
static struct attempt *find_victim(const struct cluster *c)
{
    struct ordered_link *link = ordered_first(&c->holds);
    struct attempt *victim = NULL;

    for (; link; link = ordered_next(&c->holds, link)) {
        struct attempt *a = mind_attempt_of_hold(link);
        bool is_lower;

        if (a->it.state == ATTEMPT_STOPPING)
            continue;
        is_lower = victim && a->job->it.priority < victim->job->it.priority;
        if (!victim || is_lower ||
            (a->job->it.priority == victim->job->it.priority && a->it.id > victim->it.id))
            victim = a;
    }
    return victim;
}

static void stop_for(struct yard *y, struct cluster *c, int surplus)
{
    enum stop_reason reason =
        c->it.deallocation == DEALLOCATE_TERMINATE ? STOP_SHRINK : STOP_REQUEUE;
    struct attempt *victim;
    int freed = stopping_nodes(c);

    while (freed < surplus && (victim = find_victim(c))) {
        freed += (int)victim->hold.node_count;
        mind_stop_attempt(y, victim, reason);
    }
}

/* What an automatic cluster has beyond its maximum, because that was lowered, goes when its
 * jobs end: only a target set by hand comes with the word to stop work. */
static void shrink(struct yard *y, struct cluster *c)
{
    int surplus = mind_live_nodes(c) - c->it.wanted;

    while (surplus > 0 && let_spare_go(y, c))
        surplus--;
    if (surplus > 0 && !c->it.is_automatic && !c->it.is_deleting &&
        c->it.deallocation != DEALLOCATE_WAIT)
        stop_for(y, c, surplus);
}

/* --- more --- */

/* With room for fewer than it wants: how many nodes in all serve jobs of an automatic cluster?
 * In the order of the queue; the first that has to wait for nodes which others hold is the last
 * to be served. */
static int useful_nodes(const struct cluster *c, int usable, int room)
{
    int most = usable + room, nodes = c->held;
    const struct schedule_job *job = schedule_seek(&c->queue, NULL, most);

    for (; job && nodes < most; job = schedule_seek(&c->queue, job, most)) {
        if (nodes + job->node_count > most)
            return max(job->node_count, nodes);
        nodes += job->node_count;
    }
    return nodes;
}

static int partial(const struct cluster *c, int room)
{
    int live = mind_live_nodes(c);
    int usable = live - broken_nodes(c);

    if (!c->it.is_automatic)
        return room;
    return min(room, max(useful_nodes(c, usable, room) - usable, c->it.least - live));
}

static void grow(struct yard *y, struct cluster *c)
{
    int missing = c->it.wanted - mind_live_nodes(c);
    struct room room;
    int made;

    if (missing <= 0) {
        clear_error(y, c);
        return;
    }
    room = room_now(y, c);
    made = missing <= room.nodes ? missing : max(0, partial(c, room.nodes));
    for (int i = 0; i < made; i++)
        mind_make_node(y, c);
    if (made < missing) {
        room = room_now(y, c);
        note_error(y, c, &room);
    } else {
        clear_error(y, c);
    }
}

/* --- work --- */

static void start_jobs(struct yard *y, struct cluster *c)
{
    struct schedule_view view;
    struct schedule_job *plan;

    mind_view(y, c, &view);
    while ((plan = schedule_next(&view))) {
        mind_start_job(y, mind_job_of_plan(plan), &view);
        mind_view(y, c, &view);
    }
}

static void end_jobs(struct yard *y, struct cluster *c)
{
    struct ordered_link *link;

    while ((link = ordered_first(&c->queue)))
        mind_drop_job(y, mind_job_of_plan(container_of(link, struct schedule_job, link)),
                      STOP_DELETED);
    /* A stop moves the hold; a second look at one that is stopping changes nothing. */
    for (link = ordered_first(&c->holds); link;) {
        struct attempt *a = mind_attempt_of_hold(link);
        bool was_stopping = a->it.state == ATTEMPT_STOPPING;

        mind_stop_attempt(y, a, STOP_DELETED);
        link = was_stopping ? ordered_next(&c->holds, link) : ordered_first(&c->holds);
    }
}

/* They are in the place of nodes that could serve the jobs which wait. */
static void let_broken_go(struct yard *y, struct cluster *c)
{
    struct ordered_link *link = ordered_first(&c->expired), *next;

    for (; c->queued_nodes > 0 && link; link = next) {
        struct node *n = container_of(link, struct node, expired);

        next = ordered_next(&c->expired, link);
        if (n->it.state == NODE_UNUSABLE)
            mind_let_node_go(y, n);
    }
}

static void let_expired_go(struct yard *y, struct cluster *c)
{
    bool is_short = c->it.error_code[0] != '\0';
    int kept = is_short ? c->it.least : demand(c);
    struct ordered_link *link;

    if (c->it.is_automatic)
        let_broken_go(y, c);
    while (c->it.is_automatic && mind_live_nodes(c) > kept &&
           (link = ordered_last(&c->expired)))
        mind_let_node_go(y, container_of(link, struct node, expired));
    if (c->it.is_automatic && !is_short && !c->it.is_deleting)
        set_wanted(y, c, goal(c));
}

/* "steady": it has the nodes it wants, or all it can get, and none is on its way out.  Nodes
 * that are being prepared count as there. */
static void judge(struct yard *y, struct cluster *c)
{
    bool is_steady = c->count[NODE_LEAVING] == 0 && c->lost == 0 &&
                     (mind_live_nodes(c) == c->it.wanted || c->it.error_code[0]);

    if (c->it.is_steady == is_steady && c->it.steady_ms != 0)
        return;
    c->it.is_steady = is_steady;
    c->it.steady_ms = y->now_ms;
    mind_changed_cluster(y, c);
}

static void settle(struct yard *y, struct cluster *c)
{
    if (c->it.is_deleting)
        end_jobs(y, c);
    set_wanted(y, c, goal(c));
    shrink(y, c);
    grow(y, c);
    c->is_new = false;
    start_jobs(y, c);
    let_expired_go(y, c);
    judge(y, c);
}

/* --- which --- */

void mind_touch(struct yard *y, struct cluster *c)
{
    if (c->is_touched)
        return;
    c->is_touched = true;
    if (y->touched_count == y->touched_room) {
        y->touched_room = y->touched_room > 0 ? y->touched_room * 2 : 16;
        y->touched = xreallocarray(y->touched, y->touched_room, sizeof(struct cluster *));
    }
    y->touched[y->touched_count++] = c;
}

void mind_touch_short(struct yard *y)
{
    struct ordered_link *link = ordered_first(&y->clusters);

    for (; link; link = ordered_next(&y->clusters, link)) {
        struct cluster *c = container_of(link, struct cluster, link);

        if (c->it.error_code[0])
            mind_touch(y, c);
    }
}

/* Whose first job is of higher priority, or older, has the first grip on what is free. */
static bool is_senior(const struct cluster *a, const struct cluster *b)
{
    const struct ordered_link *first = ordered_first(&a->queue);
    const struct ordered_link *other = ordered_first(&b->queue);

    if (!first || !other)
        return first && !other;
    return first->major != other->major ? first->major < other->major
                                        : first->minor < other->minor;
}

void mind_settle(struct yard *y)
{
    while (y->touched_count > 0) {
        size_t best = 0;
        struct cluster *c;

        for (size_t i = 1; i < y->touched_count; i++)
            if (is_senior(y->touched[i], y->touched[best]))
                best = i;
        c = y->touched[best];
        settle(y, c); /* touches itself: it is still marked */
        c->is_touched = false;
        y->touched[best] = y->touched[--y->touched_count];
    }
}

/* --- events --- */

static void recount_queue(struct cluster *c)
{
    struct ordered_link *link = ordered_first(&c->queue);

    c->queued_nodes = 0;
    for (; link; link = ordered_next(&c->queue, link)) {
        int nodes = container_of(link, struct schedule_job, link)->node_count;

        if (nodes <= c->ceiling)
            c->queued_nodes += nodes;
    }
}

void mind_weigh_cluster(struct yard *y, struct cluster *c)
{
    int ceiling =
        min(c->it.is_automatic ? c->it.most : c->it.target, mind_machine_room(y, &c->it));
    struct ordered_link *link = ordered_first(&c->nodes);

    if (ceiling != c->ceiling) {
        c->ceiling = ceiling;
        recount_queue(c);
    }
    for (; link; link = ordered_next(&c->nodes, link))
        mind_time_node(y, container_of(link, struct node, in_cluster));
    mind_touch(y, c);
}

static void take_settings(struct yard_cluster *to, const struct yard_cluster *from)
{
    struct yard_cluster old = *to;

    *to = *from;
    to->name = xstrdup(from->name ? from->name : "");
    to->is_deleting = from->is_deleting || old.is_deleting;
    to->is_steady = old.is_steady;
    to->steady_ms = old.steady_ms;
    to->wanted = old.wanted;
    memcpy(to->error_code, old.error_code, sizeof(to->error_code));
    memcpy(to->error_message, old.error_message, sizeof(to->error_message));
    yard_cluster_done(&old);
}

void yard_put_cluster(struct yard *y, const struct yard_cluster *cluster, int64_t now_ms)
{
    struct cluster *c = mind_cluster(y, cluster->id);

    mind_clock(y, now_ms);
    if (c) {
        take_settings(&c->it, cluster);
    } else {
        struct yard_cluster values = *cluster;

        values.is_steady = false;
        values.steady_ms = values.wanted = 0;
        values.error_code[0] = values.error_message[0] = '\0';
        c = mind_new_cluster(y, &values);
        c->is_new = true;
    }
    mind_weigh_cluster(y, c);
    mind_settle(y);
}

/* --- time --- */

static void pass_idle_time(struct yard *y)
{
    struct ordered_link *link;

    while ((link = ordered_first(&y->idle_timers)) && link->major <= y->now_ms) {
        struct node *n = container_of(link, struct node, timer);

        ordered_remove(&y->idle_timers, link);
        ordered_add(&n->cluster->expired, &n->expired, 0, n->it.id);
        mind_touch(y, n->cluster);
    }
}

static void pass_wall_time(struct yard *y)
{
    struct ordered_link *link;

    while ((link = ordered_first(&y->wall_timers)) && link->major <= y->now_ms)
        mind_stop_attempt(y, container_of(link, struct attempt, timer), STOP_WALL_CLOCK);
}

void yard_tick(struct yard *y, int64_t now_ms)
{
    mind_clock(y, now_ms);
    pass_wall_time(y);
    pass_idle_time(y);
    mind_settle(y);
}

int64_t yard_next_tick(const struct yard *y)
{
    const struct ordered_link *idle = ordered_first(&y->idle_timers);
    const struct ordered_link *wall = ordered_first(&y->wall_timers);
    int64_t idle_ms = idle ? idle->major : INT64_MAX;
    int64_t wall_ms = wall ? wall->major : INT64_MAX;

    return idle_ms < wall_ms ? idle_ms : wall_ms;
}
