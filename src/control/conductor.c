/* SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "core/resource.h"
#include "store/pool.h"
#include "store/store.h"
#include "store/work.h"

enum {
    LONGEST_TICK_MS = 60 * 60 * 1000,
    AGAIN_MS = 500,
    MOST_BELOW = 1000, /* rows looked at in one go */
};

int64_t conductor_now(const struct conductor *c)
{
    return c->begun_wall_ms + clock_mono_ms() - c->begun_mono_ms;
}

static void set_tick(struct conductor *c)
{
    int64_t next = yard_next_tick(c->yard), now = conductor_now(c);
    int64_t delay = next <= now ? 0 : next - now;

    if (next == INT64_MAX)
        loop_timer_cancel(&c->tick);
    else
        loop_timer_set(c->control->loop, &c->tick,
                       delay < LONGEST_TICK_MS ? delay : LONGEST_TICK_MS);
}

static void ticked(struct loop_timer *timer)
{
    struct conductor *c = container_of(timer, struct conductor, tick);

    yard_tick(c->yard, conductor_now(c));
    conductor_settle(c);
    set_tick(c);
}

/* --- events of the engine --- */

/* A report that comes late is no error: the mind has decided without it. */
static void take(struct conductor *c, const char *what, int64_t id, int rc, const struct err *e)
{
    if (rc < 0)
        log_info("event=report what=%s id=%lld refused=\"%s\"", what, (long long)id, e->msg);
    conductor_settle(c);
    set_tick(c); /* a node that is idle now is to be given up some time */
}

static void on_node_up(void *context, int64_t id)
{
    struct conductor *c = context;
    struct err e = {0};

    take(c, "node-up", id, yard_node_up(c->yard, id, conductor_now(c), &e), &e);
}

static void on_node_failed(
    void *context, int64_t id, const char *code, const char *message, const char *info)
{
    struct conductor *c = context;
    struct err e = {0};

    log_warning("event=node id=%lld code=%s message=\"%s\"", (long long)id, code, message);
    take(c, "node-failed", id,
         yard_node_failed(c->yard, id, code, message, info, conductor_now(c), &e), &e);
}

static void on_node_gone(void *context, int64_t id)
{
    struct conductor *c = context;
    struct err e = {0};

    take(c, "node-gone", id, yard_node_gone(c->yard, id, conductor_now(c), &e), &e);
}

static void on_attempt_running(void *context, int64_t id)
{
    struct conductor *c = context;
    struct err e = {0};

    take(c, "attempt-running", id, yard_attempt_running(c->yard, id, conductor_now(c), &e), &e);
}

static void on_attempt_ended(void *context,
                             int64_t id,
                             const struct attempt_result *result,
                             int64_t started_ms,
                             int64_t ended_ms)
{
    struct conductor *c = context;
    struct err e = {0};

    take(c, "attempt-ended", id,
         yard_attempt_ended(c->yard, id, result, started_ms, ended_ms, conductor_now(c), &e),
         &e);
}

/* --- life --- */

static void look_again(struct loop_timer *timer);

int conductor_new(struct control *control, struct conductor **ret_conductor, struct err *e)
{
    struct conductor *c = xcalloc(1, sizeof(*c));
    const struct engine_events events = {
        .node_up = on_node_up,
        .node_failed = on_node_failed,
        .node_gone = on_node_gone,
        .attempt_running = on_attempt_running,
        .attempt_ended = on_attempt_ended,
        .context = c,
    };
    struct yard_limits limits = control->config.limits;
    struct engine_capacity capacity = {0};

    c->control = control;
    c->tick.fired = ticked;
    c->again.fired = look_again;
    c->begun_wall_ms = clock_wall_ms();
    c->begun_mono_ms = clock_mono_ms();
    pthread_mutex_init(&c->touched_lock, NULL);
    if (control->config.make_engine(control->loop, &events, control->config.context, &c->engine,
                                    e) < 0) {
        pthread_mutex_destroy(&c->touched_lock);
        free(c);
        return -1;
    }
    c->engine->ops->capacity(c->engine, &capacity);
    limits.cores = capacity.cores;
    limits.gpus = capacity.gpus;
    c->yard = yard_new(&limits);
    *ret_conductor = c;
    return 0;
}

