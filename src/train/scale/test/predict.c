/* SPDX-License-Identifier: Apache-2.0 */
#include "train/scale/predict.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 + 1e-6 * fabs(want)))
        fail_msg("%.12g is not %.12g", got, want);
}

static const struct predict_network plain = {"test", 1e-3, 1e9};

static void test_one_bucket_by_hand(void **state)
{
    const struct predict_bucket bucket = {0.8, 1e9};
    const struct predict_input input = {.step_s = 1,
                                        .backward_end_s = 1,
                                        .buckets = &bucket,
                                        .bucket_count = 1,
                                        .ranks_per_node = 1};
    struct predict_result result;

    (void)state;
    /* 8 nodes, halving: 2*3*1 ms + 2*7/8*1 s, from 0.8 on: 0.2 s of it are hidden */
    predict(&input, &plain, 8, &result);
    assert_near(result.exposed_s, 0.006 + 1.75 - 0.2);
    assert_near(result.step_s, 1 + result.exposed_s);
    assert_near(result.efficiency, 1 / result.step_s);
}

static void test_one_node_alone_loses_nothing(void **state)
{
    const struct predict_bucket bucket = {1, 1e9};
    const struct predict_input input = {1, 1, &bucket, 1, 0, 1};
    struct predict_result result;

    (void)state;
    predict(&input, &plain, 1, &result);
    assert_near(result.exposed_s, 0);
    assert_near(result.efficiency, 1);
}

static void test_buckets_go_one_after_another(void **state)
{
    const struct predict_bucket buckets[] = {{0, 5e8}, {0.1, 5e8}, {5, 1e6}};
    struct predict_input input = {6, 6, buckets, 3, 0, 1};
    struct predict_result result;
    double last = 2 * 1e-3 + 1e6 / 1e9; /* two nodes: 2 alpha, and all of it once */

    (void)state;
    predict(&input, &plain, 2, &result);
    assert_near(result.exposed_s, 0); /* all hidden */
    input.backward_end_s = 5;
    predict(&input, &plain, 2, &result);
    assert_near(result.exposed_s, last);
    input.bucket_count = 2;
    input.backward_end_s = 0.1;
    predict(&input, &plain, 2, &result);
    assert_near(result.exposed_s, 2 * (2e-3 + 0.5) - 0.1);
}

static void test_the_sum_within_a_node_counts(void **state)
{
    const struct predict_bucket bucket = {0, 1e9};
    struct predict_input input = {1, 0, &bucket, 1, 2e9, 4};
    struct predict_result result;

    (void)state;
    predict(&input, &plain, 1, &result);
    assert_near(result.exposed_s, 0.5);
    input.ranks_per_node = 1;
    predict(&input, &plain, 1, &result);
    assert_near(result.exposed_s, 0);
}

static void test_more_nodes_are_never_faster(void **state)
{
    const struct predict_bucket buckets[] = {{0.3, 1e8}, {0.5, 1e8}, {0.9, 1e7}};
    const struct predict_input input = {1, 0.95, buckets, 3, 1e10, 2};
    struct predict_result result;
    double before = 2;

    (void)state;
    for (int64_t nodes = 1; nodes <= 1 << 20; nodes *= 2) {
        predict(&input, &plain, nodes, &result);
        assert_true(result.efficiency <= before && result.efficiency > 0);
        before = result.efficiency;
    }
}

static void test_networks_are_known_or_given(void **state)
{
    static const char *const bad[] = {"",     "ethernet", "1",     "1,",    ",1",    "1,0",
                                      "-1,5", "1,5x",     "nan,1", "1,nan", "inf,1", "1,inf"};
    struct predict_network network;
    struct err e = {0};

    (void)state;
    assert_int_equal(predict_parse_network("HDR200", &network, &e), 0);
    assert_near(network.bytes_per_s, 25e9);
    assert_int_equal(predict_parse_network("2.5,80", &network, &e), 0);
    assert_near(network.alpha_s, 2.5e-6);
    assert_near(network.bytes_per_s, 10e9);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(predict_parse_network(bad[i], &network, &e), -1);
        assert_non_null(strstr(e.msg, "100gbe-rdma"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_bucket_by_hand),
        cmocka_unit_test(test_one_node_alone_loses_nothing),
        cmocka_unit_test(test_buckets_go_one_after_another),
        cmocka_unit_test(test_the_sum_within_a_node_counts),
        cmocka_unit_test(test_more_nodes_are_never_faster),
        cmocka_unit_test(test_networks_are_known_or_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
