/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cluster.h"

#include "base/crypt.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "engine/local/command.h"
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <crypt.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    KEYGEN_MS = 30 * 1000,
};

static char *
cluster_path(const char *home, const struct engine_cluster *cluster, const char *file)
{
    return xasprintf("%s/clusters/%" PRId64 "%s", home, cluster->id, file);
}

static int
write_text(const char *folder, const char *name, mode_t mode, struct str *text, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    return folder_write(path, str_text(text), text->len, mode, e);
}

/* --- accounts --- */

struct account {
    const char *name, *key, *password; /* NULL */
};

/* Fit for a line of passwd and of sshd_config. */
static bool is_account_name(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    }
    return len > 0 && len <= 32 && name[0] != '-' && strcmp(name, "root") != 0;
}

static void read_account(const json_t *spec, struct account *ret)
{
    const json_t *settings = json_object_get(spec, "userAccountSettings");
    const char *name = json_string_value(json_object_get(settings, "adminUserName"));

    *ret = (struct account){
        .name = name && is_account_name(name) ? name : NULL,
        .key = json_string_value(json_object_get(settings, "adminUserSshPublicKey")),
        .password = json_string_value(json_object_get(settings, "adminUserPassword")),
    };
    if (ret->key && strpbrk(ret->key, "\r\n"))
        ret->key = NULL; /* more lines would be more keys, with options of their own */
}

static bool is_of(const char *line, const char *name)
{
    size_t len = strlen(name);

    return strncmp(line, name, len) == 0 && line[len] == ':';
}

static void hash_password(const char *password, struct str *out)
{
    struct crypt_data *data = xcalloc(1, sizeof(*data));
    unsigned char random[12];
    auto_str setting = {0};
    const char *hash;

    crypt_random(random, sizeof(random));
    str_add(&setting, "$6$");
    text_hex(&setting, random, sizeof(random));
    hash = crypt_r(password, setting.data, data);
    str_add(out, hash && hash[0] == '$' ? hash : "*");
    explicit_bzero(data, sizeof(*data));
    free(data);
}

/* A line of the host's passwd; who has the daemon's rights is at home in the node. */
static void add_user(const char *line, struct str *out)
{
    char name[64], gecos[128] = "", shell[128] = "";
    unsigned uid, gid;

    if (sscanf(line, "%63[^:]:%*[^:]:%u:%u", name, &uid, &gid) != 3 || uid != getuid()) {
        str_addf(out, "%s\n", line);
        return;
    }
    (void)sscanf(line, "%*[^:]:%*[^:]:%*u:%*u:%127[^:]", gecos);
    (void)sscanf(strrchr(line, ':'), ":%127s", shell);
    str_addf(out, "%s:x:%u:%u:%s:" LOCAL_HOME ":%s\n", name, uid, gid, gecos, shell);
}

/* The host's accounts, and the cluster's own with the rights of the daemon's user.  Nobody
 * comes in with a password of the host's. */
static int write_passwd(const char *folder, const struct account *account, struct err *e)
{
    auto_str text = {0}, host = {0};
    bool is_known = false;
    char *rest = NULL;

    if (fs_read("/etc/passwd", 1 << 20, &host, e) < 0)
        return -1;
    for (char *line = strtok_r(host.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        add_user(line, &text);
        is_known = is_known || (account->name && is_of(line, account->name));
    }
    if (account->name && !is_known)
        str_addf(&text, "%s:x:%d:%d:yard:" LOCAL_HOME ":/bin/bash\n", account->name,
                 (int)getuid(), (int)getgid());
    return write_text(folder, "passwd", 0644, &text, e);
}

static int write_shadow(const char *folder, const struct account *account, struct err *e)
{
    auto_str text = {0}, host = {0};
    char *rest = NULL;

    if (fs_read("/etc/shadow", 1 << 20, &host, e) < 0)
        return -1;
    for (char *line = strtok_r(host.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!account->name || !is_of(line, account->name))
            str_addf(&text, "%.*s:*:19000:0:99999:7:::\n", (int)strcspn(line, ":"), line);
    }
    if (account->name) {
        str_addf(&text, "%s:", account->name);
        if (account->password)
            hash_password(account->password, &text);
        else
            str_add(&text, "*");
        str_add(&text, ":19000:0:99999:7:::\n");
    }
    return write_text(folder, "shadow", 0600, &text, e);
}

/* --- ssh --- */

static int make_key(const char *folder, const char *name, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    const char *argv[] = {"ssh-keygen", "-q",   "-t", "ed25519", "-N", "",
                          "-C",         "yard", "-f", path,      NULL};

    if (access(path, F_OK) == 0)
        return 0;
    return command_must(&(struct command){.argv = argv, .timeout_ms = KEYGEN_MS}, e);
}

static int read_key(const char *folder, const char *name, struct str *out, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);

    return fs_read(path, 4096, out, e);
}

static int
write_sshd(const char *folder, int port, const struct account *account, struct err *e)
{
    auto_str text = {0};

    str_addf(&text,
             "Port %d\n"
             "HostKey /etc/ssh/ssh_host_ed25519_key\n"
             "AuthorizedKeysFile /etc/ssh/authorized_keys\n"
             "AllowUsers root%s%s\n"
             "PermitRootLogin yes\n" /* the account has the daemon's uid */
             "PasswordAuthentication %s\n"
             "KbdInteractiveAuthentication no\n"
             "UsePAM no\n"
             "UseDNS no\n"
             "PidFile none\n"
             "MaxStartups 256:30:512\n" /* mpirun opens one for each node at once */
             "MaxSessions 256\n"
             "LogLevel ERROR\n"
             "PrintMotd no\n",
             port, account->name ? " " : "", account->name ? account->name : "",
             account->name && account->password ? "yes" : "no");
    if (port == 23)
        str_add(&text, "ForceCommand /bin/sh /etc/ssh/enter\n");
    else
        str_add(&text, "Subsystem sftp internal-sftp\n");
    return write_text(folder, port == 23 ? "sshd_config_box" : "sshd_config", 0644, &text, e);
}

