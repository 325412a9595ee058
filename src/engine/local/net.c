/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/net.h"

#include "base/crypt.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/folder.h"
#include "shim/netlink.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FIRST_HOST = 4,    /* as in Azure: the first three belong to the network itself */
    MOST_HOSTS = 8192, /* bounded by what one machine can run */
};

struct net {
    char *home;
    char bridge[NET_NAME_BYTES];
    bool is_chosen; /* by us, so that it is claimed */
    uint32_t base;  /* host order */
    int prefix;
    unsigned char digest[CRYPT_SHA256_BYTES]; /* of the data folder's path */
    pthread_mutex_t lock;
    bool is_used[MOST_HOSTS]; /* by host number; guarded */
    int holders;              /* guarded */
};

static int parse_subnet(const char *text, uint32_t *ret_base, int *ret_prefix, struct err *e)
{
    char number[INET_ADDRSTRLEN];
    struct in_addr address;
    int prefix;

    if (sscanf(text, "%15[0-9.]/%d", number, &prefix) != 2 || prefix < 8 || prefix > 28 ||
        inet_pton(AF_INET, number, &address) != 1)
        return err_set(e, ERR_INVALID, "\"%.40s\" is no subnet; take one like 10.77.0.0/16",
                       text);
    *ret_prefix = prefix;
    *ret_base = ntohl(address.s_addr) & ~(0xffffffffu >> prefix);
    return 0;
}

/* Does a route of this machine, but for the default and the bridge's own, overlap? */
static bool is_taken(const char *routes, const char *bridge, uint32_t base, int prefix)
{
    uint32_t ours = ~(0xffffffffu >> prefix);
    char device[32];
    unsigned to, mask;

    for (const char *line = strchr(routes, '\n'); line; line = strchr(line + 1, '\n')) {
        if (sscanf(line, " %31s %x %*x %*x %*d %*d %*d %x", device, &to, &mask) != 3 ||
            mask == 0 || strcmp(device, bridge) == 0)
            continue;
        if (((ntohl(to) ^ base) & ours & ntohl(mask)) == 0)
            return true;
    }
    return false;
}

#define CLAIMS "/run/trainyard"

static char *claim_path(uint32_t base)
{
    return xasprintf(CLAIMS "/subnet-%u.%u", base >> 24, base >> 16 & 255);
}

/* A bridge comes with the first node, so routes do not show what another yard has just chosen:
 * each writes its data folder into a file for its subnet.  Without root there are no subnets to
 * choose. */
static bool claim(uint32_t base, const char *home)
{
    auto_free char *path = claim_path(base);
    auto_str holder = {0};
    auto_close int fd = -1;

    mkdir(CLAIMS, 0755);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0)
        return fs_write_all(fd, home, strlen(home), NULL) == 0;
    if (errno != EEXIST)
        return true; /* no place for claims: routes must do */
    /* An empty one is being written by somebody. */
    return fs_read(path, 4096, &holder, NULL) == 0 && str_equal(str_text(&holder), home);
}

static void unclaim(uint32_t base, const char *home)
{
    auto_free char *path = claim_path(base);
    auto_str holder = {0};

    if (fs_read(path, 4096, &holder, NULL) == 0 && str_equal(str_text(&holder), home))
        unlink(path);
}

