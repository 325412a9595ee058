/* Attention against the oracle, over sizes that its tiles and blocks do not divide, and tokens
 * that are out of bounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/onednn.h"
#include "train/backend/ref/ref.h"
#include "train/num/par.h"

#include "../../test/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum mask_kind {
    MASK_NONE, /* all is looked at */
    MASK_TAIL, /* sequences end early, each elsewhere */
    MASK_HOLES,
    MASK_BLANK, /* a sequence has nothing to look at */
};

static const struct size {
    int64_t t, width; /* width: of all heads */
    int heads;
    float dropout;
    enum mask_kind mask;
} sizes[] = {
    {1, 4, 1, 0, MASK_NONE},       {7, 20, 1, 0.3f, MASK_HOLES}, {16, 32, 2, 0, MASK_TAIL},
    {33, 24, 3, 0.1f, MASK_TAIL},  {64, 64, 1, 0.1f, MASK_NONE}, {70, 80, 2, 0.5f, MASK_HOLES},
    {131, 48, 1, 0.1f, MASK_TAIL}, {128, 128, 2, 0, MASK_HOLES}, {20, 16, 2, 0.1f, MASK_BLANK},
};

struct side {
    struct graph *graph;
    struct device *device;
    struct plan *plan;
};

static void build(struct graph *g, const struct size *s)
{
    labels(g);
    int mask = graph_input(g, "mask", DTYPE_I32, 2, (const int64_t[]){CASE_ROWS, s->t});
    int rows = graph_input(g, "rows", DTYPE_I32, 1, (const int64_t[]){CASE_ROWS});
    int qkv = matrix(g, "x", CASE_ROWS * s->t, 3 * s->width);
    int y = graph_attention(g, "attention", qkv, mask, s->heads, s->dropout);

    finish(g, graph_gather_rows(g, graph_layernorm(g, "norm", y, 1e-5f), rows));
}

static void begin(struct side *side, const struct backend_ops *backend, const struct size *s)
{
    struct plan_options options = {.init_seed = 3, .seed = 4, .keeps_all = true};
    struct step_spec spec;
    struct err e = {0};

    case_spec(&spec);
    side->graph = graph_new("attention", GRAPH_TRAIN, CASE_ROWS);
    build(side->graph, s);
    if (graph_differentiate(side->graph, &e) < 0 ||
        graph_finish_step(side->graph, &spec, &e) < 0 ||
        device_open(backend, &(struct device_options){0}, &side->device, &e) < 0 ||
        plan_new(side->device, side->graph, &options, &side->plan, &e) < 0)
        fail_msg("T %lld: %s", (long long)s->t, e.msg);
}

static void end(struct side *side)
{
    plan_free(side->plan);
    device_free(side->device);
    graph_free(side->graph);
}

static bool is_shown(const struct size *s, int64_t n, int64_t at)
{
    if (s->mask == MASK_TAIL)
        return at < s->t - n * (s->t / 3);
    if (s->mask == MASK_BLANK)
        return n != 1;
    return s->mask == MASK_NONE || (at + n) % 3 != 1;
}

/* Labels, mask, rows: the order of the inputs. */
static void fill(const struct size *s, int32_t *of_labels, int32_t *mask, int32_t *rows)
{
    for (int32_t n = 0; n < CASE_ROWS; n++) {
        of_labels[n] = n;
        rows[n] = n * (int32_t)s->t + n % (int32_t)s->t;
        for (int64_t i = 0; i < s->t; i++)
            mask[n * s->t + i] = is_shown(s, n, i);
    }
}

