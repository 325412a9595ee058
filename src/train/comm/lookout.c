/* lookout.c - see lookout.h.
 *
 * Messages are one int32: a rank that died, or GOOD_BYE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/lookout.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GOOD_BYE = -1,
    PATIENCE_MS = 5000, /* for a connection to come about */
    HUB = 0,            /* the rank that all others call */
};

struct peer {
    int fd; /* -1 = gone in good order */
    int rank;
};

struct lookout {
    struct peer *peers;
    int count;
    bool is_hub;
    int listener; /* -1 but while listening */
    uint8_t token[16];
    struct pollfd *polls; /* as many as peers */
};

struct hello {
    uint8_t token[16];
    int32_t rank;
};

DEFINE_AUTOPTR(lookout)

static struct lookout *new_lookout(bool is_hub)
{
    struct lookout *lookout = xcalloc(1, sizeof *lookout);

    lookout->is_hub = is_hub;
    lookout->listener = -1;
    return lookout;
}

static void add_peer(struct lookout *lookout, int fd, int rank)
{
    const int on = 1, idle_s = 1, interval_s = 1, times = 3;
    size_t count = (size_t)lookout->count + 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    lookout->peers = xreallocarray(lookout->peers, count, sizeof *lookout->peers);
    lookout->polls = xreallocarray(lookout->polls, count, sizeof *lookout->polls);
    lookout->peers[lookout->count++] = (struct peer){fd, rank};
}

static void list_addresses(struct lookout_address *address)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        return;
    for (struct ifaddrs *i = all; i && address->count < LOOKOUT_MOST_ADDRESSES;
         i = i->ifa_next) {
        struct sockaddr_in in;

        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP))
            continue;
        memcpy(&in, i->ifa_addr, sizeof in);
        address->address[address->count++] = in.sin_addr.s_addr;
    }
    freeifaddrs(all);
}

int lookout_listen(struct lookout **ret_lookout,
                   struct lookout_address *ret_address,
                   struct err *e)
{
    autoptr(lookout) lookout = new_lookout(true);
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t len = sizeof any;
    struct lookout_address address = {0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    lookout->listener = fd;
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) < 0 || listen(fd, 1024) < 0 ||
        getsockname(fd, (struct sockaddr *)&any, &len) < 0 ||
        getrandom(address.token, sizeof address.token, 0) != sizeof address.token)
        return err_sys(e, errno, "could not listen for the other hosts");
    address.port = any.sin_port;
    list_addresses(&address);
    memcpy(lookout->token, address.token, sizeof address.token);
    *ret_address = address;
    *ret_lookout = take_ptr(&lookout);
    return 0;
}

