/* reducer.c - see reducer.h: the life of a reducer, and what its callers see.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/reducer.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/comm/reducer-internal.h"
#include "train/comm/sum.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

DEFINE_AUTOPTR(reducer)

/* --- options ---------------------------------------------------------------------------------
 */

static int parse(const char *name, double most, double *value, struct err *e)
{
    const char *text = getenv(name);
    char *end = NULL;
    double got;

    if (!text)
        return 0;
    errno = 0;
    got = strtod(text, &end);
    if (end == text || *end || errno || !(got >= 0 && got <= most))
        return err_set(e, ERR_INVALID, "%s is \"%.40s\": a number from 0 to %.0f", name, text,
                       most);
    *value = got;
    return 0;
}

int reducer_defaults(struct reducer_options *options, struct err *e)
{
    double fusion = 16 << 20, cycle_ms = 0;

    if (parse("HOROVOD_FUSION_THRESHOLD", 1LL << 40, &fusion, e) < 0 ||
        parse("HOROVOD_CYCLE_TIME", 1e6, &cycle_ms, e) < 0)
        return -1;
    *options = (struct reducer_options){
        .fusion_bytes = (int64_t)fusion,
        .cycle_ms = cycle_ms,
        .piece_bytes = 1 << 20,
        .is_sum_in_order = false,
        .core = -1,
    };
    return 0;
}

/* --- setting up ------------------------------------------------------------------------------
 */

static int check(void *arg, struct err *e)
{
    struct reducer *reducer = arg;

    if (comm_check(reducer->comm, e) < 0)
        return -1;
    if (!atomic_load(&reducer->has_failed))
        return 0;
    if (e)
        *e = reducer->failure;
    return -1;
}

struct handle {
    int32_t pid, fd;
};

/* Each rank of this host shows the others a share of its own; into all[], by place. */
static int show(struct reducer *reducer,
                size_t bytes,
                const struct share *mine,
                struct share all[GROUP_MOST],
                struct err *e)
{
    const struct comm *comm = reducer->comm;
    struct handle self = {(int32_t)getpid(), mine->fd};
    auto_free struct handle *handles = xcalloc((size_t)reducer->ranks, sizeof *handles);
    int place = 0;

    if (comm_gather(reducer->comm, &self, sizeof self, handles, e) < 0)
        return -1;
    for (int r = 0; r < reducer->ranks; r++) {
        if (comm->places[r].host != comm->facts.host)
            continue;
        if (place == reducer->local)
            all[place] = *mine;
        else if (share_open(handles[r].pid, handles[r].fd, bytes, true, &all[place], e) < 0)
            return err_wrap(e, "rank %d", r);
        place++;
    }
    return comm_barrier(reducer->comm, e); /* until then the maker keeps it open */
}

/* The block is the first rank's of each host. */
static int share_block(struct reducer *reducer, struct err *e)
{
    struct share mine = {.fd = -1}, all[GROUP_MOST];
    size_t bytes = sizeof(struct reducer_shared);

    for (int i = 0; i < GROUP_MOST; i++)
        all[i] = (struct share){.fd = -1};
    if (share_create(bytes, false, &mine, e) < 0)
        return -1;
    if (show(reducer, bytes, &mine, all, e) < 0)
        return -1;
    for (int i = 1; i < reducer->comm->facts.local_ranks; i++)
        share_done(&all[i]);
    reducer->block = all[0];
    reducer->shared = all[0].at;
    return 0;
}

static int share_stage(struct reducer *reducer, struct err *e)
{
    size_t bytes = 2 * REDUCER_STAGE_FLOATS * sizeof(float);
    struct share mine;

    if (share_create(bytes, true, &mine, e) < 0)
        return -1;
    return show(reducer, bytes, &mine, reducer->stage, e);
}

/* It starts with this thread's floating-point mode (clone copies it), so that both round and
 * flush alike whoever sums. */
static int start_thread(struct reducer *reducer, struct err *e)
{
    void *(*progress)(void *) = reducer->hosts > 1 ? reducer_net_progress : reducer_progress;
    int error = pthread_create(&reducer->thread, NULL, progress, reducer);
    cpu_set_t set;

    if (error)
        return err_sys(e, error, "could not start the progress thread");
    reducer->has_thread = true;
    pthread_setname_np(reducer->thread, "reducer");
    if (reducer->options.core < 0)
        return 0;
    CPU_ZERO(&set);
    CPU_SET((size_t)reducer->options.core, &set);
    error = pthread_setaffinity_np(reducer->thread, sizeof set, &set);
    return error ? err_sys(e, error, "could not use core %d", reducer->options.core) : 0;
}

