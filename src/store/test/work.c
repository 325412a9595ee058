/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "store/test/yard.h"

/* A workspace's worth of parents, and a resource of the kind below them. */
static int64_t add(struct yard *yard, enum resource_kind kind, const char *name)
{
    static const char *const group_id = SUB_A "/resourceGroups/g";
    autoptr(resource) r = resource_new(kind);

    r->arm_id = xasprintf("%s/%s/%s", group_id, resource_kind_info(kind)->noun, name);
    r->name = xstrdup(name);
    r->state = RESOURCE_READY;
    r->version = yard_scalar(yard->db, "SELECT coalesce(max(version), 0) + 1 FROM resource");
    yard_add_row(yard, r);
    return r->id;
}

static void a_cluster_begins_steady_and_keeps_what_the_conductor_says(void **state)
{
    struct cluster_work work;
    struct err e = {0};
    struct yard yard;
    bool found;
    int64_t id;

    (void)state;
    yard_init(&yard);
    id = add(&yard, RESOURCE_CLUSTER, "c");
    assert_ok(store_find_cluster_work(yard.db, id, &work, &found, &e), &e);
    assert_false(found);
    assert_ok(store_add_cluster(yard.db, id, "u-1", &e), &e);
    assert_ok(store_find_cluster_work(yard.db, id, &work, &found, &e), &e);
    assert_true(found);
    assert_true(work.cluster.is_steady);
    assert_int_equal(work.cluster.steady_ms, 0);
    assert_string_equal(work.uuid, "u-1");

    work.cluster.is_steady = false;
    work.cluster.steady_ms = 9;
    work.cluster.wanted = 3;
    snprintf(work.cluster.error_code, sizeof(work.cluster.error_code), "TooSmall");
    assert_ok(store_put_cluster(yard.db, &work.cluster, &e), &e);
    assert_ok(store_find_cluster_work(yard.db, id, &work, &found, &e), &e);
    assert_false(work.cluster.is_steady);
    assert_int_equal(work.cluster.steady_ms, 9);
    assert_int_equal(work.cluster.wanted, 3);
    assert_string_equal(work.cluster.error_code, "TooSmall");
    assert_string_equal(work.uuid, "u-1");
    yard_done(&yard);
}

static void keep_node(const struct yard_node *node, void *context)
{
    *(struct yard_node *)context = *node;
}

static void nodes_are_counted_by_state_and_their_ids_never_come_again(void **state)
{
    struct yard_node a = {.id = 7, .name = "tvm-1-7", .state = NODE_IDLE, .since_ms = 3};
    struct yard_node b = {.id = 8, .name = "tvm-1-8", .state = NODE_CREATING};
    struct yard_node read = {0};
    struct cluster_work work;
    int64_t node, attempt;
    struct err e = {0};
    struct yard yard;
    bool found;

    (void)state;
    yard_init(&yard);
    a.cluster_id = b.cluster_id = add(&yard, RESOURCE_CLUSTER, "c");
    assert_ok(store_add_cluster(yard.db, a.cluster_id, "u", &e), &e);
    assert_ok(store_put_node(yard.db, &a, &e), &e);
    assert_ok(store_put_node(yard.db, &b, &e), &e);
    assert_ok(store_find_cluster_work(yard.db, a.cluster_id, &work, &found, &e), &e);
    assert_int_equal(work.nodes.idle, 1);
    assert_int_equal(work.nodes.preparing, 1);
    assert_int_equal(work.nodes.running, 0);

    b.state = NODE_UNUSABLE;
    snprintf(b.error_code, sizeof(b.error_code), "NodeLost");
    assert_ok(store_put_node(yard.db, &b, &e), &e);
    assert_ok(store_each_node(yard.db, 0, keep_node, &read, &e), &e);
    assert_int_equal(read.id, 8);
    assert_int_equal(read.state, NODE_UNUSABLE);
    assert_string_equal(read.error_code, "NodeLost");
    assert_string_equal(read.name, "tvm-1-8");

    b.state = NODE_GONE;
    assert_ok(store_put_node(yard.db, &b, &e), &e);
    assert_ok(store_last_work_ids(yard.db, &node, &attempt, &e), &e);
    assert_int_equal(node, 8);
    assert_int_equal(attempt, 0);
    assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM node"), 1);
    yard_done(&yard);
}

static void a_job_comes_back_as_it_was_put(void **state)
{
    int64_t excluded[] = {4, 9};
    auto_job_work work = {0};
    auto_job_work again = {0};
    struct err e = {0};
    struct yard yard;
    bool found;
    int64_t id;

    (void)state;
    yard_init(&yard);
    id = add(&yard, RESOURCE_JOB, "j");
    assert_ok(store_add_job(yard.db, id, 42, "u-j", 11, &e), &e);
    assert_ok(store_find_job_work(yard.db, id, &work, &found, &e), &e);
    assert_true(found);
    assert_int_equal(work.job.state, JOB_QUEUED);
    assert_int_equal(work.job.exit_code, -1);
    assert_int_equal(work.job.cluster_id, 42);
    assert_false(work.job.is_unwanted);

    assert_ok(store_end_job(yard.db, id, &e), &e);
    work.job.state = JOB_FAILED;
    work.job.exit_code = 3;
    work.job.attempts = 2;
    work.job.started_ms = 12;
    work.job.losses = 1;
    work.job.verdict = xstrdup("rank 1 ended with 3");
    work.job.excluded = excluded;
    work.job.excluded_count = 2;
    assert_ok(store_put_job(yard.db, &work.job, &e), &e);
    work.job.excluded = NULL;
    work.job.excluded_count = 0;
    assert_ok(store_find_job_work(yard.db, id, &again, &found, &e), &e);
    assert_int_equal(again.job.state, JOB_FAILED);
    assert_int_equal(again.job.exit_code, 3);
    assert_int_equal(again.job.attempts, 2);
    assert_int_equal(again.job.losses, 1);
    assert_null(again.job.error_code);
    assert_true(again.job.is_unwanted); /* the owner's wish is not the conductor's to undo */
    assert_string_equal(again.job.verdict, "rank 1 ended with 3");
    assert_int_equal(again.job.excluded_count, 2);
    assert_int_equal(again.job.excluded[1], 9);
    yard_done(&yard);
}