void conductor_free(struct conductor *c)
{
    if (!c)
        return;
    while (c->waiters) {
        struct waiter *next = c->waiters->next;

        free(c->waiters);
        c->waiters = next;
    }
    conductor_drop_record(c);
    conductor_drop_failed(c);
    free(c->touched);
    pthread_mutex_destroy(&c->touched_lock);
    yard_free(c->yard);
    free(c);
}

void conductor_start(struct conductor *c)
{
    auto_reader reader = {0};
    struct err e = {0};

    if (store_pool_take(c->control->config.pool, &reader, &e) < 0 ||
        conductor_read_all(c, reader.db, &e) < 0) {
        /* Going on without what is under way would start it twice. */
        c->control->config.broken(&e, c->control->config.context);
        return;
    }
    c->is_started = true;
    yard_resume(c->yard, conductor_now(c));
    conductor_settle(c);
    set_tick(c);
    conductor_wake_waiters(c);
}

void conductor_stop(struct conductor *c)
{
    c->is_stopping = true;
    loop_timer_cancel(&c->tick);
    loop_timer_cancel(&c->retry);
    loop_timer_cancel(&c->again);
    loop_task_cancel(&c->settle);
    loop_task_cancel(&c->report);
    if (c->engine)
        c->engine->ops->free(c->engine);
    c->engine = NULL;
}

const struct yard *conductor_yard(const struct conductor *c)
{
    return c->yard;
}

struct engine *conductor_engine(const struct conductor *c)
{
    return c->engine;
}

/* --- clients' changes --- */

/* A change that was acknowledged must not wait for a restart because it could not be read. */
static void read_later(struct conductor *c, int64_t id)
{
    pthread_mutex_lock(&c->touched_lock);
    c->touched = xreallocarray(c->touched, c->touched_count + 1, sizeof(*c->touched));
    c->touched[c->touched_count++] = id;
    pthread_mutex_unlock(&c->touched_lock);
    loop_timer_set(c->control->loop, &c->again, AGAIN_MS);
}

static void read_touched(struct conductor *c, const int64_t *ids, size_t count)
{
    auto_reader reader = {0};
    struct err e = {0};

    if (store_pool_take(c->control->config.pool, &reader, &e) < 0)
        log_error("event=conductor error=\"%s\" next=retry", e.msg);
    for (size_t i = 0; i < count; i++) {
        if (reader.db && conductor_read(c, reader.db, ids[i], &e) == 0)
            continue;
        if (reader.db)
            log_error("event=conductor id=%lld error=\"%s\" next=retry", (long long)ids[i],
                      e.msg);
        read_later(c, ids[i]);
    }
    conductor_settle(c);
    set_tick(c);
}

/* What was changed before the start is read by it. */
static void touched(void *arg)
{
    struct conductor *c = arg;
    auto_free int64_t *ids = NULL;
    size_t count;

    pthread_mutex_lock(&c->touched_lock);
    ids = take_ptr(&c->touched);
    count = c->touched_count;
    c->touched_count = 0;
    pthread_mutex_unlock(&c->touched_lock);
    if (count && c->is_started && !c->is_stopping)
        read_touched(c, ids, count);
}

static void look_again(struct loop_timer *timer)
{
    struct conductor *c = container_of(timer, struct conductor, again);

    touched(c);
    conductor_wake_waiters(c);
}

void conductor_touch(struct conductor *c, int64_t resource_id)
{
    pthread_mutex_lock(&c->touched_lock);
    c->touched = xreallocarray(c->touched, c->touched_count + 1, sizeof(*c->touched));
    c->touched[c->touched_count++] = resource_id;
    if (c->touched_count == 1)
        loop_post(c->control->loop, touched, c);
    pthread_mutex_unlock(&c->touched_lock);
}

/* --- deleting --- */

