/* Preflight as a whole with cards that are not there: a table of functions stands in for the
 * library that measures them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/preflight.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/probe.h"
#include "train/comm/comm.h"
#include "train/preflight/preflight-internal.h"
#include "train/record/json-plain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* --- the command line ------------------------------------------------------------------------
 */

static int parse(struct preflight_options *o, const char *line, struct err *e)
{
    char text[256], *words[16], *rest = text;
    int count = 0;

    snprintf(text, sizeof text, "%s", line);
    while ((words[count] = strtok_r(rest, " ", &rest)))
        count++;
    return preflight_parse(count, words, o, e);
}

static void test_options_are_read_in_both_forms(void **state)
{
    struct preflight_options o;

    (void)state;
    assert_int_equal(parse(&o, "", NULL), 0);
    assert_true(o.device == PREFLIGHT_AUTO && !o.is_json && o.cards == 0 && !o.has_network);
    assert_int_equal(parse(&o, "--device=gpu --threads 4 --cards 0,2,63 -o json", NULL), 0);
    assert_true(o.device == PREFLIGHT_GPU && o.threads == 4 && o.is_json);
    assert_true(o.cards == (1ULL | 4ULL | 1ULL << 63));
    assert_int_equal(parse(&o, "--device CPU --network 5,100 --output=text", NULL), 0);
    assert_true(o.device == PREFLIGHT_CPU && o.has_network && !o.is_json);
    assert_true(fabs(o.network.bytes_per_s - 12.5e9) < 1e6);
}

static void test_wrong_options_are_refused(void **state)
{
    static const char *const lines[] = {
        "--device tpu", "--device",    "--threads 0", "--threads x",  "--cards",
        "--cards 1,",   "--cards 1;2", "--cards -1",  "--cards 64",   "--network isdn",
        "-o xml",       "--gpus 3",    "extra",       "--threads=1x", "--cards 0,,1",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct preflight_options o;
        struct err e = {0};

        if (parse(&o, lines[i], &e) == 0)
            fail_msg("\"%s\" was taken", lines[i]);
        assert_true(e.msg[0]);
    }
}

static void test_cards_are_dealt_out_in_turn(void **state)
{
    int cards[PROBE_MOST_CARDS];

    (void)state;
    assert_int_equal(preflight_deal(8, 0, 0, 1, cards), 8);
    assert_int_equal(preflight_deal(8, 0, 3, 8, cards), 1);
    assert_int_equal(cards[0], 3);
    assert_int_equal(preflight_deal(8, 0, 1, 2, cards), 4);
    assert_true(cards[0] == 1 && cards[3] == 7);
    assert_int_equal(preflight_deal(8, 0xa, 1, 2, cards), 1); /* 1 and 3 may be used */
    assert_int_equal(cards[0], 3);
    assert_int_equal(preflight_deal(2, 0, 2, 4, cards), 0); /* more ranks than cards */
    assert_int_equal(preflight_deal(64, 0, 0, 1, cards), PROBE_MOST_CARDS);
}

/* --- cards that are not there ----------------------------------------------------------------
 */

static struct fake {
    int cards, fails_on, slow_card; /* -1 = none */
    int sums, sum_ranks;
    double sum_rate;
} fake;

static int fake_cards(void)
{
    return fake.cards;
}

static int fake_bus(int card, char ret_bus[PROBE_BUS_BYTES], struct err *e)
{
    (void)e;
    snprintf(ret_bus, PROBE_BUS_BYTES, "0000:%02x:00.0", (unsigned)card);
    return 0;
}

static int fake_measure(
    int card, void (*under_load)(void *arg), void *arg, struct probe_figures *f, struct err *e)
{
    if (card == fake.fails_on)
        return err_set(e, ERR_INTERNAL, "card %d fell off the bus", card);
    under_load(arg);
    *f = (struct probe_figures){.name = "NVIDIA H200",
                                .is_bf16 = true,
                                .is_right = true,
                                .matrix_flops = card == fake.slow_card ? 300e12 : 780e12,
                                .copy_bytes_s = 4.2e12,
                                .to_card_bytes_s = 50e9,
                                .from_card_bytes_s = 50e9};
    return 0;
}