/* Claims of yards whose data folder is gone. */
static void sweep_claims(void)
{
    DIR *dir = opendir(CLAIMS);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_free char *path = xasprintf(CLAIMS "/%s", entry->d_name);
        auto_str holder = {0};

        if (str_starts(entry->d_name, "subnet-") && fs_read(path, 4096, &holder, NULL) == 0 &&
            holder.len > 0 && access(str_text(&holder), F_OK) < 0 && errno == ENOENT)
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

/* Of 64 candidates the first free one; when all are taken, more precise routes still win. */
static void choose_subnet(struct net *net, const char *home)
{
    auto_str routes = {0};
    unsigned begin = net->digest[8] % 64;

    if (fs_read("/proc/net/route", 1 << 20, &routes, NULL) < 0)
        str_add(&routes, "\n");
    net->prefix = 16;
    for (unsigned i = 0; i < 64; i++) {
        net->base = (10u << 24) | ((64 + (begin + i) % 64) << 16);
        if (!is_taken(str_text(&routes), net->bridge, net->base, net->prefix) &&
            claim(net->base, home))
            return;
    }
}

/* Nodes that a daemon before us left have addresses already. */
static bool has_nodes(const char *home)
{
    auto_free char *path = xasprintf("%s/nodes", home);
    DIR *dir = opendir(path);
    struct dirent *entry = NULL;

    while (dir && (entry = readdir(dir)) && entry->d_name[0] == '.')
        ;
    if (dir)
        closedir(dir);
    return entry != NULL;
}

/* What was chosen before stands, unless another yard has it by now and nothing hangs on it. */
static int settle_subnet(struct net *net, const char *home, const char *wanted, struct err *e)
{
    auto_free char *folder = xasprintf("%s/nodes", home);
    auto_free char *path = xasprintf("%s/.subnet", folder);
    auto_str text = {0};
    struct in_addr base;
    char number[INET_ADDRSTRLEN];

    if (wanted)
        return parse_subnet(wanted, &net->base, &net->prefix, e);
    sweep_claims();
    net->is_chosen = true;
    if (fs_read(path, 64, &text, NULL) == 0 &&
        parse_subnet(str_text(&text), &net->base, &net->prefix, NULL) == 0 &&
        (claim(net->base, home) || has_nodes(home)))
        return 0;
    choose_subnet(net, home);
    base.s_addr = htonl(net->base);
    inet_ntop(AF_INET, &base, number, sizeof(number));
    str_truncate(&text, 0);
    str_addf(&text, "%s/%d\n", number, net->prefix);
    return fs_write_durably(path, text.data, text.len, 0600, e);
}

int net_new(const char *home, const char *subnet, struct net **ret_net, struct err *e)
{
    auto_free struct net *net = xcalloc(1, sizeof(*net));

    crypt_sha256(home, strlen(home), net->digest);
    snprintf(net->bridge, sizeof(net->bridge), "yard%02x%02x%02x%02x", net->digest[0],
             net->digest[1], net->digest[2], net->digest[3]);
    if (settle_subnet(net, home, subnet, e) < 0)
        return -1;
    net->home = xstrdup(home);
    pthread_mutex_init(&net->lock, NULL);
    *ret_net = take_ptr(&net);
    return 0;
}

void net_free(struct net *net)
{
    if (!net)
        return;
    if (net->is_chosen && !has_nodes(net->home))
        unclaim(net->base, net->home);
    pthread_mutex_destroy(&net->lock);
    free(net->home);
    free(net);
}

static uint32_t host_number(const struct net *net, const char *address)
{
    struct in_addr number = {0};

    inet_pton(AF_INET, address, &number);
    return ntohl(number.s_addr) - net->base;
}

static void set_used(struct net *net, const char *address, bool is_used)
{
    uint32_t host = host_number(net, address);

    pthread_mutex_lock(&net->lock);
    if (host < MOST_HOSTS)
        net->is_used[host] = is_used;
    pthread_mutex_unlock(&net->lock);
}

int net_take(struct net *net, char ret_address[NET_ADDRESS_BYTES], struct err *e)
{
    uint32_t hosts = 0xffffffffu >> net->prefix; /* the last one is for broadcasts */
    struct in_addr address = {0};

    pthread_mutex_lock(&net->lock);
    for (uint32_t host = FIRST_HOST; host < hosts && host < MOST_HOSTS; host++) {
        if (net->is_used[host])
            continue;
        net->is_used[host] = true;
        address.s_addr = htonl(net->base + host);
        break;
    }
    pthread_mutex_unlock(&net->lock);
    if (!address.s_addr)
        return err_set(e, ERR_NO_SPACE, "there is no address left for a node");
    inet_ntop(AF_INET, &address, ret_address, NET_ADDRESS_BYTES);
    return 0;
}

void net_claim(struct net *net, const char *address)
{
    set_used(net, address, true);
}

void net_give(struct net *net, const char *address)
{
    set_used(net, address, false);
}

const char *net_bridge(const struct net *net)
{
    return net->bridge;
}

struct in_addr net_gateway(const struct net *net)
{
    return (struct in_addr){htonl(net->base + 1)};
}

int net_prefix(const struct net *net)
{
    return net->prefix;
}

void net_veth(const struct net *net, const char *address, char ret_name[NET_NAME_BYTES])
{
    snprintf(ret_name, NET_NAME_BYTES, "yv%02x%02x%02x-%x", net->digest[0], net->digest[1],
             net->digest[2], host_number(net, address) & 0xffff);
}

void net_cut(const struct net *net, const char *address)
{
    auto_close int fd = -1;
    char name[NET_NAME_BYTES];

    net_veth(net, address, name);
    if (netlink_open(&fd, NULL) == 0)
        netlink_remove(fd, name, NULL);
}

void net_pattern(const struct net *net, char ret_pattern[NET_ADDRESS_BYTES])
{
    unsigned a = net->base >> 24, b = net->base >> 16 & 255, c = net->base >> 8 & 255;

    if (net->prefix >= 24)
        snprintf(ret_pattern, NET_ADDRESS_BYTES, "%u.%u.%u.*", a, b, c);
    else if (net->prefix >= 16)
        snprintf(ret_pattern, NET_ADDRESS_BYTES, "%u.%u.*", a, b);
    else
        snprintf(ret_pattern, NET_ADDRESS_BYTES, "%u.*", a);
}

static void count_holder(struct net *net, int more)
{
    pthread_mutex_lock(&net->lock);
    net->holders += more;
    pthread_mutex_unlock(&net->lock);
}

void net_hold(struct net *net)
{
    count_holder(net, 1);
}

void net_let_go(struct net *net)
{
    count_holder(net, -1);
}

void net_sweep(struct net *net)
{
    auto_close int fd = -1;

    pthread_mutex_lock(&net->lock);
    if (net->holders == 0 && netlink_count_ports(net->bridge) == 0 &&
        netlink_open(&fd, NULL) == 0)
        netlink_remove(fd, net->bridge, NULL);
    pthread_mutex_unlock(&net->lock);
}
