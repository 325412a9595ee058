/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/entries.h"

#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BUCKETS = 1024,
    SETTLED_NS = 50000000, /* several ticks of any kernel's clock */
};

struct identity {
    uint64_t device, inode;
    int64_t born_ns, mtime_ns;
};

struct snapshot {
    struct entries entries;
    struct identity of;
    size_t bytes;
    int refs;
    bool is_listed;                 /* in the cache, which holds no reference */
    struct snapshot *next;          /* in the bucket */
    struct snapshot *newer, *older; /* by last use */
};

struct entries_cache {
    pthread_mutex_t lock; /* guards all below and what is private in snapshots */
    struct snapshot *buckets[BUCKETS];
    struct snapshot *newest, *oldest;
    size_t bytes, most_bytes;
};

struct entries_cache *entries_cache_new(size_t most_bytes)
{
    struct entries_cache *cache = xcalloc(1, sizeof(*cache));

    pthread_mutex_init(&cache->lock, NULL);
    cache->most_bytes = most_bytes;
    return cache;
}

static void snapshot_free(struct snapshot *s)
{
    free(s->entries.items);
    free(s->entries.names);
    free(s);
}

/* --- the cache; its lock is held --- */

static struct snapshot **find(struct entries_cache *cache, const struct identity *of)
{
    struct snapshot **p = &cache->buckets[(of->inode * 0x9e3779b97f4a7c15ull >> 32) % BUCKETS];

    while (*p && ((*p)->of.inode != of->inode || (*p)->of.device != of->device))
        p = &(*p)->next;
    return p;
}

static void unlink_use(struct entries_cache *cache, struct snapshot *s)
{
    if (s->newer)
        s->newer->older = s->older;
    else
        cache->newest = s->older;
    if (s->older)
        s->older->newer = s->newer;
    else
        cache->oldest = s->newer;
}

static void link_newest(struct entries_cache *cache, struct snapshot *s)
{
    s->newer = NULL;
    s->older = cache->newest;
    *(s->older ? &s->older->newer : &cache->oldest) = s;
    cache->newest = s;
}

static void unlist(struct entries_cache *cache, struct snapshot *s)
{
    *find(cache, &s->of) = s->next;
    unlink_use(cache, s);
    cache->bytes -= s->bytes;
    s->is_listed = false;
    if (s->refs == 0)
        snapshot_free(s);
}

static void unlist_oldest(struct entries_cache *cache)
{
    assert(!cache->oldest->older);
    unlist(cache, cache->oldest);
}

static void list(struct entries_cache *cache, struct snapshot *s)
{
    struct snapshot **at = find(cache, &s->of);

    if (*at)
        unlist(cache, *at);
    if (s->bytes > cache->most_bytes)
        return;
    while (cache->oldest && cache->bytes + s->bytes > cache->most_bytes)
        unlist_oldest(cache);
    at = find(cache, &s->of);
    s->next = *at;
    *at = s;
    s->is_listed = true;
    cache->bytes += s->bytes;
    link_newest(cache, s);
}