static int fake_id(unsigned char ret_id[PROBE_ID_BYTES], struct err *e)
{
    (void)e;
    memset(ret_id, 7, PROBE_ID_BYTES);
    return 0;
}

static int fake_all_reduce(const struct probe_gang *gang, double *ret_bytes_s, struct err *e)
{
    (void)e;
    assert_int_equal(gang->id[PROBE_ID_BYTES - 1], 7);
    fake.sums++;
    fake.sum_ranks = gang->ranks;
    *ret_bytes_s = fake.sum_rate;
    return 0;
}

static const struct probe_ops fake_probe = {PROBE_ABI,    fake_cards, fake_bus,
                                            fake_measure, fake_id,    fake_all_reduce};

static int find_fake(const struct probe_ops **ret_probe, struct err *e)
{
    (void)e;
    *ret_probe = &fake_probe;
    return 0;
}

static int find_none(const struct probe_ops **ret_probe, struct err *e)
{
    (void)ret_probe;
    return err_set(e, ERR_NOT_FOUND, "not installed");
}

static int run(preflight_find_fn *find, char *const *words, int count, int *ret_status)
{
    struct err e = {0};
    int rc = preflight_main(count, words, find, ret_status, &e);

    if (rc < 0)
        print_message("%s\n", e.msg);
    return rc;
}

static int status_on_cards(void)
{
    char *words[] = {(char *)"--device", (char *)"gpu"};
    int status = -1;

    assert_int_equal(run(find_fake, words, 2, &status), 0);
    return status;
}

static int begin(void **state)
{
    (void)state;
    fake = (struct fake){.cards = 2, .fails_on = -1, .slow_card = -1, .sum_rate = 350e9};
    return 0;
}

static void test_good_cards_give_status_0(void **state)
{
    (void)state;
    assert_int_equal(status_on_cards(), 0);
    assert_int_equal(fake.sums, 1);
    assert_int_equal(fake.sum_ranks, 2);
}

static void test_one_card_sums_nothing(void **state)
{
    (void)state;
    fake.cards = 1;
    assert_int_equal(status_on_cards(), 0);
    assert_int_equal(fake.sums, 0);
}

static void test_a_slow_card_gives_status_1(void **state)
{
    (void)state;
    fake.slow_card = 1;
    assert_int_equal(status_on_cards(), 1);
}

static void test_slow_sums_give_status_1(void **state)
{
    (void)state;
    fake.sum_rate = 20e9;
    assert_int_equal(status_on_cards(), 1);
}

/* The others are still looked at; sums, which need all, are left out. */
static void test_a_card_that_fails_is_bad_and_the_rest_goes_on(void **state)
{
    (void)state;
    fake.fails_on = 0;
    assert_int_equal(status_on_cards(), 1);
    assert_int_equal(fake.sums, 0);
}

static void test_no_cards_where_some_were_asked_for_give_status_2(void **state)
{
    char *gpu[] = {(char *)"--device=gpu"};
    int status = -1;

    (void)state;
    fake.cards = 0;
    assert_int_equal(status_on_cards(), 2);
    assert_int_equal(run(find_none, gpu, 1, &status), 0);
    assert_int_equal(status, 2);
}

static void test_a_wrong_command_line_gives_status_2(void **state)
{
    char *words[] = {(char *)"--device=abacus"};
    int status = -1;

    (void)state;
    assert_int_equal(run(find_none, words, 1, &status), 0);
    assert_int_equal(status, 2);
}

/* --- what is shown ---------------------------------------------------------------------------
 */

static void fill(struct checks *checks)
{
    checks_subject(checks, "NVIDIA H200", "node gpu 0");
    checks_least(checks, "matrix", 780.4, 672.5, "TFLOP/s", "68 %% of 989");
    checks_add(checks, VERDICT_LOOK, "throttle", NAN, "", "hot \"driver\"");
    checks_subject(checks, "NVIDIA H200", "node gpu 1");
    checks_least(checks, "matrix", 300, 672.5, "TFLOP/s", "68 %% of 989");
    checks_least(checks, "copy", 4200, NAN, "GB/s", "not known");
}

