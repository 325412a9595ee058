/* worker.c - one thread of the server: accepting, handing out, draining.
 *
 * Every worker waits on every listening socket; the kernel wakes one (EPOLLEXCLUSIVE).  Which
 * one is chance, so the connection goes to the worker with the fewest, by way of that worker's
 * loop if it is another.
 *
 * Out of descriptors: the spare one is closed, so that a waiting client can be accepted and
 * turned away; when even that fails, the listening socket rests for a moment.  Level-triggered
 * epoll would spin on it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_PER_TURN = 16,
    REST_MS = 100,
    /* Beyond max_connections so many, and a tenth, are told 503; more are just closed. */
    REFUSED_AT_ONCE = 64,
};

/* --- arrivals --- */

static struct http_worker *least_busy(struct http_worker *self)
{
    struct http_server *server = self->server;
    struct http_worker *best = self;
    size_t least = atomic_load_explicit(&self->open, memory_order_relaxed);

    for (size_t i = 0; i < server->worker_count; i++) {
        size_t open = atomic_load_explicit(&server->workers[i].open, memory_order_relaxed);

        if (open < least) {
            least = open;
            best = &server->workers[i];
        }
    }
    return best;
}

static void take_arrivals(void *arg)
{
    struct http_worker *worker = arg;
    struct http_arrival *list, *next;

    pthread_mutex_lock(&worker->lock);
    list = worker->arrivals;
    worker->arrivals = NULL;
    pthread_mutex_unlock(&worker->lock);
    for (; list; list = next) {
        next = list->next;
        http_conn_new(worker, list->fd, list->listener, &list->peer, list->is_refused);
        free(list);
    }
}

static void hand_over(struct http_worker *to, const struct http_arrival *arrival)
{
    struct http_arrival *copy = xmalloc(sizeof(*copy));
    bool is_first;

    *copy = *arrival;
    pthread_mutex_lock(&to->lock);
    is_first = !to->arrivals;
    copy->next = to->arrivals;
    to->arrivals = copy;
    pthread_mutex_unlock(&to->lock);
    if (is_first)
        loop_post(to->loop, take_arrivals, to);
}

static void arrive(struct http_worker *self, struct http_arrival *arrival)
{
    struct http_server *server = self->server;
    struct http_worker *to = least_busy(self);
    size_t open = atomic_fetch_add(&server->open, 1) + 1, most = server->config.max_connections;

    atomic_fetch_add_explicit(&self->connections, 1, memory_order_relaxed);
    arrival->is_refused = open > most;
    if (open > most + most / 10 + REFUSED_AT_ONCE) {
        atomic_fetch_add_explicit(&self->rejected, 1, memory_order_relaxed);
        atomic_fetch_sub(&server->open, 1);
        close(arrival->fd);
        return;
    }
    atomic_fetch_add_explicit(&to->open, 1, memory_order_relaxed);
    if (to == self)
        http_conn_new(self, arrival->fd, arrival->listener, &arrival->peer,
                      arrival->is_refused);
    else
        hand_over(to, arrival);
}

void http_worker_conn_gone(struct http_worker *worker)
{
    atomic_fetch_sub(&worker->server->open, 1);
    atomic_fetch_sub_explicit(&worker->open, 1, memory_order_relaxed);
    if (worker->is_draining && !worker->conns)
        loop_stop(worker->loop);
}

/* --- accepting --- */

/* True when a client could be turned away. */
static bool shed(struct http_worker *worker, int listen_fd)
{
    int fd;

    if (worker->spare_fd < 0)
        return false;
    close(worker->spare_fd);
    fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        atomic_fetch_add_explicit(&worker->rejected, 1, memory_order_relaxed);
    }
    worker->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void rest(struct http_acceptor *acceptor)
{
    loop_unwatch(&acceptor->watch);
    loop_timer_set(acceptor->worker->loop, &acceptor->retry, REST_MS);
}

static void on_rested(struct loop_timer *timer)
{
    struct http_acceptor *acceptor = container_of(timer, struct http_acceptor, retry);
    struct http_worker *worker = acceptor->worker;

    if (worker->spare_fd < 0)
        worker->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (loop_watch(worker->loop, &acceptor->watch, EPOLLIN | EPOLLEXCLUSIVE, NULL) < 0)
        loop_timer_set(worker->loop, timer, REST_MS);
}

static void on_arrival(struct loop_watch *watch, uint32_t events)
{
    struct http_acceptor *acceptor = container_of(watch, struct http_acceptor, watch);
    struct http_worker *worker = acceptor->worker;

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct http_arrival arrival = {.listener = acceptor->listener};
        socklen_t len = sizeof(arrival.peer);

        arrival.fd = accept4(watch->fd, (struct sockaddr *)&arrival.peer, &len,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (arrival.fd >= 0) {
            arrive(worker, &arrival);
            continue;
        }
        if (errno == EAGAIN)
            return;
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if ((errno == EMFILE || errno == ENFILE) && shed(worker, watch->fd))
            continue;
        rest(acceptor);
        return;
    }
}

/* --- draining --- */

