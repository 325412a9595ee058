/* What a step does besides arithmetic: memory, several passes, loss scales.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/onednn.h"
#include "train/backend/onednn/plan.h"
#include "train/backend/ref/ref.h"
#include "train/model/model.h"
#include "train/num/par.h"

#include "../../test/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The linker leads all our calls here (CMakeLists.txt).  Those of oneDNN, which makes a small
 * map of each primitive's arguments, it does not: they are its own affair. */
static int allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    allocations++;
    return __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    allocations++;
    return __real_aligned_alloc(align, size);
}

static const struct graph_case *case_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        if (strcmp(graph_cases[i].name, name) == 0)
            return &graph_cases[i];
    fail_msg("no case \"%s\"", name);
    return NULL;
}

struct side {
    struct graph *graph;
    struct device *device;
    struct plan *plan;
};

static void begin(struct side *s,
                  const struct backend_ops *backend,
                  const char *name,
                  const struct step_spec *spec)
{
    struct err e = {0};
    struct plan_options options = {.init_seed = 3, .seed = 4};

    *s = (struct side){0};
    if (case_graph_with(case_named(name), spec, &s->graph, &e) < 0 ||
        device_open(backend, &(struct device_options){0}, &s->device, &e) < 0 ||
        plan_new(s->device, s->graph, &options, &s->plan, &e) < 0)
        fail_msg("%s", e.msg);
}

static void end(struct side *s)
{
    plan_free(s->plan);
    device_free(s->device);
    graph_free(s->graph);
}

static struct step_values run(struct side *s, const struct case_data *data, struct step step)
{
    struct step_values values;
    struct err e = {0};

    for (int i = 0; i < s->graph->input_count; i++)
        step.feed[i] = data->feed[i];
    if (plan_step(s->plan, &step, &values, &e) < 0)
        fail_msg("%s", e.msg);
    return values;
}

static void steps_allocate_nothing(void **state)
{
    static const char *const names[] = {"residual blocks fused", "transformer, fused",
                                        "table of words, tied"};

    (void)state;
    for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
        struct case_data data = {0};
        struct step_spec spec;
        struct side s;

        case_spec(&spec);
        allocations = 0;
        begin(&s, &backend_onednn, names[n], &spec);
        assert_true(allocations > 0); /* they are counted */
        case_fill(s.graph, &data);
        run(&s, &data, (struct step){.flags = STEP_WHOLE, .lr = 0.1f});
        allocations = 0;
        for (uint64_t i = 1; i < 5; i++)
            run(&s, &data, (struct step){.number = i, .flags = STEP_WHOLE, .lr = 0.1f});
        assert_int_equal(allocations, 0);
        end(&s);
        case_empty(&data);
    }
}

static double away(struct side *a, struct side *b, int t)
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
    return most / size;
}

static void compare_params(struct side *a, struct side *b)
{
    for (int t = 0; t < a->graph->tensor_count; t++)
        if (a->graph->tensors[t].role == ROLE_PARAM || a->graph->tensors[t].role == ROLE_GRAD)
            assert_true(away(a, b, t) < 1e-4);
}

/* Three passes, each with another dropout mask, then one update. */
static void passes_add_up_as_the_oracles_do(void **state)
{
    static const char *const names[] = {"dropout", "residual blocks fused", "conv 3x3",
                                        "transformer, fused", "table of words, tied"};

    (void)state;
    for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
        struct case_data data = {0};
        struct step_spec spec;
        struct side ref, dnn;

        case_spec(&spec);
        spec.passes = 3;
        begin(&ref, &backend_ref, names[n], &spec);
        begin(&dnn, &backend_onednn, names[n], &spec);
        case_fill(ref.graph, &data);
        for (int i = 0; i < 6; i++) {
            struct step step = {.number = (uint64_t)i / 3, .pass = i % 3, .lr = 0.1f};

            step.flags = (i % 3 == 0 ? STEP_FIRST : 0) | (i % 3 == 2 ? STEP_LAST : 0);
            run(&ref, &data, step);
            run(&dnn, &data, step);
        }
        compare_params(&ref, &dnn);
        end(&ref);
        end(&dnn);
        case_empty(&data);
    }
}

/* A scale that overflows is halved and the step left out; one that holds changes nothing. */
static void a_loss_scale_that_overflows_skips_the_step(void **state)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side plain, scaled;
    struct step step = {.flags = STEP_WHOLE, .lr = 0.1f};
    struct step_values values;

    (void)state;
    case_spec(&spec);
    begin(&plain, &backend_onednn, "linear", &spec);
    spec.optim.loss_scale = 0x1p127f;
    spec.optim.has_dynamic_scale = true;
    spec.optim.scale_grows_after = 2;
    begin(&scaled, &backend_onednn, "linear", &spec);
    case_fill(plain.graph, &data);
    values = run(&scaled, &data, step);
    while (values.value[VALUE_FINITE] == 0) {
        float before = values.value[VALUE_SCALE];

        values = run(&scaled, &data, step);
        assert_true(values.value[VALUE_SCALE] == before / 2);
    }
    run(&plain, &data, step);
    for (int t = 0; t < plain.graph->tensor_count; t++)
        if (plain.graph->tensors[t].role == ROLE_PARAM)
            assert_true(away(&plain, &scaled, t) < 1e-5);
    end(&plain);
    end(&scaled);
    case_empty(&data);
}

static void activations_are_kept_only_when_asked(void **state)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side s;
    struct err e = {0};

    (void)state;
    case_spec(&spec);
    begin(&s, &backend_onednn, "linear", &spec);
    case_fill(s.graph, &data);
    for (int t = 0; t < s.graph->tensor_count; t++)
        if (s.graph->tensors[t].role == ROLE_ACTIVATION) {
            float values[4096];
            size_t bytes = (size_t)tensor_elements(&s.graph->tensors[t]) * sizeof *values;

            assert_int_equal(plan_read(s.plan, t, values, bytes, &e), -1);
            assert_int_equal(e.code, ERR_METHOD);
        }
    end(&s);
    case_empty(&data);
}

/* Layouts go from op to op: nothing is reordered but weights. */
static void resnet50_reorders_no_activation(void **state)
{
    struct model_options options = {
        .batch = 2, .classes = 10, .height = 64, .width = 64, .image_scale = {1, 1, 1, 1}};
    const struct model *model;
    struct graph *graph;
    struct device *device;
    struct plan *plan;
    struct step_spec spec;

    (void)state;
    case_spec(&spec);
    assert_int_equal(model_find("resnet50", "imagenet", &model, NULL), 0);
    assert_int_equal(model_graph(model, GRAPH_TRAIN, &options, &graph, NULL), 0);
    graph_fuse(graph, backend_onednn.fusions);
    assert_int_equal(graph_differentiate(graph, NULL), 0);
    assert_int_equal(graph_finish_step(graph, &spec, NULL), 0);
    assert_int_equal(device_open(&backend_onednn, &(struct device_options){0}, &device, NULL),
                     0);
    assert_int_equal(plan_new(device, graph, &(struct plan_options){0}, &plan, NULL), 0);
    assert_int_equal(onednn_plan(plan)->reorders, 0);
    plan_free(plan);
    device_free(device);
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(passes_add_up_as_the_oracles_do),
        cmocka_unit_test(a_loss_scale_that_overflows_skips_the_step),
        cmocka_unit_test(activations_are_kept_only_when_asked),
        cmocka_unit_test(resnet50_reorders_no_activation),
    };

    par_init(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
