/* io.c - the one place that knows whether a connection is plain or TLS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TLS_PIECE = 16 * 1024, /* one record */
};

int http_io_open(struct http_conn *conn, struct http_tls *tls)
{
    if (!tls)
        return 0;
    conn->ssl = SSL_new(http_tls_context(tls));
    if (!conn->ssl || !SSL_set_fd(conn->ssl, conn->watch.fd))
        return -1;
    SSL_set_accept_state(conn->ssl);
    return 0;
}

/* What a failed call of OpenSSL means.  Either direction may wait for the other, so both are
 * marked. */
static int tls_failure(struct http_conn *conn, int rc)
{
    int error = SSL_get_error(conn->ssl, rc);

    if (error == SSL_ERROR_WANT_READ)
        conn->can_read = false;
    else if (error == SSL_ERROR_WANT_WRITE)
        conn->can_write = false;
    else if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    else
        return HTTP_IO_FAILED;
    return HTTP_IO_AGAIN;
}

int http_io_handshake(struct http_conn *conn)
{
    int rc;

    ERR_clear_error();
    rc = SSL_do_handshake(conn->ssl);
    if (rc == 1)
        return 1;
    rc = tls_failure(conn, rc);
    return rc ? rc : HTTP_IO_FAILED;
}

static int plain_failure(bool *can)
{
    if (errno != EAGAIN && errno != EINTR)
        return HTTP_IO_FAILED;
    *can = errno == EINTR;
    return HTTP_IO_AGAIN;
}

ssize_t http_io_read(struct http_conn *conn, void *bytes, size_t room)
{
    ssize_t n;

    if (conn->ssl) {
        ERR_clear_error();
        n = SSL_read(conn->ssl, bytes, (int)room);
        if (n > 0)
            return n;
        n = tls_failure(conn, (int)n);
        /* Asked for more and told to write first: the next edge of either kind wakes us. */
        if (n == HTTP_IO_AGAIN)
            conn->can_read = false;
        return n;
    }
    n = recv(conn->watch.fd, bytes, room, 0);
    if (n < 0)
        return plain_failure(&conn->can_read);
    /* With edges, less than asked for means that the socket is empty, unless the end is behind
     * it. */
    if ((size_t)n < room && !conn->is_hung_up)
        conn->can_read = false;
    return n;
}

static ssize_t tls_write(struct http_conn *conn, const void *bytes, size_t len)
{
    int rc;

    ERR_clear_error();
    rc = SSL_write(conn->ssl, bytes, (int)len);
    if (rc > 0)
        return rc;
    rc = tls_failure(conn, rc);
    if (rc == HTTP_IO_AGAIN)
        conn->can_write = false;
    return rc ? rc : HTTP_IO_FAILED;
}

static char *tls_piece(struct http_conn *conn)
{
    if (!conn->worker->tls_piece)
        conn->worker->tls_piece = xmalloc(TLS_PIECE);
    return conn->worker->tls_piece;
}

/* Small parts share a record.  After a failure OpenSSL wants the same bytes again, at least as
 * many: the queue gives them, since it only grows at its end. */
static ssize_t tls_write_parts(struct http_conn *conn, const struct iovec *iov, int count)
{
    char *piece = tls_piece(conn);
    size_t len = 0;

    if (iov[0].iov_len >= TLS_PIECE)
        return tls_write(conn, iov[0].iov_base, TLS_PIECE);
    for (int i = 0; i < count && len < TLS_PIECE; i++) {
        size_t n = iov[i].iov_len < TLS_PIECE - len ? iov[i].iov_len : TLS_PIECE - len;

        if (n)
            memcpy(piece + len, iov[i].iov_base, n);
        len += n;
    }
    return tls_write(conn, piece, len);
}

ssize_t http_io_write(struct http_conn *conn, const struct iovec *iov, int count, bool is_more)
{
    struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
    ssize_t n;

    if (conn->ssl)
        return tls_write_parts(conn, iov, count);
    n = sendmsg(conn->watch.fd, &message, MSG_NOSIGNAL | (is_more ? MSG_MORE : 0));
    return n < 0 ? plain_failure(&conn->can_write) : n;
}

ssize_t http_io_send_file(struct http_conn *conn, int fd, off_t offset, size_t len)
{
    ssize_t n;

    if (conn->ssl) {
        char *piece = tls_piece(conn);

        n = pread(fd, piece, len < TLS_PIECE ? len : TLS_PIECE, offset);
        return n > 0 ? tls_write(conn, piece, (size_t)n) : HTTP_IO_FAILED;
    }
    n = sendfile(conn->watch.fd, fd, &offset, len);
    if (n == 0)
        return HTTP_IO_FAILED; /* the file has become shorter than promised */
    return n < 0 ? plain_failure(&conn->can_write) : n;
}

void http_io_shut(struct http_conn *conn)
{
    if (conn->is_shut)
        return;
    conn->is_shut = true;
    if (conn->ssl && SSL_is_init_finished(conn->ssl)) {
        ERR_clear_error();
        SSL_shutdown(conn->ssl);
    }
    shutdown(conn->watch.fd, SHUT_WR);
}

void http_io_close(struct http_conn *conn)
{
    if (conn->watch.fd < 0)
        return;
    loop_unwatch(&conn->watch);
    SSL_free(conn->ssl);
    conn->ssl = NULL;
    close(conn->watch.fd);
    conn->watch.fd = -1;
}
