/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cache.h"

#include "base/str.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* An answer whose body says its number. */
static struct wire *make(const char *key, int number, uint64_t generation)
{
    autoptr(resource) r = resource_new(RESOURCE_GROUP);
    auto_free char *body = xasprintf("{\"n\":%d}", number);

    r->version = number;
    return wire_new(r, body, key, generation);
}

static void keep(struct cache *cache, const char *key, int number, uint64_t generation)
{
    struct wire *wire = make(key, number, generation);

    cache_keep(cache, wire);
    wire_unref(wire);
}

/* The body found, or ""; caller frees. */
static char *found(struct cache *cache, const char *key, uint64_t generation)
{
    struct wire *wire = cache_find(cache, key, generation);
    char *body = xstrdup(wire ? wire->body : "");

    if (wire)
        assert_int_equal(strlen(wire->body), wire->len);
    wire_unref(wire);
    return body;
}

static void check(struct cache *cache, const char *key, uint64_t generation, const char *wanted)
{
    auto_free char *body = found(cache, key, generation);

    assert_string_equal(body, wanted);
}

static void an_answer_holds_for_its_key_at_its_generation(void **state)
{
    struct cache *cache = cache_new();

    (void)state;
    check(cache, "/a", 2, "");
    keep(cache, "/a", 1, 2);
    keep(cache, "/b", 2, 2);
    check(cache, "/a", 2, "{\"n\":1}");
    check(cache, "/b", 2, "{\"n\":2}");
    check(cache, "/a", 4, "");
    check(cache, "/a", 0, "");
    check(cache, "/c", 2, "");
    keep(cache, "/a", 3, 4);
    check(cache, "/a", 4, "{\"n\":3}");
    check(cache, "/a", 2, "");
    cache_free(cache);
}

static void what_was_read_during_a_commit_is_not_kept(void **state)
{
    struct cache *cache = cache_new();

    (void)state;
    keep(cache, "/a", 1, 3);
    check(cache, "/a", 3, "");
    keep(cache, "/a", 2, 2);
    keep(cache, "/a", 3, 3); /* does not push it out either */
    check(cache, "/a", 2, "{\"n\":2}");
    cache_free(cache);
}

static void a_long_answer_is_not_kept(void **state)
{
    struct cache *cache = cache_new();
    autoptr(resource) r = resource_new(RESOURCE_GROUP);
    char text[8192];
    struct wire *wire;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    wire = wire_new(r, text, "/a", 2);
    assert_int_equal(wire->len, sizeof(text) - 1);
    cache_keep(cache, wire);
    wire_unref(wire);
    check(cache, "/a", 2, "");
    cache_free(cache);
}

static void an_answer_outlives_its_place(void **state)
{
    struct cache *cache = cache_new();
    struct wire *held;

    (void)state;
    keep(cache, "/a", 1, 2);
    held = cache_find(cache, "/a", 2);
    keep(cache, "/a", 2, 4);
    cache_free(cache);
    assert_string_equal(held->body, "{\"n\":1}");
    assert_string_equal(held->etag, "\"0x1\"");
    wire_unref(held);
    wire_unref(NULL);
}

static void a_place_is_shared_but_keys_are_not_confused(void **state)
{
    enum { KEYS = 5000 }; /* more than there are places */
    struct cache *cache = cache_new();
    int hits = 0;

    (void)state;
    for (int i = 0; i < KEYS; i++) {
        auto_free char *key = xasprintf("/key/%d", i);
        auto_free char *wanted = xasprintf("{\"n\":%d}", i);

        keep(cache, key, i, 2);
        check(cache, key, 2, wanted);
    }
    for (int i = 0; i < KEYS; i++) {
        auto_free char *key = xasprintf("/key/%d", i);
        auto_free char *wanted = xasprintf("{\"n\":%d}", i);
        auto_free char *body = found(cache, key, 2);

        assert_true(!*body || str_equal(body, wanted));
        hits += *body != '\0';
    }
    assert_true(hits > 0 && hits < KEYS);
    cache_free(cache);
}

struct asking {
    struct cache *cache;
    int problems;
};

static void *ask_on(void *arg)
{
    struct asking *asking = arg;

    for (int i = 0; i < 2000; i++) {
        auto_free char *key = xasprintf("/key/%d", i % 7);
        auto_free char *wanted = xasprintf("{\"n\":%d}", i % 7);
        auto_free char *body = found(asking->cache, key, 2);

        asking->problems += *body && !str_equal(body, wanted);
        keep(asking->cache, key, i % 7, i % 3 ? 2 : 4);
    }
    return NULL;
}

static void many_threads_share_it(void **state)
{
    struct cache *cache = cache_new();
    struct asking asking[6];
    pthread_t threads[6];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        asking[i] = (struct asking){cache, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &asking[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(asking[i].problems, 0);
    }
    cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_holds_for_its_key_at_its_generation),
        cmocka_unit_test(what_was_read_during_a_commit_is_not_kept),
        cmocka_unit_test(a_long_answer_is_not_kept),
        cmocka_unit_test(an_answer_outlives_its_place),
        cmocka_unit_test(a_place_is_shared_but_keys_are_not_confused),
        cmocka_unit_test(many_threads_share_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
