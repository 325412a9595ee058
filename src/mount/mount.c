/* SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 312

#include "mount/mount.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "mount/remote.h"
#include "mount/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fuse3/fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    AHEAD_THREADS = 4,
    MISSING_MS = 1000, /* how long the absence of a name is believed */
    UPKEEP_MS = 500,
    WRITTEN_MS = 1000, /* bytes wait no longer for their neighbours */
    PROBE_PATIENCE_MS = 3000,
    GRACE_MS = 10 * 1000,
};
#define IMMUTABLE_MS ((int64_t)365 * 86400 * 1000)

/* --- life --- */

static int make_remote(const struct settings *s,
                       int64_t patience_ms,
                       struct remote **ret_remote,
                       struct err *e)
{
    const struct remote_config config = {
        .endpoint = s->endpoint,
        .account = s->account,
        .container = s->container,
        .is_share = s->is_share,
        .auth = s->auth,
        .secret = s->secret,
        .ca_file = s->ca_file,
        .patience_ms = patience_ms,
    };

    return remote_new(&config, ret_remote, e);
}

static const struct side *side_of(const struct settings *s)
{
    return s->is_share ? &side_share : &side_blob;
}

int mount_probe(const struct settings *settings, struct err *e)
{
    struct mount mount = {.settings = settings};
    autoptr(remote) remote = NULL;
    auto_listed rows = {0};

    if (make_remote(settings, PROBE_PATIENCE_MS, &remote, e) < 0)
        return -1;
    mount.remote = remote;
    if (side_of(settings)->list(&mount, settings->path, &rows, e) < 0)
        return err_wrap(e, "could not list %s/%s", settings->endpoint, settings->container);
    return 0;
}

static void node_ends(void *context, struct node *node)
{
    struct mount *mount = context;

    reader_drop(mount->reader, node);
}

int mount_open(struct mount *mount, const struct settings *settings, struct err *e)
{
    struct reader_config config = {
        .tree = &mount->tree,
        .most_bytes = (size_t)settings->cache_mib << 20,
        .threads = AHEAD_THREADS,
        .is_judged_at_end = settings->is_share,
        .fetch = side_of(settings)->fetch,
        .context = mount,
    };
    struct remote *remote;

    if (make_remote(settings, settings->patience_seconds * 1000, &remote, e) < 0)
        return -1;
    *mount = (struct mount){
        .settings = settings,
        .side = side_of(settings),
        .remote = remote,
        .fresh_ms = settings->is_immutable ? IMMUTABLE_MS : settings->fresh_seconds * 1000,
        .started_ns = clock_wall_ms() * 1000000,
        .uid = getuid(),
        .gid = getgid(),
        .is_writable = !settings->is_read_only && !settings->is_immutable &&
                       (settings->is_share || settings->is_writable),
        .ready_fd = -1,
    };
    mount->missing_ms = settings->is_immutable         ? IMMUTABLE_MS
                        : mount->fresh_ms < MISSING_MS ? mount->fresh_ms
                                                       : MISSING_MS;
    tree_init(&mount->tree, settings->is_share);
    mount->reader = reader_new(&config);
    mount->tree.on_free = node_ends;
    mount->tree.context = mount;
    pthread_mutex_init(&mount->upkeep_lock, NULL);
    pthread_cond_init(&mount->upkeep_wake, NULL);
    return 0;
}

/* The session has ended, but somebody still waits for a server that is away: not for long. */
static void watch_end(struct mount *mount, int64_t *ended_ms)
{
    int64_t now_ms = clock_mono_ms();

    if (!fuse_session_exited(mount->session))
        return;
    if (!*ended_ms)
        *ended_ms = now_ms;
    if (now_ms - *ended_ms > GRACE_MS)
        remote_stop(mount->remote);
}

static void *keep_up(void *context)
{
    struct mount *mount = context;
    struct timespec until;
    int64_t ended_ms = 0;

    pthread_mutex_lock(&mount->upkeep_lock);
    while (!mount->stop) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += UPKEEP_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&mount->upkeep_wake, &mount->upkeep_lock, &until);
        pthread_mutex_unlock(&mount->upkeep_lock);
        watch_end(mount, &ended_ms);
        writing_flush_old(mount, WRITTEN_MS);
        pthread_mutex_lock(&mount->upkeep_lock);
    }
    pthread_mutex_unlock(&mount->upkeep_lock);
    return NULL;
}

void mount_start(struct mount *mount)
{
    mount->has_upkeep = pthread_create(&mount->upkeep, NULL, keep_up, mount) == 0;
}

