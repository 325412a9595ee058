/* load - one request over and over on many kept connections, and how long the answers took.
 *
 *     load run PORT FILE CONNECTIONS THREADS SECONDS NAMES
 *     load each PORT FILE CONNECTIONS NAMES
 *     load hold PORT FILE CONNECTIONS
 *
 * FILE is a whole HTTP/1.1 request.  "@@@@@@@@" in it is replaced by a number of eight digits,
 * each time another one: from 0 to NAMES - 1 and round again, or without end when NAMES is 0.
 * Each connection sends its next request when it has the whole answer to the last.
 *
 * run goes on for so many seconds, each until every number was sent once.  Both print "requests
 * N refused N seconds S p50_us N p99_us N", where refused counts answers other than 2xx.  hold
 * asks once on each connection, prints "held N", and keeps them open until its standard input
 * ends.
 *
 * Plain http to 127.0.0.1.  Answers must have a Content-Length.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_BYTES = 16 * 1024, /* the longest answer */
    DIGITS = 8,
    EVENTS = 64,
    A_DAY_S = 24 * 60 * 60,
};

struct plan {
    struct sockaddr_in to;
    struct str request;
    size_t number_at; /* in the request; SIZE_MAX when it has none */
    long names;
    atomic_long next;
    int64_t end_us;
    long end; /* of the numbers */
};

struct client {
    int fd;
    int64_t sent_us;
    size_t len;
    char in[IN_BYTES];
};

struct crew { /* a thread and its clients */
    struct plan *plan;
    pthread_t thread;
    int count;
    uint32_t *took_us; /* of every answer */
    size_t answers, room, refused;
};

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "wrong");
    exit(1);
}

/* --- one exchange --- */

/* Copies the request, so that threads can number it differently. */
static char *copy_request(const struct plan *plan)
{
    return xstrndup(str_text(&plan->request), plan->request.len);
}

static void send_request(struct plan *plan, struct client *client, char *request)
{
    if (plan->number_at != SIZE_MAX) {
        long n = plan->next++;
        char digits[DIGITS + 1];

        snprintf(digits, sizeof(digits), "%08ld",
                 (plan->names ? n % plan->names : n) % 100000000);
        memcpy(request + plan->number_at, digits, DIGITS);
    }
    client->len = 0;
    client->sent_us = clock_mono_us();
    if (send(client->fd, request, plan->request.len, MSG_NOSIGNAL) !=
        (ssize_t)plan->request.len)
        die("could not send");
}

/* The status when the answer is whole, 0 while it is not. */
static int read_answer(struct client *client)
{
    ssize_t got = recv(client->fd, client->in + client->len, IN_BYTES - 1 - client->len, 0);
    const char *body, *length;

    if (got <= 0)
        die("the connection was closed");
    client->len += (size_t)got;
    client->in[client->len] = '\0';
    body = strstr(client->in, "\r\n\r\n");
    if (!body)
        return 0;
    length = strcasestr(client->in, "\r\nContent-Length:");
    if (!length || length > body)
        die("an answer without Content-Length");
    if (client->len < (size_t)(body + 4 - client->in) + strtoul(length + 17, NULL, 10))
        return 0;
    return (int)strtol(client->in + strlen("HTTP/1.1 "), NULL, 10);
}

