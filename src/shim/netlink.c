/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/netlink.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A request: header, the family's own header, attributes.  512 bytes hold the largest of ours
 * (the veth pair, some 150) with ease. */
struct request {
    struct nlmsghdr head;
    char body[512];
};

static void begin(struct request *r, int type, int flags, const void *body, size_t len)
{
    memset(r, 0, sizeof(*r));
    r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
    r->head.nlmsg_type = (uint16_t)type;
    r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
    memcpy(NLMSG_DATA(&r->head), body, len);
}

/* Returns the attribute, so that one that holds others can be closed. */
static struct rtattr *add(struct request *r, int type, const void *data, size_t len)
{
    struct rtattr *attr = (struct rtattr *)(void *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

    attr->rta_type = (uint16_t)type;
    attr->rta_len = (uint16_t)RTA_LENGTH(len);
    if (len)
        memcpy(RTA_DATA(attr), data, len);
    r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + (uint32_t)RTA_ALIGN(attr->rta_len);
    return attr;
}

static void add_text(struct request *r, int type, const char *text)
{
    add(r, type, text, strlen(text) + 1);
}

static void add_int(struct request *r, int type, int value)
{
    add(r, type, &value, sizeof(value));
}

static void close_attr(struct request *r, struct rtattr *attr)
{
    attr->rta_len = (uint16_t)((char *)r + r->head.nlmsg_len - (char *)attr);
}

/* The kernel's answer: 0 or an errno. */
static int ask(int fd, struct request *r)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr answer;
        char rest[1024]; /* it quotes the request */
    } reply;

    if (send(fd, r, r->head.nlmsg_len, 0) < 0)
        return errno;
    if (recv(fd, &reply, sizeof(reply), 0) < (ssize_t)NLMSG_LENGTH(sizeof(reply.answer)))
        return errno ? errno : EPROTO;
    return reply.head.nlmsg_type == NLMSG_ERROR ? -reply.answer.error : EPROTO;
}

int netlink_open(int *ret_fd, struct err *e)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return err_sys(e, errno, "could not talk to the kernel's network");
    *ret_fd = fd;
    return 0;
}

/* Asked of the socket's namespace, not of the caller's. */
static int find(int fd, const char *name, int *ret_index, struct err *e)
{
    struct ifreq request = {0};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (ioctl(fd, SIOCGIFINDEX, &request) < 0)
        return err_sys(e, errno, "could not find the interface %s", name);
    *ret_index = request.ifr_ifindex;
    return 0;
}

int netlink_make_bridge(int fd, const char *name, struct err *e)
{
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct request r;
    struct rtattr *kind;
    int rc;

    begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
    add_text(&r, IFLA_IFNAME, name);
    kind = add(&r, IFLA_LINKINFO, NULL, 0);
    add_text(&r, IFLA_INFO_KIND, "bridge");
    close_attr(&r, kind);
    rc = ask(fd, &r);
    if (rc != 0 && rc != EEXIST)
        return err_sys(e, rc, "could not make the bridge %s", name);
    return 0;
}

int netlink_make_veth(int fd,
                      const char *name,
                      const char *bridge,
                      const char *peer,
                      pid_t peer_pid,
                      struct err *e)
{
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct request r;
    struct rtattr *link, *data, *other;
    int index, rc;

    if (find(fd, bridge, &index, e) < 0)
        return -1;
    begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
    add_text(&r, IFLA_IFNAME, name);
    add_int(&r, IFLA_MASTER, index);
    link = add(&r, IFLA_LINKINFO, NULL, 0);
    add_text(&r, IFLA_INFO_KIND, "veth");
    data = add(&r, IFLA_INFO_DATA, NULL, 0);
    other = add(&r, VETH_INFO_PEER, &info, sizeof(info));
    add_text(&r, IFLA_IFNAME, peer);
    add_int(&r, IFLA_NET_NS_PID, (int)peer_pid);
    close_attr(&r, other);
    close_attr(&r, data);
    close_attr(&r, link);
    rc = ask(fd, &r);
    return rc ? err_sys(e, rc, "could not make the interface %s", name) : 0;
}

int netlink_up(int fd, const char *name, struct err *e)
{
    struct ifinfomsg info = {
        .ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct request r;
    int rc;

    if (find(fd, name, &info.ifi_index, e) < 0)
        return -1;
    begin(&r, RTM_NEWLINK, 0, &info, sizeof(info));
    rc = ask(fd, &r);
    return rc ? err_sys(e, rc, "could not bring up the interface %s", name) : 0;
}

int netlink_add_address(
    int fd, const char *name, struct in_addr address, int prefix, struct err *e)
{
    struct in_addr broadcast = {address.s_addr | htonl(0xffffffffu >> prefix)};
    struct ifaddrmsg info = {.ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix};
    struct request r;
    int index, rc;

    if (find(fd, name, &index, e) < 0)
        return -1;
    info.ifa_index = (unsigned)index;
    begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof(info));
    add(&r, IFA_LOCAL, &address, sizeof(address));
    add(&r, IFA_ADDRESS, &address, sizeof(address));
    add(&r, IFA_BROADCAST, &broadcast, sizeof(broadcast));
    rc = ask(fd, &r);
    if (rc != 0 && rc != EEXIST)
        return err_sys(e, rc, "could not give an address to %s", name);
    return 0;
}

int netlink_add_default_route(int fd, struct in_addr gateway, struct err *e)
{
    struct rtmsg info = {
        .rtm_family = AF_INET,
        .rtm_table = RT_TABLE_MAIN,
        .rtm_protocol = RTPROT_BOOT,
        .rtm_scope = RT_SCOPE_UNIVERSE,
        .rtm_type = RTN_UNICAST,
    };
    struct request r;
    int rc;

    begin(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &info, sizeof(info));
    add(&r, RTA_GATEWAY, &gateway, sizeof(gateway));
    rc = ask(fd, &r);
    return rc ? err_sys(e, rc, "could not set the default route") : 0;
}

int netlink_remove(int fd, const char *name, struct err *e)
{
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct request r;
    int rc;

    begin(&r, RTM_DELLINK, 0, &info, sizeof(info));
    add_text(&r, IFLA_IFNAME, name);
    rc = ask(fd, &r);
    if (rc != 0 && rc != ENODEV)
        return err_sys(e, rc, "could not remove the interface %s", name);
    return 0;
}

int netlink_count_ports(const char *bridge)
{
    auto_free char *path = xasprintf("/sys/class/net/%s/brif", bridge);
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}
