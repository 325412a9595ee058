/* The tables: finding, adding, forgetting, what changed, looking.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard.h"

#include "core/yard-internal.h"

#include <string.h>

/* --- values --- */

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static int64_t *copy_ids(const int64_t *ids, size_t count)
{
    int64_t *copy = count > 0 ? xcalloc(count, sizeof(*copy)) : NULL;

    if (count > 0)
        memcpy(copy, ids, count * sizeof(*copy));
    return copy;
}

void yard_cluster_done(struct yard_cluster *cluster)
{
    free(cluster->name);
    cluster->name = NULL;
}

void yard_job_done(struct yard_job *job)
{
    free(job->error_code);
    free(job->error_message);
    free(job->error_info);
    free(job->verdict);
    free(job->excluded);
    *job = (struct yard_job){0};
}

void yard_attempt_done(struct yard_attempt *attempt)
{
    free(attempt->nodes);
    attempt->nodes = NULL;
    attempt->node_count = 0;
}

/* --- tables --- */

struct cluster *mind_cluster(const struct yard *y, int64_t id)
{
    struct ordered_link *link = ordered_find(&y->clusters, 0, id);

    return link ? container_of(link, struct cluster, link) : NULL;
}

struct node *mind_node(const struct yard *y, int64_t id)
{
    struct ordered_link *link = ordered_find(&y->nodes, 0, id);

    return link ? container_of(link, struct node, link) : NULL;
}

struct job *mind_job(const struct yard *y, int64_t id)
{
    struct ordered_link *link = ordered_find(&y->jobs, 0, id);

    return link ? container_of(link, struct job, link) : NULL;
}

struct attempt *mind_attempt(const struct yard *y, int64_t id)
{
    struct ordered_link *link = ordered_find(&y->attempts, 0, id);

    return link ? container_of(link, struct attempt, link) : NULL;
}

struct cluster *mind_new_cluster(struct yard *y, const struct yard_cluster *values)
{
    struct cluster *c = xcalloc(1, sizeof(*c));

    c->it = *values;
    c->it.name = xstrdup(values->name ? values->name : "");
    ordered_add(&y->clusters, &c->link, 0, values->id);
    return c;
}

struct node *mind_new_node(struct yard *y, const struct yard_node *values)
{
    struct node *n = xcalloc(1, sizeof(*n));

    n->it = *values;
    ordered_add(&y->nodes, &n->link, 0, values->id);
    return n;
}

struct job *mind_new_job(struct yard *y, const struct yard_job *values)
{
    struct job *j = xcalloc(1, sizeof(*j));

    j->it = *values;
    j->it.error_code = copy_text(values->error_code);
    j->it.error_message = copy_text(values->error_message);
    j->it.error_info = copy_text(values->error_info);
    j->it.verdict = copy_text(values->verdict);
    j->it.excluded = copy_ids(values->excluded, values->excluded_count);
    ordered_add(&y->jobs, &j->link, 0, values->id);
    return j;
}

struct attempt *mind_new_attempt(struct yard *y, const struct yard_attempt *values)
{
    struct attempt *a = xcalloc(1, sizeof(*a));

    a->it = *values;
    a->it.nodes = copy_ids(values->nodes, values->node_count);
    ordered_add(&y->attempts, &a->link, 0, values->id);
    return a;
}

static void free_cluster(struct cluster *c)
{
    yard_cluster_done(&c->it);
    free(c);
}

static void free_job(struct job *j)
{
    yard_job_done(&j->it);
    free(j);
}

static void free_attempt(struct attempt *a)
{
    yard_attempt_done(&a->it);
    free(a->hold_nodes);
    free(a);
}

static void empty_graves(struct graves *g)
{
    for (struct cluster *c = g->clusters, *next; c; c = next) {
        next = c->next_grave;
        free_cluster(c);
    }
    for (struct node *n = g->nodes, *next; n; n = next) {
        next = n->next_grave;
        free(n);
    }
    for (struct job *j = g->jobs, *next; j; j = next) {
        next = j->next_grave;
        free_job(j);
    }
    for (struct attempt *a = g->attempts, *next; a; a = next) {
        next = a->next_grave;
        free_attempt(a);
    }
    *g = (struct graves){0};
}