static void wait_for(struct conductor *c, void (*again)(void *arg), void *arg)
{
    struct waiter *waiter = xmalloc(sizeof(*waiter));

    *waiter = (struct waiter){.next = c->waiters, .again = again, .arg = arg};
    c->waiters = waiter;
}

/* Tell the mind that it has to go.  Is it gone?  A job is forgotten when its end is recorded.
 */
static bool let_go_job(struct conductor *c, int64_t id)
{
    const struct yard_job *known = yard_job(c->yard, id);
    struct yard_job wish;

    if (!known)
        return true;
    wish = *known;
    wish.is_unwanted = wish.is_deleting = true;
    if (!known->is_deleting)
        yard_put_job(c->yard, &wish, conductor_now(c));
    return false;
}

static bool let_go_cluster(struct conductor *c, int64_t id)
{
    const struct yard_cluster *known = yard_cluster(c->yard, id);
    struct yard_cluster wish;

    if (!known)
        return true;
    wish = *known;
    wish.is_deleting = true;
    if (!known->is_deleting)
        yard_put_cluster(c->yard, &wish, conductor_now(c));
    return yard_forget_cluster(c->yard, id, NULL) == 0;
}

struct letting_go {
    struct conductor *conductor;
    bool is_clear;
};

static void let_go_found(int64_t id, void *context)
{
    struct letting_go *l = context;

    if (!let_go_job(l->conductor, id))
        l->is_clear = false;
}

/* A yard has few clusters; of jobs, which may be many, only those that have not ended are
 * looked at. */
static int let_go_clusters(struct letting_go *l, struct db *db, const char *key, struct err *e)
{
    struct store_filter filter = {
        .kind = RESOURCE_CLUSTER, .key_prefix = key, .most = MOST_BELOW};
    bool more = true;

    while (more) {
        auto_resource_list list = {0};

        if (store_list_resources(db, &filter, &list, e) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++) {
            filter.after_id = list.items[i]->id;
            if (!let_go_cluster(l->conductor, filter.after_id))
                l->is_clear = false;
        }
        more = list.more;
    }
    return 0;
}

static int let_go_below(struct letting_go *l, int64_t id, const char *key, struct err *e)
{
    autoptr(resource) r = NULL;
    auto_reader reader = {0};

    if (store_pool_take(l->conductor->control->config.pool, &reader, e) < 0 ||
        store_find_resource_by_id(reader.db, id, &r, e) < 0)
        return -1;
    if (!r || (r->kind != RESOURCE_GROUP && r->kind != RESOURCE_WORKSPACE &&
               r->kind != RESOURCE_EXPERIMENT))
        return 0; /* there is nothing below */
    if (store_each_job_below(reader.db, key, let_go_found, l, e) < 0)
        return -1;
    return let_go_clusters(l, reader.db, key, e);
}

/* While rows are on their way to the disk it is not clear: what is told after they are there
 * (run folders to be forgotten) is found by them. */
bool conductor_is_clear(struct conductor *c,
                        int64_t resource_id,
                        const char *arm_id,
                        void (*again)(void *arg),
                        void *arg)
{
    struct letting_go l = {c, c->is_started && !c->record};
    autoptr(arena) arena = arena_new();
    struct err e = {0};

    if (c->is_started && !let_go_job(c, resource_id))
        l.is_clear = false;
    if (c->is_started && !let_go_cluster(c, resource_id))
        l.is_clear = false;
    if (c->is_started && let_go_below(&l, resource_id, resource_key(arena, arm_id), &e) < 0) {
        log_error("event=conductor id=%lld error=\"%s\" next=retry", (long long)resource_id,
                  e.msg);
        loop_timer_set(c->control->loop, &c->again, AGAIN_MS);
        l.is_clear = false;
    }
    if (!l.is_clear)
        wait_for(c, again, arg);
    conductor_settle(c);
    return l.is_clear;
}

bool conductor_job_has_ended(struct conductor *c,
                             int64_t job_id,
                             void (*again)(void *arg),
                             void *arg)
{
    if (c->is_started && !yard_job(c->yard, job_id))
        return true;
    wait_for(c, again, arg);
    return false;
}
