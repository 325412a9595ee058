/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "store/test/yard.h"

/* The first thing that is not as it should be, of those whose names begin with "I". */
static void note(const char *name, bool ok, const char *detail, void *context)
{
    char *wrong = context;

    (void)detail;
    if (!ok && name[0] == 'I' && !*wrong)
        snprintf(wrong, 128, "%s", name);
}

static void expect(struct yard *yard, const char *invariant)
{
    char wrong[128] = "";
    struct err e = {0};

    assert_ok(store_check_invariants(yard->db, note, wrong, &e), &e);
    assert_string_equal(wrong, invariant);
}

static void run(struct yard *yard, const char *sql)
{
    struct err e = {0};

    assert_ok(db_script(yard->db, sql, &e), &e);
}

/* A running job with one attempt on node 5, and an ended one. */
static void fill(struct yard *yard)
{
    run(yard,
        "INSERT INTO resource (id, parent_id, kind, state, key, group_id, arm_id, name,"
        " properties, created_ms, state_ms, modified_ms, version) VALUES"
        " (1, NULL, 'cluster', 1, 'c', 0, 'c', 'c', '{}', 0, 0, 0, 1),"
        " (2, NULL, 'job', 1, 'j', 0, 'j', 'j', '{}', 0, 0, 0, 2),"
        " (3, NULL, 'job', 1, 'k', 0, 'k', 'k', '{}', 0, 0, 0, 3);"
        "INSERT INTO cluster_state VALUES (1, 'u', 1, 1, 1, '', '');"
        "INSERT INTO job_state (resource_id, cluster_id, uuid, is_unwanted, state, state_ms,"
        " attempts, losses, attempt_id, started_ms, ended_ms, exit_code, excluded) VALUES"
        " (2, 1, 'a', 0, 1, 0, 2, 0, 11, 5, 0, -1, '[]'),"
        " (3, 1, 'b', 0, 3, 0, 1, 0, 12, 5, 6, 0, '[]');"
        "INSERT INTO attempt VALUES (10, 2, 1, 3, 0, 0, 0, 0, '[5]', '{}'),"
        " (11, 2, 2, 1, 0, 0, 0, 0, '[5]', NULL), (12, 3, 1, 3, 0, 0, 0, 0, '[5]', '{}');"
        "INSERT INTO node VALUES (5, 1, 'n5', 2, 0, 11, '', '', ''),"
        " (6, 1, 'n6', 1, 0, 0, '', '', '');");
}

static void each_invariant_notices_its_breach(void **state)
{
    static const struct {
        const char *breach, *invariant;
    } rows[] = {
        {"UPDATE node SET since_ms = 9", ""}, /* nothing is wrong with that */
        {"UPDATE attempt SET state = 0, result = NULL WHERE id = 10",
         "I2: a job has at most one live attempt"},
        {"UPDATE job_state SET attempt_id = 10 WHERE resource_id = 2",
         "I2: a live attempt is the last of its job, and the one it names"},
        {"UPDATE attempt SET number = 3 WHERE id = 11",
         "I2: attempts of a job are numbered 1, 2, ..."},
        {"UPDATE job_state SET state = 0 WHERE resource_id = 2",
         "I2: a job that waits or has ended has no live attempt"},
        {"UPDATE job_state SET ended_ms = 0 WHERE resource_id = 3",
         "I3: a job that ended has the time of its end"},
        {"UPDATE job_state SET exit_code = -1 WHERE resource_id = 3",
         "I3: a job that succeeded has exit code 0 and no error"},
        {"UPDATE job_state SET error_code = 'X' WHERE resource_id = 3",
         "I3: a job that succeeded has exit code 0 and no error"},
        {"UPDATE job_state SET state = 4, exit_code = 1 WHERE resource_id = 3",
         "I3: a job that failed has a cause, and no exit code 0"},
        {"UPDATE job_state SET state = 4, error_code = 'X' WHERE resource_id = 3",
         "I3: a job that failed has a cause, and no exit code 0"},
        {"UPDATE attempt SET result = NULL WHERE id = 12",
         "I3: an attempt that ended has its result, one that lives has none"},
        {"UPDATE node SET attempt_id = 12 WHERE id = 5",
         "I6: a node is held by a live attempt that names it, or by none"},
        {"UPDATE node SET attempt_id = 11 WHERE id = 6",
         "I6: a node is held by a live attempt that names it, or by none"},
        {"UPDATE attempt SET nodes = '[5, 5]' WHERE id = 11",
         "I6: a node is held by one attempt at most"},
        {"UPDATE node SET state = 1 WHERE id = 5", "I6: an idle node is held by nobody"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct yard yard;

        yard_init(&yard);
        fill(&yard);
        expect(&yard, "");
        run(&yard, rows[i].breach);
        expect(&yard, rows[i].invariant);
        yard_done(&yard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_invariant_notices_its_breach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
