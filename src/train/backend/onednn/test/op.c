/* Every kind of op against the oracle, in all the ways a plan can run it.
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

struct side {
    struct graph *graph;
    struct device *device;
    struct plan *plan;
};

static void begin_with(struct side *s,
                       const struct backend_ops *backend,
                       const struct graph_case *c,
                       struct plan_options options)
{
    struct err e = {0};

    options.init_seed = 3;
    options.seed = 4;
    *s = (struct side){0};
    if (case_graph(c, GRAPH_TRAIN, &s->graph, &e) < 0 ||
        device_open(backend, &(struct device_options){0}, &s->device, &e) < 0 ||
        plan_new(s->device, s->graph, &options, &s->plan, &e) < 0)
        fail_msg("%s: %s", c->name, e.msg);
}

static void begin(struct side *s,
                  const struct backend_ops *backend,
                  const struct graph_case *c,
                  bool keeps_all)
{
    begin_with(s, backend, c, (struct plan_options){.keeps_all = keeps_all});
}

static void end(struct side *s)
{
    plan_free(s->plan);
    device_free(s->device);
    graph_free(s->graph);
}

static struct step_values run(struct side *s, const struct case_data *data, uint64_t number)
{
    struct step step = {.number = number, .flags = STEP_WHOLE, .lr = 0.05f};
    struct step_values values;
    struct err e = {0};

    for (int i = 0; i < s->graph->input_count; i++)
        step.feed[i] = data->feed[i];
    if (plan_step(s->plan, &step, &values, &e) < 0)
        fail_msg("%s: %s", s->graph->name, e.msg);
    return values;
}

static float *read_tensor(struct side *s, int t)
{
    size_t count = (size_t)tensor_elements(&s->graph->tensors[t]);
    float *values = xcalloc(count + 1, sizeof *values);
    struct err e = {0};

    if (plan_read(s->plan, t, values, count * sizeof *values, &e) < 0)
        fail_msg("%s: %s", s->graph->name, e.msg);
    return values;
}

/* The largest difference, in parts of the largest value. */
static double away(const float *a, const float *b, int64_t count)
{
    double most = 0, size = 1e-6;

    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)a[i]));
        if (isnan(b[i]))
            return NAN;
    }
    return most / size;
}

/* Sums here have at most a few hundred terms (times sqrt(k): 2e-5 of 1e-6); what goes through
 * a batch norm is divided by a deviation, hence the rest. */
static void compare(struct side *a, struct side *b, int t, double most)
{
    const struct tensor *tensor = &a->graph->tensors[t];
    auto_free float *x = read_tensor(a, t), *y = read_tensor(b, t);
    double found = away(x, y, tensor_elements(tensor));

    if (!(found <= most))
        fail_msg("%s, tensor %s of %s: %g away", a->graph->name, tensor->name,
                 tensor->producer < 0 ? "none"
                                      : op_info(a->graph->ops[tensor->producer].kind)->name,
                 found);
}

static bool can_compare(const struct graph *g, int t, bool all)
{
    const struct tensor *tensor = &g->tensors[t];

    if (tensor->role == ROLE_INPUT)
        return false;
    if ((tensor->role == ROLE_EXACT || tensor->role == ROLE_ACTIVATION) && tensor->producer < 0)
        return false; /* a value that the store has, or fused away */
    if (tensor->producer >= 0 && g->ops[tensor->producer].kind == OP_GRAD_NORM)
        return false;
    return all || tensor->role == ROLE_PARAM || tensor->role == ROLE_STATE ||
           tensor->role == ROLE_GRAD;
}

static void compare_sides(struct side *a, struct side *b, bool all, double most)
{
    for (int t = 0; t < a->graph->tensor_count; t++)
        if (can_compare(a->graph, t, all))
            compare(a, b, t, most);
}

