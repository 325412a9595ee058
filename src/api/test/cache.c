/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cache.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct wire *make(const char *key, uint64_t generation, const char *name)
{
    autoptr(resource) r = resource_new(RESOURCE_WORKSPACE);

    r->arm_id = xstrdup("/subscriptions/s/resourceGroups/g/x");
    r->name = xstrdup(name);
    r->version = 0xab;
    return wire_new(r, key, generation);
}

static void keep(struct cache *cache, const char *key, uint64_t generation, const char *name)
{
    struct wire *wire = make(key, generation, name);

    cache_keep(cache, wire);
    wire_unref(wire);
}

/* Is the answer for the key, at that generation, the one with that name (NULL = none)? */
static void expect(struct cache *cache, const char *key, uint64_t generation, const char *name)
{
    struct wire *wire = cache_find(cache, key, generation);
    auto_free char *quoted = name ? xasprintf("\"name\":\"%s\"", name) : NULL;

    if (!name) {
        assert_null(wire);
    } else if (!wire) {
        fail_msg("%s is not kept at %d", key, (int)generation);
    } else {
        assert_non_null(strstr(wire->body, quoted));
        assert_int_equal(strlen(wire->body), wire->len);
        assert_string_equal(wire->etag, "\"0xAB\"");
    }
    wire_unref(wire);
}

static int open_cache(void **state)
{
    *state = cache_new();
    return 0;
}

static int close_cache(void **state)
{
    cache_free(*state);
    return 0;
}

static void an_answer_holds_at_its_generation_only(void **state)
{
    keep(*state, "/a", 4, "one");
    expect(*state, "/a", 4, "one");
    expect(*state, "/a", 5, NULL);
    expect(*state, "/a", 6, NULL);
    expect(*state, "/a", 2, NULL);
    expect(*state, "/b", 4, NULL);
}

static void what_was_read_during_a_commit_is_not_kept(void **state)
{
    keep(*state, "/a", 5, "one");
    expect(*state, "/a", 5, NULL);
}

static void a_newer_answer_takes_the_place(void **state)
{
    keep(*state, "/a", 4, "one");
    keep(*state, "/a", 6, "two");
    expect(*state, "/a", 6, "two");
    expect(*state, "/a", 4, NULL);
}

static void a_long_answer_is_not_kept(void **state)
{
    char name[8192];

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    keep(*state, "/a", 4, name);
    expect(*state, "/a", 4, NULL);
}

static void keys_that_share_a_place_are_not_taken_for_each_other(void **state)
{
    for (int i = 0; i < 5000; i++) { /* several times the places there are */
        auto_free char *key = xasprintf("/%d", i), *name = xasprintf("n%d", i);

        keep(*state, key, 4, name);
        expect(*state, key, 4, name);
    }
    for (int i = 0; i < 5000; i++) {
        auto_free char *key = xasprintf("/%d", i), *name = xasprintf("\"n%d\"", i);
        struct wire *wire = cache_find(*state, key, 4);

        if (wire)
            assert_non_null(strstr(wire->body, name));
        wire_unref(wire);
    }
}

static void an_answer_in_hand_outlives_its_place(void **state)
{
    struct wire *held;

    keep(*state, "/a", 4, "one");
    held = cache_find(*state, "/a", 4);
    keep(*state, "/a", 6, "two");
    assert_non_null(strstr(held->body, "one"));
    wire_unref(held);
}

#define with_cache(test) cmocka_unit_test_setup_teardown(test, open_cache, close_cache)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_cache(an_answer_holds_at_its_generation_only),
        with_cache(what_was_read_during_a_commit_is_not_kept),
        with_cache(a_newer_answer_takes_the_place),
        with_cache(a_long_answer_is_not_kept),
        with_cache(keys_that_share_a_place_are_not_taken_for_each_other),
        with_cache(an_answer_in_hand_outlives_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
