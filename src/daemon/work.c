/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/work.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "core/batchai.h"
#include "daemon/home.h"
#include "daemon/settings.h"
#include "engine/engine.h"
#include "engine/local/local.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int one_of(const char *name, const char *value, const char *const *words, struct err *e)
{
    for (const char *const *word = words; *word; word++) {
        if (str_equal(value, *word))
            return 0;
    }
    return err_set(e, ERR_INVALID, "%s: \"%.40s\" is not one of %s, %s%s%s", name, value,
                   words[0], words[1], words[2] ? ", " : "", words[2] ? words[2] : "");
}

int work_configure(const struct settings *settings,
                   const struct home *home,
                   struct control_config *config,
                   char **ret_file_servers,
                   struct err *e)
{
    if (one_of("oversubscribe", settings->oversubscribe, (const char *[]){"yes", "no", NULL},
               e) < 0 ||
        one_of("nodes", settings->nodes,
               (const char *[]){"auto", "namespaces", "processes", NULL}, e) < 0)
        return -1;
    config->limits.oversubscribe = str_equal(settings->oversubscribe, "yes");
    config->limits.most_nodes = settings->most_nodes;
    config->idle_ms = (int64_t)settings->idle_seconds * 1000;
    config->most_attempts = settings->most_attempts;
    config->vm_sizes = *settings->vm_sizes ? settings->vm_sizes : NULL;
    *ret_file_servers = xasprintf("%s/fileservers", home->folder);
    config->file_servers = *ret_file_servers;
    return 0;
}

/* The shim lies beside the daemon, unless YARD_SHIM says otherwise. */
static int find_shim(char **ret_path, struct err *e)
{
    const char *named = getenv("YARD_SHIM");
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len < 0)
        return err_sys(e, errno, "could not find out where this program lies");
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    *ret_path = named ? xstrdup(named) : xasprintf("%s/yard-shim", self);
    if (access(*ret_path, X_OK) == 0)
        return 0;
    err_sys(e, errno, "could not find the program yard-shim at \"%s\"", *ret_path);
    free(*ret_path);
    *ret_path = NULL;
    return -1;
}

int work_make_engine(const struct settings *settings,
                     const struct home *home,
                     struct loop *loop,
                     const struct engine_events *events,
                     struct engine **ret_engine,
                     struct err *e)
{
    auto_free char *shim = NULL;
    struct local_config config = {
        .home = home->folder,
        .events = *events,
        .is_rootless = str_equal(settings->nodes, "processes") || geteuid() != 0,
        .grace_ms = (int64_t)settings->grace_seconds * 1000,
        .subnet = *settings->node_subnet ? settings->node_subnet : NULL,
        .pids = settings->node_pids,
        .start_ms = (int64_t)settings->node_start_seconds * 1000,
    };

    if (str_equal(settings->nodes, "namespaces") && geteuid() != 0)
        return err_set(e, ERR_INVALID, "nodes: namespaces need root; say auto or processes");
    if (find_shim(&shim, e) < 0)
        return -1;
    config.shim = shim;
    return local_engine_new(loop, &config, ret_engine, e);
}

int work_volume_folder(const struct home *home,
                       const struct volume *volume,
                       char **ret_path,
                       struct err *e)
{
    const char *service = volume->kind == VOLUME_BLOBS ? "blob" : "file";
    auto_free char *path = NULL;
    struct stat st;

    if (strchr(volume->name, '/') || volume->name[0] == '.')
        return err_set(e, ERR_INVALID, "\"%.64s\" is no name of a %s", volume->name,
                       volume->kind == VOLUME_BLOBS ? "container" : "share");
    path = xasprintf("%s/storage/%s/%s/%s/tree", home->folder, volume->account, service,
                     volume->name);
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ERR_NOT_FOUND,
                       "the %s \"%.64s\" of the account \"%.64s\" does not exist",
                       volume->kind == VOLUME_BLOBS ? "container" : "share", volume->name,
                       volume->account);
    *ret_path = take_ptr(&path);
    return 0;
}
