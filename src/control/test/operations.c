/* SPDX-License-Identifier: Apache-2.0 */
#include "control/test/desk.h"

#define WORK OURS "/providers/Microsoft.BatchAI/workspaces/work"

static const char FINISHES[] =
    "SELECT count(*) FROM event WHERE operation = 'Operations_Finish'";
static const char RUNNING[] = "SELECT count(*) FROM operation WHERE state = 0";
static const char SUCCEEDED[] = "SELECT count(*) FROM operation WHERE state = 1";

static void fill(struct desk *d)
{
    desk_init(d);
    desk_start(d);
    have(d, RESOURCE_GROUP, SUB_A, "ours");
    have(d, RESOURCE_WORKSPACE, OURS, "work");
    have(d, RESOURCE_EXPERIMENT, WORK, "try");
    have(d, RESOURCE_STORAGE_ACCOUNT, OURS, "store1");
}

static void a_deletion_goes_on_by_itself_and_ends(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    {
        auto_change change = delete_it(&d, RESOURCE_GROUP, OURS, false);

        expect_ok(change);
        assert_int_equal(change->resource->state, RESOURCE_DELETING);
        assert_int_equal(change->operation->state, OPERATION_RUNNING);
        assert_string_equal(change->operation->target, OURS);
        eventually(&d, SUCCEEDED, 1);
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM secret"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM operation WHERE ended_ms = 0"), 0);
    assert_int_equal(count(&d, FINISHES), 1);
    desk_done(&d);
}

static void deleting_again_answers_with_the_same_operation(void **state)
{
    struct gate gate;
    struct desk d;

    (void)state;
    fill(&d);
    gate_shut(&gate, &d);
    {
        auto_change first = delete_it(&d, RESOURCE_GROUP, OURS, false);
        auto_change second = delete_it(&d, RESOURCE_GROUP, OURS, false);
        auto_change child = put(&d, RESOURCE_WORKSPACE, OURS, "late");

        gate_open(&gate);
        expect_ok(first);
        expect_ok(second);
        expect_refused(child, ERR_CONFLICT, "ResourceGroupBeingDeleted");
        assert_string_equal(second->operation->id, first->operation->id);
    }
    eventually(&d, SUCCEEDED, 1);
    desk_stop(&d); /* everything that was submitted has happened */
    assert_int_equal(count(&d, "SELECT count(*) FROM operation"), 1);
    assert_int_equal(count(&d, FINISHES), 1);
    desk_done(&d);
}

static void a_child_that_goes_with_its_parent_ends_its_own_operation(void **state)
{
    struct gate gate;
    struct desk d;

    (void)state;
    fill(&d);
    gate_shut(&gate, &d);
    {
        auto_change child = delete_it(&d, RESOURCE_WORKSPACE, WORK, false);
        auto_change parent = delete_it(&d, RESOURCE_GROUP, OURS, false);

        gate_open(&gate);
        expect_ok(child);
        expect_ok(parent);
    }
    eventually(&d, SUCCEEDED, 2);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 0);
    desk_done(&d);
}

/* What a crash leaves: a resource being deleted, and its operation, which nobody sees to. */
static void plant(struct desk *d, const char *id, const char *name)
{
    autoptr(operation) o = operation_new();
    struct err e = {0};

    o->id = xstrdup(id);
    o->target = xstrdup("/somewhere");
    o->started_ms = 1;
    assert_ok(db_run(d->yard.db, &e, "UPDATE resource SET state = 2 WHERE name = ?", "t", name),
              &e);
    assert_ok(store_put_operation(d->yard.db, o, "g", &e), &e);
    assert_ok(db_run(d->yard.db, &e,
                     "UPDATE operation SET resource_id = (SELECT id FROM resource WHERE name ="
                     " ?) WHERE id = ?",
                     "tt", name, id),
              &e);
}

static void what_a_crash_interrupted_is_finished_after_the_start(void **state)
{
    struct desk d;

    (void)state;
    fill(&d);
    desk_stop(&d);
    plant(&d, "op-1", "try");
    plant(&d, "op-2", "ours");
    desk_start(&d);
    eventually(&d, SUCCEEDED, 2);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 0);
    desk_stop(&d);
    desk_start(&d); /* nothing is left to act on */
    desk_stop(&d);
    assert_int_equal(count(&d, FINISHES), 2);
    desk_done(&d);
}

static void an_operation_whose_resource_is_gone_ends_well(void **state)
{
    struct desk d;
    struct err e = {0};

    (void)state;
    fill(&d);
    desk_stop(&d);
    plant(&d, "op-1", "try");
    assert_ok(db_script(d.yard.db, "DELETE FROM resource WHERE name = 'try'", &e), &e);
    desk_start(&d);
    eventually(&d, SUCCEEDED, 1);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 3);
    desk_done(&d);
}

/* Stopping right after the answer: the operation is either finished or taken up again. */
static void a_stop_in_between_loses_nothing(void **state)
{
    struct desk d;

    (void)state;
    for (int i = 0; i < 5; i++) {
        fill(&d);
        {
            auto_change change = delete_it(&d, RESOURCE_GROUP, OURS, false);

            expect_ok(change);
        }
        desk_stop(&d);
        assert_int_equal(count(&d, RUNNING) + count(&d, SUCCEEDED), 1);
        desk_start(&d);
        eventually(&d, SUCCEEDED, 1);
        assert_int_equal(count(&d, "SELECT count(*) FROM resource"), 0);
        desk_done(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deletion_goes_on_by_itself_and_ends),
        cmocka_unit_test(deleting_again_answers_with_the_same_operation),
        cmocka_unit_test(a_child_that_goes_with_its_parent_ends_its_own_operation),
        cmocka_unit_test(what_a_crash_interrupted_is_finished_after_the_start),
        cmocka_unit_test(an_operation_whose_resource_is_gone_ends_well),
        cmocka_unit_test(a_stop_in_between_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