static void stop(struct loop_task *task)
{
    loop_stop(container_of(task, struct http_worker, stop_task)->loop);
}

/* The connections have a turn each, in which their handlers hear of it; then it is over. */
static void on_deadline(struct loop_timer *timer)
{
    struct http_worker *worker = container_of(timer, struct http_worker, drain_timer);

    for (struct http_conn *conn = worker->conns; conn; conn = conn->next)
        http_conn_lose(conn);
    loop_task_add(worker->loop, &worker->stop_task);
}

static void drain(void *arg)
{
    struct http_worker *worker = arg;

    worker->is_draining = true;
    for (size_t i = 0; i < worker->server->listener_count; i++) {
        loop_unwatch(&worker->acceptors[i].watch);
        loop_timer_cancel(&worker->acceptors[i].retry);
    }
    /* Nobody waits on the listening sockets any more: closed, they refuse instead of keeping
     * waiting. */
    if (atomic_fetch_sub(&worker->server->accepting, 1) == 1)
        for (size_t i = 0; i < worker->server->listener_count; i++)
            mem_close_fd(&worker->server->listeners[i].fd);
    for (struct http_conn *conn = worker->conns; conn; conn = conn->next)
        http_conn_drain(conn);
    loop_timer_set(worker->loop, &worker->drain_timer, worker->drain_ms);
    if (!worker->conns)
        loop_stop(worker->loop);
}

void http_worker_drain(struct http_worker *worker, int64_t deadline_ms)
{
    worker->drain_ms = deadline_ms;
    loop_post(worker->loop, drain, worker);
}

/* --- small things made often --- */

const char *http_worker_date(struct http_worker *worker)
{
    int64_t now = clock_wall_ms();

    if (now / 1000 != worker->date_s) {
        worker->date_s = now / 1000;
        clock_format_http(now, worker->date);
    }
    return worker->date;
}

/* xoshiro256**: an id must be unique, not secret, and must not cost a system call. */
static uint64_t next_random(uint64_t s[4])
{
    uint64_t fives = s[1] * 5, result = ((fives << 7) | (fives >> 57)) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

void http_worker_uuid(struct http_worker *worker, char buf[CRYPT_UUID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t half[2];

    half[0] = (next_random(worker->random) & ~0xf000ULL) | 0x4000; /* version 4 */
    half[1] = (next_random(worker->random) & ~(3ULL << 62)) | (1ULL << 63);
    for (int i = 0, nibble = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            buf[i] = '-';
            continue;
        }
        buf[i] = digits[(half[nibble / 16] >> (60 - 4 * (nibble % 16))) & 15];
        nibble++;
    }
    buf[36] = '\0';
}

/* --- life --- */

int http_worker_init(struct http_worker *worker, struct http_server *server, struct err *e)
{
    size_t head = server->config.max_head_bytes + 4096;

    worker->server = server;
    worker->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    worker->in_room = head > HTTP_IN_BYTES ? head : HTTP_IN_BYTES;
    worker->in = xmalloc(worker->in_room);
    worker->drain_timer.fired = on_deadline;
    worker->stop_task.run = stop;
    worker->acceptors = xcalloc(server->listener_count, sizeof(worker->acceptors[0]));
    crypt_random(worker->random, sizeof(worker->random));
    pthread_mutex_init(&worker->lock, NULL);
    if (loop_new(&worker->loop, e) < 0)
        return -1;
    for (size_t i = 0; i < server->listener_count; i++) {
        struct http_acceptor *acceptor = &worker->acceptors[i];

        acceptor->worker = worker;
        acceptor->listener = &server->listeners[i];
        acceptor->retry.fired = on_rested;
        acceptor->watch.fd = acceptor->listener->fd;
        acceptor->watch.ready = on_arrival;
        if (loop_watch(worker->loop, &acceptor->watch, EPOLLIN | EPOLLEXCLUSIVE, e) < 0)
            return -1;
    }
    return 0;
}

static void *run(void *arg)
{
    struct http_worker *worker = arg;

    loop_run(worker->loop);
    return NULL;
}

/* Signals are the main thread's business; SIGPIPE, which sendfile and OpenSSL raise, is
 * nobody's. */
int http_worker_start(struct http_worker *worker, struct err *e)
{
    sigset_t all, before;
    char name[16];
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&worker->thread, NULL, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return err_sys(e, rc, "could not start a thread of the http server");
    snprintf(name, sizeof(name), "http-%u", (unsigned)(worker - worker->server->workers));
    pthread_setname_np(worker->thread, name);
    return 0;
}

void http_worker_done(struct http_worker *worker)
{
    struct http_arrival *next;

    if (!worker->server)
        return;
    while (worker->conns)
        http_conn_free(worker->conns);
    for (struct http_arrival *a = worker->arrivals; a; a = next) {
        next = a->next;
        close(a->fd);
        free(a);
    }
    loop_free(worker->loop);
    mem_close_fd(&worker->spare_fd);
    pthread_mutex_destroy(&worker->lock);
    str_done(&worker->head);
    free(worker->acceptors);
    free(worker->in);
    free(worker->tls_piece);
    free(worker->calls);
}