/* All len bytes before the deadline, or false. */
static bool receive(int fd, void *bytes, size_t len, int64_t deadline_ms)
{
    for (size_t got = 0; got < len;) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        int64_t left = deadline_ms - clock_mono_ms();
        ssize_t more;

        if (left <= 0 || poll(&one, 1, (int)left) <= 0)
            return false;
        more = recv(fd, (char *)bytes + got, len - got, MSG_DONTWAIT);
        if (more == 0 || (more < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        got += more > 0 ? (size_t)more : 0;
    }
    return true;
}

/* Constant time: a stranger learns nothing from how fast it is sent away. */
static bool is_same(const uint8_t a[16], const uint8_t b[16])
{
    uint8_t differs = 0;

    for (int i = 0; i < 16; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

int lookout_accept(struct lookout *lookout, int count, struct err *e)
{
    int64_t deadline = clock_mono_ms() + PATIENCE_MS;

    while (lookout->count < count) {
        struct pollfd one = {.fd = lookout->listener, .events = POLLIN};
        int64_t left = deadline - clock_mono_ms();
        auto_close int fd = -1;
        struct hello hello;

        if (left <= 0 || poll(&one, 1, (int)left) <= 0)
            return err_set(e, ERR_TIMEOUT, "%d of %d ranks of other hosts did not call",
                           count - lookout->count, count);
        fd = accept4(lookout->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && receive(fd, &hello, sizeof hello, clock_mono_ms() + 1000) &&
            is_same(hello.token, lookout->token) &&
            send(fd, hello.token, sizeof hello.token, MSG_NOSIGNAL) == sizeof hello.token)
            add_peer(lookout, take_fd(&fd), hello.rank);
    }
    mem_close_fd(&lookout->listener);
    lookout->listener = -1;
    return 0;
}

/* A connection, or -1: the next address may do. */
static int call(uint32_t address, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = port};
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;

    to.sin_addr.s_addr = address;
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 &&
        (errno != EINPROGRESS || poll(&one, 1, PATIENCE_MS / 5) <= 0 ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error))
        return -1;
    return take_fd(&fd);
}

/* The loopback address of another host is our own, and whoever listens there is not rank 0: so
 * it is tried last, and lookout_confirm() asks for the token back. */
int lookout_connect(const struct lookout_address *address,
                    int rank,
                    struct lookout **ret_lookout,
                    struct err *e)
{
    struct hello hello = {.rank = rank};

    memcpy(hello.token, address->token, sizeof hello.token);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < address->count; i++) {
            bool is_loop = (ntohl(address->address[i]) >> 24) == 127;
            auto_close int fd = -1;

            if (is_loop != (turn == 1))
                continue;
            fd = call(address->address[i], address->port);
            if (fd < 0 || send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
                continue;
            *ret_lookout = new_lookout(false);
            memcpy((*ret_lookout)->token, hello.token, sizeof hello.token);
            add_peer(*ret_lookout, take_fd(&fd), HUB);
            return 0;
        }
    }
    return err_set(e, ERR_BUSY, "rank %d could not reach rank 0", rank);
}

int lookout_confirm(struct lookout *lookout, struct err *e)
{
    uint8_t token[16];

    if (receive(lookout->peers[0].fd, token, sizeof token, clock_mono_ms() + PATIENCE_MS) &&
        is_same(token, lookout->token))
        return 0;
    return err_set(e, ERR_TIMEOUT, "rank 0 did not answer");
}

static void say(struct peer *peer, int32_t word)
{
    if (peer->fd >= 0)
        (void)!send(peer->fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void lookout_free(struct lookout *lookout)
{
    if (!lookout)
        return;
    for (int i = 0; i < lookout->count; i++) {
        say(&lookout->peers[i], GOOD_BYE);
        mem_close_fd(&lookout->peers[i].fd);
    }
    mem_close_fd(&lookout->listener);
    free(lookout->peers);
    free(lookout->polls);
    free(lookout);
}

void lookout_tell(struct lookout *lookout, int rank)
{
    for (int i = 0; lookout->is_hub && i < lookout->count; i++)
        say(&lookout->peers[i], rank);
}

/* Read what a peer has to say; true when that is a death. */
static bool hear(struct peer *peer, int *ret_rank)
{
    int32_t word = 0;
    ssize_t got = recv(peer->fd, &word, sizeof word, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got == (ssize_t)sizeof word && word == GOOD_BYE) {
        close(peer->fd);
        peer->fd = -1;
        return false;
    }
    *ret_rank = got == (ssize_t)sizeof word ? word : peer->rank;
    return true;
}

bool lookout_find_dead(struct lookout *lookout, int *ret_rank)
{
    for (int i = 0; i < lookout->count; i++)
        lookout->polls[i] = (struct pollfd){.fd = lookout->peers[i].fd, .events = POLLIN};
    if (lookout->count == 0 || poll(lookout->polls, (nfds_t)lookout->count, 0) <= 0)
        return false;
    for (int i = 0; i < lookout->count; i++) {
        if (!lookout->polls[i].revents || !hear(&lookout->peers[i], ret_rank))
            continue;
        lookout_tell(lookout, *ret_rank);
        return true;
    }
    return false;
}