static void against_oracle(const struct graph_case *c, bool keeps_all)
{
    struct side ref, dnn;
    struct case_data data = {0};

    begin(&ref, &backend_ref, c, true);
    begin(&dnn, &backend_onednn, c, keeps_all);
    case_fill(ref.graph, &data);
    for (uint64_t i = 0; i < 3; i++) {
        struct step_values a = run(&ref, &data, i), b = run(&dnn, &data, i);

        for (int v = 0; v < VALUES; v++)
            if (!isnan(a.value[v]) &&
                !(fabsf(a.value[v] - b.value[v]) <= 2e-5f * (1 + fabsf(a.value[v]))))
                fail_msg("%s: value %d is %g, not %g", c->name, v, b.value[v], a.value[v]);
        compare_sides(&ref, &dnn, keeps_all, 1e-4);
    }
    end(&ref);
    end(&dnn);
    case_empty(&data);
}

static void every_tensor_is_the_oracles(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        against_oracle(&graph_cases[i], true);
}

static void memory_used_again_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        against_oracle(&graph_cases[i], false);
}

static void threads_change_rounding_only(void **state)
{
    (void)state;
    par_init(2);
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        against_oracle(&graph_cases[i], false);
    par_init(1);
}

/* One column and many rows: with threads, a kernel of oneDNN's must be kept away from it. */
static void case_thin(struct graph *g)
{
    labels(g);
    finish(g, graph_linear(g, "fc", matrix(g, "x", CASE_ROWS, 1), 4096,
                           (struct init){INIT_NORMAL, 0.3f}, true));
}

static void thin_products_stand_threads(void **state)
{
    static const struct graph_case thin = {
        .name = "linear, thin", .build = case_thin, .must_have = "linear_data_grad"};

    (void)state;
    par_init(2);
    against_oracle(&thin, false);
    par_init(1);
}

static void same_bits(const struct graph_case *c, struct plan_options o, struct plan_options p)
{
    struct side a, b;
    struct case_data data = {0};

    begin_with(&a, &backend_onednn, c, o);
    begin_with(&b, &backend_onednn, c, p);
    case_fill(a.graph, &data);
    for (uint64_t n = 0; n < 2; n++) {
        run(&a, &data, n);
        run(&b, &data, n);
    }
    compare_sides(&a, &b, false, 0);
    end(&a);
    end(&b);
    case_empty(&data);
}

static void two_runs_have_the_same_bits(void **state)
{
    const struct plan_options none = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        same_bits(&graph_cases[i], none, none);
}

/* Convolutions large enough for Winograd's tiles (winograd.c), which end within a tile and have
 * channels that end within a block. */
static void case_tiles(struct graph *g)
{
    labels(g);
    finish(g, conv_of(g, "conv", picture(g, "x", 32, 17, 22), 48, win(3, 3, 1, 1, 1, 1, 1), 1,
                      true));
}
static void case_tiles_tails(struct graph *g)
{
    labels(g);
    int x =
        conv_of(g, "conv1", picture(g, "x", 40, 19, 18), 36, win(3, 3, 1, 1, 1, 1, 1), 1, true);
    finish(g, conv_of(g, "conv2", graph_act(g, x, ACT_RELU), 33, win(3, 3, 1, 0, 0, 0, 0), 1,
                      false));
}
static void case_tiles_uneven(struct graph *g)
{
    labels(g);
    int x = conv_of(g, "conv1", picture(g, "x", 32, 20, 23), 32, win(3, 3, 1, 0, 1, 1, 0), 1,
                    false);
    finish(g, conv_of(g, "conv2", x, 64, win(3, 3, 1, 2, 2, 2, 2), 1, false));
}

static const struct graph_case tiled[] = {
    {"conv, tiles", case_tiles, 0, false, "conv_weight_grad"},
    {"conv, tiles, relu, tails", case_tiles_tails, CASE_FUSED, true, NULL},
    {"conv, tiles, uneven pads", case_tiles_uneven, 0, false, NULL},
};

static void tiles_are_the_oracles(void **state)
{
    const struct plan_options none = {0};

    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        par_init(threads);
        for (size_t i = 0; i < ARRAY_SIZE(tiled); i++) {
            against_oracle(&tiled[i], threads == 1);
            same_bits(&tiled[i], none, none);
        }
    }
    par_init(1);
}