/* Sessions on port 23 go on in the job's container; how, its maker has written down. */
static int write_enter(const char *folder, struct err *e)
{
    auto_str text = {0};

    str_add(&text, "how=" LOCAL_ROOT "/" CLUSTER_ENTER "\n"
                   "if [ ! -r \"$how\" ]; then\n"
                   "    echo 'there is no container on this node now' >&2\n"
                   "    exit 1\n"
                   "fi\n"
                   ". \"$how\"\n");
    return write_text(folder, "enter", 0644, &text, e);
}

static int
write_client(const char *folder, const char *pattern, const char *keys, int port, struct err *e)
{
    auto_str text = {0};

    str_addf(&text,
             "Host %s tvm-*\n"
             "    Port %d\n"
             "    User root\n"
             "    IdentityFile %s/yard_key\n"
             "    UserKnownHostsFile /dev/null\n"
             "    GlobalKnownHostsFile %s/ssh_known_hosts\n"
             "    StrictHostKeyChecking yes\n"
             "    LogLevel ERROR\n",
             pattern, port, keys, keys);
    return write_text(folder, "ssh_config", 0644, &text, e);
}

static int
write_keys(const char *folder, const char *box, const struct account *account, struct err *e)
{
    auto_str authorized = {0}, known = {0}, key = {0};

    if (make_key(folder, "ssh_host_ed25519_key", e) < 0 || make_key(folder, "yard_key", e) < 0)
        return -1;
    str_add(&known, "* ");
    if (read_key(folder, "ssh_host_ed25519_key.pub", &known, e) < 0 ||
        read_key(folder, "yard_key.pub", &authorized, e) < 0 ||
        read_key(folder, "yard_key", &key, e) < 0)
        return -1;
    if (account->key)
        str_addf(&authorized, "%s\n", account->key);
    if (write_text(folder, "authorized_keys", 0600, &authorized, e) < 0 ||
        write_text(folder, "ssh_known_hosts", 0644, &known, e) < 0 ||
        write_text(box, "ssh_known_hosts", 0644, &known, e) < 0)
        return -1;
    return write_text(box, "yard_key", 0600, &key, e);
}

static int
write_ssh(const char *folder, const char *pattern, const struct account *account, struct err *e)
{
    auto_free char *box = xasprintf("%s/box", folder);

    if (folder_make(box, 0755, e) < 0 || write_keys(folder, box, account, e) < 0 ||
        write_sshd(folder, 22, account, e) < 0 || write_sshd(folder, 23, account, e) < 0 ||
        write_client(folder, pattern, "/etc/ssh", 22, e) < 0 ||
        write_client(box, pattern, "/etc/ssh/yard", 23, e) < 0)
        return -1;
    return write_enter(folder, e);
}

int cluster_make(const char *home,
                 const struct engine_cluster *cluster,
                 const char *pattern,
                 struct err *e)
{
    auto_free char *folder = cluster_path(home, cluster, "");
    auto_free char *ssh = cluster_path(home, cluster, "/ssh");
    auto_free char *made = cluster_path(home, cluster, "/made");
    struct account account;

    if (access(made, F_OK) == 0)
        return 0;
    read_account(cluster->spec, &account);
    if (folder_make(ssh, 0755, e) < 0 || write_passwd(folder, &account, e) < 0 ||
        write_shadow(folder, &account, e) < 0 || write_ssh(ssh, pattern, &account, e) < 0)
        return -1;
    return folder_write(made, "", 0, 0600, e);
}

/* --- names --- */

static int add_member(const char *members, const char *node, struct str *hosts)
{
    auto_free char *path = xasprintf("%s/%s", members, node);
    auto_str address = {0};

    if (fs_read(path, NET_ADDRESS_BYTES, &address, NULL) < 0)
        return 0;
    str_addf(hosts, "%s\t%s\n", str_text(&address), node);
    return 1;
}

/* In place: the nodes have this very file bound over theirs. */
static int write_hosts(const char *folder, const char *members, int *ret_count, struct err *e)
{
    struct dirent **names;
    int count = scandir(members, &names, NULL, alphasort);
    auto_str text = {0};

    *ret_count = 0;
    str_add(&text, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            *ret_count += add_member(members, names[i]->d_name, &text);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return write_text(folder, "hosts", 0644, &text, e);
}

int cluster_set_member(const char *home,
                       const struct engine_cluster *cluster,
                       const char *node,
                       const char *address,
                       struct err *e)
{
    auto_free char *folder = cluster_path(home, cluster, "");
    auto_free char *members = cluster_path(home, cluster, "/members");
    auto_free char *path = xasprintf("%s/%s", members, node);
    int count;

    if (!address && access(folder, F_OK) < 0)
        return 0;
    if (folder_make(members, 0755, e) < 0)
        return -1;
    if (address ? folder_write(path, address, strlen(address), 0644, e) : fs_remove(path, e))
        return -1;
    if (write_hosts(folder, members, &count, e) < 0)
        return -1;
    return count == 0 && !address ? folder_remove(folder, e) : 0;
}
