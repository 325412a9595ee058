/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ordered.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MEMBERS = 300,
    ROUNDS = 20000,
};

struct member {
    struct ordered_link link;
    struct ordered_weights weights;
    bool is_in;
};

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Keys in no order: major by sevens, minor unique. */
static int64_t major_of(size_t at)
{
    return (int64_t)(at * 5 % 7);
}

/* The members that are in, by key: the oracle. */
static size_t list(struct member *all, struct member **ret)
{
    size_t count = 0;

    for (int64_t major = 0; major < 7; major++)
        for (size_t i = 0; i < MEMBERS; i++)
            if (all[i].is_in && major_of(i) == major)
                ret[count++] = &all[i];
    return count;
}

static bool is_light(const uint32_t weights[ORDERED_WEIGHTS], const void *context)
{
    return weights[3] <= *(const uint32_t *)context;
}

static void check_walk(const struct ordered *set, struct member **wanted, size_t count)
{
    struct ordered_link *link = ordered_first(set);

    assert_int_equal(ordered_count(set), count);
    for (size_t i = 0; i < count; i++, link = ordered_next(set, link)) {
        assert_ptr_equal(link, &wanted[i]->link);
        assert_int_equal(ordered_place(set, link), i);
        assert_ptr_equal(ordered_find(set, link->major, link->minor), link);
        assert_ptr_equal(ordered_previous(set, link), i > 0 ? &wanted[i - 1]->link : NULL);
    }
    assert_null(link);
    assert_ptr_equal(ordered_last(set), count > 0 ? &wanted[count - 1]->link : NULL);
}

static void check_seek(const struct ordered *set, struct member **wanted, size_t count)
{
    for (uint32_t most = 0; most < 100; most += 9) {
        const struct ordered_link *at = ordered_seek(set, NULL, is_light, &most);

        for (size_t i = 0; i < count; i++) {
            if (wanted[i]->weights.own[3] > most)
                continue;
            assert_ptr_equal(at, &wanted[i]->link);
            at = ordered_seek(set, at, is_light, &most);
        }
        assert_null(at);
    }
}

static void it_is_a_sorted_list_whatever_comes_and_goes(void **state)
{
    auto_free struct member *all = xcalloc(MEMBERS, sizeof(*all));
    auto_free struct member **wanted = xcalloc(MEMBERS, sizeof(struct member *));
    struct ordered set = {0};
    uint64_t random = 7;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = next(&random) % MEMBERS;
        struct member *m = &all[at];

        if (m->is_in) {
            ordered_remove(&set, &m->link);
        } else {
            m->link.weights = &m->weights;
            m->weights.own[3] = (uint32_t)(next(&random) % 100);
            ordered_add(&set, &m->link, major_of(at), (int64_t)at);
        }
        m->is_in = !m->is_in;
        if (round % 100 == 0) {
            size_t count = list(all, wanted);

            check_walk(&set, wanted, count);
            check_seek(&set, wanted, count);
        }
    }
}

static void an_empty_set_has_nothing(void **state)
{
    struct ordered set = {0};
    struct ordered_link link = {0};

    (void)state;
    assert_int_equal(ordered_count(&set), 0);
    assert_null(ordered_first(&set));
    assert_null(ordered_last(&set));
    assert_null(ordered_find(&set, 0, 0));
    ordered_remove(&set, &link);
    assert_int_equal(ordered_count(&set), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_sorted_list_whatever_comes_and_goes),
        cmocka_unit_test(an_empty_set_has_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
