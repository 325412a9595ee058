/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/node.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct str *out, const char *key, const char *value)
{
    if (!value)
        return;
    str_addf(out, "%s=%s", key, value);
    str_add_len(out, "", 1);
}

static void put_address(struct str *out, const char *key, struct in_addr address, int prefix)
{
    char text[INET_ADDRSTRLEN + 8], number[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &address, number, sizeof(number));
    snprintf(text, sizeof(text), "%s/%d", number, prefix);
    put(out, key, text);
}

static void put_list(struct str *out, const char *key, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(out, key, list[i]);
}

void shim_node_format(const struct shim_node_spec *spec, struct str *out)
{
    put(out, "yard-node", "1");
    put(out, "hostname", spec->hostname);
    put(out, "bridge", spec->bridge);
    put_address(out, "gateway", spec->gateway, spec->prefix);
    put_address(out, "address", spec->address, spec->prefix);
    put(out, "veth", spec->veth);
    for (size_t i = 0; i < spec->bind_count; i++) {
        put(out, "from", spec->binds[i].from);
        put(out, "to", spec->binds[i].to);
    }
    put_list(out, "hide", spec->hides, spec->hide_count);
    put_list(out, "cgroup", spec->cgroups, spec->cgroup_count);
    put(out, "cpus", spec->cpus);
    put(out, "sshd", spec->sshd);
    for (size_t i = 0; i < spec->listener_count; i++) {
        auto_free char *text =
            xasprintf("%d %s", spec->listeners[i].port, spec->listeners[i].config);

        put(out, "listen", text);
    }
}

static int take_address(const char *text, struct in_addr *ret, int *ret_prefix)
{
    char number[INET_ADDRSTRLEN] = "";
    const char *slash = strchr(text, '/');

    if (!slash || (size_t)(slash - text) >= sizeof(number))
        return -1;
    memcpy(number, text, (size_t)(slash - text));
    *ret_prefix = atoi(slash + 1);
    if (*ret_prefix < 8 || *ret_prefix > 30 || inet_pton(AF_INET, number, ret) != 1)
        return -1;
    return 0;
}

static int take_one(const char **list, size_t *count, size_t room, const char *value)
{
    if (*count == room)
        return -1;
    list[(*count)++] = value;
    return 0;
}

static int take_bind(struct shim_node_spec *spec, const char *value, bool is_from)
{
    struct shim_bind *bind = &spec->binds[spec->bind_count];

    if (spec->bind_count == SHIM_NODE_BINDS || (!is_from && !bind->from))
        return -1;
    if (is_from) {
        bind->from = value;
    } else {
        bind->to = value;
        spec->bind_count++;
    }
    return 0;
}

static int take_listener(struct shim_node_spec *spec, const char *value)
{
    struct shim_listener *listener = &spec->listeners[spec->listener_count];
    char *end;

    if (spec->listener_count == SHIM_NODE_LISTENERS)
        return -1;
    listener->port = (int)strtol(value, &end, 10);
    listener->config = end + 1;
    spec->listener_count++;
    return *end == ' ' && listener->port > 0 && listener->port < 65536 ? 0 : -1;
}

/* -1 for an unknown key or an impossible value. */
static int take_field(struct shim_node_spec *spec, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **at;
    } texts[] = {
        {"hostname", &spec->hostname}, {"bridge", &spec->bridge}, {"veth", &spec->veth},
        {"sshd", &spec->sshd},         {"cpus", &spec->cpus},
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            *texts[i].at = value;
            return 0;
        }
    }
    if (strcmp(key, "gateway") == 0)
        return take_address(value, &spec->gateway, &spec->prefix);
    if (strcmp(key, "address") == 0)
        return take_address(value, &spec->address, &spec->prefix);
    if (strcmp(key, "from") == 0 || strcmp(key, "to") == 0)
        return take_bind(spec, value, *key == 'f');
    if (strcmp(key, "hide") == 0)
        return take_one(spec->hides, &spec->hide_count, ARRAY_SIZE(spec->hides), value);
    if (strcmp(key, "cgroup") == 0)
        return take_one(spec->cgroups, &spec->cgroup_count, ARRAY_SIZE(spec->cgroups), value);
    if (strcmp(key, "listen") == 0)
        return take_listener(spec, value);
    return -1;
}

int shim_node_parse(const char *bytes,
                    size_t len,
                    struct shim_node_spec *ret_spec,
                    struct err *e)
{
    struct shim_node_spec spec = {0};
    const char *end = bytes + len;
    char key[16];

    if (len < 12 || memcmp(bytes, "yard-node=1", 12) != 0)
        return err_set(e, ERR_INVALID, "this is no description of a node");
    for (const char *field = bytes + 12; field < end; field += strlen(field) + 1) {
        const char *equals = strchr(field, '=');

        if (!equals || (size_t)(equals - field) >= sizeof(key))
            return err_set(e, ERR_INVALID, "\"%.40s\" is no field of a node", field);
        memcpy(key, field, (size_t)(equals - field));
        key[equals - field] = '\0';
        if (take_field(&spec, key, equals + 1) < 0)
            return err_set(e, ERR_INVALID, "\"%.40s\" is no field of a node", field);
    }
    if (!spec.hostname || !spec.bridge || !spec.veth || !spec.prefix)
        return err_set(e, ERR_INVALID, "the description of the node is not whole");
    *ret_spec = spec;
    return 0;
}

void shim_keeper_format(const struct shim_keeper *keeper, struct str *out)
{
    str_addf(out, "%d %" PRIu64 " %s %" PRIu64, (int)keeper->identity.pid,
             keeper->identity.start, keeper->identity.boot_id, keeper->net);
    for (int i = 0; i < SHIM_NODE_LISTENERS; i++)
        str_addf(out, " %d", (int)keeper->listeners[i]);
    str_add(out, "\n");
}

int shim_keeper_read(const char *folder, struct shim_keeper *ret_keeper, struct err *e)
{
    struct shim_keeper keeper = {0};
    auto_close int fd = -1;
    auto_str text = {0};

    if (shim_folder_open(folder, &fd, e) < 0 ||
        shim_folder_get(fd, "keeper", 4096, &text, e) < 0)
        return -1;
    if (sscanf(str_text(&text), "%d %" SCNu64 " %39s %" SCNu64 " %d %d", &keeper.identity.pid,
               &keeper.identity.start, keeper.identity.boot_id, &keeper.net,
               &keeper.listeners[0], &keeper.listeners[1]) != 6)
        return err_set(e, ERR_INVALID, "\"%.200s/keeper\" is no keeper's", folder);
    *ret_keeper = keeper;
    return 0;
}
