/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/tree.h"

#include "base/clock.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

enum {
    MOST_NODES = 500 * 1000, /* about 100 MB */
    MOST_NAME = 255,         /* the kernel's */
    MOST_TRIES = 1000,
    NEAR = 4, /* files that lie between two that are read in order: of another kind, say */
};

/* --- rows of a listing --- */

void listed_add(struct listed_rows *rows, const struct listed *row)
{
    if (rows->count == rows->room) {
        rows->room = rows->room ? rows->room * 2 : 64;
        rows->rows = xreallocarray(rows->rows, rows->room, sizeof(*rows->rows));
    }
    rows->rows[rows->count++] = *row;
}

void listed_done(struct listed_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->rows[i].name);
        free(rows->rows[i].etag);
    }
    free(rows->rows);
    *rows = (struct listed_rows){0};
}

/* --- nodes --- */

static void ring_out(struct folder *folder)
{
    folder->newer->older = folder->older;
    folder->older->newer = folder->newer;
    folder->newer = folder->older = folder;
}

static void mark_used(struct tree *tree, struct folder *folder)
{
    ring_out(folder);
    folder->older = tree->newest.older;
    folder->newer = &tree->newest;
    tree->newest.older->newer = folder;
    tree->newest.older = folder;
}

static struct node *node_new(struct tree *tree, const char *name, bool is_folder)
{
    struct node *node = xcalloc(1, sizeof(*node));

    atomic_init(&node->refs, 1);
    node->name = xstrdup(name);
    node->number = tree->next_number++;
    node->version = 1;
    node->prev = &tree->nodes;
    node->next = tree->nodes.next;
    node->next->prev = node;
    tree->nodes.next = node;
    tree->count++;
    if (is_folder) {
        node->folder = xcalloc(1, sizeof(*node->folder));
        node->folder->node = node;
        node->folder->listed_ms = TREE_NEVER;
        node->folder->newer = node->folder->older = node->folder;
    }
    return node;
}

static void forget_removed(struct folder *folder)
{
    for (size_t i = 0; i < folder->removed_count; i++)
        free(folder->removed[i]);
    free(folder->removed);
    folder->removed = NULL;
    folder->removed_count = 0;
}

static void node_free(struct tree *tree, struct node *node)
{
    if (tree->on_free)
        tree->on_free(tree->context, node);
    node->prev->next = node->next;
    node->next->prev = node->prev;
    tree->count--;
    if (node->folder) {
        ring_out(node->folder);
        forget_removed(node->folder);
        free(node->folder->children);
        free(node->folder);
    }
    free(node->name);
    free(node->etag);
    free(node);
}

struct node *node_ref(struct node *node)
{
    atomic_fetch_add(&node->refs, 1);
    return node;
}

/* A child counts on its parent: so the end of one may be the end of the other. */
void node_unref(struct tree *tree, struct node *node, uint64_t count)
{
    while (node && atomic_fetch_sub(&node->refs, (long long)count) == (long long)count) {
        struct node *parent = node->parent;

        assert(!node->folder || node->folder->count == 0);
        node_free(tree, node);
        node = parent;
        count = 1;
    }
}

void tree_init(struct tree *tree, bool is_share)
{
    *tree = (struct tree){.is_share = is_share, .most_nodes = MOST_NODES};
    pthread_mutex_init(&tree->lock, NULL);
    pthread_cond_init(&tree->listed, NULL);
    tree->nodes.prev = tree->nodes.next = &tree->nodes;
    tree->newest.newer = tree->newest.older = &tree->newest;
    tree->next_number = 1;
    tree->root = node_new(tree, "", true);
}

/* The kernel does not give back what it holds when a mount ends. */
void tree_done(struct tree *tree)
{
    struct node *node;

    while ((node = tree->nodes.next) != &tree->nodes) {
        tree->nodes.next = node->next;
        node->next->prev = &tree->nodes;
        node_free(tree, node);
    }
    pthread_cond_destroy(&tree->listed);
    pthread_mutex_destroy(&tree->lock);
}

/* --- children --- */