void entries_cache_free(struct entries_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        unlist_oldest(cache);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* --- order --- */

/* What a name has at a place, past its end too: a folder has a '/' there. */
static int byte_at(const struct entry *entry, const char *name, size_t i)
{
    if (i < entry->len)
        return (unsigned char)name[i];
    return i == entry->len && entry->is_folder ? '/' : -1;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct entry *x = a, *y = b;
    const char *names = context;
    const char *nx = names + x->offset, *ny = names + y->offset;
    size_t least = x->len < y->len ? x->len : y->len;
    int rc;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    rc = memcmp(nx, ny, least);
    return rc ? rc : byte_at(x, nx, least) - byte_at(y, ny, least);
}

static size_t common_prefix(const struct entries *entries)
{
    const char *first = entries->names;
    size_t common = entries->count ? entries->items[0].len : 0;

    for (size_t i = 1; i < entries->count; i++) {
        const char *name = entry_name(entries, i);
        size_t n = 0;

        while (n < common && name[n] == first[n])
            n++;
        common = n;
    }
    return common;
}

/* Eight bytes after what all names begin with decide nearly every comparison. */
static void sort(struct entries *entries)
{
    size_t common = common_prefix(entries);

    for (size_t i = 0; i < entries->count; i++) {
        struct entry *entry = &entries->items[i];
        unsigned char first[8] = {0};

        for (size_t k = 0; k < sizeof(first); k++) {
            int c = byte_at(entry, entry_name(entries, i), common + k);

            if (c < 0)
                break;
            first[k] = (unsigned char)c;
        }
        memcpy(&entry->key, first, sizeof(first));
        entry->key = be64toh(entry->key);
    }
    if (entries->count > 1)
        qsort_r(entries->items, entries->count, sizeof(entries->items[0]), compare,
                entries->names);
}

/* <0 when the entry, a folder with its '/', is before the text. */
static int compare_text(const struct entries *entries, size_t at, const char *text)
{
    const struct entry *entry = &entries->items[at];
    const char *name = entry_name(entries, at);

    for (size_t i = 0;; i++) {
        int a = byte_at(entry, name, i), b = text[i] ? (unsigned char)text[i] : -1;

        if (a != b)
            return a - b;
        if (a < 0)
            return 0;
    }
}

size_t entries_after(const struct entries *entries, const char *text)
{
    size_t low = 0, high = entries->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_text(entries, middle, text) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t entries_from(const struct entries *entries, const char *text)
{
    size_t low = 0, high = entries->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_text(entries, middle, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- reading a folder --- */

struct reading {
    struct entries entries;
    size_t room, used, names_room;
};

static void add(struct reading *r, const char *name, size_t len, bool is_folder)
{
    if (r->entries.count == r->room) {
        r->room = r->room ? r->room * 2 : 64;
        r->entries.items =
            xreallocarray(r->entries.items, r->room, sizeof(r->entries.items[0]));
    }
    if (r->used + len + 1 > r->names_room) {
        r->names_room = (r->used + len + 1) * 2;
        r->entries.names = xrealloc(r->entries.names, r->names_room);
    }
    r->entries.items[r->entries.count++] = (struct entry){
        .offset = (uint32_t)r->used,
        .len = (uint16_t)len,
        .is_folder = is_folder,
    };
    memcpy(r->entries.names + r->used, name, len + 1);
    r->used += len + 1;
}

/* Files and folders with names that can be part of a blob's; whatever else lies there is none.
 */
static void add_dirent(struct reading *r, int fd, const struct dirent *d)
{
    size_t len = strlen(d->d_name);
    bool is_folder = d->d_type == DT_DIR;
    struct stat st;

    if (d->d_type == DT_UNKNOWN) {
        if (fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            return;
        is_folder = S_ISDIR(st.st_mode);
    } else if (!is_folder && d->d_type != DT_REG) {
        return;
    }
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
        !text_is_utf8(d->d_name, len) || r->used + len >= UINT32_MAX)
        return;
    add(r, d->d_name, len, is_folder);
}

static int read_folder(int fd, struct snapshot **ret_snapshot, struct err *e)
{
    struct reading r = {0};
    struct snapshot *s;
    struct dirent *d;
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);

    if (!dir) {
        err_sys(e, errno, "could not read a folder");
        mem_close_fd(&own);
        return -1;
    }
    while ((d = readdir(dir)))
        add_dirent(&r, fd, d);
    closedir(dir);
    sort(&r.entries);
    s = xcalloc(1, sizeof(*s));
    s->entries = r.entries;
    s->bytes = sizeof(*s) + r.room * sizeof(struct entry) + r.names_room;
    *ret_snapshot = s;
    return 0;
}

static int identify(int fd, struct identity *ret_of, struct err *e)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) < 0)
        return err_sys(e, errno, "could not ask for a folder's facts");
    *ret_of = (struct identity){
        .device = ((uint64_t)stx.stx_dev_major << 32) | stx.stx_dev_minor,
        .inode = stx.stx_ino,
        .born_ns = (int64_t)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec,
        .mtime_ns = (int64_t)stx.stx_mtime.tv_sec * 1000000000 + stx.stx_mtime.tv_nsec,
    };
    return 0;
}

static struct snapshot *take_cached(struct entries_cache *cache, const struct identity *of)
{
    struct snapshot *s;

    pthread_mutex_lock(&cache->lock);
    s = *find(cache, of);
    if (s && s->of.mtime_ns == of->mtime_ns && s->of.born_ns == of->born_ns) {
        s->refs++;
        unlink_use(cache, s);
        link_newest(cache, s);
    } else {
        s = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    return s;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int entries_take(struct entries_cache *cache,
                 int fd,
                 const struct entries **ret_entries,
                 struct err *e)
{
    struct identity of;
    struct snapshot *s;
    bool is_settled;

    if (identify(fd, &of, e) < 0)
        return -1;
    s = take_cached(cache, &of);
    if (!s) {
        is_settled = now_ns() - of.mtime_ns > SETTLED_NS;
        if (read_folder(fd, &s, e) < 0)
            return -1;
        s->of = of;
        s->refs = 1;
        if (is_settled) {
            pthread_mutex_lock(&cache->lock);
            list(cache, s);
            pthread_mutex_unlock(&cache->lock);
        }
    }
    *ret_entries = &s->entries;
    return 0;
}

void entries_drop(struct entries_cache *cache, const struct entries *entries)
{
    struct snapshot *s;

    if (!entries)
        return;
    s = container_of((struct entries *)entries, struct snapshot, entries);
    pthread_mutex_lock(&cache->lock);
    if (--s->refs == 0 && !s->is_listed)
        snapshot_free(s);
    pthread_mutex_unlock(&cache->lock);
}
