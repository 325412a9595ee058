/* What a thread does with one item, or with one piece of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/transfer-digest.h"
#include "cli/transfer-internal.h"
#include "cli/transfer-journal.h"
#include "cli/transfer-options.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    MOST_PIECES = 50000, /* of a blob: larger ones get larger pieces */
};

void work_free(struct work *work)
{
    if (!work)
        return;
    item_free(work->parts.item);
    free(work->parts.is_done);
    free(work);
}

/* --- a thread's own --- */

static void moved(void *context, int64_t bytes)
{
    struct transfer *t = context;

    atomic_fetch_add(&t->moved, bytes);
}

static int open_ports(struct worker *worker, struct err *e)
{
    struct transfer *t = worker->transfer;
    bool counts_source = t->config.destination->kind == SIDE_LOCAL;
    struct port_config config = {
        .options = t->options,
        .patience_ms = t->options->patience_ms,
        .stop = &t->stop,
        .trace = t->config.trace,
        .context = t,
    };

    if (worker->is_open)
        return 0;
    /* A byte that comes down and goes up again is counted once. */
    config.moved = counts_source ? moved : NULL;
    if (t->config.source && port_open(t->config.source, &config, &worker->source, e) < 0)
        return -1;
    config.moved = counts_source ? NULL : moved;
    if (port_open(t->config.destination, &config, &worker->destination, e) < 0) {
        port_close(&worker->source);
        return -1;
    }
    worker->is_open = true;
    return 0;
}

static char *buffer(struct worker *worker, size_t len)
{
    if (worker->room < len) {
        free(worker->buf);
        worker->buf = xmalloc(len);
        worker->room = len;
    }
    return worker->buf;
}

/* Wait until so many bytes may go without passing --cap-mbps. */
static void pace(struct transfer *t, int64_t bytes)
{
    int64_t now_us = clock_mono_us(), start_us;

    if (t->options->cap_mbps <= 0)
        return;
    pthread_mutex_lock(&t->pace_lock);
    start_us = t->pace_us > now_us ? t->pace_us : now_us;
    t->pace_us = start_us + (int64_t)((double)bytes * 8 / t->options->cap_mbps);
    pthread_mutex_unlock(&t->pace_lock);
    while (!atomic_load(&t->stop) && (now_us = clock_mono_us()) < start_us) {
        int64_t left_us = start_us - now_us < 100000 ? start_us - now_us : 100000;
        struct timespec step = {.tv_nsec = left_us * 1000};

        nanosleep(&step, NULL);
    }
}

/* --- whether --- */

static bool may_replace(struct transfer *t, const char *target)
{
    bool may;

    pthread_mutex_lock(&t->ask_lock);
    may = t->config.may_replace && t->config.may_replace(t->config.context, target);
    pthread_mutex_unlock(&t->ask_lock);
    return may;
}

/* Is the item to be left as it is at the destination?  1 yes, 0 no, -1. */
static int is_kept(struct worker *worker, const struct item *item, struct err *e)
{
    struct transfer *t = worker->transfer;
    struct facts there;
    bool is_there;

    if (t->options->overwrite == OVERWRITE_TRUE)
        return 0;
    if (t->config.destination->ops->look(&worker->destination, item->target, &there, &is_there,
                                         e) < 0)
        return -1;
    if (!is_there || there.is_folder)
        return 0;
    if (t->options->overwrite == OVERWRITE_NEWER)
        return there.modified_ns >= item->facts.modified_ns;
    if (t->options->overwrite == OVERWRITE_PROMPT)
        return !may_replace(t, item->target);
    return 1;
}

/* --- small files --- */

static int check_md5(const struct transfer *t,
                     const struct item *item,
                     const void *bytes,
                     size_t len,
                     struct err *e)
{
    const char *want = item->facts.md5;
    char md5[DIGEST_MD5_BYTES];

    if (t->options->check_md5 == MD5_IGNORE || t->config.source->kind == SIDE_LOCAL)
        return 0;
    if (!*want && t->options->check_md5 == MD5_MUST_EXIST)
        return err_set(e, ERR_CONFLICT, "no MD5 is kept with it");
    if (!*want || str_equal(digest_md5(bytes, len, md5), want))
        return 0;
    return err_set(e, ERR_CONFLICT, "the MD5 of what came is %s and should be %s", md5, want);
}

static int copy_small(struct worker *worker, const struct item *item, struct err *e)
{
    struct transfer *t = worker->transfer;
    size_t len = (size_t)item->facts.size_bytes;
    char *buf = buffer(worker, len ? len : 1);

    pace(t, (int64_t)len);
    if (len && t->config.source->ops->read(&worker->source, item, 0, buf, len, e) < 0)
        return -1;
    if (check_md5(t, item, buf, len, e) < 0)
        return -1;
    return t->config.destination->ops->put(&worker->destination, item, buf, len,
                                           t->options->overwrite == OVERWRITE_FALSE, e);
}

