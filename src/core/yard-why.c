/* One line about a job: what it waits for, or does, or died of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include "base/str.h"

#include <limits.h>
#include <string.h>

enum {
    MOST_NAMED = 3, /* holders in the line */
    /* An estimate costs nodes times jobs ahead, a nanosecond each, on the thread that moves all
     * jobs on: so 10,000 jobs on 300 nodes are looked at, and beyond that nobody is told. */
    MOST_STEPS = 4 * 1000 * 1000,
    STEPS_OF_A_JOB = 100, /* before any node: it is somewhere in memory */
};

struct asking {
    const struct yard *yard;
    const char *(*name_of)(int64_t job_id, void *context);
    void *context;
    struct str *out;
};

/* --- words --- */

void mind_add_duration(struct str *out, int64_t ms)
{
    static const struct unit {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};
    size_t at = 0;

    if (ms < 1000) {
        str_add(out, ms <= 0 ? "0 s" : "1 s");
        return;
    }
    while (ms < units[at].ms)
        at++;
    str_addf(out, "%lld %s", (long long)(ms / units[at].ms), units[at].name);
    ms %= units[at].ms;
    at++;
    if (at < ARRAY_SIZE(units) && ms >= units[at].ms)
        str_addf(out, " %lld %s", (long long)(ms / units[at].ms), units[at].name);
}

static void add_nodes(struct str *out, size_t count)
{
    str_addf(out, "%zu node%s", count, count == 1 ? "" : "s");
}

static void add_job(const struct asking *ask, int64_t id)
{
    const char *name = ask->name_of ? ask->name_of(id, ask->context) : NULL;

    if (name)
        str_addf(ask->out, "job %s", name);
    else
        str_addf(ask->out, "job %lld", (long long)id);
}

/* --- when --- */

/* When each node of the cluster is free, in order.  Caller frees. */
static int64_t *free_times(const struct schedule_view *view, size_t *ret_count)
{
    size_t idle = ordered_count(view->idle), at = idle;
    int64_t *times = xcalloc(idle + (size_t)view->held + 1, sizeof(*times));
    struct ordered_link *link = ordered_first(view->holds);

    for (size_t i = 0; i < idle; i++)
        times[i] = view->now_ms;
    for (; link; link = ordered_next(view->holds, link)) {
        const struct schedule_hold *hold = container_of(link, struct schedule_hold, link);

        for (size_t i = 0; i < hold->node_count; i++)
            times[at++] = link->major > view->now_ms ? link->major : view->now_ms;
    }
    *ret_count = at;
    return times;
}

/* The first `need` are free again at free_ms: back in order. */
static void put_back(int64_t *times, size_t count, size_t need, int64_t free_ms)
{
    size_t low = need, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (times[middle] <= free_ms)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(times, times + need, (low - need) * sizeof(*times));
    for (size_t i = low - need; i < low; i++)
        times[i] = free_ms;
}

/* If everybody ahead used up their time, one after the other.  INT64_MAX = not known. */
static int64_t estimate(const struct schedule_view *view, const struct schedule_job *job)
{
    size_t count = ordered_count(view->idle) + (size_t)view->held;
    auto_free int64_t *times = NULL;
    struct ordered_link *link = ordered_first(view->queue);
    int64_t start_ms = view->now_ms;

    if ((size_t)job->node_count > count ||
        ordered_place(view->queue, &job->link) > MOST_STEPS / (count + STEPS_OF_A_JOB))
        return INT64_MAX;
    times = free_times(view, &count);
    for (; link; link = ordered_next(view->queue, link)) {
        const struct schedule_job *ahead = container_of(link, struct schedule_job, link);
        size_t need = (size_t)ahead->node_count;

        if (need > count)
            continue;
        if (times[need - 1] > start_ms)
            start_ms = times[need - 1];
        if (ahead == job)
            return start_ms;
        put_back(times, count, need, schedule_add_ms(start_ms, ahead->wall_ms));
    }
    return INT64_MAX;
}