void mind_bury_node(struct yard *y, struct node *n)
{
    ordered_remove(&y->nodes, &n->link);
    n->next_grave = y->graves.nodes;
    y->graves.nodes = n;
}

void mind_bury_attempt(struct yard *y, struct attempt *a)
{
    ordered_remove(&y->attempts, &a->link);
    a->next_grave = y->graves.attempts;
    y->graves.attempts = a;
}

/* --- the whole --- */

struct yard *yard_new(const struct yard_limits *limits)
{
    struct yard *y = xcalloc(1, sizeof(*y));

    y->limits = *limits;
    y->round = 1;
    return y;
}

static void free_changes(struct change_list *changes)
{
    free(changes->list.clusters);
    free(changes->list.nodes);
    free(changes->list.jobs);
    free(changes->list.attempts);
    free(changes->actions);
}

void yard_free(struct yard *y)
{
    struct ordered_link *link;

    if (!y)
        return;
    while ((link = y->clusters.root)) {
        ordered_remove(&y->clusters, link);
        free_cluster(container_of(link, struct cluster, link));
    }
    while ((link = y->nodes.root)) {
        ordered_remove(&y->nodes, link);
        free(container_of(link, struct node, link));
    }
    while ((link = y->jobs.root)) {
        ordered_remove(&y->jobs, link);
        free_job(container_of(link, struct job, link));
    }
    while ((link = y->attempts.root)) {
        ordered_remove(&y->attempts, link);
        free_attempt(container_of(link, struct attempt, link));
    }
    empty_graves(&y->graves);
    empty_graves(&y->taken_graves);
    free_changes(&y->now);
    free_changes(&y->taken);
    free(y->touched);
    free(y);
}

void mind_clock(struct yard *y, int64_t now_ms)
{
    if (now_ms > y->now_ms)
        y->now_ms = now_ms;
}

/* --- what changed --- */

static void *make_room(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room > 0 ? *room * 2 : 16;
    return xreallocarray(items, *room, size);
}

void mind_changed_cluster(struct yard *y, struct cluster *c)
{
    struct yard_changes *list = &y->now.list;

    if (c->changed == y->round)
        return;
    c->changed = y->round;
    list->clusters = make_room(list->clusters, list->cluster_count, &y->now.rooms[0],
                               sizeof(struct yard_cluster *));
    list->clusters[list->cluster_count++] = &c->it;
}

void mind_changed_node(struct yard *y, struct node *n)
{
    struct yard_changes *list = &y->now.list;

    if (n->changed == y->round)
        return;
    n->changed = y->round;
    list->nodes =
        make_room(list->nodes, list->node_count, &y->now.rooms[1], sizeof(struct yard_node *));
    list->nodes[list->node_count++] = &n->it;
}

void mind_changed_job(struct yard *y, struct job *j)
{
    struct yard_changes *list = &y->now.list;

    if (j->changed == y->round)
        return;
    j->changed = y->round;
    list->jobs =
        make_room(list->jobs, list->job_count, &y->now.rooms[2], sizeof(struct yard_job *));
    list->jobs[list->job_count++] = &j->it;
}

void mind_changed_attempt(struct yard *y, struct attempt *a)
{
    struct yard_changes *list = &y->now.list;

    if (a->changed == y->round)
        return;
    a->changed = y->round;
    list->attempts = make_room(list->attempts, list->attempt_count, &y->now.rooms[3],
                               sizeof(struct yard_attempt *));
    list->attempts[list->attempt_count++] = &a->it;
}

void mind_act(struct yard *y, enum yard_action_kind kind, int64_t id)
{
    struct yard_changes *list = &y->now.list;

    y->now.actions = make_room(y->now.actions, list->action_count, &y->now.rooms[4],
                               sizeof(*y->now.actions));
    y->now.actions[list->action_count++] = (struct yard_action){kind, id};
}