/* --- large files --- */

static void make_tag(const struct transfer *t, struct parts *parts)
{
    const struct item *item = parts->item;
    auto_free char *from = side_show(t->config.source, item->path);
    auto_free char *text = xasprintf(
        "%s\n%lld\n%lld\n%s\n%lld", from, (long long)item->facts.size_bytes,
        (long long)item->facts.modified_ns, item->facts.etag, (long long)parts->piece_bytes);
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str hex = {0};

    crypt_sha256(text, strlen(text), digest);
    text_hex(&hex, digest, 8);
    snprintf(parts->tag, sizeof(parts->tag), "%s", str_text(&hex));
}

static int64_t piece_size(const struct transfer *t)
{
    int64_t most = t->config.destination->ops->most_piece_bytes;

    return t->options->piece_bytes < most ? t->options->piece_bytes : most;
}

static int
begin_large(struct worker *worker, struct item *item, struct work **ret_work, struct err *e)
{
    struct transfer *t = worker->transfer;
    struct work *work = xcalloc(1, sizeof(*work));
    struct parts *parts = &work->parts;
    int64_t size = item->facts.size_bytes;

    parts->item = item;
    parts->piece_bytes = piece_size(t);
    if (t->config.destination->kind == SIDE_BLOB && size / parts->piece_bytes >= MOST_PIECES)
        parts->piece_bytes = (size / MOST_PIECES / (1 << 20) + 1) << 20;
    parts->count = (size_t)((size + parts->piece_bytes - 1) / parts->piece_bytes);
    parts->is_done = xcalloc(parts->count, 1);
    make_tag(t, parts);
    if (t->config.journal)
        journal_pieces(t->config.journal, parts->tag, parts->is_done, parts->count);
    if (t->config.destination->ops->begin(&worker->destination, parts, e) < 0) {
        parts->item = NULL;
        work_free(work);
        return -1;
    }
    work->must_hash = t->options->put_md5 && t->config.source->ops->hash;
    work->left = work->must_hash;
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->is_done[i])
            moved(t, (int64_t)parts_len(parts, i));
        else
            work->left++;
    }
    *ret_work = work;
    return 0;
}

int worker_piece(struct worker *worker, struct work *work, size_t index, struct err *e)
{
    struct transfer *t = worker->transfer;
    struct parts *parts = &work->parts;
    size_t len;
    char *buf;

    if (open_ports(worker, e) < 0)
        return -1;
    if (index == parts->count)
        return t->config.source->ops->hash(&worker->source, parts, true, e);
    len = parts_len(parts, index);
    buf = buffer(worker, (size_t)parts->piece_bytes);
    pace(t, (int64_t)len);
    if (t->config.source->ops->read(&worker->source, parts->item,
                                    (int64_t)index * parts->piece_bytes, buf, len, e) < 0 ||
        t->config.destination->ops->put_piece(&worker->destination, parts, index, buf, len, e) <
            0)
        return -1;
    /* The blob service remembers by itself what it has. */
    if (t->config.journal && t->config.destination->kind != SIDE_BLOB)
        journal_note_piece(t->config.journal, parts->tag, index);
    return 0;
}

static int check_length(struct worker *worker, const struct item *item, struct err *e)
{
    struct transfer *t = worker->transfer;
    struct facts there;
    bool is_there;

    if (!t->options->check_length)
        return 0;
    if (t->config.destination->ops->look(&worker->destination, item->target, &there, &is_there,
                                         e) < 0)
        return e->code == ERR_FORBIDDEN ? 0 : -1; /* a signature may allow writing alone */
    if (!is_there || there.size_bytes != item->facts.size_bytes)
        return err_set(e, ERR_CONFLICT, "%lld bytes arrived instead of %lld",
                       is_there ? (long long)there.size_bytes : 0,
                       (long long)item->facts.size_bytes);
    return 0;
}

static void note_copied(struct transfer *t, const struct item *item)
{
    atomic_fetch_add(&t->files, 1);
    atomic_fetch_add(&t->bytes, item->facts.size_bytes);
    if (t->config.journal)
        journal_note_done(t->config.journal, item->target, &item->facts);
    transfer_note_success(t);
}