static void
add_estimate(const struct asking *ask, const struct schedule_view *view, const struct job *j)
{
    int64_t start_ms;
    const struct schedule_job *head = schedule_head(view, &start_ms);
    bool is_head = head == &j->plan;

    if (!is_head)
        start_ms = estimate(view, &j->plan);
    if (start_ms == INT64_MAX)
        return;
    str_add(ask->out, is_head ? "; starts at the latest in " : "; starts in about ");
    mind_add_duration(ask->out, start_ms - view->now_ms);
}

/* --- what for --- */

static void add_holder(const struct asking *ask, const struct attempt *a)
{
    add_job(ask, a->job->it.id);
    str_addf(ask->out, " (%s, ", job_state_name(a->job->it.state));
    add_nodes(ask->out, a->it.node_count);
    str_add_char(ask->out, ')');
}

static void add_holders(const struct asking *ask, const struct cluster *c)
{
    size_t count = ordered_count(&c->holds), named = count < MOST_NAMED ? count : MOST_NAMED;
    struct ordered_link *link = ordered_first(&c->holds);

    if (count == 0)
        return;
    str_add(ask->out, "; ");
    for (size_t i = 0; i < named; i++, link = ordered_next(&c->holds, link)) {
        if (i > 0)
            str_add(ask->out, i + 1 == count ? " and " : ", ");
        add_holder(ask, mind_attempt_of_hold(link));
    }
    if (count > named)
        str_addf(ask->out, " and %zu more", count - named);
    str_add(ask->out, count == 1 ? " holds them" : " hold them");
}

static const struct node *first_unusable(const struct cluster *c)
{
    struct ordered_link *link = ordered_first(&c->nodes);

    for (; link; link = ordered_next(&c->nodes, link)) {
        const struct node *n = container_of(link, struct node, in_cluster);

        if (n->it.state == NODE_UNUSABLE && n->it.attempt_id == 0)
            return n;
    }
    return NULL;
}

/* Why there are not more nodes. */
static void add_shortage(const struct asking *ask, const struct cluster *c)
{
    int unusable = c->count[NODE_UNUSABLE] - c->lost;

    if (c->count[NODE_CREATING] > 0)
        str_addf(ask->out, "; %d being prepared", c->count[NODE_CREATING]);
    if (unusable > 0) {
        const struct node *n = first_unusable(c);

        str_addf(ask->out, "; %d unusable (%s: %s)", unusable, n->it.name, n->it.error_message);
    }
    if (c->it.error_message[0])
        str_addf(ask->out, "; %s", c->it.error_message);
}

/* All of the machine would not do. */
static void add_no_room(const struct asking *ask, const struct cluster *c)
{
    const struct yard_limits *limits = &ask->yard->limits;

    str_addf(ask->out, ", but the yard has room for %d of the size of cluster %s",
             mind_machine_room(ask->yard, &c->it), c->it.name);
    if (!limits->oversubscribe && c->it.cores > limits->cores)
        str_addf(ask->out, ": a node takes %d cores, and there are %d", c->it.cores,
                 limits->cores);
    else if (c->it.gpus > limits->gpus)
        str_addf(ask->out, ": a node takes %d GPUs, and there are %d", c->it.gpus,
                 limits->gpus);
}

static bool add_impossible(const struct asking *ask, const struct cluster *c, int need)
{
    int allowed = c->it.is_automatic ? c->it.most : c->it.target;

    if (need <= c->ceiling)
        return false;
    str_add(ask->out, "needs ");
    add_nodes(ask->out, (size_t)need);
    if (need > allowed)
        str_addf(ask->out, ", but cluster %s has a %s of %d: resize it", c->it.name,
                 c->it.is_automatic ? "maximum" : "target", allowed);
    else
        add_no_room(ask, c);
    return true;
}

static int fit_idle(const struct cluster *c, const struct schedule_job *job)
{
    struct ordered_link *link = ordered_first(&c->idle);
    int idle = 0;

    for (; link; link = ordered_next(&c->idle, link))
        idle += schedule_count_excluded(job, &link->minor, 1) == 0;
    return idle;
}

