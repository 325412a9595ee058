/* out.c - the queue of bytes and file spans on their way to a client.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <string.h>
#include <unistd.h>

enum {
    SEGMENT_BYTES = 16 * 1024 - 64, /* a block for small writes to gather in */
    MOST_PARTS = 16,
    MOST_PUSH = 1024 * 1024, /* per push, so that one fast reader does not hold up the others */
};

struct http_segment {
    struct http_segment *next;
    int fd; /* -1: bytes */
    off_t offset;
    size_t start, end,
        room; /* of bytes; of a file, start is what was sent and end its length */
    char bytes[];
};

static struct http_segment *add_segment(struct http_conn *conn, int fd, size_t room)
{
    struct http_segment *segment = xmalloc(sizeof(*segment) + room);

    *segment = (struct http_segment){.fd = fd, .room = room};
    if (!conn->out_first)
        conn->out_since_ms = clock_mono_ms();
    if (conn->out_last)
        conn->out_last->next = segment;
    else
        conn->out_first = segment;
    conn->out_last = segment;
    return segment;
}

void http_out_add(struct http_conn *conn, const void *bytes, size_t len)
{
    struct http_segment *last = conn->out_last;

    if (!len)
        return;
    if (!last || last->fd >= 0 || last->room - last->end < len)
        last = add_segment(conn, -1, len > SEGMENT_BYTES ? len : SEGMENT_BYTES);
    memcpy(last->bytes + last->end, bytes, len);
    last->end += len;
    conn->out_bytes += len;
}

void http_out_add_file(struct http_conn *conn, int fd, off_t offset, size_t len)
{
    struct http_segment *segment = add_segment(conn, fd, 0);

    segment->offset = offset;
    segment->end = len;
}

static void drop_first(struct http_conn *conn)
{
    struct http_segment *first = conn->out_first;

    conn->out_first = first->next;
    if (!conn->out_first)
        conn->out_last = NULL;
    mem_close_fd(&first->fd);
    free(first);
}

void http_out_drop(struct http_conn *conn)
{
    while (conn->out_first)
        drop_first(conn);
    conn->out_bytes = 0;
}

/* Write from the front of the queue, once. */
static ssize_t write_front(struct http_conn *conn)
{
    struct http_segment *s = conn->out_first;
    struct iovec parts[MOST_PARTS];
    int count = 0;

    if (s->fd >= 0) {
        size_t left = s->end - s->start;

        return http_io_send_file(conn, s->fd, s->offset + (off_t)s->start,
                                 left < MOST_PUSH ? left : MOST_PUSH);
    }
    for (; s && s->fd < 0 && count < MOST_PARTS; s = s->next)
        parts[count++] = (struct iovec){s->bytes + s->start, s->end - s->start};
    return http_io_write(conn, parts, count, s && s->fd >= 0);
}

static void count_written(struct http_conn *conn, size_t n)
{
    if (conn->req)
        conn->req->bytes_out += n;
    conn->out_since_ms = clock_mono_ms();
    while (n) {
        struct http_segment *s = conn->out_first;
        size_t part = n < s->end - s->start ? n : s->end - s->start;

        s->start += part;
        n -= part;
        if (s->fd < 0)
            conn->out_bytes -= part;
        if (s->start == s->end)
            drop_first(conn);
    }
}

void http_out_push(struct http_conn *conn)
{
    size_t written = 0;

    while (conn->out_first && conn->can_write && written < MOST_PUSH) {
        ssize_t n = write_front(conn);

        if (n == HTTP_IO_FAILED) {
            http_conn_lose(conn);
            return;
        }
        if (n > 0) {
            written += (size_t)n;
            count_written(conn, (size_t)n);
        }
    }
}

void http_out_send(struct http_conn *conn, const struct iovec *iov, int count)
{
    size_t done = 0;

    if (conn->out_first && conn->can_write)
        http_out_push(conn);
    if (conn->state == HTTP_CONN_DEAD)
        return;
    if (!conn->out_first && conn->can_write) {
        ssize_t n = http_io_write(conn, iov, count, false);

        if (n == HTTP_IO_FAILED) {
            http_conn_lose(conn);
            return;
        }
        done = n > 0 ? (size_t)n : 0;
        if (conn->req)
            conn->req->bytes_out += done;
    }
    for (int i = 0; i < count; i++) {
        size_t skip = done < iov[i].iov_len ? done : iov[i].iov_len;

        done -= skip;
        http_out_add(conn, (const char *)iov[i].iov_base + skip, iov[i].iov_len - skip);
    }
}