static int check_options(const struct reducer_options *options, int hosts, struct err *e)
{
    const int64_t least = REDUCER_LEAST_FLOATS * sizeof(float), most = 1 << 28;

    if (options->piece_bytes < least || options->piece_bytes > most)
        return err_set(e, ERR_INVALID, "a piece has %lld to %lld bytes, not %lld",
                       (long long)least, (long long)most, (long long)options->piece_bytes);
    if (options->is_sum_in_order && hosts > 1)
        return err_set(e, ERR_METHOD, "cannot sum in order of rank over several hosts");
    return 0;
}

static int set_up(struct reducer *reducer, struct err *e)
{
    if (check_options(&reducer->options, reducer->hosts, e) < 0)
        return -1;
    if (reducer->is_alone)
        return 0;
    if (share_block(reducer, e) < 0 || share_stage(reducer, e) < 0)
        return -1;
    return reducer->hosts > 1 ? reducer_net_new(reducer, &reducer->net, e) : 0;
}

int reducer_new(struct comm *comm,
                const struct reducer_options *options,
                struct reducer **ret_reducer,
                struct err *e)
{
    autoptr(reducer) reducer = xcalloc(1, sizeof *reducer);

    reducer->comm = comm;
    reducer->options = *options;
    reducer->ranks = comm->facts.ranks;
    reducer->local = comm->facts.local_rank;
    reducer->hosts = comm->facts.hosts;
    reducer->is_alone = reducer->ranks == 1;
    for (int i = 0; i < GROUP_MOST; i++)
        reducer->arena[i] = reducer->stage[i] = (struct share){.fd = -1};
    reducer->block.fd = -1;
    reducer->parts = xcalloc(1, sizeof *reducer->parts);
    if (comm->group)
        reducer->patience = *group_patience(comm->group);
    reducer->patience.check = check;
    reducer->patience.arg = reducer;
    if (set_up(reducer, e) < 0)
        return -1;
    *ret_reducer = take_ptr(&reducer);
    return 0;
}

static void stop_thread(struct reducer *reducer)
{
    const struct timespec nap = {0, 1000000};

    if (!reducer->has_thread)
        return;
    atomic_store(&reducer->stops, true);
    while (!atomic_load(&reducer->has_stopped)) {
        bell_add(&reducer->shared->work, 1);
        bell_wake(&reducer->shared->work);
        nanosleep(&nap, NULL);
    }
    pthread_join(reducer->thread, NULL);
}

void reducer_free(struct reducer *reducer)
{
    if (!reducer)
        return;
    stop_thread(reducer);
    reducer_net_free(reducer->net);
    for (int i = 0; i < GROUP_MOST; i++) {
        share_done(&reducer->arena[i]);
        share_done(&reducer->stage[i]);
    }
    share_done(&reducer->block);
    free(reducer->parts);
    free(reducer->events);
    free(reducer);
}

int reducer_arena(struct reducer *reducer, size_t bytes, float **ret_arena, struct err *e)
{
    /* With a stage behind it, for reducer_sum(). */
    size_t room = (bytes + 4095) / 4096 * 4096 + REDUCER_STAGE_FLOATS * sizeof(float);
    char text[32];
    struct share mine;

    if (reducer->arena[reducer->local].at)
        return err_set(e, ERR_CONFLICT, "the gradients have their memory already");
    snprintf(text, sizeof text, "%zu", bytes);
    if (comm_agree(reducer->comm, "memory of gradients", text, e) < 0 ||
        share_create(room, true, &mine, e) < 0)
        return -1;
    if (reducer->is_alone)
        reducer->arena[0] = mine;
    else if (show(reducer, room, &mine, reducer->arena, e) < 0)
        return -1;
    reducer->arena_floats = bytes / sizeof(float);
    *ret_arena = mine.at;
    return 0;
}

static int check_spans(const struct reducer *reducer,
                       const struct reducer_span *spans,
                       int count,
                       struct str *text,
                       struct err *e)
{
    size_t end = 0;

    if (count < 0 || count > REDUCER_MOST_BUCKETS)
        return err_set(e, ERR_TOO_LARGE, "%d buckets: at most %d go", count,
                       REDUCER_MOST_BUCKETS);
    for (int b = 0; b < count; b++) {
        if (spans[b].offset < end || spans[b].offset > reducer->arena_floats ||
            spans[b].count > reducer->arena_floats - spans[b].offset)
            return err_set(e, ERR_RANGE, "bucket %d lies outside the gradients or overlaps", b);
        end = spans[b].offset + spans[b].count;
        str_addf(text, "%zu+%zu ", spans[b].offset, spans[b].count);
    }
    return 0;
}