static int open_connection(const struct plan *plan)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&plan->to, sizeof(plan->to)) < 0)
        die("could not connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* --- run --- */

static void note(struct crew *crew, const struct client *client, int status)
{
    if (crew->answers == crew->room) {
        crew->room = crew->room ? crew->room * 2 : 1 << 16;
        crew->took_us = xreallocarray(crew->took_us, crew->room, sizeof(*crew->took_us));
    }
    crew->took_us[crew->answers++] = (uint32_t)(clock_mono_us() - client->sent_us);
    crew->refused += status < 200 || status > 299;
}

static void *work(void *arg)
{
    struct crew *crew = arg;
    auto_free struct client *clients = xcalloc((size_t)crew->count, sizeof(*clients));
    auto_free char *request = copy_request(crew->plan);
    auto_close int epoll = epoll_create1(EPOLL_CLOEXEC);
    int busy = crew->count;

    for (int i = 0; i < crew->count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};

        clients[i].fd = open_connection(crew->plan);
        epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event);
        send_request(crew->plan, &clients[i], request);
    }
    while (busy > 0) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            int status = read_answer(client);

            if (!status)
                continue;
            note(crew, client, status);
            if (clock_mono_us() < crew->plan->end_us && crew->plan->next < crew->plan->end) {
                send_request(crew->plan, client, request);
            } else {
                close(client->fd);
                busy--;
            }
        }
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static void print_sum(struct crew *crews, int count, int64_t us)
{
    auto_free uint32_t *all = NULL;
    size_t answers = 0, refused = 0;

    for (int i = 0; i < count; i++) {
        all = xreallocarray(all, answers + crews[i].answers, sizeof(*all));
        memcpy(all + answers, crews[i].took_us, crews[i].answers * sizeof(*all));
        answers += crews[i].answers;
        refused += crews[i].refused;
        free(crews[i].took_us);
    }
    if (!all || answers == 0)
        die("no answers");
    qsort(all, answers, sizeof(*all), compare);
    printf("requests %zu refused %zu seconds %.3f p50_us %" PRIu32 " p99_us %" PRIu32 "\n",
           answers, refused, (double)us / 1e6, all[answers / 2], all[answers * 99 / 100]);
}

static void run(struct plan *plan, int connections, int threads, double seconds)
{
    auto_free struct crew *crews = xcalloc((size_t)threads, sizeof(*crews));
    int64_t begun_us = clock_mono_us();

    plan->end_us = begun_us + (int64_t)(seconds * 1e6);
    for (int i = 0; i < threads; i++) {
        crews[i].plan = plan;
        crews[i].count = connections / threads + (i < connections % threads);
        if (pthread_create(&crews[i].thread, NULL, work, &crews[i]) != 0)
            die("could not start a thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(crews[i].thread, NULL);
    print_sum(crews, threads, clock_mono_us() - begun_us);
}

/* --- hold --- */

static void hold(struct plan *plan, int connections)
{
    auto_free struct client *client = xcalloc(1, sizeof(*client));
    auto_free char *request = copy_request(plan);
    char byte;

    for (int i = 0; i < connections; i++) {
        client->fd = open_connection(plan); /* left open: the end of the process closes it */
        send_request(plan, client, request);
        while (!read_answer(client))
            continue;
    }
    printf("held %d\n", connections);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
}

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void read_plan(struct plan *plan, const char *port, const char *file)
{
    const char *number;
    struct err e = {0};

    plan->to.sin_family = AF_INET;
    plan->to.sin_port = htons((uint16_t)strtol(port, NULL, 10));
    plan->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fs_read(file, 64 * 1024, &plan->request, &e) < 0) {
        fprintf(stderr, "load: %s\n", e.msg);
        exit(1);
    }
    number = strstr(str_text(&plan->request), "@@@@@@@@");
    plan->number_at = number ? (size_t)(number - plan->request.data) : SIZE_MAX;
}

int main(int argc, char **argv)
{
    struct plan plan = {0};

    raise_limit();
    if (argc == 8 && str_equal(argv[1], "run")) {
        read_plan(&plan, argv[2], argv[3]);
        plan.names = strtol(argv[7], NULL, 10);
        plan.end = LONG_MAX;
        run(&plan, (int)strtol(argv[4], NULL, 10), (int)strtol(argv[5], NULL, 10),
            strtod(argv[6], NULL));
    } else if (argc == 6 && str_equal(argv[1], "each")) {
        read_plan(&plan, argv[2], argv[3]);
        plan.names = plan.end = strtol(argv[5], NULL, 10);
        run(&plan, (int)strtol(argv[4], NULL, 10), 1, A_DAY_S);
    } else if (argc == 5 && str_equal(argv[1], "hold")) {
        read_plan(&plan, argv[2], argv[3]);
        hold(&plan, (int)strtol(argv[4], NULL, 10));
    } else {
        fprintf(stderr, "usage: load run PORT FILE CONNECTIONS THREADS SECONDS NAMES\n"
                        "       load each PORT FILE CONNECTIONS NAMES\n"
                        "       load hold PORT FILE CONNECTIONS\n");
        return 2;
    }
    str_done(&plan.request);
    return fflush(stdout) == 0 ? 0 : 1;
}
