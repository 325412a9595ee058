/* Every (state, event) pair of the three machines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    NO = -1, /* refused */
};

static const int nodes[NODE_STATES][NODE_EVENTS] = {
    /*                  UP         TAKE          RELEASE    BREAK          LEAVE         GONE */
    [NODE_CREATING] = {NODE_IDLE, NO, NO, NODE_UNUSABLE, NODE_LEAVING, NO},
    [NODE_IDLE] = {NO, NODE_RUNNING, NO, NODE_UNUSABLE, NODE_LEAVING, NO},
    [NODE_RUNNING] = {NO, NO, NODE_IDLE, NODE_UNUSABLE, NO, NO},
    [NODE_LEAVING] = {NO, NO, NO, NO, NO, NODE_GONE},
    [NODE_UNUSABLE] = {NO, NO, NO, NO, NODE_LEAVING, NO},
    [NODE_GONE] = {NO, NO, NO, NO, NO, NO},
};

static const int jobs[JOB_STATES][JOB_EVENTS] = {
    /*                    START        SUCCEED        FAIL        END              REQUEUE */
    [JOB_QUEUED] = {JOB_RUNNING, NO, JOB_FAILED, NO, NO},
    [JOB_RUNNING] = {NO, JOB_SUCCEEDED, JOB_FAILED, JOB_TERMINATING, JOB_QUEUED},
    [JOB_TERMINATING] = {NO, NO, JOB_FAILED, NO, NO},
    [JOB_SUCCEEDED] = {NO, NO, NO, NO, NO},
    [JOB_FAILED] = {NO, NO, NO, NO, NO},
};

static const int attempts[ATTEMPT_STATES][ATTEMPT_EVENTS] = {
    /*                     RUN               STOP              END */
    [ATTEMPT_STARTING] = {ATTEMPT_RUNNING, ATTEMPT_STOPPING, ATTEMPT_ENDED},
    [ATTEMPT_RUNNING] = {ATTEMPT_RUNNING, ATTEMPT_STOPPING, ATTEMPT_ENDED},
    [ATTEMPT_STOPPING] = {ATTEMPT_STOPPING, ATTEMPT_STOPPING, ATTEMPT_ENDED},
    [ATTEMPT_ENDED] = {NO, NO, NO},
};

static void check(int rc, const struct err *e, int is, int from, int to)
{
    assert_int_equal(rc, to == NO ? -1 : 0);
    assert_int_equal(e->code, to == NO ? ERR_CONFLICT : ERR_NONE);
    assert_int_equal(is, to == NO ? from : to);
}

static void every_pair_of_a_node_leads_where_the_table_says(void **state)
{
    (void)state;
    for (int from = 0; from < NODE_STATES; from++) {
        for (int on = 0; on < NODE_EVENTS; on++) {
            struct yard_node node = {.state = (enum node_state)from, .since_ms = 5};
            struct err e = {0};
            int rc = node_apply(&node, (enum node_event)on, 99, &e);

            check(rc, &e, (int)node.state, from, nodes[from][on]);
            assert_int_equal(node.since_ms, rc < 0 ? 5 : 99);
        }
    }
}

static void every_pair_of_a_job_leads_where_the_table_says(void **state)
{
    (void)state;
    for (int from = 0; from < JOB_STATES; from++) {
        for (int on = 0; on < JOB_EVENTS; on++) {
            struct yard_job job = {.state = (enum job_state)from, .state_ms = 5};
            struct err e = {0};
            int rc = job_apply(&job, (enum job_event)on, 99, &e);

            check(rc, &e, (int)job.state, from, jobs[from][on]);
            assert_int_equal(job.state_ms, rc < 0 ? 5 : 99);
        }
    }
}

static void every_pair_of_an_attempt_leads_where_the_table_says(void **state)
{
    (void)state;
    for (int from = 0; from < ATTEMPT_STATES; from++) {
        for (int on = 0; on < ATTEMPT_EVENTS; on++) {
            struct yard_attempt attempt = {.state = (enum attempt_state)from};
            struct err e = {0};
            int rc = attempt_apply(&attempt, (enum attempt_event)on, &e);

            check(rc, &e, (int)attempt.state, from, attempts[from][on]);
        }
    }
}

static void states_are_spelled_as_on_the_wire(void **state)
{
    static const char *const job_names[JOB_STATES] = {"queued", "running", "terminating",
                                                      "succeeded", "failed"};
    static const char *const node_names[NODE_STATES] = {"preparing", "idle",     "running",
                                                        "leaving",   "unusable", "gone"};

    (void)state;
    for (int i = 0; i < JOB_STATES; i++) {
        assert_string_equal(job_state_name((enum job_state)i), job_names[i]);
        assert_int_equal(job_is_final((enum job_state)i), i >= JOB_SUCCEEDED);
    }
    for (int i = 0; i < NODE_STATES; i++)
        assert_string_equal(node_state_name((enum node_state)i), node_names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_a_node_leads_where_the_table_says),
        cmocka_unit_test(every_pair_of_a_job_leads_where_the_table_says),
        cmocka_unit_test(every_pair_of_an_attempt_leads_where_the_table_says),
        cmocka_unit_test(states_are_spelled_as_on_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
