/* SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/card.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/probe.h"
#include "train/preflight/nvml.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct check *find(const struct checks *checks, const char *name)
{
    for (int i = 0; i < checks->count; i++)
        if (str_equal(checks->all[i].name, name))
            return &checks->all[i];
    return NULL;
}

static enum verdict verdict_of(const struct checks *checks, const char *name)
{
    const struct check *row = find(checks, name);

    if (row)
        return row->verdict;
    fail_msg("there is no check \"%s\"", name);
    return VERDICT_UNKNOWN;
}

/* --- names -----------------------------------------------------------------------------------
 */

static void test_cards_are_found_by_what_the_driver_calls_them(void **state)
{
    static const struct {
        const char *name, *row;
    } cases[] = {
        {"NVIDIA H200", "H200"},
        {"NVIDIA H200 NVL", "H200 NVL"},
        {"NVIDIA H100 80GB HBM3", "H100"},
        {"NVIDIA H100 PCIe", "H100 PCIe"},
        {"NVIDIA GH200 480GB", "GH200"},
        {"NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"},
        {"NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"},
        {"A100-PCIE-40GB", "A100-PCIE-40GB"},
        {"NVIDIA A10G", "A10G"},
        {"NVIDIA A10", "A10"},
        {"NVIDIA L40S", "L40S"},
        {"NVIDIA L4", "L4"},
        {"Tesla V100-SXM2-16GB", "V100-SXM"},
        {"Tesla V100-SXM3-32GB", "V100-SXM"},
        {"Tesla V100-PCIE-16GB", "V100-PCIE"},
        {"Tesla T4", "T4"},
        {"NVIDIA GeForce RTX 4090", "GeForce RTX 4090"},
        {"NVIDIA GeForce RTX 4090 Laptop GPU", NULL},
        {"NVIDIA A1000", NULL},
        {"NVIDIA GeForce GTX 1080", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct card_facts *facts = card_find(cases[i].name);

        if (!str_equal(facts ? facts->name : NULL, cases[i].row))
            fail_msg("\"%s\" is taken for %s", cases[i].name, facts ? facts->name : "nothing");
    }
}

static void test_links_carry_what_their_generation_and_width_say(void **state)
{
    (void)state;
    assert_true(fabs(card_pcie_gb_s(4, 16) - 31.5) < 0.1);
    assert_true(fabs(card_pcie_gb_s(5, 16) - 63) < 0.1);
    assert_true(isnan(card_pcie_gb_s(0, 16)) && isnan(card_pcie_gb_s(9, 16)));
    assert_true(isnan(card_pcie_gb_s(4, 0)));
}

/* --- figures ---------------------------------------------------------------------------------
 */

static const struct probe_figures healthy = {
    .name = "NVIDIA H200",
    .is_bf16 = true,
    .matrix_flops = 788e12,
    .is_right = true,
    .copy_bytes_s = 4.3e12,
    .to_card_bytes_s = 52e9,
    .from_card_bytes_s = 52e9,
};

static void test_a_healthy_card_passes(void **state)
{
    auto_checks checks = {0};

    (void)state;
    card_judge_figures(&checks, &healthy);
    assert_int_equal(checks.count, 5);
    for (int i = 0; i < checks.count; i++)
        assert_int_equal(checks.all[i].verdict, VERDICT_OK);
}

/* One figure at a time too low: that check alone is bad. */
static void test_each_low_figure_is_bad(void **state)
{
    static const struct {
        const char *name;
        size_t at;
    } fields[] = {
        {"matrix", offsetof(struct probe_figures, matrix_flops)},
        {"copy", offsetof(struct probe_figures, copy_bytes_s)},
        {"to_card", offsetof(struct probe_figures, to_card_bytes_s)},
        {"from_card", offsetof(struct probe_figures, from_card_bytes_s)},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct probe_figures low = healthy;
        auto_checks checks = {0};

        *(double *)(void *)((char *)&low + fields[i].at) /= 2;
        card_judge_figures(&checks, &low);
        for (int c = 0; c < checks.count; c++)
            assert_int_equal(checks.all[c].verdict,
                             str_equal(checks.all[c].name, fields[i].name) ? VERDICT_BAD
                                                                           : VERDICT_OK);
    }
}

static void test_wrong_products_are_bad_however_fast(void **state)
{
    struct probe_figures wrong = healthy;
    auto_checks checks = {0};

    (void)state;
    wrong.is_right = false;
    card_judge_figures(&checks, &wrong);
    assert_int_equal(verdict_of(&checks, "results"), VERDICT_BAD);
}

static void test_an_unknown_card_is_measured_and_not_judged(void **state)
{
    struct probe_figures odd = healthy;
    auto_checks checks = {0};

    (void)state;
    snprintf(odd.name, sizeof odd.name, "NVIDIA Z9000");
    odd.matrix_flops = 1e9;
    card_judge_figures(&checks, &odd);
    assert_int_equal(verdict_of(&checks, "matrix"), VERDICT_UNKNOWN);
    assert_true(find(&checks, "matrix")->value < 0.01);
    assert_int_equal(verdict_of(&checks, "results"), VERDICT_OK);
}

static void test_sums_are_held_against_the_link(void **state)
{
    (void)state;
    assert_true(card_sum_floor("NVIDIA H200") > 200e9);
    assert_true(card_sum_floor("Tesla T4") > 1e9 && card_sum_floor("Tesla T4") < 10e9);
    assert_true(isnan(card_sum_floor("NVIDIA Z9000")));
}

/* --- the driver's word -----------------------------------------------------------------------
 */

static struct nvml_state good_state(void)
{
    return (struct nvml_state){
        .name = "NVIDIA H200",
        .driver = "580.1",
        .temperature_c = 55,
        .slowdown_c = 90,
        .clock_mhz = 1500,
        .most_clock_mhz = 1980,
        .throttle = NVML_POWER_CAP,
        .power_w = 690,
        .limit_w = 700,
        .default_limit_w = 700,
        .pcie_width = 16,
        .most_pcie_width = 16,
        .pcie_generation = 5,
    };
}

static void test_a_healthy_state_passes(void **state)
{
    struct nvml_state s = good_state();
    auto_checks checks = {0};

    (void)state;
    card_judge_state(&checks, s.name, &s, &s);
    assert_int_equal(checks.count, 9);
    for (int i = 0; i < checks.count; i++)
        assert_int_equal(checks.all[i].verdict, VERDICT_OK);
}

struct fault {
    const char *check;
    enum verdict verdict;
    void (*make)(struct nvml_state *s);
};

static void slow(struct nvml_state *s)
{
    s->clock_mhz = 600;
}
static void brake(struct nvml_state *s)
{
    s->throttle |= NVML_POWER_BRAKE;
}
static void heat(struct nvml_state *s)
{
    s->throttle |= NVML_HW_THERMAL;
}
static void warm(struct nvml_state *s)
{
    s->throttle |= NVML_SW_THERMAL;
}
static void fixed(struct nvml_state *s)
{
    s->throttle |= NVML_CLOCKS_SET;
}
static void hot(struct nvml_state *s)
{
    s->temperature_c = 88;
}
static void capped(struct nvml_state *s)
{
    s->limit_w = 400;
}
static void narrow(struct nvml_state *s)
{
    s->pcie_width = 8;
}
static void flipped(struct nvml_state *s)
{
    s->ecc_uncorrected = 1;
}
static void corrects(struct nvml_state *s)
{
    s->ecc_corrected = 5000;
}
static void has_past(struct nvml_state *s)
{
    s->ever_uncorrected = 3;
}
static void pending(struct nvml_state *s)
{
    s->is_remap_pending = 1;
}
static void worn(struct nvml_state *s)
{
    s->has_remap_failed = 1;
}
static void replaced(struct nvml_state *s)
{
    s->remapped_uncorrected = 2;
}
static void occupied(struct nvml_state *s)
{
    s->used_bytes = (int64_t)30 << 30;
}

static const struct fault faults[] = {
    {"clock", VERDICT_BAD, slow},
    {"throttle", VERDICT_BAD, brake},
    {"throttle", VERDICT_BAD, heat},
    {"throttle", VERDICT_LOOK, warm},
    {"throttle", VERDICT_LOOK, fixed},
    {"temperature", VERDICT_BAD, hot},
    {"power_limit", VERDICT_BAD, capped},
    {"pcie_width", VERDICT_BAD, narrow},
    {"ecc", VERDICT_BAD, flipped},
    {"ecc", VERDICT_LOOK, corrects},
    {"ecc_history", VERDICT_LOOK, has_past},
    {"remapped_rows", VERDICT_BAD, pending},
    {"remapped_rows", VERDICT_BAD, worn},
    {"remapped_rows", VERDICT_LOOK, replaced},
    {"memory_in_use", VERDICT_LOOK, occupied},
};

/* Each fault shows in its own check and in no other. */
static void test_each_fault_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        struct nvml_state s = good_state();
        auto_checks checks = {0};

        faults[i].make(&s);
        card_judge_state(&checks, s.name, &s, &s);
        for (int c = 0; c < checks.count; c++) {
            bool is_it = str_equal(checks.all[c].name, faults[i].check);

            if (checks.all[c].verdict != (is_it ? faults[i].verdict : VERDICT_OK))
                fail_msg("fault %zu: %s is %s", i, checks.all[c].name,
                         verdict_word(checks.all[c].verdict));
        }
    }
}

