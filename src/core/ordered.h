/* ordered.h - a set of things in the order of a pair of numbers, kept inside the things.
 *
 * Queues by priority and age, timers by time, nodes by id: what the mind of the yard
 * (core/yard.h) looks up, walks in order and takes from the middle, with a hundred thousand
 * members.  Every operation takes a number of steps that grows with the
 * logarithm.  A link belongs to at most one set at a time; nothing is allocated.
 *
 * It is a treap: a search tree by key, a heap by a number that is mixed from the key, so that
 * the same members always make the same tree.
 *
 * A link may have weights; the tree then knows the least of each below it, which lets
 * ordered_seek pass over what cannot fit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ORDERED_H
#define CORE_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORDERED_WEIGHTS = 16,
};

/* What they mean is the owner's. */
struct ordered_weights {
    uint32_t own[ORDERED_WEIGHTS];
    uint32_t least[ORDERED_WEIGHTS]; /* of the tree below */
};

struct ordered_link {
    struct ordered_link *left, *right;
    int64_t major, minor; /* the key: unique within a set */
    uint64_t chance;
    size_t count;                    /* of the tree below, this one included */
    struct ordered_weights *weights; /* NULL = none; all of a set or none of it */
    const struct ordered *set;       /* that it is in, NULL = none */
};

/* A zeroed one is empty. */
struct ordered {
    struct ordered_link *root;
};

/* The key must not be in the set, nor the link in any. */
void ordered_add(struct ordered *set, struct ordered_link *link, int64_t major, int64_t minor);
/* Nothing happens when it is not in the set. */
void ordered_remove(struct ordered *set, struct ordered_link *link);

size_t ordered_count(const struct ordered *set);
/* NULL when there is none. */
struct ordered_link *ordered_find(const struct ordered *set, int64_t major, int64_t minor);
struct ordered_link *ordered_first(const struct ordered *set);
struct ordered_link *ordered_last(const struct ordered *set);
struct ordered_link *ordered_next(const struct ordered *set, const struct ordered_link *link);
struct ordered_link *ordered_previous(const struct ordered *set,
                                      const struct ordered_link *link);
/* How many come before it. */
size_t ordered_place(const struct ordered *set, const struct ordered_link *link);

/* The first after `after` (NULL: from the beginning) whose weights fit.  fits must be one that
 * heavier weights never pass when lighter ones do not. */
struct ordered_link *ordered_seek(const struct ordered *set,
                                  const struct ordered_link *after,
                                  bool (*fits)(const uint32_t weights[ORDERED_WEIGHTS],
                                               const void *context),
                                  const void *context);

#endif