int reducer_attach(struct reducer *reducer,
                   const struct reducer_span *spans,
                   int count,
                   struct err *e)
{
    auto_str text = {0};

    if (reducer->has_thread || reducer->count > 0)
        return err_set(e, ERR_CONFLICT, "the reducer has its buckets already");
    if (check_spans(reducer, spans, count, &text, e) < 0 ||
        comm_agree(reducer->comm, "buckets of gradients", str_text(&text), e) < 0)
        return -1;
    free(reducer->parts);
    reducer->parts = xcalloc((size_t)count + 1, sizeof *reducer->parts);
    reducer->events = xcalloc((size_t)count + 1, sizeof *reducer->events);
    reducer->count = count;
    for (int b = 0; b < count; b++) {
        reducer->parts[b].span = spans[b];
        reducer->parts[b].chunks =
            reducer_cut(&reducer->parts[b], reducer->is_alone ? 1 : reducer_sharers(reducer),
                        reducer->options.piece_bytes);
    }
    reducer->step_ns = reducer_now_ns();
    return reducer->is_alone ? 0 : start_thread(reducer, e);
}

/* --- steps -----------------------------------------------------------------------------------
 */

void reducer_start(struct reducer *reducer, int bucket)
{
    struct reducer_part *part = &reducer->parts[bucket];

    reducer->bytes += part->span.count * sizeof(float);
    reducer->calls++;
    reducer->outstanding++;
    part->ready_s += (double)(reducer_now_ns() - reducer->step_ns) / 1e9;
    if (!reducer->is_alone)
        reducer_hand_in(reducer, bucket, true);
}

static void add_event(struct reducer *reducer, int bucket)
{
    struct reducer_bucket *shared = &reducer->shared->bucket[bucket];

    if (reducer->event_count < reducer->count)
        reducer->events[reducer->event_count++] = (struct reducer_event){
            bucket, atomic_load(&shared->begun_ns), atomic_load(&shared->done_ns)};
}

/* The first wait of a step is the end of its backward pass, the last its end. */
static void keep_pace(struct reducer *reducer, int64_t begun)
{
    if (!reducer->is_waiting)
        reducer->end_s += (double)(begun - reducer->step_ns) / 1e9;
    reducer->is_waiting = true;
    if (--reducer->outstanding > 0)
        return;
    reducer->paced++;
    reducer->is_waiting = false;
    reducer->step_ns = reducer_now_ns();
}

int reducer_wait(struct reducer *reducer, int bucket, struct err *e)
{
    int64_t begun = reducer_now_ns();
    int rc = 0;

    if (!reducer->is_alone && reducer->parts[bucket].chunks > 0)
        rc = reducer_finish(reducer, bucket, e);
    keep_pace(reducer, begun);
    reducer->exposed_ns += reducer_now_ns() - begun;
    if (rc == 0 && reducer->traces && !reducer->is_alone && reducer->parts[bucket].chunks > 0)
        add_event(reducer, bucket);
    return rc;
}

/* --- what is told about it -------------------------------------------------------------------
 */

void reducer_times(struct reducer *reducer, struct reducer_times *ret_times)
{
    *ret_times = (struct reducer_times){
        .busy_s = (double)atomic_exchange(&reducer->busy_ns, 0) / 1e9,
        .exposed_s = (double)reducer->exposed_ns / 1e9,
        .bytes = reducer->bytes,
        .calls = reducer->calls,
    };
    reducer->exposed_ns = 0;
    reducer->bytes = reducer->calls = 0;
}

void reducer_pace(struct reducer *reducer, struct str *out)
{
    double steps = reducer->paced > 0 ? (double)reducer->paced : 1;

    if (reducer->paced > 0)
        str_addf(out, "%.6f", reducer->end_s / steps);
    for (int b = 0; b < reducer->count; b++) {
        if (reducer->paced > 0)
            str_addf(out, " %.6f:%zu", reducer->parts[b].ready_s / steps,
                     reducer->parts[b].span.count * sizeof(float));
        reducer->parts[b].ready_s = 0;
    }
    reducer->end_s = 0;
    reducer->paced = 0;
    reducer->step_ns = reducer_now_ns();
}

void reducer_trace(struct reducer *reducer, bool is_on)
{
    reducer->traces = is_on;
    if (is_on)
        reducer->event_count = 0;
}

const struct reducer_event *reducer_events(struct reducer *reducer, int *ret_count)
{
    *ret_count = reducer->event_count;
    return reducer->events;
}
