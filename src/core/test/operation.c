/* SPDX-License-Identifier: Apache-2.0 */
#include "core/operation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Every (state, event) pair and where it leads; OPERATION_STATES = refused. */
static const enum operation_state wanted[OPERATION_STATES][OPERATION_EVENTS] = {
    [OPERATION_RUNNING] =
        {[OPERATION_DONE] = OPERATION_SUCCEEDED, [OPERATION_FAIL] = OPERATION_FAILED},
    [OPERATION_SUCCEEDED] =
        {[OPERATION_DONE] = OPERATION_STATES, [OPERATION_FAIL] = OPERATION_STATES},
    [OPERATION_FAILED] =
        {[OPERATION_DONE] = OPERATION_STATES, [OPERATION_FAIL] = OPERATION_STATES},
};

static void check_pair(enum operation_state from, enum operation_event on)
{
    autoptr(operation) o = operation_new();
    enum operation_state to = wanted[from][on];
    bool is_refused = to == OPERATION_STATES;
    struct err e = {0};

    o->id = xstrdup("7");
    o->state = from;
    o->ended_ms = 5;
    assert_int_equal(operation_apply(o, on, 99, &e), is_refused ? -1 : 0);
    assert_int_equal(o->state, is_refused ? from : to);
    assert_int_equal(o->ended_ms, is_refused ? 5 : 99);
    assert_int_equal(e.code, is_refused ? ERR_CONFLICT : ERR_NONE);
}

static void every_pair_leads_where_the_table_says(void **state)
{
    (void)state;
    for (int from = 0; from < OPERATION_STATES; from++)
        for (int on = 0; on < OPERATION_EVENTS; on++)
            check_pair((enum operation_state)from, (enum operation_event)on);
}

static void a_new_operation_runs_and_has_not_ended(void **state)
{
    autoptr(operation) o = operation_new();

    (void)state;
    assert_int_equal(o->state, OPERATION_RUNNING);
    assert_int_equal(o->ended_ms, 0);
    assert_null(o->error_code);
}

static void states_are_spelled_as_on_the_wire(void **state)
{
    static const char *const names[OPERATION_STATES] = {"InProgress", "Succeeded", "Failed"};

    (void)state;
    for (int i = 0; i < OPERATION_STATES; i++)
        assert_string_equal(operation_state_name((enum operation_state)i), names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_leads_where_the_table_says),
        cmocka_unit_test(a_new_operation_runs_and_has_not_ended),
        cmocka_unit_test(states_are_spelled_as_on_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
