/* EASY backfilling (Lifka's scheduler for the SP2): a reservation for the first of the queue
 * alone, everybody else goes where that leaves room.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/schedule.h"

#include "base/mem.h"

/* What the first of the queue leaves to others. */
struct room {
    const struct schedule_job *head;
    size_t idle;       /* nodes free now */
    size_t unfit;      /* of them, those that the head must not get */
    size_t extra;      /* of the rest, those it will not need when it starts */
    int64_t window_ms; /* from now to that start */
};

static struct schedule_job *job_of(struct ordered_link *link)
{
    return link ? container_of(link, struct schedule_job, link) : NULL;
}

static const struct schedule_hold *hold_of(const struct ordered_link *link)
{
    return container_of(link, const struct schedule_hold, link);
}

int64_t schedule_add_ms(int64_t a, int64_t b)
{
    return b > INT64_MAX - a ? INT64_MAX : a + b;
}

/* Jobs are weighed by their time, in seconds, each in the class of its size; in the other
 * classes it has no weight that could ever fit.  These are the least sizes of the classes. */
static const int class_least[ORDERED_WEIGHTS] = {1,  2,  3,  4,  5,  7,  9,   13,
                                                 17, 25, 33, 49, 65, 97, 129, 257};

static const uint32_t never = UINT32_MAX;

static uint32_t seconds(int64_t ms)
{
    return ms / 1000 < never ? (uint32_t)(ms / 1000) : never - 1;
}

static size_t class_of(int node_count)
{
    size_t class = 0;

    while (class + 1 < ORDERED_WEIGHTS && class_least[class + 1] <= node_count)
        class ++;
    return class;
}

void schedule_add_job(struct ordered *queue, struct schedule_job *job)
{
    for (size_t i = 0; i < ORDERED_WEIGHTS; i++)
        job->weights.own[i] = never;
    job->weights.own[class_of(job->node_count)] = seconds(job->wall_ms);
    job->link.weights = &job->weights;
    ordered_add(queue, &job->link, -job->priority, job->id);
}

static bool is_excluded(const struct schedule_job *job, int64_t node)
{
    for (size_t i = 0; i < job->excluded_count; i++)
        if (job->excluded[i] == node)
            return true;
    return false;
}

size_t
schedule_count_excluded(const struct schedule_job *job, const int64_t *nodes, size_t count)
{
    size_t excluded = 0;

    for (size_t i = 0; job->excluded_count > 0 && i < count; i++)
        excluded += is_excluded(job, nodes[i]);
    return excluded;
}

static size_t unfit_idle(const struct schedule_view *view, const struct schedule_job *job)
{
    size_t unfit = 0;

    for (size_t i = 0; i < job->excluded_count; i++)
        unfit += ordered_find(view->idle, 0, job->excluded[i]) != NULL;
    return unfit;
}

static size_t fit_hold(const struct schedule_hold *hold, const struct schedule_job *job)
{
    return hold->node_count - schedule_count_excluded(job, hold->nodes, hold->node_count);
}

static size_t fit_held(const struct schedule_view *view, const struct schedule_job *job)
{
    const struct ordered_link *link;
    size_t held = 0;

    if (job->excluded_count == 0)
        return (size_t)view->held;
    for (link = ordered_first(view->holds); link; link = ordered_next(view->holds, link))
        held += fit_hold(hold_of(link), job);
    return held;
}

/* Could it run on the nodes that are there and coming? */
static bool is_servable(const struct schedule_view *view, const struct schedule_job *job)
{
    size_t nodes = ordered_count(view->idle) - unfit_idle(view, job) + (size_t)view->coming +
                   fit_held(view, job);

    return (size_t)job->node_count <= nodes;
}

static bool has_few_nodes(const uint32_t weights[ORDERED_WEIGHTS], const void *context)
{
    int most = *(const int *)context;

    for (size_t i = 0; i < ORDERED_WEIGHTS && class_least[i] <= most; i++)
        if (weights[i] != never)
            return true;
    return false;
}

struct schedule_job *
schedule_seek(const struct ordered *queue, const struct schedule_job *after, int most_nodes)
{
    struct ordered_link *link =
        ordered_seek(queue, after ? &after->link : NULL, has_few_nodes, &most_nodes);

    while (link && job_of(link)->node_count > most_nodes)
        link = ordered_seek(queue, link, has_few_nodes, &most_nodes);
    return job_of(link);
}

