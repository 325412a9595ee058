/* SPDX-License-Identifier: Apache-2.0 */
#include "store/work.h"

#include "store/test/yard.h"

static int64_t
add_job(struct yard *yard, const char *group, const char *name, enum job_state state)
{
    autoptr(resource) r = resource_new(RESOURCE_JOB);
    autoptr(resource) parent = NULL;
    auto_job_work work = {0};
    struct err e = {0};
    bool found;

    r->arm_id = xasprintf("%s/job/%s", group, name);
    r->name = xstrdup(name);
    r->state = RESOURCE_READY;
    assert_ok(store_find_resource(yard->db, group, &parent, &e), &e);
    r->parent_id = parent ? parent->id : 0;
    r->version = yard_scalar(yard->db, "SELECT coalesce(max(version), 0) + 1 FROM resource");
    yard_add_row(yard, r);
    assert_ok(store_add_job(yard->db, r->id, 1, "u", 100 + r->id, &e), &e);
    assert_ok(store_find_job_work(yard->db, r->id, &work, &found, &e), &e);
    work.job.state = state;
    assert_ok(store_put_job(yard->db, &work.job, &e), &e);
    return r->id;
}

struct seen {
    int64_t ids[16];
    size_t count;
};

static void note(int64_t id, void *context)
{
    struct seen *seen = context;

    seen->ids[seen->count++] = id;
}

static struct seen list(struct yard *yard, const struct job_filter *filter)
{
    struct seen seen = {0};
    struct err e = {0};

    assert_ok(store_each_job(yard->db, filter, note, &seen, &e), &e);
    return seen;
}

#define GROUP_A "/subscriptions/" SUB_A_ID "/resourcegroups/a"
#define GROUP_B "/subscriptions/" SUB_A_ID "/resourcegroups/b"

static void jobs_are_listed_by_group_state_and_age(void **state)
{
    const unsigned all = (1u << JOB_STATES) - 1, queued = 1u << JOB_QUEUED;
    struct yard yard;
    struct seen seen;
    int64_t id[5];

    (void)state;
    yard_init(&yard);
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "a", NULL));
    resource_free(yard_add(&yard, RESOURCE_GROUP, SUB_A, NULL, "b", NULL));
    id[0] = add_job(&yard, GROUP_A, "a", JOB_QUEUED);
    id[1] = add_job(&yard, GROUP_B, "b", JOB_QUEUED);
    id[2] = add_job(&yard, GROUP_A, "c", JOB_FAILED);
    id[3] = add_job(&yard, GROUP_A, "d", JOB_RUNNING);
    id[4] = add_job(&yard, GROUP_B, "e", JOB_SUCCEEDED);

    seen = list(&yard, &(struct job_filter){.group_key = "", .states = all, .most = 16});
    assert_int_equal(seen.count, 5);
    assert_int_equal(seen.ids[0], id[4]); /* newest first */
    seen = list(&yard, &(struct job_filter){
                           .group_key = "", .states = all, .most = 2, .before_id = id[4]});
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.ids[0], id[3]);
    assert_int_equal(seen.ids[1], id[2]);
    seen = list(&yard, &(struct job_filter){.group_key = GROUP_A, .states = all, .most = 16});
    assert_int_equal(seen.count, 3);
    seen =
        list(&yard, &(struct job_filter){
                        .group_key = "", .states = queued, .oldest_first = true, .most = 16});
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.ids[0], id[0]);
    seen = list(&yard, &(struct job_filter){.group_key = GROUP_B,
                                            .states = 1u << JOB_SUCCEEDED,
                                            .oldest_first = true,
                                            .most = 16});
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.ids[0], id[4]);
    yard_done(&yard);
}

static void unfinished_jobs_below_a_resource_are_listed(void **state)
{
    struct seen seen = {0};
    struct err e = {0};
    struct yard yard;
    int64_t id[2];

    (void)state;
    yard_init(&yard);
    id[0] = add_job(&yard, GROUP_A, "a", JOB_QUEUED);
    add_job(&yard, GROUP_B, "b", JOB_QUEUED);
    add_job(&yard, GROUP_A, "c", JOB_FAILED);
    id[1] = add_job(&yard, GROUP_A, "d", JOB_TERMINATING);
    add_job(&yard, GROUP_A "a", "e", JOB_RUNNING); /* begins the same, and is another */
    assert_ok(store_each_job_below(yard.db, GROUP_A, note, &seen, &e), &e);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.ids[0], id[0]);
    assert_int_equal(seen.ids[1], id[1]);
    yard_done(&yard);
}

static void what_goes_on_is_counted(void **state)
{
    struct yard_node node = {.id = 3, .name = "n", .state = NODE_IDLE};
    struct work_counts counts;
    struct err e = {0};
    struct yard yard;
    int64_t oldest;

    (void)state;
    yard_init(&yard);
    oldest = add_job(&yard, GROUP_A, "a", JOB_QUEUED);
    add_job(&yard, GROUP_A, "b", JOB_QUEUED);
    add_job(&yard, GROUP_A, "c", JOB_FAILED);
    node.cluster_id = add_job(&yard, GROUP_A, "d", JOB_RUNNING); /* any row will do */
    assert_ok(store_put_node(yard.db, &node, &e), &e);
    assert_ok(store_count_work(yard.db, &counts, &e), &e);
    assert_int_equal(counts.jobs[JOB_QUEUED], 2);
    assert_int_equal(counts.jobs[JOB_RUNNING], 1);
    assert_int_equal(counts.jobs[JOB_FAILED], 0); /* has ended */
    assert_int_equal(counts.nodes[NODE_IDLE], 1);
    assert_int_equal(counts.oldest_queued_ms, 100 + oldest);
    yard_done(&yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_listed_by_group_state_and_age),
        cmocka_unit_test(unfinished_jobs_below_a_resource_are_listed),
        cmocka_unit_test(what_goes_on_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
