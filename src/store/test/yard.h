/* yard.h - for tests: a data folder of its own with an empty yard's database in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_TEST_YARD_H
#define STORE_TEST_YARD_H

#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SUB_A_ID "11111111-1111-1111-1111-111111111111"
#define SUB_A    "/subscriptions/" SUB_A_ID
#define SUB_B    "/subscriptions/22222222-2222-2222-2222-222222222222"

struct yard {
    char folder[32];
    char db_path[64];
    struct db *db; /* for writing; NULL after it was handed over */
};

/* Every call must succeed: assert_ok(store_...(..., &e), &e). */
static inline void assert_ok(int rc, const struct err *e)
{
    if (rc < 0)
        fail_msg("%s", e->msg);
}

static inline void yard_reopen(struct yard *yard)
{
    struct err e = {0};

    db_free(yard->db);
    yard->db = NULL;
    assert_ok(store_open(yard->db_path, &yard->db, &e), &e);
}

static inline void yard_init(struct yard *yard)
{
    struct err e = {0};

    *yard = (struct yard){.folder = "/tmp/yard-store-XXXXXX"};
    assert_non_null(mkdtemp(yard->folder));
    snprintf(yard->db_path, sizeof(yard->db_path), "%s/yard.db", yard->folder);
    yard_reopen(yard);
    assert_ok(
        store_put_meta(yard->db, "subscription_id", &SUB_A[strlen("/subscriptions/")], &e), &e);
}

static inline int
yard_remove_one(const char *path, const struct stat *file, int type, struct FTW *at)
{
    (void)file;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void yard_done(struct yard *yard)
{
    db_free(yard->db);
    assert_int_equal(nftw(yard->folder, yard_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The path of a file in the folder; caller frees. */
static inline char *yard_path(const struct yard *yard, const char *name)
{
    return xasprintf("%s/%s", yard->folder, name);
}

static inline int64_t yard_scalar(struct db *db, const char *sql)
{
    auto_query q = {0};
    struct err e = {0};

    if (db_select(db, &q, &e, sql, "") < 0 || db_next(&q, &e) != 1)
        fail_msg("%s: %s", sql, e.msg);
    return db_int(&q, 0);
}

/* Add a resource as a new row, in the group of its parent. */
static inline void yard_add_row(struct yard *yard, struct resource *r)
{
    bool is_added = false;
    struct err e = {0};

    assert_ok(store_last_resource(yard->db, &r->id, &e), &e);
    r->id++;
    r->group_id = r->id;
    if (r->parent_id) {
        autoptr(resource) parent = NULL;

        assert_ok(store_find_resource_by_id(yard->db, r->parent_id, &parent, &e), &e);
        r->group_id = parent->group_id;
    }
    assert_ok(store_add_resource(yard->db, r, &is_added, &e), &e);
    assert_true(is_added);
}

/* Put a resource below a parent (NULL for a group, then below the subscription).  Versions are
 * 1, 2, 3, ...  The caller frees it. */
static inline struct resource *yard_add(struct yard *yard,
                                        enum resource_kind kind,
                                        const char *subscription,
                                        const struct resource *parent,
                                        const char *name,
                                        const char *tags)
{
    autoptr(arena) arena = arena_new();
    struct resource *r = resource_new(kind);

    r->arm_id =
        xstrdup(resource_child_id(arena, kind, parent ? parent->arm_id : subscription, name));
    r->name = xstrdup(name);
    r->location = kind == RESOURCE_EXPERIMENT ? NULL : xstrdup("eastus");
    r->parent_id = parent ? parent->id : 0;
    r->tags = tags ? json_loads(tags, 0, NULL) : NULL;
    r->state = RESOURCE_READY;
    r->version = yard_scalar(yard->db, "SELECT coalesce(max(version), 0) + 1 FROM resource");
    r->created_ms = r->state_ms = r->modified_ms = 1000 + r->version;
    yard_add_row(yard, r);
    return r;
}

#endif