void yard_take_changes(struct yard *y, struct yard_changes *ret_changes)
{
    struct change_list spare = y->taken;
    struct yard_changes *list = &spare.list;

    empty_graves(&y->taken_graves);
    y->taken_graves = y->graves;
    y->graves = (struct graves){0};
    y->taken = y->now;
    list->cluster_count = list->node_count = list->job_count = 0;
    list->attempt_count = list->action_count = 0;
    y->now = spare;
    y->round++;
    y->taken.list.actions = y->taken.actions;
    *ret_changes = y->taken.list;
}

/* --- forgetting --- */

int yard_forget_cluster(struct yard *y, int64_t id, struct err *e)
{
    struct cluster *c = mind_cluster(y, id);
    struct yard_changes *list = &y->now.list;

    if (!c)
        return err_set(e, ERR_NOT_FOUND, "there is no cluster %lld", (long long)id);
    if (ordered_count(&c->nodes) > 0 || ordered_count(&c->queue) > 0)
        return err_set(e, ERR_BUSY, "cluster %s still has nodes or jobs", c->it.name);
    ordered_remove(&y->clusters, &c->link);
    for (size_t i = 0; c->changed == y->round && i < list->cluster_count; i++)
        if (list->clusters[i] == &c->it)
            list->clusters[i--] = list->clusters[--list->cluster_count];
    c->next_grave = y->graves.clusters;
    y->graves.clusters = c;
    return 0;
}

int yard_forget_job(struct yard *y, int64_t id, struct err *e)
{
    struct job *j = mind_job(y, id);
    struct yard_changes *list = &y->now.list;

    if (!j)
        return err_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
    if (!job_is_final(j->it.state))
        return err_set(e, ERR_BUSY, "job %lld is %s", (long long)id,
                       job_state_name(j->it.state));
    ordered_remove(&y->jobs, &j->link);
    for (size_t i = 0; j->changed == y->round && i < list->job_count; i++)
        if (list->jobs[i] == &j->it)
            list->jobs[i--] = list->jobs[--list->job_count];
    j->next_grave = y->graves.jobs;
    y->graves.jobs = j;
    return 0;
}

/* --- looking --- */

const struct yard_cluster *yard_cluster(const struct yard *y, int64_t id)
{
    const struct cluster *c = mind_cluster(y, id);

    return c ? &c->it : NULL;
}

const struct yard_node *yard_node(const struct yard *y, int64_t id)
{
    const struct node *n = mind_node(y, id);

    return n ? &n->it : NULL;
}

const struct yard_job *yard_job(const struct yard *y, int64_t id)
{
    const struct job *j = mind_job(y, id);

    return j ? &j->it : NULL;
}

const struct yard_attempt *yard_attempt(const struct yard *y, int64_t id)
{
    const struct attempt *a = mind_attempt(y, id);

    return a ? &a->it : NULL;
}

void yard_count_nodes(const struct yard *y, int64_t cluster_id, struct node_counts *ret)
{
    const struct cluster *c = mind_cluster(y, cluster_id);

    *ret = (struct node_counts){0};
    if (!c)
        return;
    ret->idle = c->count[NODE_IDLE];
    ret->running = c->count[NODE_RUNNING];
    ret->preparing = c->count[NODE_CREATING];
    ret->unusable = c->count[NODE_UNUSABLE];
    ret->leaving = c->count[NODE_LEAVING];
}

void yard_each_node(const struct yard *y,
                    int64_t cluster_id,
                    void (*each)(const struct yard_node *node, void *context),
                    void *context)
{
    const struct cluster *c = mind_cluster(y, cluster_id);
    const struct ordered_link *link = c ? ordered_first(&c->nodes) : NULL;

    for (; link; link = ordered_next(&c->nodes, link))
        each(&container_of(link, const struct node, in_cluster)->it, context);
}