/* Where the name is, or would be. */
static size_t position(const struct folder *folder, const char *name, bool *ret_is_there)
{
    size_t low = 0, high = folder->count;

    *ret_is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(folder->children[middle]->name, name);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct node *tree_find(struct tree *tree, struct node *parent, const char *name)
{
    struct folder *folder = parent->folder;
    bool is_there;
    size_t at = position(folder, name, &is_there);

    mark_used(tree, folder);
    if (is_there)
        return folder->children[at];
    for (size_t i = 0; tree->is_share && i < folder->count; i++) {
        if (str_equal_nocase(folder->children[i]->name, name))
            return folder->children[i];
    }
    return NULL;
}

/* Two in order may be chance; and each further one makes the guess better. */
size_t tree_guess_next(struct tree *tree, struct node *node, struct node *next[], size_t most)
{
    struct folder *folder = node->parent ? node->parent->folder : NULL;
    size_t at, count = 0;
    bool is_there;

    (void)tree;
    if (!folder)
        return 0;
    at = position(folder, node->name, &is_there);
    if (at > folder->last_read && at - folder->last_read <= NEAR)
        folder->in_order++;
    else
        folder->in_order = 0;
    folder->last_read = at;
    if (folder->in_order < 2)
        return 0;
    if (most > folder->in_order * 2)
        most = folder->in_order * 2;
    for (at++; at < folder->count && count < most; at++) {
        struct node *child = folder->children[at];

        if (!child->folder && !child->writing && !child->kernel_version)
            next[count++] = node_ref(child);
    }
    return count;
}

bool tree_path(const struct node *node, struct str *out)
{
    const struct node *names[256];
    size_t depth = 0;

    for (; node->parent; node = node->parent) {
        if (depth == ARRAY_SIZE(names))
            return false;
        names[depth++] = node;
    }
    if (*node->name) /* not the root: cut off */
        return false;
    for (size_t i = depth; i > 0; i--) {
        if (i < depth)
            str_add_char(out, '/');
        str_add(out, names[i - 1]->name);
    }
    return true;
}

/* The folder counts on the node, and the node on its folder. */
static void enter(struct node *parent, struct node *node)
{
    struct folder *folder = parent->folder;
    bool is_there;
    size_t at = position(folder, node->name, &is_there);

    assert(!is_there);
    if (folder->count == folder->room) {
        folder->room = folder->room ? folder->room * 2 : 8;
        folder->children = xreallocarray(folder->children, folder->room, sizeof(struct node *));
    }
    memmove(folder->children + at + 1, folder->children + at,
            (folder->count - at) * sizeof(struct node *));
    folder->children[at] = node;
    folder->count++;
    node->parent = node_ref(parent);
}

static void leave(struct tree *tree, struct node *node)
{
    struct node *parent = node->parent;
    struct folder *folder = parent->folder;
    bool is_there;
    size_t at = position(folder, node->name, &is_there);

    assert(is_there && folder->children[at] == node);
    memmove(folder->children + at, folder->children + at + 1,
            (folder->count - at - 1) * sizeof(struct node *));
    folder->count--;
    node->parent = NULL;
    node_unref(tree, parent, 1);
}

static void note_removed(struct folder *folder, const char *name)
{
    if (!folder->is_listing)
        return;
    folder->removed =
        xreallocarray(folder->removed, folder->removed_count + 1, sizeof(*folder->removed));
    folder->removed[folder->removed_count++] = xstrdup(name);
}

struct node *tree_add(struct tree *tree, struct node *parent, const char *name, bool is_folder)
{
    struct node *node = node_new(tree, name, is_folder);

    node->changed_ms = clock_mono_ms();
    node->mtime_ns = clock_wall_ms() * 1000000;
    enter(parent, node); /* which has the first reference */
    if (is_folder)
        node->folder->is_local = true;
    return node;
}

void tree_remove(struct tree *tree, struct node *node)
{
    note_removed(node->parent->folder, node->name);
    leave(tree, node);
    node_unref(tree, node, 1);
}

void tree_move(struct tree *tree, struct node *node, struct node *parent, const char *name)
{
    struct node *old = tree_find(tree, parent, name);

    if (old && old != node)
        tree_remove(tree, old);
    note_removed(node->parent->folder, node->name);
    leave(tree, node);
    free(node->name);
    node->name = xstrdup(name);
    node->changed_ms = clock_mono_ms();
    enter(parent, node);
}

void tree_begin_change(struct node *node)
{
    node->changes++;
}

void tree_end_change(struct tree *tree, struct node *node)
{
    assert(node->changes > 0);
    node->changes--;
    pthread_cond_broadcast(&tree->listed);
}

bool tree_is_changing(const struct node *node)
{
    for (; node; node = node->parent) {
        if (node->changes)
            return true;
    }
    return false;
}

void tree_wait_for_changes(struct tree *tree, const struct node *node)
{
    while (tree_is_changing(node))
        pthread_cond_wait(&tree->listed, &tree->lock);
}

/* --- freshness --- */

static int64_t allowed_age(const struct folder *folder, int64_t most_age_ms)
{
    return folder->cost_ms * 10 > most_age_ms ? folder->cost_ms * 10 : most_age_ms;
}

int64_t tree_fresh_for(const struct node *node, int64_t now_ms, int64_t most_age_ms)
{
    const struct folder *folder = node->folder;
    int64_t left = folder->listed_ms + allowed_age(folder, most_age_ms) - now_ms;

    return left > 0 ? left : 0;
}

bool tree_is_fresh(const struct node *node, int64_t now_ms, int64_t most_age_ms)
{
    return tree_fresh_for(node, now_ms, most_age_ms) > 0;
}

void tree_expire(struct node *node)
{
    node->folder->listed_ms = TREE_NEVER;
    node->folder->is_expired = true;
}

/* --- merging a listing --- */

void tree_begin(struct node *node, int64_t now_ms)
{
    struct folder *folder = node->folder;

    assert(!folder->is_listing);
    folder->is_listing = true;
    folder->is_expired = false;
    folder->began_ms = now_ms;
}

static void end_listing(struct tree *tree, struct folder *folder)
{
    folder->is_listing = false;
    forget_removed(folder);
    pthread_cond_broadcast(&tree->listed);
}

void tree_give_up(struct tree *tree, struct node *node)
{
    node->folder->listed_ms = TREE_NEVER;
    end_listing(tree, node->folder);
}

static int compare_rows(const void *a, const void *b)
{
    const struct listed *left = a, *right = b;
    int order = strcmp(left->name, right->name);

    /* Of a file and a folder of one name the folder comes first, and stays. */
    return order ? order : (int)right->is_folder - (int)left->is_folder;
}

static bool is_usable(const char *name)
{
    return *name && strlen(name) <= MOST_NAME && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static bool was_removed(const struct folder *folder, const char *name)
{
    for (size_t i = 0; i < folder->removed_count; i++) {
        if (strcmp(folder->removed[i], name) == 0)
            return true;
    }
    return false;
}

void node_set_facts(struct node *node, const char *etag, int64_t size_bytes, int64_t mtime_ns)
{
    if (etag != node->etag && !str_equal(etag, node->etag)) {
        free(node->etag);
        node->etag = etag ? xstrdup(etag) : NULL;
    }
    node->size_bytes = size_bytes;
    node->mtime_ns = mtime_ns;
}

/* Is the listed thing the node that we have?  In a share it is brought up to date. */
static bool takes_row(struct tree *tree, struct node *node, const struct listed *row)
{
    bool is_same = str_equal(node->etag, row->etag) && node->size_bytes == row->size_bytes;

    if ((node->folder != NULL) != row->is_folder)
        return false;
    if (node->folder) {
        node->folder->is_local = false;
        node->mtime_ns = row->mtime_ns ? row->mtime_ns : node->mtime_ns;
        return true;
    }
    if (is_same) {
        node->is_gone = false;
        return true;
    }
    if (!tree->is_share)
        return false;
    node->version++;
    node_set_facts(node, row->etag, row->size_bytes, row->mtime_ns);
    return true;
}

/* What this mount did since the listing began is newer than the listing, and what it is about
 * to do may be in it by half. */
static bool is_ours(const struct node *node, int64_t began_ms)
{
    return node->writing || node->changes || node->changed_ms >= began_ms ||
           (node->folder && node->folder->is_local);
}

/* It does not count on its folder any more, which is held by whoever changes it. */
static void child_has_left(struct node *parent)
{
    atomic_fetch_sub(&parent->refs, 1);
}

static void cut_off(struct tree *tree, struct node *node)
{
    node->parent = NULL;
    node->is_gone = true;
    node_unref(tree, node, 1);
}

struct merge {
    struct tree *tree;
    struct node *node;
    struct node **children;
    size_t count;
    int64_t began_ms;
};

static void keep(struct merge *m, struct node *node)
{
    m->children[m->count++] = node;
}

static void drop(struct merge *m, struct node *node)
{
    cut_off(m->tree, node);
    child_has_left(m->node);
}

static void add_row(struct merge *m, const struct listed *row)
{
    struct node *node;

    if (was_removed(m->node->folder, row->name))
        return;
    node = node_new(m->tree, row->name, row->is_folder);
    node_set_facts(node, row->etag, row->size_bytes, row->mtime_ns);
    node->parent = node_ref(m->node);
    keep(m, node);
}

/* One name: what we have of it, what was listed of it; either may be NULL. */
static void merge_name(struct merge *m, struct node *old, const struct listed *row)
{
    if (!row && old && !is_ours(old, m->began_ms)) {
        drop(m, old);
    } else if (!old && row) {
        add_row(m, row);
    } else if (old && row && !is_ours(old, m->began_ms) && !takes_row(m->tree, old, row)) {
        drop(m, old);
        add_row(m, row);
    } else if (old) {
        if (row && old->folder && row->is_folder)
            old->folder->is_local = false;
        keep(m, old);
    }
}

static void forget_unused(struct tree *tree);

void tree_merge(struct tree *tree, struct node *node, struct listed_rows *rows, int64_t now_ms)
{
    struct folder *folder = node->folder;
    struct merge m = {tree, node, NULL, 0, folder->began_ms};
    size_t i = 0, j = 0, room = folder->count + rows->count + 1;

    if (rows->count)
        qsort(rows->rows, rows->count, sizeof(rows->rows[0]), compare_rows);
    m.children = xreallocarray(NULL, room, sizeof(struct node *));
    while (i < folder->count || j < rows->count) {
        struct node *old = i < folder->count ? folder->children[i] : NULL;
        struct listed *row = j < rows->count ? &rows->rows[j] : NULL;
        int order = !old ? 1 : !row ? -1 : strcmp(old->name, row->name);

        if (row && order >= 0 &&
            (!is_usable(row->name) ||
             (j > 0 && strcmp(rows->rows[j - 1].name, row->name) == 0))) {
            j++;
            continue;
        }
        merge_name(&m, order <= 0 ? old : NULL, order >= 0 ? row : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    free(folder->children);
    folder->children = m.children;
    folder->count = m.count;
    folder->room = room;
    folder->cost_ms = now_ms - folder->began_ms;
    folder->listed_ms = folder->is_expired ? TREE_NEVER : folder->began_ms;
    mark_used(tree, folder);
    end_listing(tree, folder);
    forget_unused(tree);
}

/* --- bounds --- */

/* Only what nobody but its folder counts on, and what holds nothing of ours. */
static bool is_unused(struct node *node)
{
    return atomic_load(&node->refs) == 1 && !node->writing &&
           (!node->folder ||
            (node->folder->count == 0 && !node->folder->is_local && !node->folder->is_listing));
}

static void forget_children(struct tree *tree, struct folder *folder)
{
    size_t kept = 0, count = folder->count;

    for (size_t i = 0; i < count; i++) {
        struct node *child = folder->children[i];

        if (is_unused(child)) {
            child->parent = NULL;
            node_unref(tree, child, 1);
            child_has_left(folder->node);
        } else {
            folder->children[kept++] = child;
        }
    }
    folder->count = kept;
    folder->listed_ms = TREE_NEVER;
}

/* Take the folder that has not been used for longest out of the ring; NULL = there is only the
 * one in use. */
static struct folder *take_oldest(struct tree *tree)
{
    struct folder *oldest = tree->newest.newer;

    if (oldest == tree->newest.older)
        return NULL;
    tree->newest.newer = oldest->newer;
    oldest->newer->older = &tree->newest;
    oldest->newer = oldest->older = oldest;
    return oldest;
}

/* What the kernel holds on to stays. */
static void forget_unused(struct tree *tree)
{
    struct folder *oldest;

    for (int tries = 0; tree->count > tree->most_nodes && tries < MOST_TRIES; tries++) {
        oldest = take_oldest(tree);
        if (!oldest)
            return;
        if (oldest->is_listing) {
            mark_used(tree, oldest);
            continue;
        }
        /* Held, for its last child may be all that counts on it. */
        node_ref(oldest->node);
        forget_children(tree, oldest);
        node_unref(tree, oldest->node, 1);
    }
}