static struct schedule_job *find_head(const struct schedule_view *view)
{
    int most = (int)ordered_count(view->idle) + view->held + view->coming;
    struct schedule_job *job = schedule_seek(view->queue, NULL, most);

    while (job && !is_servable(view, job))
        job = schedule_seek(view->queue, job, most);
    return job;
}

/* When do enough nodes come free for the head, and how many does it leave then?  Nodes that are
 * being made count as there: they may be up any moment, and must not be missing then. */
static int64_t
find_start(const struct schedule_view *view, const struct schedule_job *head, size_t *ret_extra)
{
    size_t need = (size_t)head->node_count;
    size_t nodes = ordered_count(view->idle) - unfit_idle(view, head) + (size_t)view->coming;
    const struct ordered_link *link = ordered_first(view->holds);
    int64_t start_ms = view->now_ms;

    while (link && nodes < need) {
        if (link->major > start_ms)
            start_ms = link->major;
        nodes += fit_hold(hold_of(link), head);
        link = ordered_next(view->holds, link);
    }
    /* Others that end in the same moment. */
    for (; link && link->major <= start_ms; link = ordered_next(view->holds, link))
        nodes += fit_hold(hold_of(link), head);
    *ret_extra = nodes > need ? nodes - need : 0;
    return nodes < need ? INT64_MAX : start_ms;
}

struct schedule_job *schedule_head(const struct schedule_view *view, int64_t *ret_start_ms)
{
    struct schedule_view without = *view;
    struct schedule_job *head = find_head(view);
    size_t extra;

    without.coming = 0;
    *ret_start_ms = head ? find_start(&without, head, &extra) : INT64_MAX;
    return head;
}

static bool may_fit(const uint32_t weights[ORDERED_WEIGHTS], const void *context)
{
    const struct room *room = context;
    size_t unwanted = room->unfit + room->extra;
    uint32_t window_s = seconds(room->window_ms);

    for (size_t i = 0; i < ORDERED_WEIGHTS && class_least[i] <= (int)room->idle; i++)
        if (weights[i] <= window_s || (weights[i] != never && class_least[i] <= (int)unwanted))
            return true;
    return false;
}

/* may_fit lets none through that has to wait; this looks at the very nodes. */
static bool is_harmless(const struct schedule_view *view,
                        const struct schedule_job *job,
                        const struct room *room)
{
    size_t need = (size_t)job->node_count;
    size_t unfit = 0;

    if (need > room->idle - unfit_idle(view, job))
        return false;
    if (job->wall_ms <= room->window_ms)
        return true;
    for (size_t i = 0; i < room->head->excluded_count; i++) {
        int64_t node = room->head->excluded[i];

        unfit += ordered_find(view->idle, 0, node) && !is_excluded(job, node);
    }
    return need <= unfit + room->extra;
}

static struct schedule_job *find_backfill(const struct schedule_view *view,
                                          const struct room *room)
{
    struct ordered_link *link = ordered_seek(view->queue, &room->head->link, may_fit, room);

    while (link && !is_harmless(view, job_of(link), room))
        link = ordered_seek(view->queue, link, may_fit, room);
    return job_of(link);
}

struct schedule_job *schedule_next(const struct schedule_view *view)
{
    struct room room = {.idle = ordered_count(view->idle)};
    struct schedule_job *head;
    int64_t start_ms;

    if (room.idle == 0 || ordered_count(view->queue) == 0)
        return NULL;
    head = find_head(view);
    if (!head)
        return NULL;
    room.head = head;
    room.unfit = unfit_idle(view, head);
    if ((size_t)head->node_count <= room.idle - room.unfit)
        return head;
    start_ms = find_start(view, head, &room.extra);
    room.window_ms = start_ms - view->now_ms;
    return find_backfill(view, &room);
}

void schedule_nodes(const struct schedule_view *view,
                    const struct schedule_job *job,
                    int64_t *ret_nodes)
{
    const struct schedule_job *head = find_head(view);
    const struct ordered_link *link;
    int count = 0;

    for (size_t i = 0; head && head != job && i < head->excluded_count; i++) {
        int64_t node = head->excluded[i];

        if (count < job->node_count && ordered_find(view->idle, 0, node) &&
            !is_excluded(job, node))
            ret_nodes[count++] = node;
    }
    for (link = ordered_first(view->idle); link && count < job->node_count;
         link = ordered_next(view->idle, link)) {
        bool is_taken = head && head != job && is_excluded(head, link->minor);

        if (!is_taken && !is_excluded(job, link->minor))
            ret_nodes[count++] = link->minor;
    }
}