/* Scores are sums over E, values over T: both a few hundred at most (op.c). */
static void compare(struct side *a, struct side *b, int t, const struct size *s)
{
    size_t count = (size_t)tensor_elements(&a->graph->tensors[t]);
    auto_free float *x = xcalloc(count, sizeof *x), *y = xcalloc(count, sizeof *y);
    double most = 0, size = 1e-6;

    assert_int_equal(plan_read(a->plan, t, x, count * sizeof *x, NULL), 0);
    assert_int_equal(plan_read(b->plan, t, y, count * sizeof *y, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
        size = fmax(size, fabs((double)x[i]));
    }
    if (!(most <= 2e-5 * size))
        fail_msg("T %lld, width %lld: %s is %g away", (long long)s->t, (long long)s->width,
                 a->graph->tensors[t].name, most / size);
}

static void try_size(const struct size *s)
{
    int32_t of_labels[CASE_ROWS], rows[CASE_ROWS];
    auto_free int32_t *mask = xcalloc((size_t)(CASE_ROWS * s->t), sizeof *mask);
    struct step step = {.flags = STEP_WHOLE, .feed = {of_labels, mask, rows}, .pass = 1};
    struct step_values values;
    struct side ref = {0}, dnn = {0};

    begin(&ref, &backend_ref, s);
    begin(&dnn, &backend_onednn, s);
    fill(s, of_labels, mask, rows);
    for (step.number = 5; step.number < 7; step.number++) {
        assert_int_equal(plan_step(ref.plan, &step, &values, NULL), 0);
        assert_int_equal(plan_step(dnn.plan, &step, &values, NULL), 0);
        for (int t = 0; t < ref.graph->tensor_count; t++)
            if (ref.graph->tensors[t].role != ROLE_INPUT &&
                ref.graph->tensors[t].producer >= 0 &&
                ref.graph->tensors[t].producer < ref.graph->backward_end)
                compare(&ref, &dnn, t, s);
    }
    end(&ref);
    end(&dnn);
}

static void every_size_is_the_oracles(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        par_init(threads);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
            try_size(&sizes[i]);
    }
    par_init(1);
}

/* Padding that can be looked at nowhere gives zeros, not NaN. */
static void a_sequence_of_nothing_is_zero(void **state)
{
    const struct size s = {9, 8, 2, 0, MASK_NONE};
    int32_t of_labels[CASE_ROWS], rows[CASE_ROWS], mask[CASE_ROWS * 9];
    struct step step = {.flags = STEP_WHOLE, .lr = 0.1f, .feed = {of_labels, mask, rows}};
    struct step_values values;
    struct side dnn = {0};

    (void)state;
    begin(&dnn, &backend_onednn, &s);
    fill(&s, of_labels, mask, rows);
    memset(mask + 9, 0, 9 * sizeof *mask);
    assert_int_equal(plan_step(dnn.plan, &step, &values, NULL), 0);
    assert_int_equal(plan_step(dnn.plan, &step, &values, NULL), 0);
    assert_true(isfinite(values.value[VALUE_LOSS]));
    end(&dnn);
}

/* Numbers of the host that would be addresses outside of the table. */
static void numbers_out_of_bounds_end_the_step(void **state)
{
    const struct size s = {9, 8, 2, 0, MASK_NONE};
    static const int32_t bad[] = {-1, CASE_ROWS * 9, INT32_MAX, INT32_MIN};
    int32_t of_labels[CASE_ROWS], rows[CASE_ROWS], mask[CASE_ROWS * 9];
    struct step step = {.flags = STEP_WHOLE, .feed = {of_labels, mask, rows}};
    struct step_values values;
    struct side dnn = {0};

    (void)state;
    begin(&dnn, &backend_onednn, &s);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};

        fill(&s, of_labels, mask, rows);
        rows[1] = bad[i];
        assert_int_equal(plan_step(dnn.plan, &step, &values, &e), -1);
        assert_int_equal(e.code, ERR_INVALID);
        assert_non_null(strstr(e.msg, "rows"));
    }
    end(&dnn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_the_oracles),
        cmocka_unit_test(a_sequence_of_nothing_is_zero),
        cmocka_unit_test(numbers_out_of_bounds_end_the_step),
    };

    par_init(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
