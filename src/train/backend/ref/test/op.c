/* SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/ref/ref.h"

#include "../../test/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* `plan` has the gradients; `forward`, on the same params, gives the loss at other points for a
 * third of the work. */
struct oracle {
    struct graph *graph, *forward_graph;
    struct device *device;
    struct plan *plan, *forward;
    struct case_data data;
};

static void begin(struct oracle *o, const struct graph_case *c)
{
    struct err e = {0};
    struct plan_options options = {.init_seed = 3, .seed = 4, .keeps_all = true};

    *o = (struct oracle){0};
    if (case_graph(c, GRAPH_TRAIN, &o->graph, &e) < 0 ||
        case_forward(c, &o->forward_graph, &e) < 0 ||
        device_open(&backend_ref, &(struct device_options){0}, &o->device, &e) < 0 ||
        plan_new(o->device, o->graph, &options, &o->plan, &e) < 0)
        fail_msg("%s: %s", c->name, e.msg);
    options.shares = o->plan;
    if (plan_new(o->device, o->forward_graph, &options, &o->forward, &e) < 0)
        fail_msg("%s: %s", c->name, e.msg);
    case_fill(o->graph, &o->data);
}

static void end(struct oracle *o)
{
    plan_free(o->forward);
    plan_free(o->plan);
    device_free(o->device);
    graph_free(o->forward_graph);
    graph_free(o->graph);
    case_empty(&o->data);
}

/* Without a learning rate nothing moves but statistics, which training does not read. */
static double loss(struct oracle *o, struct plan *plan, unsigned flags)
{
    struct step step = {.flags = flags};
    struct step_values values;

    for (int i = 0; i < o->graph->input_count; i++)
        step.feed[i] = o->data.feed[i];
    assert_int_equal(plan_step(plan, &step, &values, NULL), 0);
    return (double)values.value[VALUE_LOSS];
}

static float *read_tensor(struct oracle *o, int t)
{
    size_t count = (size_t)tensor_elements(&o->graph->tensors[t]);
    float *values = xcalloc(count, sizeof *values);

    assert_int_equal(plan_read(o->plan, t, values, count * sizeof *values, NULL), 0);
    return values;
}

/* The loss when param t is moved by `by` along a direction. */
static double loss_at(struct oracle *o, int t, const float *at, const float *way, double by)
{
    size_t count = (size_t)tensor_elements(&o->graph->tensors[t]);
    auto_free float *moved = xcalloc(count, sizeof *moved);

    for (size_t i = 0; i < count; i++)
        moved[i] = (float)((double)at[i] + by * (double)way[i]);
    assert_int_equal(plan_write(o->plan, t, moved, count * sizeof *moved, NULL), 0);
    return loss(o, o->forward, 0);
}

/* Along the gradient the slope must be its norm; along a random way, the product of both. */
static void check_slope(
    struct oracle *o, const char *name, int t, const float *grad, const float *way, double most)
{
    int64_t count = tensor_elements(&o->graph->tensors[t]);
    auto_free float *at = read_tensor(o, t);
    double expected = 0, size = 0, by, slope;

    for (int64_t i = 0; i < count; i++) {
        expected += (double)grad[i] * (double)way[i];
        size += (double)way[i] * (double)way[i];
    }
    by = 5e-3 / (sqrt(size) + 1e-30);
    slope = (loss_at(o, t, at, way, by) - loss_at(o, t, at, way, -by)) / (2 * by);
    plan_write(o->plan, t, at, (size_t)count * sizeof *at, NULL);
    /* Losses are floats of about 2.5: their last bit over the step is the noise. */
    if (fabs(slope - expected) > most * fabs(expected) + 3e-7 / by)
        fail_msg("%s, %s: slope %g, gradient says %g", name, o->graph->tensors[t].name, slope,
                 expected);
}

static void check_param(struct oracle *o, const struct graph_case *c, int t)
{
    int64_t count = tensor_elements(&o->graph->tensors[t]);
    double most = c->has_kinks ? 3e-2 : 2e-3;
    auto_free float *grad = NULL;
    auto_free float *way = xcalloc((size_t)count, sizeof *way);
    struct rng rng;

    grad = read_tensor(o, o->graph->tensors[t].grad);
    check_slope(o, c->name, t, grad, grad, most);
    rng_init(&rng, 1, (uint64_t)t);
    for (int64_t i = 0; i < count; i++)
        way[i] = grad[i] * rng_uniform(&rng);
    check_slope(o, c->name, t, grad, way, most);
}

static void gradients_are_slopes_of_the_loss(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++) {
        struct oracle o;

        begin(&o, &graph_cases[i]);
        assert_true(loss(&o, o.plan, STEP_WHOLE) == loss(&o, o.forward, 0));
        for (int t = 0; t < o.graph->tensor_count; t++)
            if (o.graph->tensors[t].role == ROLE_PARAM)
                check_param(&o, &graph_cases[i], t);
        end(&o);
    }
}

static void every_case_has_the_kind_it_is_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++) {
        const struct graph_case *c = &graph_cases[i];
        struct graph *g;
        bool has = c->must_have == NULL;

        assert_int_equal(case_graph(c, GRAPH_TRAIN, &g, NULL), 0);
        for (int n = 0; n < g->op_count && !has; n++)
            has = strcmp(op_info(g->ops[n].kind)->name, c->must_have) == 0;
        if (!has)
            fail_msg("%s has no %s", c->name, c->must_have);
        graph_free(g);
    }
}

static void every_kind_is_in_some_case(void **state)
{
    bool has[OP_KINDS] = {false};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++) {
        struct graph *g;

        assert_int_equal(case_graph(&graph_cases[i], GRAPH_TRAIN, &g, NULL), 0);
        for (int n = 0; n < g->op_count; n++)
            has[g->ops[n].kind] = true;
        graph_free(g);
    }
    for (int kind = 0; kind < OP_REDUCE_START; kind++)
        if (!has[kind])
            fail_msg("no case for %s", op_info((enum op_kind)kind)->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_has_the_kind_it_is_for),
        cmocka_unit_test(every_kind_is_in_some_case),
        cmocka_unit_test(gradients_are_slopes_of_the_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
