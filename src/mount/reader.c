/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/reader.h"

#include "mount/remote.h"
#include "mount/tree.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

enum {
    STREAMS = 4,                 /* readers of one file that are told apart */
    SLACK_BYTES = 1024 * 1024,   /* the kernel's own read-ahead comes out of order */
    RUN_BYTES = 4 * 1024 * 1024, /* of one request ahead */
    RUN_BLOCKS = RUN_BYTES / BLOCK_BYTES,
    MOST_AHEAD_BYTES = 32 * 1024 * 1024,
    MOST_THREADS = 16,
};

struct stream {
    int64_t start; /* where it began to be read in order */
    int64_t next;  /* where it has come */
    int64_t ahead; /* up to where has been asked for */
    uint64_t used;
};

struct streams {
    struct stream stream[STREAMS];
    uint64_t clock;
};

/* Blocks next to each other that one request fetches. */
struct run {
    struct run *next;
    struct node *node;
    uint64_t version;
    struct block *blocks[RUN_BLOCKS];
    size_t count;
    size_t current; /* the one being filled */
};

struct reader {
    struct reader_config config;
    int64_t most_ahead;
    pthread_mutex_t lock;
    pthread_cond_t filled; /* a block is ready or failed */
    pthread_cond_t work;
    struct blocks *blocks;
    struct run *first, **last; /* queue of the threads */
    pthread_t threads[MOST_THREADS];
    int thread_count;
    bool stop;
};

struct reader *reader_new(const struct reader_config *config)
{
    struct reader *reader = xcalloc(1, sizeof(*reader));
    int64_t quarter = (int64_t)config->most_bytes / 4;

    assert(config->threads <= MOST_THREADS);
    reader->config = *config;
    reader->most_ahead = quarter < MOST_AHEAD_BYTES ? quarter : MOST_AHEAD_BYTES;
    reader->blocks = blocks_new(config->most_bytes);
    reader->last = &reader->first;
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->filled, NULL);
    pthread_cond_init(&reader->work, NULL);
    return reader;
}

/* --- fetching a run --- */

static struct block *block_at(const struct run *run)
{
    return run->current < run->count ? run->blocks[run->current] : NULL;
}

/* The block is whole.  Content that is judged at the end waits for the judgement. */
static void block_is_full(struct reader *reader, struct run *run)
{
    struct block *block = run->blocks[run->current++];

    if (reader->config.is_judged_at_end)
        return;
    pthread_mutex_lock(&reader->lock);
    block->state = BLOCK_READY;
    pthread_cond_broadcast(&reader->filled);
    pthread_mutex_unlock(&reader->lock);
}

struct filling {
    struct reader *reader;
    struct run *run;
};

static int fill(void *context, const void *bytes, size_t len)
{
    struct filling *f = context;
    const char *from = bytes;

    while (len) {
        struct block *block = block_at(f->run);
        size_t some;

        if (!block)
            return -1;
        some = block->len - block->filled < len ? block->len - block->filled : len;
        memcpy(block->data + block->filled, from, some);
        block->filled += some;
        from += some;
        len -= some;
        if (block->filled == block->len)
            block_is_full(f->reader, f->run);
    }
    return 0;
}

static int64_t missing_from(const struct run *run, int64_t *ret_end)
{
    const struct block *block = block_at(run), *last = run->blocks[run->count - 1];

    *ret_end = last->index * BLOCK_BYTES + (int64_t)last->len;
    return block ? block->index * BLOCK_BYTES + (int64_t)block->filled : *ret_end;
}

/* A request that broke off is gone on with, as long as each brings something. */
static int fetch_bytes(struct reader *reader, struct run *run, struct err *e)
{
    struct filling filling = {reader, run};
    int64_t end, from = missing_from(run, &end);

    while (from < end) {
        int64_t before = from;
        int rc = reader->config.fetch(reader->config.context, run->node, run->version, from,
                                      end - from, fill, &filling, e);

        from = missing_from(run, &end);
        if (rc < 0 && (from == before || (e->code != ERR_BUSY && e->code != ERR_TIMEOUT)))
            return -1;
        if (rc == 0 && from < end)
            return err_set(e, ERR_INTERNAL, "the answer was too short");
    }
    return 0;
}

static void fetch_run(struct reader *reader, struct run *run)
{
    struct err e = {0};
    int rc = fetch_bytes(reader, run, &e);

    pthread_mutex_lock(&reader->lock);
    for (size_t i = 0; i < run->count; i++) {
        struct block *block = run->blocks[i];

        if (block->state == BLOCK_FETCHING && rc == 0) {
            block->state = BLOCK_READY;
        } else if (block->state == BLOCK_FETCHING) {
            block->state = BLOCK_FAILED;
            block->errno_value = remote_errno(&e);
            blocks_drop(reader->blocks, block); /* the next one tries again */
        }
        blocks_unpin(reader->blocks, block);
    }
    pthread_cond_broadcast(&reader->filled);
    pthread_mutex_unlock(&reader->lock);
}