void mount_stop(struct mount *mount)
{
    pthread_mutex_lock(&mount->upkeep_lock);
    mount->stop = true;
    pthread_cond_broadcast(&mount->upkeep_wake);
    pthread_mutex_unlock(&mount->upkeep_lock);
    if (mount->has_upkeep)
        pthread_join(mount->upkeep, NULL);
    writing_flush_old(mount, 0);
    remote_stop(mount->remote);
}

void mount_done(struct mount *mount)
{
    /* In this order: the threads of the reader count on nodes, and the end of a node is told to
     * the reader. */
    while (mount->writings) {
        if (mount->writings->is_dirty)
            log_error("event=not-stored name=\"%s\" note=\"still open when the mount ended\"",
                      mount->writings->node->name);
        mount->writings->is_dirty = false;
        writing_end(mount, mount->writings->node);
    }
    reader_stop(mount->reader);
    tree_done(&mount->tree);
    reader_free(mount->reader);
    remote_free(mount->remote);
    pthread_cond_destroy(&mount->upkeep_wake);
    pthread_mutex_destroy(&mount->upkeep_lock);
}

/* --- paths --- */

static int no_longer(struct err *e)
{
    err_set(e, ERR_PRECONDITION, "the file or folder is no longer there");
    return err_reason(e, "ConditionNotMet");
}

/* With the tree locked; NULL when the node is no longer there.  The caller frees. */
static char *path_of(const struct mount *mount, const struct node *node, const char *name)
{
    auto_str path = {0};
    size_t root_len;

    str_add(&path, mount->settings->path);
    if (path.len)
        str_add_char(&path, '/');
    root_len = path.len;
    if (!tree_path(node, &path))
        return NULL;
    if (name && path.len > root_len)
        str_add_char(&path, '/');
    if (name)
        str_add(&path, name);
    else if (path.len && path.data[path.len - 1] == '/')
        str_truncate(&path, path.len - 1);
    return str_take(&path);
}

int mount_child_path(
    struct mount *mount, struct node *folder, const char *name, char **ret_path, struct err *e)
{
    char *path;

    pthread_mutex_lock(&mount->tree.lock);
    path = path_of(mount, folder, name);
    pthread_mutex_unlock(&mount->tree.lock);
    if (!path)
        return no_longer(e);
    *ret_path = path;
    return 0;
}

int mount_path(struct mount *mount, struct node *node, char **ret_path, struct err *e)
{
    return mount_child_path(mount, node, NULL, ret_path, e);
}

char *mount_name(struct mount *mount, struct node *node)
{
    char *name;

    pthread_mutex_lock(&mount->tree.lock);
    name = xstrdup(node->name);
    pthread_mutex_unlock(&mount->tree.lock);
    return name;
}

/* --- listing --- */

static int
list(struct mount *mount, struct node *folder, struct listed_rows *rows, struct err *e)
{
    auto_free char *path = NULL;

    if (mount_path(mount, folder, &path, e) < 0)
        return -1;
    return mount->side->list(mount, path, rows, e);
}

int mount_refresh(struct mount *mount, struct node *folder, int64_t most_age_ms, struct err *e)
{
    struct tree *tree = &mount->tree;
    auto_listed rows = {0};
    int rc;

    pthread_mutex_lock(&tree->lock);
    while (folder->folder->is_listing)
        pthread_cond_wait(&tree->listed, &tree->lock);
    if (tree_is_fresh(folder, clock_mono_ms(), most_age_ms)) {
        pthread_mutex_unlock(&tree->lock);
        return 0;
    }
    tree_begin(folder, clock_mono_ms());
    pthread_mutex_unlock(&tree->lock);
    rc = list(mount, folder, &rows, e);
    pthread_mutex_lock(&tree->lock);
    if (rc == 0)
        tree_merge(tree, folder, &rows, clock_mono_ms());
    else
        tree_give_up(tree, folder);
    pthread_mutex_unlock(&tree->lock);
    return rc;
}

/* --- what others do --- */

void sighting_done(struct sighting *seen)
{
    free(seen->path);
    free(seen->etag);
}

int mount_see(struct mount *mount,
              struct node *node,
              uint64_t version,
              struct sighting *ret_seen,
              struct err *e)
{
    auto_sighting seen = {0};
    bool is_current;

    pthread_mutex_lock(&mount->tree.lock);
    is_current = node->version == version;
    seen.path = path_of(mount, node, NULL);
    seen.etag = node->etag ? xstrdup(node->etag) : NULL;
    pthread_mutex_unlock(&mount->tree.lock);
    if (!seen.path || !is_current)
        return no_longer(e);
    ret_seen->path = take_ptr(&seen.path);
    ret_seen->etag = take_ptr(&seen.etag);
    return 0;
}

int mount_is_gone(struct mount *mount,
                  struct node *node,
                  const struct sighting *seen,
                  struct err *e)
{
    auto_free char *path = NULL;
    bool is_ours, is_news;