/* There are enough idle nodes, and yet it waits. */
static void
add_turn(const struct asking *ask, const struct cluster *c, const struct schedule_view *view)
{
    int64_t start_ms;
    const struct schedule_job *head = schedule_head(view, &start_ms);

    str_addf(ask->out, "waits for its turn on cluster %s", c->it.name);
    if (head) {
        str_add(ask->out, ": the idle nodes are kept for ");
        add_job(ask, head->id);
    }
}

static void add_lack(const struct asking *ask,
                     const struct cluster *c,
                     const struct schedule_view *view,
                     const struct schedule_job *job)
{
    int idle = fit_idle(c, job);

    if (idle >= job->node_count) {
        add_turn(ask, c, view);
        return;
    }
    str_addf(ask->out, "waits for %d of %d node%s of cluster %s", job->node_count - idle,
             job->node_count, job->node_count == 1 ? "" : "s", c->it.name);
    add_holders(ask, c);
    add_shortage(ask, c);
}

static void tell_queued(const struct asking *ask, const struct job *j)
{
    const struct cluster *c = j->cluster;
    struct schedule_view view;

    mind_view(ask->yard, c, &view);
    if (!add_impossible(ask, c, j->plan.node_count))
        add_lack(ask, c, &view, &j->plan);
    str_addf(ask->out, "; place %zu of %zu", ordered_place(&c->queue, &j->plan.link) + 1,
             ordered_count(&c->queue));
    add_estimate(ask, &view, j);
    if (j->it.verdict)
        str_addf(ask->out, "; before: %s", j->it.verdict);
}

/* --- what it does --- */

static const char *const stop_words[] = {
    [STOP_NONE] = "",
    [STOP_USER] = "terminated by the user",
    [STOP_WALL_CLOCK] = "its wall-clock limit is over",
    [STOP_REQUEUE] = "its nodes are wanted back",
    [STOP_SHRINK] = "its cluster is made smaller",
    [STOP_DELETED] = "it or its cluster is being deleted",
    [STOP_NODE_LOST] = "one of its nodes was lost",
};

static void tell_live(const struct asking *ask, const struct attempt *a, int64_t now_ms)
{
    int64_t limit_ms = schedule_add_ms(a->it.created_ms, a->job->it.wall_ms);

    if (a->it.state == ATTEMPT_STOPPING) {
        str_addf(ask->out, "is being stopped: %s", stop_words[a->it.stop]);
    } else {
        str_add(ask->out, a->it.state == ATTEMPT_RUNNING ? "runs for " : "is set up for ");
        mind_add_duration(ask->out,
                          now_ms - (a->it.started_ms ? a->it.started_ms : a->it.created_ms));
    }
    str_add(ask->out, " on ");
    add_nodes(ask->out, a->it.node_count);
    str_addf(ask->out, " of cluster %s (attempt %d)", a->job->cluster->it.name, a->it.number);
    if (a->it.state != ATTEMPT_STOPPING && limit_ms != INT64_MAX) {
        str_add(ask->out, "; its limit is in ");
        mind_add_duration(ask->out, limit_ms - now_ms);
    }
}

void yard_why(const struct yard *yard,
              int64_t job_id,
              int64_t now_ms,
              const char *(*name_of)(int64_t job_id, void *context),
              void *context,
              struct str *out)
{
    struct asking ask = {yard, name_of, context, out};
    const struct job *j = mind_job(yard, job_id);
    const struct attempt *a = j ? mind_attempt(yard, j->it.attempt_id) : NULL;

    if (!j) {
        str_add(out, "there is no such job");
    } else if (j->it.state == JOB_QUEUED) {
        tell_queued(&ask, j);
    } else if (a) {
        tell_live(&ask, a, now_ms);
    } else if (j->it.verdict) {
        str_add(out, j->it.verdict);
    } else {
        str_addf(out, "%s after ", job_state_name(j->it.state));
        mind_add_duration(out, j->it.ended_ms - j->it.started_ms);
    }
}