static void show(void (*print)(const struct check *rows, int count, double seconds, FILE *out),
                 struct str *out)
{
    auto_checks checks = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    fill(&checks);
    print(checks.all, checks.count, 2.5, file);
    fclose(file);
    str_add(out, text);
    free(text);
}

static void print_plain(const struct check *rows, int count, double seconds, FILE *out)
{
    preflight_print(rows, count, seconds, false, out);
}

static void print_coloured(const struct check *rows, int count, double seconds, FILE *out)
{
    preflight_print(rows, count, seconds, true, out);
}

static void test_verdicts_have_colours_where_they_can_be_shown(void **state)
{
    auto_str out = {0};

    (void)state;
    show(print_coloured, &out);
    assert_non_null(strstr(str_text(&out), "  \033[1;31mBAD  \033[0mmatrix"));
    assert_non_null(strstr(str_text(&out), "  \033[32mok   \033[0mmatrix"));
}

static void test_text_has_a_line_for_each_check_and_a_verdict_for_each_card(void **state)
{
    auto_str out = {0};

    (void)state;
    show(print_plain, &out);
    assert_string_equal(
        str_text(&out),
        "node gpu 0: NVIDIA H200\n"
        "  ok   matrix              780.4 TFLOP/s  at least 672.5 (68 % of 989)\n"
        "  look throttle                           hot \"driver\"\n"
        "  good, with something to look at\n\n"
        "node gpu 1: NVIDIA H200\n"
        "  BAD  matrix                300 TFLOP/s  at least 672.5 (68 % of 989)\n"
        "  -    copy                 4200 GB/s     not known\n"
        "  BAD\n\n"
        "1 of 2 bad, 2.5 s\n");
}

static void test_json_can_be_read_back(void **state)
{
    autoptr(arena) arena = arena_new();
    const struct jsonr *root, *subject, *check;
    auto_str out = {0};

    (void)state;
    show(preflight_print_json, &out);
    assert_int_equal(jsonr_parse(arena, str_text(&out), out.len, &root, NULL), 0);
    assert_string_equal(jsonr_get(root, "verdict")->text, "bad");
    subject = jsonr_get(root, "subjects")->first;
    assert_string_equal(jsonr_get(subject, "verdict")->text, "look");
    check = jsonr_get(subject, "checks")->first;
    assert_true(fabs(jsonr_get(check, "value")->number - 780.4) < 1e-9);
    assert_int_equal(jsonr_get(check->next, "value")->type, JSONR_NULL);
    assert_string_equal(jsonr_get(check->next, "note")->text, "hot \"driver\"");
    assert_string_equal(jsonr_get(subject->next, "subject")->text, "node gpu 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_are_read_in_both_forms),
        cmocka_unit_test(test_wrong_options_are_refused),
        cmocka_unit_test(test_cards_are_dealt_out_in_turn),
        cmocka_unit_test_setup(test_good_cards_give_status_0, begin),
        cmocka_unit_test_setup(test_one_card_sums_nothing, begin),
        cmocka_unit_test_setup(test_a_slow_card_gives_status_1, begin),
        cmocka_unit_test_setup(test_slow_sums_give_status_1, begin),
        cmocka_unit_test_setup(test_a_card_that_fails_is_bad_and_the_rest_goes_on, begin),
        cmocka_unit_test_setup(test_no_cards_where_some_were_asked_for_give_status_2, begin),
        cmocka_unit_test_setup(test_a_wrong_command_line_gives_status_2, begin),
        cmocka_unit_test(test_text_has_a_line_for_each_check_and_a_verdict_for_each_card),
        cmocka_unit_test(test_verdicts_have_colours_where_they_can_be_shown),
        cmocka_unit_test(test_json_can_be_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