static void count_job(const struct job_work *work, void *context)
{
    (void)work;
    ++*(int *)context;
}

static void keep_attempt(const struct yard_attempt *attempt, void *context)
{
    struct attempt_result *result = context;

    assert_int_equal(attempt->node_count, 2);
    assert_int_equal(attempt->nodes[0], 5);
    *result = attempt->result;
}

static void attempts_go_with_their_job_and_keep_their_result(void **state)
{
    int64_t nodes[] = {5, 6};
    struct yard_attempt a = {
        .id = 31, .number = 1, .nodes = nodes, .node_count = 2, .state = ATTEMPT_RUNNING};
    struct attempt_result result = {0};
    int64_t node, attempt;
    struct err e = {0};
    struct yard yard;
    int jobs = 0;

    (void)state;
    yard_init(&yard);
    a.job_id = add(&yard, RESOURCE_JOB, "j");
    assert_ok(store_add_job(yard.db, a.job_id, 1, "u", 0, &e), &e);
    assert_ok(store_put_attempt(yard.db, &a, &e), &e);
    assert_ok(store_each_unfinished_job(yard.db, count_job, &jobs, &e), &e);
    assert_int_equal(jobs, 1);
    a.state = ATTEMPT_ENDED;
    a.result = (struct attempt_result){
        .end = ENDED_EXITED, .exit_code = -1, .signal = 9, .out_of_memory = true, .rank = 1};
    snprintf(a.result.tail, sizeof(a.result.tail), "last \"line\"\n");
    assert_ok(store_put_attempt(yard.db, &a, &e), &e);
    assert_ok(store_each_attempt(yard.db, 0, keep_attempt, &result, &e), &e);
    assert_int_equal(result.signal, 9);
    assert_true(result.out_of_memory);
    assert_string_equal(result.tail, "last \"line\"\n");
    assert_ok(store_remove_tree(yard.db, a.job_id, &e), &e);
    assert_int_equal(yard_scalar(yard.db, "SELECT count(*) FROM attempt"), 0);
    assert_ok(store_last_work_ids(yard.db, &node, &attempt, &e), &e);
    assert_int_equal(attempt, 31);
    yard_done(&yard);
}

/* What a job printed need not be text. */
static void a_result_that_is_no_text_keeps_its_facts(void **state)
{
    struct yard_attempt a = {.id = 1, .number = 1, .state = ATTEMPT_ENDED};
    struct err e = {0};
    struct yard yard;

    (void)state;
    yard_init(&yard);
    a.job_id = add(&yard, RESOURCE_JOB, "j");
    assert_ok(store_add_job(yard.db, a.job_id, 1, "u", 0, &e), &e);
    a.result.exit_code = 77;
    snprintf(a.result.tail, sizeof(a.result.tail), "\xff\xfe");
    assert_ok(store_put_attempt(yard.db, &a, &e), &e);
    assert_int_equal(
        yard_scalar(yard.db, "SELECT json_extract(result, '$.exitCode') FROM attempt"), 77);
    yard_done(&yard);
}

static void note_image(const char *image, const char *target, void *context)
{
    assert_string_equal(image, "tf:1");
    assert_string_equal(target, "host");
    ++*(int *)context;
}

static void images_are_mapped_and_unmapped(void **state)
{
    auto_free char *target = NULL;
    struct err e = {0};
    struct yard yard;
    int seen = 0;
    bool found;

    (void)state;
    yard_init(&yard);
    assert_ok(store_map_image(yard.db, "tf:1", "other", NULL, &e), &e);
    assert_ok(store_map_image(yard.db, "tf:1", "host", NULL, &e), &e);
    assert_ok(store_each_image(yard.db, note_image, &seen, &e), &e);
    assert_int_equal(seen, 1);
    assert_ok(store_find_image(yard.db, "tf:1", &target, &e), &e);
    assert_string_equal(target, "host");
    assert_ok(store_map_image(yard.db, "tf:1", NULL, &found, &e), &e);
    assert_true(found);
    assert_ok(store_map_image(yard.db, "tf:1", NULL, &found, &e), &e);
    assert_false(found);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_begins_steady_and_keeps_what_the_conductor_says),
        cmocka_unit_test(nodes_are_counted_by_state_and_their_ids_never_come_again),
        cmocka_unit_test(a_job_comes_back_as_it_was_put),
        cmocka_unit_test(attempts_go_with_their_job_and_keep_their_result),
        cmocka_unit_test(a_result_that_is_no_text_keeps_its_facts),
        cmocka_unit_test(images_are_mapped_and_unmapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