static void run_end(struct reader *reader, struct run *run)
{
    struct tree *tree = reader->config.tree;

    pthread_mutex_lock(&tree->lock);
    node_unref(tree, run->node, 1);
    pthread_mutex_unlock(&tree->lock);
    free(run);
}

/* --- threads --- */

static void *work(void *context)
{
    struct reader *reader = context;

    pthread_mutex_lock(&reader->lock);
    for (;;) {
        struct run *run = reader->first;

        if (run) {
            reader->first = run->next;
            if (!reader->first)
                reader->last = &reader->first;
            pthread_mutex_unlock(&reader->lock);
            fetch_run(reader, run);
            run_end(reader, run);
            pthread_mutex_lock(&reader->lock);
        } else if (reader->stop) {
            break;
        } else {
            pthread_cond_wait(&reader->work, &reader->lock);
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

static void enqueue(struct reader *reader, struct run *run)
{
    run->next = NULL;
    *reader->last = run;
    reader->last = &run->next;
    while (reader->thread_count < reader->config.threads) {
        if (pthread_create(&reader->threads[reader->thread_count], NULL, work, reader) != 0)
            break;
        reader->thread_count++;
    }
    pthread_cond_signal(&reader->work);
}

void reader_stop(struct reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->stop = true;
    pthread_cond_broadcast(&reader->work);
    pthread_mutex_unlock(&reader->lock);
    for (int i = 0; i < reader->thread_count; i++)
        pthread_join(reader->threads[i], NULL);
    reader->thread_count = 0;
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    reader_stop(reader);
    blocks_free(reader->blocks);
    pthread_cond_destroy(&reader->work);
    pthread_cond_destroy(&reader->filled);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

/* --- making runs --- */

static size_t len_of(const struct reader_ask *ask, int64_t index)
{
    int64_t left = ask->size_bytes - index * BLOCK_BYTES;

    return left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
}

/* The missing blocks from *index on, up to end; the index is moved behind them.  NULL when
 * there are none. */
static struct run *
make_run(struct reader *reader, const struct reader_ask *ask, int64_t *index, int64_t end)
{
    struct run *run = NULL;

    for (; *index < end; ++*index) {
        bool is_there = blocks_find(reader->blocks, &ask->node->blocks, ask->version, *index);

        if (is_there && run)
            break;
        if (is_there)
            continue;
        if (!run) {
            run = xcalloc(1, sizeof(*run));
            run->node = node_ref(ask->node);
            run->version = ask->version;
        }
        if (run->count == RUN_BLOCKS)
            break;
        run->blocks[run->count++] = blocks_add(reader->blocks, &ask->node->blocks, ask->version,
                                               *index, len_of(ask, *index));
    }
    return run;
}

/* --- reading ahead --- */

static struct stream *find_stream(struct streams *streams, int64_t offset, int64_t end)
{
    struct stream *oldest = &streams->stream[0];

    streams->clock++;
    for (size_t i = 0; i < STREAMS; i++) {
        struct stream *s = &streams->stream[i];

        if (s->used && offset >= s->next - SLACK_BYTES && offset <= s->next + SLACK_BYTES) {
            s->next = end > s->next ? end : s->next;
            s->used = streams->clock;
            return s;
        }
        if (s->used < oldest->used)
            oldest = s;
    }
    *oldest = (struct stream){offset, end, end, streams->clock};
    return oldest;
}

static void read_ahead(struct reader *reader, const struct reader_ask *ask, int64_t end)
{
    struct node *node = ask->node;
    int64_t window, index, last;
    struct stream *s;

    if (!node->streams)
        node->streams = xcalloc(1, sizeof(*node->streams));
    s = find_stream(node->streams, ask->offset, end);
    window = (s->next - s->start) * 2;
    if (window > reader->most_ahead)
        window = reader->most_ahead;
    last = s->next + window < ask->size_bytes ? s->next + window : ask->size_bytes;
    if (s->ahead < s->next)
        s->ahead = s->next;
    /* In large steps: a request for each block would cost more than its bytes. */
    if (last <= s->ahead || (last < ask->size_bytes &&
                             last - s->ahead < (window < RUN_BYTES ? window / 2 : RUN_BYTES)))
        return;
    index = s->ahead / BLOCK_BYTES;
    s->ahead = last;
    last = (last + BLOCK_BYTES - 1) / BLOCK_BYTES;
    for (struct run *run; (run = make_run(reader, ask, &index, last));)
        enqueue(reader, run);
}

/* --- reading --- */

/* Pin what is here of the answer: making room for the rest must not take it away. */
static void pin_known(struct reader *reader,
                      const struct reader_ask *ask,
                      int64_t first,
                      struct reader_parts *parts)
{
    for (int i = 0; i < parts->count; i++) {
        struct block *block = parts->blocks[i];

        if (!block)
            block = blocks_find(reader->blocks, &ask->node->blocks, ask->version, first + i);
        if (block && !parts->blocks[i]) {
            block_pin(block);
            blocks_touch(reader->blocks, block);
            parts->blocks[i] = block;
        }
    }
}

/* Pin the blocks of the answer, fetching on this thread what nobody fetches. */
static void gather(struct reader *reader,
                   const struct reader_ask *ask,
                   int64_t first,
                   struct reader_parts *parts)
{
    bool is_small = ask->size_bytes <= READER_SMALL_BYTES;
    int64_t end = (ask->size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;
    int64_t index = is_small ? 0 : first;
    struct run *runs = NULL, *run;

    pin_known(reader, ask, first, parts);
    while ((run = make_run(reader, ask, &index, is_small ? end : first + parts->count))) {
        run->next = runs;
        runs = run;
    }
    pin_known(reader, ask, first, parts);
    if (!is_small)
        read_ahead(reader, ask, ask->offset + (int64_t)ask->len);
    while ((run = runs)) {
        runs = run->next;
        pthread_mutex_unlock(&reader->lock);
        fetch_run(reader, run);
        run_end(reader, run);
        pthread_mutex_lock(&reader->lock);
    }
}

static int wait_for(struct reader *reader, const struct reader_parts *parts)
{
    for (int i = 0; i < parts->count; i++) {
        const struct block *block = parts->blocks[i];

        assert(block); /* what was missing has been made */
        while (block->state == BLOCK_FETCHING)
            pthread_cond_wait(&reader->filled, &reader->lock);
        if (block->state == BLOCK_FAILED)
            return block->errno_value;
    }
    return 0;
}

static void cut(const struct reader_ask *ask, struct reader_parts *parts)
{
    int64_t from = ask->offset, end = ask->offset + (int64_t)ask->len;

    for (int i = 0; i < parts->count; i++) {
        struct block *block = parts->blocks[i];
        int64_t base = block->index * BLOCK_BYTES, stop = base + (int64_t)block->len;

        if (stop > end)
            stop = end;
        parts->iov[i] = (struct iovec){block->data + (from - base), (size_t)(stop - from)};
        from = stop;
    }
}

int reader_read(struct reader *reader,
                const struct reader_ask *ask,
                struct reader_parts *ret_parts,
                int *ret_errno)
{
    struct reader_ask own = *ask;
    struct reader_parts parts = {.is_large = ask->size_bytes > READER_SMALL_BYTES};
    int64_t left = ask->size_bytes - ask->offset, first, last;
    int errno_value;

    if (left <= 0 || !ask->len) {
        *ret_parts = parts;
        return 0;
    }
    if ((int64_t)own.len > left)
        own.len = (size_t)left;
    first = own.offset / BLOCK_BYTES;
    last = (own.offset + (int64_t)own.len - 1) / BLOCK_BYTES;
    assert(last - first < READER_MOST_PARTS);
    pthread_mutex_lock(&reader->lock);
    parts.count = (int)(last - first + 1);
    gather(reader, &own, first, &parts);
    errno_value = wait_for(reader, &parts);
    pthread_mutex_unlock(&reader->lock);
    if (errno_value) {
        reader_done(reader, &parts);
        *ret_errno = errno_value;
        return -1;
    }
    cut(&own, &parts);
    *ret_parts = parts;
    return 0;
}

void reader_done(struct reader *reader, struct reader_parts *parts)
{
    pthread_mutex_lock(&reader->lock);
    for (int i = 0; i < parts->count; i++) {
        struct block *block = parts->blocks[i];

        block->served += parts->iov[i].iov_len;
        if (parts->is_large && block->served >= block->len)
            blocks_drop(reader->blocks, block);
        blocks_unpin(reader->blocks, block);
    }
    pthread_mutex_unlock(&reader->lock);
    parts->count = 0;
}

void reader_prefetch(struct reader *reader,
                     struct node *node,
                     uint64_t version,
                     int64_t size_bytes)
{
    const struct reader_ask ask = {node, version, size_bytes, 0, 0};
    int64_t index = 0, end = (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES;

    if (size_bytes > READER_SMALL_BYTES)
        return;
    pthread_mutex_lock(&reader->lock);
    for (struct run *run; (run = make_run(reader, &ask, &index, end));)
        enqueue(reader, run);
    pthread_mutex_unlock(&reader->lock);
}

bool reader_has_start(struct reader *reader, struct node *node, uint64_t version)
{
    bool has;

    pthread_mutex_lock(&reader->lock);
    has = blocks_find(reader->blocks, &node->blocks, version, 0) != NULL;
    pthread_mutex_unlock(&reader->lock);
    return has;
}

void reader_drop(struct reader *reader, struct node *node)
{
    pthread_mutex_lock(&reader->lock);
    blocks_drop_all(reader->blocks, &node->blocks);
    free(node->streams);
    node->streams = NULL;
    pthread_mutex_unlock(&reader->lock);
}