static int finish_large(struct worker *worker, struct work *work, struct err *e)
{
    struct transfer *t = worker->transfer;
    struct parts *parts = &work->parts;
    const struct side_ops *to = t->config.destination->ops;
    bool is_known = *parts->item->facts.md5 != '\0';

    if (work->failed) {
        *e = work->e;
        return -1;
    }
    if (open_ports(worker, e) < 0)
        return -1;
    if (to->hash && t->options->check_md5 >= MD5_MUST_FIT) {
        if (!is_known && t->options->check_md5 == MD5_MUST_EXIST)
            return err_set(e, ERR_CONFLICT, "no MD5 is kept with it");
        if (is_known && to->hash(&worker->destination, parts, false, e) < 0)
            return -1;
    } else if (!*parts->md5 && is_known) {
        snprintf(parts->md5, sizeof(parts->md5), "%s", parts->item->facts.md5);
    }
    if (to->finish(&worker->destination, parts, e) < 0)
        return -1;
    return check_length(worker, parts->item, e);
}

void worker_finish(struct worker *worker, struct work *work)
{
    struct transfer *t = worker->transfer;
    struct err e = {0};

    if (finish_large(worker, work, &e) == 0)
        note_copied(t, work->parts.item);
    else if (e.code == ERR_CONFLICT && t->options->overwrite == OVERWRITE_FALSE &&
             strstr(e.msg, "AlreadyExists"))
        atomic_fetch_add(&t->skipped, 1);
    else
        transfer_note_failed(t, work->parts.item, &e);
}

/* --- items --- */

/* Let the destination's server copy by itself.  1 done, 0 it cannot. */
static int fetch(struct worker *worker, const struct item *item)
{
    struct transfer *t = worker->transfer;
    const struct side_ops *to = t->config.destination->ops;
    struct err ignored;

    if (!to->fetch || t->config.source->kind == SIDE_LOCAL || t->options->streams ||
        t->options->overwrite == OVERWRITE_FALSE || atomic_load(&t->cannot_fetch))
        return 0;
    if (to->fetch(&worker->destination, &worker->source, item, &ignored) < 0) {
        atomic_store(&t->cannot_fetch, true);
        return 0;
    }
    moved(t, item->facts.size_bytes);
    return 1;
}

enum outcome {
    FAILED = -1,
    SKIPPED,
    COPIED,
    GOES_ON, /* in pieces */
    OTHER,   /* done, but nothing was copied */
};

static enum outcome
do_copy(struct worker *worker, struct item *item, struct work **ret_work, struct err *e)
{
    struct transfer *t = worker->transfer;
    bool is_small = item->facts.size_bytes <= piece_size(t);
    int kept = 0;

    /* The blob service can be told to keep what is there: no need to look before. */
    if (t->options->overwrite != OVERWRITE_FALSE || !is_small ||
        t->config.destination->kind != SIDE_BLOB)
        kept = is_kept(worker, item, e);
    if (kept != 0)
        return kept < 0 ? FAILED : SKIPPED;
    if (fetch(worker, item))
        return COPIED;
    if (!is_small)
        return begin_large(worker, item, ret_work, e) < 0 ? FAILED : GOES_ON;
    if (copy_small(worker, item, e) == 0)
        return COPIED;
    return e->code == ERR_CONFLICT && strstr(e->msg, "AlreadyExists") ? SKIPPED : FAILED;
}

static enum outcome
do_item(struct worker *worker, struct item *item, struct work **ret_work, struct err *e)
{
    struct transfer *t = worker->transfer;
    const struct side_ops *to = t->config.destination->ops;

    if (open_ports(worker, e) < 0)
        return FAILED;
    switch (item->what) {
    case ITEM_FOLDER:
        return side_need_folder(&worker->destination, item->target, e) < 0 ? FAILED : OTHER;
    case ITEM_REMOVE:
        if (to->remove(&worker->destination, item->target, item->facts.is_folder, e) < 0)
            return FAILED;
        atomic_fetch_add(&t->removed, !item->facts.is_folder);
        return OTHER;
    case ITEM_COPY:
        break;
    }
    if (t->config.journal && journal_is_done(t->config.journal, item->target, &item->facts)) {
        atomic_fetch_add(&t->before, 1);
        moved(t, item->facts.size_bytes);
        return OTHER;
    }
    return do_copy(worker, item, ret_work, e);
}

void worker_item(struct worker *worker, struct item *item, struct work **ret_work)
{
    struct transfer *t = worker->transfer;
    struct err e = {0};

    switch (do_item(worker, item, ret_work, &e)) {
    case FAILED:
        transfer_note_failed(t, item, &e);
        break;
    case SKIPPED:
        atomic_fetch_add(&t->skipped, 1);
        break;
    case COPIED:
        note_copied(t, item);
        break;
    case GOES_ON: /* the work has the item */
        return;
    case OTHER:
        transfer_note_success(t);
        break;
    }
    item_free(item);
}
