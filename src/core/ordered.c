/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ordered.h"

#include <assert.h>
#include <string.h>

/* splitmix64's last steps: neighbouring keys get numbers that have nothing in common. */
static uint64_t mix(int64_t major, int64_t minor)
{
    uint64_t z = (uint64_t)major * 0x9e3779b97f4a7c15u + (uint64_t)minor;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static bool is_before(const struct ordered_link *a, int64_t major, int64_t minor)
{
    return a->major != major ? a->major < major : a->minor < minor;
}

static void take_in(struct ordered_link *t, const struct ordered_link *child)
{
    if (!child)
        return;
    t->count += child->count;
    if (!t->weights)
        return;
    for (int i = 0; i < ORDERED_WEIGHTS; i++) {
        uint32_t least = child->weights->least[i];

        t->weights->least[i] = least < t->weights->least[i] ? least : t->weights->least[i];
    }
}

static void update(struct ordered_link *t)
{
    t->count = 1;
    if (t->weights)
        memcpy(t->weights->least, t->weights->own, sizeof(t->weights->own));
    take_in(t, t->left);
    take_in(t, t->right);
}

/* Part a tree: what is before the key, and the rest. */
static void split(struct ordered_link *t,
                  const struct ordered_link *key,
                  struct ordered_link **ret_before,
                  struct ordered_link **ret_after)
{
    if (!t) {
        *ret_before = *ret_after = NULL;
        return;
    }
    if (is_before(t, key->major, key->minor)) {
        split(t->right, key, &t->right, ret_after);
        *ret_before = t;
    } else {
        split(t->left, key, ret_before, &t->left);
        *ret_after = t;
    }
    update(t);
}

static struct ordered_link *merge(struct ordered_link *before, struct ordered_link *after)
{
    if (!before || !after)
        return before ? before : after;
    if (before->chance > after->chance) {
        before->right = merge(before->right, after);
        update(before);
        return before;
    }
    after->left = merge(before, after->left);
    update(after);
    return after;
}

static struct ordered_link *insert(struct ordered_link *t, struct ordered_link *link)
{
    if (!t)
        return link;
    if (link->chance > t->chance) {
        split(t, link, &link->left, &link->right);
        update(link);
        return link;
    }
    if (is_before(t, link->major, link->minor))
        t->right = insert(t->right, link);
    else
        t->left = insert(t->left, link);
    update(t);
    return t;
}

void ordered_add(struct ordered *set, struct ordered_link *link, int64_t major, int64_t minor)
{
    assert(!link->set);
    link->major = major;
    link->minor = minor;
    link->chance = mix(major, minor);
    link->left = link->right = NULL;
    link->set = set;
    update(link);
    set->root = insert(set->root, link);
}

static struct ordered_link *cut(struct ordered_link *t, struct ordered_link *link)
{
    assert(t);
    if (t == link)
        return merge(t->left, t->right);
    if (is_before(t, link->major, link->minor))
        t->right = cut(t->right, link);
    else
        t->left = cut(t->left, link);
    update(t);
    return t;
}

void ordered_remove(struct ordered *set, struct ordered_link *link)
{
    if (link->set != set)
        return;
    set->root = cut(set->root, link);
    link->set = NULL;
    link->left = link->right = NULL;
}

size_t ordered_count(const struct ordered *set)
{
    return set->root ? set->root->count : 0;
}

struct ordered_link *ordered_find(const struct ordered *set, int64_t major, int64_t minor)
{
    struct ordered_link *t = set->root;

    while (t && (t->major != major || t->minor != minor))
        t = is_before(t, major, minor) ? t->right : t->left;
    return t;
}

struct ordered_link *ordered_first(const struct ordered *set)
{
    struct ordered_link *t = set->root;

    while (t && t->left)
        t = t->left;
    return t;
}

struct ordered_link *ordered_last(const struct ordered *set)
{
    struct ordered_link *t = set->root;

    while (t && t->right)
        t = t->right;
    return t;
}

struct ordered_link *ordered_next(const struct ordered *set, const struct ordered_link *link)
{
    struct ordered_link *t = set->root, *best = NULL;

    while (t) {
        bool is_later = !is_before(t, link->major, link->minor) && t != link;

        if (is_later)
            best = t;
        t = is_later ? t->left : t->right;
    }
    return best;
}

struct ordered_link *ordered_previous(const struct ordered *set,
                                      const struct ordered_link *link)
{
    struct ordered_link *t = set->root, *best = NULL;

    while (t) {
        bool is_earlier = is_before(t, link->major, link->minor);

        if (is_earlier)
            best = t;
        t = is_earlier ? t->right : t->left;
    }
    return best;
}

size_t ordered_place(const struct ordered *set, const struct ordered_link *link)
{
    const struct ordered_link *t = set->root;
    size_t place = 0;

    while (t && t != link) {
        if (is_before(t, link->major, link->minor)) {
            place += 1 + (t->left ? t->left->count : 0);
            t = t->right;
        } else {
            t = t->left;
        }
    }
    return place + (t && t->left ? t->left->count : 0);
}

struct seeking {
    const struct ordered_link *after;
    bool (*fits)(const uint32_t weights[ORDERED_WEIGHTS], const void *context);
    const void *context;
};

static struct ordered_link *seek(struct ordered_link *t, const struct seeking *s)
{
    struct ordered_link *found;
    bool is_after;

    if (!t || !s->fits(t->weights->least, s->context))
        return NULL;
    is_after = !s->after || (!is_before(t, s->after->major, s->after->minor) && t != s->after);
    if (is_after) {
        found = seek(t->left, s);
        if (found)
            return found;
        if (s->fits(t->weights->own, s->context))
            return t;
    }
    return seek(t->right, s);
}

struct ordered_link *ordered_seek(const struct ordered *set,
                                  const struct ordered_link *after,
                                  bool (*fits)(const uint32_t weights[ORDERED_WEIGHTS],
                                               const void *context),
                                  const void *context)
{
    struct seeking s = {after, fits, context};

    return seek(set->root, &s);
}
