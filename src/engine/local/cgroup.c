/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cgroup.h"

#include "base/crypt.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What of a tree is used. */
enum {
    HAS_MEMORY = 1,
    HAS_PIDS = 2,
    HAS_CPU = 4,
    HAS_ACCOUNT = 8, /* version 1 counts processor time in a controller of its own */
    HAS_CPUSET = 16,
};

static const struct {
    const char *name;
    int bit;
} controllers[] = {
    {"memory", HAS_MEMORY},   {"pids", HAS_PIDS},     {"cpu", HAS_CPU},
    {"cpuacct", HAS_ACCOUNT}, {"cpuset", HAS_CPUSET},
};

enum {
    MOST_TREES = 5,
    MOST_OTHERS = 16,
    PERIOD_US = 100000, /* of processor quotas: the kernel's own default */
};

struct tree {
    char *base; /* <mount>/yard-<hash> */
    int has;
};

struct cgroups {
    char name[24];
    bool is_v2;
    struct tree trees[MOST_TREES];
    size_t tree_count;
    /* The same in trees that are not used: container runtimes make groups in all there are, and
     * do not remove those above their own. */
    char *others[MOST_OTHERS];
    size_t other_count;
    pthread_mutex_t lock; /* the yard's own group is opened, or swept, by one at a time */
};

/* --- files --- */

static int put(const char *folder, const char *file, const char *after, int64_t value)
{
    auto_free char *path = xasprintf("%s/%s", folder, file);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    char text[64];
    int len = snprintf(text, sizeof(text), "%" PRId64 "%s", value, after);

    return fd < 0 || write(fd, text, (size_t)len) < 0 ? -1 : 0;
}

static int put_word(const char *folder, const char *file, const char *word)
{
    auto_free char *path = xasprintf("%s/%s", folder, file);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, word, strlen(word)) < 0 ? -1 : 0;
}

static int get_text(const char *folder, const char *file, struct str *out)
{
    auto_free char *path = xasprintf("%s/%s", folder, file);

    return fs_read(path, 1 << 16, out, NULL) == 0 && out->len > 1 ? 0 : -1;
}

static int get(const char *folder, const char *file, const char *key, int64_t *ret)
{
    auto_free char *path = xasprintf("%s/%s", folder, file);
    auto_str text = {0};
    const char *at;

    if (fs_read(path, 1 << 16, &text, NULL) < 0)
        return -1;
    at = strstr(str_text(&text), key);
    if (!at)
        return -1;
    *ret = strtoll(at + strlen(key), NULL, 10);
    return 0;
}

/* --- which trees there are --- */

static int bits_of(const char *words, const char *separators)
{
    auto_free char *copy = xstrdup(words);
    char *rest = NULL;
    int bits = 0;

    for (char *word = strtok_r(copy, separators, &rest); word;
         word = strtok_r(NULL, separators, &rest)) {
        for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
            if (strcmp(word, controllers[i].name) == 0)
                bits |= controllers[i].bit;
        }
    }
    return bits;
}

/* A group of version 1 lets nobody in before it has processors and memory nodes.  Groups below
 * it then begin with its own. */
static bool open_cpuset(const char *folder, const char *cpus)
{
    auto_free char *above = xasprintf("%s/..", folder);
    auto_str mems = {0}, all = {0};

    if (get_text(above, "cpuset.mems", &mems) < 0 ||
        (!cpus && get_text(above, "cpuset.cpus", &all) < 0))
        return false;
    return put_word(folder, "cgroup.clone_children", "1") == 0 &&
           put_word(folder, "cpuset.mems", str_text(&mems)) == 0 &&
           put_word(folder, "cpuset.cpus", cpus ? cpus : str_text(&all)) == 0;
}

/* A tree is of use when a group can be made in it. */
static void add_tree(struct cgroups *cgroups, const char *mount, int has)
{
    auto_free char *base = xasprintf("%s/%s", mount, cgroups->name);

    if (!has && cgroups->other_count < MOST_OTHERS)
        cgroups->others[cgroups->other_count++] = take_ptr(&base);
    if (!has || cgroups->tree_count == MOST_TREES)
        return;
    if (mkdir(base, 0755) < 0 && errno != EEXIST)
        return;
    if (!cgroups->is_v2 && has & HAS_CPUSET && !open_cpuset(base, NULL)) {
        rmdir(base);
        return;
    }
    cgroups->trees[cgroups->tree_count++] = (struct tree){take_ptr(&base), has};
}

