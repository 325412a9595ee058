/* SPDX-License-Identifier: Apache-2.0 */
#include "control/test/desk.h"
#include "db/writer.h"

static void stopping_finishes_what_was_submitted(void **state)
{
    enum { COUNT = 50 };
    struct control_change *changes[COUNT];
    struct gate gate;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    gate_shut(&gate, &d);
    for (int i = 0; i < COUNT; i++) {
        auto_free char *name = xasprintf("g%d", i);

        changes[i] = put(&d, RESOURCE_GROUP, SUB_A, name);
    }
    gate_open(&gate);
    desk_stop(&d);
    for (int i = 0; i < COUNT; i++) {
        expect_ok(changes[i]);
        control_change_free(changes[i]);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), COUNT);
    desk_done(&d);
}

static void changes_that_wait_together_share_a_commit(void **state)
{
    struct db_writer_counts before, after;
    struct control_change *changes[20];
    struct gate gate;
    struct desk d;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    gate_shut(&gate, &d);
    control_writer_counts(d.control, &before);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
        changes[i] = put(&d, RESOURCE_GROUP, SUB_A, "ours");
    gate_open(&gate);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        expect_ok(changes[i]);
        assert_int_equal(changes[i]->created, i == 0);
        control_change_free(changes[i]);
    }
    control_writer_counts(d.control, &after);
    assert_in_range(after.commits - before.commits, 1, 2); /* with the gate's, or after it */
    assert_int_equal(after.writes - before.writes, 21);
    desk_done(&d);
}

static void the_generation_changes_with_every_commit_and_is_even_at_rest(void **state)
{
    struct desk d;
    uint64_t before, after;

    (void)state;
    desk_init(&d);
    desk_start(&d);
    before = control_generation(d.control);
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    after = control_generation(d.control);
    assert_true(after > before);
    assert_int_equal(after % 2, 0);
    assert_int_equal(control_generation(d.control), after);
    desk_done(&d);
}

static void a_database_that_cannot_be_read_is_told_and_nothing_leaks(void **state)
{
    struct control_config config = {0};
    struct control *control = NULL;
    struct desk d;
    struct err e = {0};

    (void)state;
    desk_init(&d);
    config.pool = d.pool;
    config.vault = &d.vault;
    assert_ok(db_script(d.yard.db,
                        "INSERT INTO principal VALUES (1, 'x', 'c', 'h', 'king', '', 1, 0)",
                        &e),
              &e);
    assert_int_equal(control_new(take_ptr(&d.yard.db), &config, &control, &e), -1);
    assert_null(control);
    assert_non_null(strstr(e.msg, "king"));
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopping_finishes_what_was_submitted),
        cmocka_unit_test(changes_that_wait_together_share_a_commit),
        cmocka_unit_test(the_generation_changes_with_every_commit_and_is_even_at_rest),
        cmocka_unit_test(a_database_that_cannot_be_read_is_told_and_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
