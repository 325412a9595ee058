/* writer.c - a shard that is written: records behind a header of zeros, which is put right at
 * the end.  So a file that was not closed is no shard, whatever its name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "train/bert-data/bert-data-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 1 << 18,
};

struct bert_writer {
    struct bert_shape shape;
    char *path, *temporary; /* temporary: NULL once it is gone or renamed */
    int fd;
    char *buffer;
    size_t used;
    int32_t *words; /* one record */
    uint64_t records;
};

void bert_writer_free(struct bert_writer *w)
{
    if (!w)
        return;
    mem_close_fd(&w->fd);
    if (w->temporary)
        unlink(w->temporary);
    free(w->path);
    free(w->temporary);
    free(w->buffer);
    free(w->words);
    free(w);
}

static int check_shape(const struct bert_shape *s, struct err *e)
{
    if (s->sequence < 2 || s->sequence > BERT_DATA_MOST_SEQUENCE || s->predictions < 0 ||
        s->predictions > s->sequence || s->vocabulary < 1 ||
        s->vocabulary > BERT_DATA_MOST_VOCABULARY)
        return err_set(e, ERR_INVALID,
                       "a shard cannot have sequences of %lld tokens, %lld of them masked, of "
                       "a vocabulary of %lld",
                       (long long)s->sequence, (long long)s->predictions,
                       (long long)s->vocabulary);
    return 0;
}

static int flush(struct bert_writer *w, struct err *e)
{
    if (fs_write_all(w->fd, w->buffer, w->used, e) < 0)
        return err_wrap(e, "\"%.200s\"", w->path);
    w->used = 0;
    return 0;
}

static int put(struct bert_writer *w, const void *bytes, size_t len, struct err *e)
{
    const char *from = bytes;

    while (len > 0) {
        size_t piece = len < BUFFER_BYTES - w->used ? len : BUFFER_BYTES - w->used;

        memcpy(w->buffer + w->used, from, piece);
        w->used += piece;
        from += piece;
        len -= piece;
        if (w->used == BUFFER_BYTES && flush(w, e) < 0)
            return -1;
    }
    return 0;
}

int bert_writer_new(const char *path,
                    const struct bert_shape *shape,
                    struct bert_writer **ret_writer,
                    struct err *e)
{
    const struct shard_header zeros = {0};
    struct bert_writer *w;

    if (check_shape(shape, e) < 0)
        return -1;
    w = xcalloc(1, sizeof *w);
    w->shape = *shape;
    w->path = xstrdup(path);
    w->temporary = xasprintf("%s.XXXXXX", path);
    w->buffer = xmalloc(BUFFER_BYTES);
    w->words = xcalloc(record_words(shape), sizeof *w->words);
    w->fd = mkostemp(w->temporary, O_CLOEXEC);
    if (w->fd < 0) {
        err_sys(e, errno, "could not create \"%.200s\"", path);
        free(take_ptr(&w->temporary));
        bert_writer_free(w);
        return -1;
    }
    if (put(w, &zeros, sizeof zeros, e) < 0) {
        bert_writer_free(w);
        return -1;
    }
    *ret_writer = w;
    return 0;
}

int bert_writer_add(struct bert_writer *w, const struct bert_record *record, struct err *e)
{
    if (record_check(record, &w->shape, e) < 0)
        return err_wrap(e, "record %llu of \"%.200s\"", (unsigned long long)w->records,
                        w->path);
    record_write(record, &w->shape, w->words);
    if (put(w, w->words, record_words(&w->shape) * 4, e) < 0)
        return -1;
    w->records++;
    return 0;
}

int bert_writer_close(struct bert_writer *w, struct err *e)
{
    struct shard_header header;

    shard_header_make(&header, &w->shape, w->records);
    if (flush(w, e) < 0)
        return -1;
    if (pwrite(w->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        fchmod(w->fd, 0644) < 0 || fsync(w->fd) < 0)
        return err_sys(e, errno, "could not write \"%.200s\"", w->path);
    if (fs_rename_durably(w->temporary, w->path, e) < 0)
        return -1;
    free(take_ptr(&w->temporary));
    return 0;
}