/* One by one: of a line with one that is not there, nothing is done. */
static void hand_down(const char *folder)
{
    static const char *const words[] = {"+memory", "+pids", "+cpu", "+cpuset"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        put_word(folder, "cgroup.subtree_control", words[i]);
}

static void add_v2(struct cgroups *cgroups, const char *mount)
{
    auto_free char *path = xasprintf("%s/cgroup.controllers", mount);
    auto_str words = {0};
    int has;

    if (fs_read(path, 4096, &words, NULL) < 0)
        return;
    has = bits_of(str_text(&words), " \n") & (HAS_MEMORY | HAS_PIDS | HAS_CPU | HAS_CPUSET);
    if (!has) {
        add_tree(cgroups, mount, 0); /* the empty half of a hybrid */
        return;
    }
    cgroups->is_v2 = true;
    hand_down(mount);
    add_tree(cgroups, mount, has | HAS_ACCOUNT);
}

/* A line of mountinfo: "... <mount> <options> ... - cgroup <source> <super options>" */
static void read_mount(struct cgroups *cgroups, const char *line)
{
    char mount[256], kind[32], options[256];
    const char *dash = strstr(line, " - ");

    if (!dash || sscanf(line, "%*s %*s %*s %*s %255s", mount) != 1 ||
        sscanf(dash, " - %31s %*s %255s", kind, options) != 2)
        return;
    if (strcmp(kind, "cgroup") == 0)
        add_tree(cgroups, mount, bits_of(options, ","));
    else if (strcmp(kind, "cgroup2") == 0)
        add_v2(cgroups, mount);
}

struct cgroups *cgroups_new(const char *home)
{
    struct cgroups *cgroups = xcalloc(1, sizeof(*cgroups));
    unsigned char digest[CRYPT_SHA256_BYTES];
    auto_str mounts = {0};
    char *rest = NULL;

    pthread_mutex_init(&cgroups->lock, NULL);
    crypt_sha256(home, strlen(home), digest);
    snprintf(cgroups->name, sizeof(cgroups->name), "yard-%02x%02x%02x%02x", digest[0],
             digest[1], digest[2], digest[3]);
    if (fs_read("/proc/self/mountinfo", 1 << 20, &mounts, NULL) < 0 || !mounts.data)
        return cgroups;
    for (char *line = strtok_r(mounts.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        read_mount(cgroups, line);
    for (size_t i = 0; cgroups->is_v2 && i < cgroups->tree_count; i++)
        hand_down(cgroups->trees[i].base);
    return cgroups;
}

void cgroups_free(struct cgroups *cgroups)
{
    if (!cgroups)
        return;
    cgroups_sweep(cgroups);
    for (size_t i = 0; i < cgroups->tree_count; i++)
        free(cgroups->trees[i].base);
    for (size_t i = 0; i < cgroups->other_count; i++)
        free(cgroups->others[i]);
    pthread_mutex_destroy(&cgroups->lock);
    free(cgroups);
}

/* --- groups --- */

static void limit_v1(const char *folder, int has, const struct cgroup_limits *limits)
{
    if (has & HAS_MEMORY && limits->memory_bytes > 0)
        put(folder, "memory.limit_in_bytes", "", limits->memory_bytes);
    if (has & HAS_PIDS)
        put(folder, "pids.max", "", limits->pids);
    if (has & HAS_CPU) {
        put(folder, "cpu.cfs_period_us", "", PERIOD_US);
        put(folder, "cpu.cfs_quota_us", "", (int64_t)limits->cores * PERIOD_US);
    }
    if (has & HAS_CPUSET)
        open_cpuset(folder, limits->cpus);
}

static void limit_v2(const char *folder, const struct cgroup_limits *limits)
{
    if (limits->memory_bytes > 0)
        put(folder, "memory.max", "", limits->memory_bytes);
    put(folder, "pids.max", "", limits->pids);
    put(folder, "cpu.max", " 100000", (int64_t)limits->cores * PERIOD_US);
    put_word(folder, "cpuset.cpus", limits->cpus);
    hand_down(folder);
}

/* The node's folder, in the yard's own: that was swept away with the last node, it may be, and
 * nodes that are made at the same time must not find it half open. */
static void make_group(struct cgroups *cgroups, const struct tree *tree, const char *folder)
{
    pthread_mutex_lock(&cgroups->lock);
    if (mkdir(tree->base, 0755) == 0) {
        if (cgroups->is_v2)
            hand_down(tree->base);
        else if (tree->has & HAS_CPUSET)
            open_cpuset(tree->base, NULL);
    }
    mkdir(folder, 0755);
    pthread_mutex_unlock(&cgroups->lock);
}

void cgroup_make(struct cgroups *cgroups, const char *node, const struct cgroup_limits *limits)
{
    for (size_t i = 0; i < cgroups->tree_count; i++) {
        const struct tree *tree = &cgroups->trees[i];
        auto_free char *folder = xasprintf("%s/%s", tree->base, node);

        make_group(cgroups, tree, folder);
        if (cgroups->is_v2)
            limit_v2(folder, limits);
        else
            limit_v1(folder, tree->has, limits);
    }
}

void cgroup_make_leaf(struct cgroups *cgroups,
                      const char *node,
                      const char *leaf,
                      struct arena *arena,
                      const char ***ret_folders,
                      const char ***ret_memory)
{
    const char **folders = arena_alloc(arena, (MOST_TREES + 1) * sizeof(*folders));
    const char **memory = arena_alloc(arena, (MOST_TREES + 1) * sizeof(*memory));
    size_t count = 0, memory_count = 0;

    for (size_t i = 0; i < cgroups->tree_count; i++) {
        const struct tree *tree = &cgroups->trees[i];
        char *folder = arena_printf(arena, "%s/%s/%s", tree->base, node, leaf);

        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
            continue;
        folders[count++] = folder;
        if (tree->has & HAS_MEMORY)
            memory[memory_count++] =
                arena_printf(arena, "%s/%s", folder,
                             cgroups->is_v2 ? "memory.events" : "memory.oom_control");
    }
    *ret_folders = folders;
    *ret_memory = memory;
}

const char *cgroup_parent(struct cgroups *cgroups, const char *node, struct arena *arena)
{
    if (cgroups->tree_count == 0)
        return NULL;
    return arena_printf(arena, "/%s/%s", cgroups->name, node);
}

/* Lines are "<n>:<controllers>:<path>"; version 2 has the one with no controllers. */
static const char *memory_path(char *lines, bool is_v2)
{
    char *rest = NULL;

    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *words = strchr(line, ':');
        char *path = words ? strchr(words + 1, ':') : NULL;

        if (!path)
            continue;
        *path++ = '\0';
        if (is_v2 ? words[1] == '\0' : (bits_of(words + 1, ",") & HAS_MEMORY) != 0)
            return path;
    }
    return NULL;
}

const char **cgroup_memory_of(struct cgroups *cgroups, int64_t pid, struct arena *arena)
{
    const char **files = arena_alloc(arena, 2 * sizeof(*files));
    auto_free char *file = xasprintf("/proc/%" PRId64 "/cgroup", pid);
    auto_str lines = {0};
    const char *path;

    if (fs_read(file, 1 << 16, &lines, NULL) < 0 || !lines.data)
        return files;
    path = memory_path(lines.data, cgroups->is_v2);
    for (size_t i = 0; path && i < cgroups->tree_count; i++) {
        const struct tree *tree = &cgroups->trees[i];

        if (tree->has & HAS_MEMORY)
            files[0] = arena_printf(
                arena, "%.*s%s/%s", (int)(strrchr(tree->base, '/') - tree->base), tree->base,
                path, cgroups->is_v2 ? "memory.events" : "memory.oom_control");
    }
    return files;
}

const char *cgroup_folder(struct cgroups *cgroups, const char *node, struct arena *arena)
{
    if (cgroups->tree_count == 0)
        return NULL;
    return arena_printf(arena, "%s/%s", cgroups->trees[0].base, node);
}

void cgroup_forbid_forks(struct cgroups *cgroups, const char *node, bool is_forbidden, int pids)
{
    for (size_t i = 0; i < cgroups->tree_count; i++) {
        auto_free char *folder = xasprintf("%s/%s", cgroups->trees[i].base, node);

        if (cgroups->trees[i].has & HAS_PIDS)
            put(folder, "pids.max", "", is_forbidden ? 0 : pids);
    }
}

static void remove_group(const char *folder, int depth)
{
    DIR *dir = depth < 8 ? opendir(folder) : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("%s/%s", folder, entry->d_name);

        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            remove_group(path, depth + 1);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void cgroup_remove(struct cgroups *cgroups, const char *node)
{
    for (size_t i = 0; i < cgroups->tree_count; i++) {
        auto_free char *folder = xasprintf("%s/%s", cgroups->trees[i].base, node);

        remove_group(folder, 0);
    }
    for (size_t i = 0; i < cgroups->other_count; i++) {
        auto_free char *folder = xasprintf("%s/%s", cgroups->others[i], node);

        remove_group(folder, 0);
    }
}

void cgroups_sweep(struct cgroups *cgroups)
{
    pthread_mutex_lock(&cgroups->lock);
    /* Fails while there are nodes, as it should. */
    for (size_t i = 0; i < cgroups->tree_count; i++)
        rmdir(cgroups->trees[i].base);
    for (size_t i = 0; i < cgroups->other_count; i++)
        rmdir(cgroups->others[i]);
    pthread_mutex_unlock(&cgroups->lock);
}

int cgroup_use(struct cgroups *cgroups,
               const char *node,
               int64_t *ret_cpu_us,
               int64_t *ret_memory_bytes,
               struct err *e)
{
    int64_t cpu_ns = -1, cpu_us = -1, memory = -1;

    for (size_t i = 0; i < cgroups->tree_count; i++) {
        const struct tree *tree = &cgroups->trees[i];
        auto_free char *folder = xasprintf("%s/%s", tree->base, node);

        if (tree->has & HAS_MEMORY)
            get(folder, cgroups->is_v2 ? "memory.current" : "memory.usage_in_bytes", "",
                &memory);
        if (tree->has & HAS_ACCOUNT && cgroups->is_v2)
            get(folder, "cpu.stat", "usage_usec ", &cpu_us);
        else if (tree->has & HAS_ACCOUNT && get(folder, "cpuacct.usage", "", &cpu_ns) == 0)
            cpu_us = cpu_ns / 1000;
    }
    if (cpu_us < 0 || memory < 0)
        return err_set(e, ERR_NOT_FOUND, "the use of %s is not counted", node);
    *ret_cpu_us = cpu_us;
    *ret_memory_bytes = memory;
    return 0;
}