    pthread_mutex_lock(&mount->tree.lock);
    path = path_of(mount, node, NULL);
    is_ours = tree_is_changing(node) || !str_equal(node->etag, seen->etag) ||
              (path && strcmp(path, seen->path) != 0);
    is_news = !is_ours && !node->is_gone;
    node->is_gone = node->is_gone || !is_ours;
    if (!is_ours && node->parent)
        tree_expire(node->parent);
    pthread_mutex_unlock(&mount->tree.lock);
    if (is_news)
        log_warning("event=changed file=\"%s\" note=\"replaced or removed by somebody else; "
                    "whoever has it open gets ESTALE\"",
                    seen->path);
    return no_longer(e);
}

/* --- facts --- */

void mount_stat(const struct mount *mount, const struct node *node, struct stat *ret_stat)
{
    int64_t ns = node->mtime_ns ? node->mtime_ns : mount->started_ns;

    *ret_stat = (struct stat){
        .st_ino = node->number,
        .st_uid = mount->uid,
        .st_gid = mount->gid,
        .st_nlink = 1, /* of a folder: not counted */
        .st_size = node->folder ? 0 : node->size_bytes,
        .st_blksize = BLOCK_BYTES,
        .st_blocks = node->folder ? 0 : (node->size_bytes + 511) / 512,
    };
    if (node->folder)
        ret_stat->st_mode = S_IFDIR | (mount->is_writable ? 0755 : 0555);
    else
        ret_stat->st_mode = S_IFREG | (mount->is_writable ? 0644 : 0444);
    ret_stat->st_mtim =
        (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    ret_stat->st_ctim = ret_stat->st_atim = ret_stat->st_mtim;
}

int64_t facts_parse_time(const char *text)
{
    const char *dot = text ? strchr(text, '.') : NULL;
    int64_t ms, ns = 0, unit = 100 * 1000000;

    if (!text || clock_parse_iso(text, &ms, NULL) < 0)
        return -1;
    for (const char *p = dot ? dot + 1 : ""; isdigit((unsigned char)*p); p++, unit /= 10)
        ns += (*p - '0') * unit;
    return ms / 1000 * 1000000000 + ns;
}

static void copy_etag(const char *text, struct facts *facts)
{
    size_t len = strlen(text);
    bool quoted = len >= 2 && text[0] == '"' && text[len - 1] == '"';

    snprintf(facts->etag, sizeof(facts->etag), "%.*s", (int)(quoted ? len - 2 : len),
             quoted ? text + 1 : text);
}

static int64_t total_of(const struct http_answer *answer)
{
    auto_free char *range = http_answer_header(answer, "Content-Range");
    auto_free char *length = http_answer_header(answer, "Content-Length");
    const char *slash = range ? strchr(range, '/') : NULL;

    if (slash)
        return strtoll(slash + 1, NULL, 10);
    return length && answer->status == 200 ? strtoll(length, NULL, 10) : -1;
}

void facts_read(const struct http_answer *answer, struct facts *facts)
{
    auto_free char *etag = http_answer_header(answer, "ETag");
    auto_free char *written = http_answer_header(answer, "x-ms-file-last-write-time");
    auto_free char *modified = http_answer_header(answer, "Last-Modified");
    int64_t ms;

    *facts = (struct facts){.size_bytes = total_of(answer), .mtime_ns = -1};
    if (etag)
        copy_etag(etag, facts);
    if (written)
        facts->mtime_ns = facts_parse_time(written);
    else if (modified && clock_parse_http(modified, &ms, NULL) == 0)
        facts->mtime_ns = ms * 1000000;
}

void mount_resized(struct mount *mount, struct node *node, int64_t size_bytes)
{
    pthread_mutex_lock(&mount->tree.lock);
    node->size_bytes = size_bytes;
    node->mtime_ns = clock_wall_ms() * 1000000;
    node->changed_ms = clock_mono_ms();
    pthread_mutex_unlock(&mount->tree.lock);
}

void mount_wrote(struct mount *mount,
                 struct node *node,
                 const struct facts *facts,
                 int64_t size_bytes)
{
    pthread_mutex_lock(&mount->tree.lock);
    node_set_facts(node, facts->etag[0] ? facts->etag : NULL, size_bytes,
                   facts->mtime_ns >= 0 ? facts->mtime_ns : clock_wall_ms() * 1000000);
    node->changed_ms = clock_mono_ms();
    node->is_gone = node->is_gone && !node->parent;
    /* What the kernel holds, it has from the writer. */
    if (node->kernel_version == node->version)
        node->kernel_version++;
    node->version++;
    pthread_mutex_unlock(&mount->tree.lock);
    reader_drop(mount->reader, node);
}