static void test_what_is_not_known_is_not_judged(void **state)
{
    struct nvml_state s;
    auto_checks checks = {0};

    (void)state;
    nvml_unknown(&s);
    card_judge_state(&checks, "NVIDIA Z9000", &s, &s);
    for (int i = 0; i < checks.count; i++)
        assert_int_equal(checks.all[i].verdict, VERDICT_UNKNOWN);
}

/* An idle card's clock is low and says nothing. */
static void test_clocks_are_judged_under_load_alone(void **state)
{
    struct nvml_state s = good_state();
    auto_checks checks = {0};

    (void)state;
    s.clock_mhz = 300;
    card_judge_state(&checks, s.name, &s, NULL);
    assert_null(find(&checks, "clock"));
    assert_int_equal(verdict_of(&checks, "ecc"), VERDICT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards_are_found_by_what_the_driver_calls_them),
        cmocka_unit_test(test_links_carry_what_their_generation_and_width_say),
        cmocka_unit_test(test_a_healthy_card_passes),
        cmocka_unit_test(test_each_low_figure_is_bad),
        cmocka_unit_test(test_wrong_products_are_bad_however_fast),
        cmocka_unit_test(test_an_unknown_card_is_measured_and_not_judged),
        cmocka_unit_test(test_sums_are_held_against_the_link),
        cmocka_unit_test(test_a_healthy_state_passes),
        cmocka_unit_test(test_each_fault_is_found),
        cmocka_unit_test(test_what_is_not_known_is_not_judged),
        cmocka_unit_test(test_clocks_are_judged_under_load_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
