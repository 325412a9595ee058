/* Which node has which processors.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cpu.h"

#include "base/mem.h"
#include "shim/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A machine of processors 900 and up: this one has none of these numbers, so that they are in
 * their order. */
static struct cpus *machine(int count)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(900 + i, &set);
    return cpus_new_of(&set);
}

static void expect_taken(struct cpus *cpus, int count, const char *wanted)
{
    char list[CPU_LIST_BYTES];

    cpus_take(cpus, count, list);
    assert_string_equal(list, wanted);
}

static void nodes_have_processors_of_their_own(void **state)
{
    struct cpus *cpus = machine(8);

    (void)state;
    assert_int_equal(cpus_count(cpus), 8);
    expect_taken(cpus, 3, "900-902");
    expect_taken(cpus, 3, "903-905");
    expect_taken(cpus, 2, "906-907");
    cpus_give(cpus, "900-902");
    cpus_give(cpus, "906-907");
    expect_taken(cpus, 4, "900-902,906");
    cpus_free(cpus);
}

static void too_many_nodes_share_evenly(void **state)
{
    struct cpus *cpus = machine(4);

    (void)state;
    expect_taken(cpus, 3, "900-902");
    expect_taken(cpus, 3, "900-901,903"); /* one of its own, then the first */
    expect_taken(cpus, 2, "902-903");
    expect_taken(cpus, 4, "900-903");
    expect_taken(cpus, 1, "900");
    expect_taken(cpus, 1, "901");
    cpus_free(cpus);
}

static void more_than_there_are_is_all_of_them(void **state)
{
    struct cpus *cpus = machine(4);

    (void)state;
    expect_taken(cpus, 96, "900-903");
    cpus_free(cpus);
}

static void what_was_found_is_in_use(void **state)
{
    struct cpus *cpus = machine(4);

    (void)state;
    assert_true(cpus_have(cpus, "900-901"));
    assert_false(cpus_have(cpus, "903-904"));
    assert_false(cpus_have(cpus, ""));
    assert_false(cpus_have(cpus, "nonsense"));
    cpus_claim(cpus, "900-901");
    expect_taken(cpus, 2, "902-903");
    cpus_free(cpus);
}

static void lists_read_back(void **state)
{
    static const char *const lists[] = {"0", "0-1", "0,2", "0-3,8,10-11", "1022-1023"};
    static const char *const bad[] = {"", ",", "0,", "3-1", "1-", "-1", "a", "0 ", "1024"};
    char text[CPU_LIST_BYTES];
    cpu_set_t set;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        assert_int_equal(shim_cpus_parse(lists[i], &set, NULL), 0);
        shim_cpus_format(&set, text, sizeof(text));
        assert_string_equal(text, lists[i]);
    }
    assert_int_equal(cpu_list_count("0-3,8,10-11"), 7);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(shim_cpus_parse(bad[i], &set, NULL), -1);
        assert_int_equal(cpu_list_count(bad[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_processors_of_their_own),
        cmocka_unit_test(too_many_nodes_share_evenly),
        cmocka_unit_test(more_than_there_are_is_all_of_them),
        cmocka_unit_test(what_was_found_is_in_use),
        cmocka_unit_test(lists_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