static float first_loss(struct plan_options options, bool *ret_has_tiles)
{
    struct side s;
    struct case_data data = {0};
    struct device_facts facts;
    float loss;

    begin_with(&s, &backend_onednn, &tiled[0], options);
    case_fill(s.graph, &data);
    loss = run(&s, &data, 0).value[VALUE_LOSS];
    device_facts(s.device, &facts);
    *ret_has_tiles = strstr(facts.name, "avx512") != NULL;
    end(&s);
    case_empty(&data);
    return loss;
}

/* Rounding tells which it was. */
static void tiles_can_be_avoided(void **state)
{
    const struct plan_options avoids = {.avoids_winograd = true};
    bool has_tiles;
    float by_tiles = first_loss((struct plan_options){0}, &has_tiles);
    float directly = first_loss(avoids, &has_tiles);

    (void)state;
    assert_int_equal(has_tiles, by_tiles != directly);
    assert_true(fabsf(by_tiles - directly) < 1e-4f * directly);
}

static void tiles_that_do_not_fit_are_not_made(void **state)
{
    const struct plan_options avoids = {.avoids_winograd = true};

    (void)state;
    same_bits(&tiled[0], (struct plan_options){.workspace_cap = 4 << 20}, avoids);
}

/* An eval graph on the trained params of another plan, before and after they move. */
static void eval_case(const struct graph_case *c)
{
    struct side ref, dnn, ref_eval = {0}, dnn_eval = {0};
    struct case_data data = {0};
    struct err e = {0};

    begin(&ref, &backend_ref, c, true);
    begin(&dnn, &backend_onednn, c, false);
    case_fill(ref.graph, &data);
    assert_int_equal(case_graph(c, GRAPH_EVAL, &ref_eval.graph, &e), 0);
    assert_int_equal(case_graph(c, GRAPH_EVAL, &dnn_eval.graph, &e), 0);
    assert_int_equal(plan_new(ref.device, ref_eval.graph,
                              &(struct plan_options){.shares = ref.plan}, &ref_eval.plan, &e),
                     0);
    if (plan_new(dnn.device, dnn_eval.graph, &(struct plan_options){.shares = dnn.plan},
                 &dnn_eval.plan, &e) < 0)
        fail_msg("%s: %s", c->name, e.msg);
    for (uint64_t n = 0; n < 2; n++) {
        struct step_values a, b;

        run(&ref, &data, n);
        run(&dnn, &data, n);
        a = run(&ref_eval, &data, 0);
        b = run(&dnn_eval, &data, 0);
        if (!(fabsf(a.value[VALUE_LOSS] - b.value[VALUE_LOSS]) < 1e-4f))
            fail_msg("%s: eval %g, not %g", c->name, b.value[VALUE_LOSS], a.value[VALUE_LOSS]);
    }
    end(&ref_eval);
    end(&dnn_eval);
    end(&ref);
    end(&dnn);
    case_empty(&data);
}

static void eval_shares_what_training_moves(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        eval_case(&graph_cases[i]);
}

static void refuses_what_it_cannot_do(void **state)
{
    struct device *device;
    struct plan *plan;
    struct graph *g;
    struct err e = {0};

    (void)state;
    assert_int_equal(device_open(&backend_onednn, &(struct device_options){0}, &device, NULL),
                     0);
    assert_int_equal(case_graph(&graph_cases[0], GRAPH_TRAIN, &g, NULL), 0);
    assert_int_equal(
        plan_new(device, g, &(struct plan_options){.precision = PRECISION_FP16}, &plan, &e),
        -1);
    assert_int_equal(e.code, ERR_METHOD);
    graph_free(g);
    device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_is_the_oracles),
        cmocka_unit_test(memory_used_again_changes_nothing),
        cmocka_unit_test(threads_change_rounding_only),
        cmocka_unit_test(thin_products_stand_threads),
        cmocka_unit_test(two_runs_have_the_same_bits),
        cmocka_unit_test(tiles_are_the_oracles),
        cmocka_unit_test(tiles_can_be_avoided),
        cmocka_unit_test(tiles_that_do_not_fit_are_not_made),
        cmocka_unit_test(eval_shares_what_training_moves),
        cmocka_unit_test(refuses_what_it_cannot_do),
    };

    par_init(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
