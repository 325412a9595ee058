/* What a step does besides single ops, on the card: optimisers, several passes, loss scales,
 * tickets, sharing, repeatability.
 *
 * Usage by hand: step [pattern of tests' names, such as passes*]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

static const char *const nets[] = {"residual blocks fused", "transformer, fused"};

static void make(struct side *s,
                 const struct backend_ops *backend,
                 const struct card *card,
                 const char *name,
                 const struct step_spec *spec,
                 enum precision precision)
{
    struct plan_options options = {
        .precision = precision, .init_seed = 3, .seed = 4, .is_repeatable = true};
    struct err e = {0};

    *s = (struct side){0};
    if (case_graph_with(case_named(name), spec, &s->graph, &e) < 0)
        card_fail("%s: %s", name, e.msg);
    side_plan_on(s, backend, card, &options);
}

static void begin(struct side *s,
                  const struct backend_ops *backend,
                  const char *name,
                  const struct step_spec *spec,
                  enum precision precision)
{
    make(s, backend, &card_itself, name, spec, precision);
}

static bool is_kept(const struct tensor *t)
{
    return t->role == ROLE_PARAM || t->role == ROLE_STATE || t->role == ROLE_GRAD;
}

/* All that stays from step to step. */
static void compare(struct side *a, struct side *b, double most, const char *what)
{
    for (int t = 0; t < a->graph->tensor_count; t++) {
        double found = is_kept(&a->graph->tensors[t]) ? side_away(a, b, t) : 0;

        if (!(found <= most))
            card_fail("%s, %s: %s is %g away", a->graph->name, what, a->graph->tensors[t].name,
                      found);
    }
}

static void compare_values(const struct step_values *a,
                           const struct step_values *b,
                           double most,
                           const char *what)
{
    for (int v = 0; v < VALUES; v++) {
        double x = (double)a->value[v], y = (double)b->value[v];

        if (isnan(x) != isnan(y) || (!isnan(x) && !(fabs(x - y) <= most * (1 + fabs(x)))))
            card_fail("%s: value %d is %g, not %g", what, v, y, x);
    }
}

struct optim_case {
    const char *name;
    enum optim_kind kind;
    bool is_plain; /* momentum without Nesterov's step */
    float clip_value, clip_norm, loss_scale;
};

static const struct optim_case optim_cases[] = {
    {"sgd", OPTIM_SGD, false, 0, 0, 1},
    {"sgd, values clipped", OPTIM_SGD, false, 0.01f, 0, 1},
    {"momentum", OPTIM_MOMENTUM, true, 0, 0, 1},
    {"nesterov", OPTIM_MOMENTUM, false, 0, 0, 1},
    {"nesterov, norm clipped, scaled", OPTIM_MOMENTUM, false, 0, 0.1f, 128},
    {"rmsprop", OPTIM_RMSPROP, false, 0, 0, 1},
    {"adam", OPTIM_ADAM, false, 0, 0, 1},
    {"adamw", OPTIM_ADAMW, false, 0, 0, 1},
    {"lars", OPTIM_LARS, false, 0, 0, 1},
    {"lamb", OPTIM_LAMB, false, 0, 0, 1},
    {"lamb, norm clipped", OPTIM_LAMB, false, 0, 0.5f, 1},
};

/* Adam divides by roots of gradients, so that where one is nearly zero the last bit decides the
 * sign of a whole step: hence a rate that keeps such steps small beside the weights. */
static void run_optim(const struct optim_case *o, const char *net)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side ref, card;

    case_spec(&spec);
    optim_defaults(&spec.optim, o->kind);
    spec.optim.weight_decay = 0.01f;
    spec.optim.loss_scale = o->loss_scale;
    spec.optim.clip_value = o->clip_value;
    spec.optim.clip_norm = o->clip_norm;
    if (spec.optim.epsilon < 1e-3f)
        spec.optim.epsilon = 1e-3f; /* gradients that are zero but for rounding stay small */
    if (o->is_plain)
        spec.optim.with_nesterov = false;
    begin(&ref, &backend_ref, net, &spec, PRECISION_FP32);
    begin(&card, &backend_cuda, net, &spec, PRECISION_FP32);
    case_fill(ref.graph, &data);
    for (uint64_t i = 0; i < 4; i++) {
        struct step step = {.number = i, .flags = STEP_WHOLE, .lr = 0.001f};
        struct step_values a = side_run(&ref, &data, step), b = side_run(&card, &data, step);

        compare_values(&a, &b, 1e-3, o->name);
    }
    compare(&ref, &card, 1e-2, o->name);
    side_end(&ref);
    side_end(&card);
    case_empty(&data);
}

static void run_optims(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < ARRAY_SIZE(optim_cases); i++)
        for (size_t n = 0; n < ARRAY_SIZE(nets); n++)
            run_optim(&optim_cases[i], nets[n]);
}

static void optimisers_move_as_the_oracles_do(void **state)
{
    (void)state;
    with_card(run_optims, NULL);
}

/* In 16 bits: kernels of their own add to the gradients of pictures' convolutions, and of the
 * bias with them or behind.  What is not added, or added twice, is a third away. */
static const struct passes_case {
    const char *name;
    enum precision precision;
    double most;
} passes_cases[] = {
    {"dropout", PRECISION_FP32, 1e-3},
    {"residual blocks fused", PRECISION_FP32, 1e-3},
    {"conv 3x3", PRECISION_FP32, 1e-3},
    {"transformer, fused", PRECISION_FP32, 1e-3},
    {"linear, tied weights", PRECISION_FP32, 1e-3},
    {"conv 3x3", PRECISION_BF16, 4e-2},
    {"transformer, fused", PRECISION_BF16, 4e-2},
    {"rows of 264", PRECISION_BF16, 4e-2},
    {"attention over 128", PRECISION_BF16, 4e-2},
    {"attention over 256", PRECISION_BF16, 4e-2},
    {"stem, 5x5, one channel", PRECISION_BF16, 4e-2},
    {"stem, 5x5, one channel", PRECISION_FP16, 8e-3},
    {"stem, 2x4 with stride, four channels", PRECISION_BF16, 4e-2},
    {"stem, 2x4 with stride, four channels", PRECISION_FP16, 8e-3},
    {"stem, 3x3, wide, 128 channels", PRECISION_BF16, 1e-1}, /* relus near their kinks */
    {"stem, 7x7 with stride", PRECISION_BF16, 2e-1},         /* ... and maxima */
};

/* Two classes may be as likely, but for rounding. */
static void skip_counts(struct step_values *a, const struct step_values *b)
{
    a->value[VALUE_TOP1] = b->value[VALUE_TOP1];
    a->value[VALUE_TOP5] = b->value[VALUE_TOP5];
}

/* Three passes, each with other labels and another dropout mask, then one update. */
static void run_pass(const struct passes_case *c, const struct card *kind)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side ref, card;

    case_spec(&spec);
    spec.passes = 3;
    begin(&ref, &backend_ref, c->name, &spec, c->precision);
    make(&card, &backend_cuda, kind, c->name, &spec, c->precision);
    case_fill(ref.graph, &data);
    for (int i = 0; i < 6; i++) {
        struct step step = {.number = (uint64_t)i / 3, .pass = i % 3, .lr = 0.001f};
        struct step_values a, b;

        for (int j = 0; j < CASE_ROWS; j++)
            ((int32_t *)data.feed[0])[j] = (i + 4 * j) % CASE_CLASSES;
        step.flags = (i % 3 == 0 ? STEP_FIRST : 0) | (i % 3 == 2 ? STEP_LAST : 0);
        a = side_run(&ref, &data, step);
        b = side_run(&card, &data, step);
        if (c->precision != PRECISION_FP32)
            skip_counts(&a, &b);
        compare_values(&a, &b, c->most, c->name);
    }
    compare(&ref, &card, c->most, "several passes");
    side_end(&ref);
    side_end(&card);
    case_empty(&data);
}

static void run_passes(void *arg)
{
    (void)arg;
    for (size_t n = 0; n < ARRAY_SIZE(passes_cases); n++) {
        run_pass(&passes_cases[n], &card_itself);
        run_pass(&passes_cases[n], &card_small);
    }
}

static void passes_add_up_as_the_oracles_do(void **state)
{
    (void)state;
    with_card(run_passes, NULL);
}

/* A scale that overflows is halved and the step left out; good steps double it. */
static void run_scale(void *arg)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side plain, scaled;
    struct step step = {.flags = STEP_WHOLE, .lr = 0.1f};
    struct step_values values;
    int overflows = 0, good = 0;

    (void)arg;
    case_spec(&spec);
    begin(&plain, &backend_cuda, "linear", &spec, PRECISION_FP32);
    spec.optim.loss_scale = 0x1p127f;
    spec.optim.has_dynamic_scale = true;
    spec.optim.scale_grows_after = 2;
    begin(&scaled, &backend_cuda, "linear", &spec, PRECISION_FP32);
    case_fill(plain.graph, &data);
    values = side_run(&scaled, &data, step);
    while (values.value[VALUE_FINITE] == 0) {
        float before = values.value[VALUE_SCALE];

        card_assert(++overflows < 100);
        values = side_run(&scaled, &data, step);
        card_assert(values.value[VALUE_SCALE] == before / 2);
    }
    side_run(&plain, &data, step);
    for (int t = 0; t < plain.graph->tensor_count; t++)
        if (plain.graph->tensors[t].role == ROLE_PARAM)
            card_assert(side_away(&plain, &scaled, t) < 1e-5);
    for (float scale = values.value[VALUE_SCALE];
         good < 8 && scale == values.value[VALUE_SCALE]; good++)
        values = side_run(&scaled, &data, step);
    card_assert(good <= 3); /* the second good step doubles it for the third */
    side_end(&plain);
    side_end(&scaled);
    case_empty(&data);
}

static void a_loss_scale_that_overflows_skips_the_step(void **state)
{
    (void)state;
    with_card(run_scale, NULL);
}

static bool same_bits(struct side *a, struct side *b, int t)
{
    size_t bytes = (size_t)tensor_elements(&a->graph->tensors[t]) * sizeof(float);
    auto_free float *x = side_read(a, t), *y = side_read(b, t);

    return x && y && memcmp(x, y, bytes) == 0;
}

static void compare_bits(struct side *a, struct side *b, const char *what)
{
    for (int t = 0; t < a->graph->tensor_count; t++)
        if (is_kept(&a->graph->tensors[t]) && !same_bits(a, b, t))
            card_fail("%s, %s: %s has other bits", a->graph->name, what,
                      a->graph->tensors[t].name);
}

/* Two plans, one of them with its ops timed one by one and fed once only. */
static void run_twice(void *arg)
{
    static const char *const names[] = {"residual blocks fused",
                                        "transformer, fused",
                                        "stem, 3x3, wide, 128 channels",
                                        "stem, 7x7 with stride, wide, 128 channels",
                                        "rows of 264",
                                        "attention over 128",
                                        "attention over 256"};

    (void)arg;
    for (size_t n = 0; n < ARRAY_SIZE(names); n++)
        for (int precision = 0; precision < PRECISIONS; precision++) {
            struct case_data data = {0};
            struct step_spec spec;
            struct side a, b;
            int spans = 0;

            case_spec(&spec);
            begin(&a, &backend_cuda, names[n], &spec, (enum precision)precision);
            begin(&b, &backend_cuda, names[n], &spec, (enum precision)precision);
            case_fill(a.graph, &data);
            card_assert(plan_time(b.plan, true, NULL) == 0);
            for (uint64_t i = 0; i < 3; i++) {
                struct step step = {.number = i, .flags = STEP_WHOLE, .lr = 0.01f};

                side_run(&a, &data, step);
                side_run(&b, i == 0 ? &data : NULL, step);
            }
            compare_bits(&a, &b, precision_name((enum precision)precision));
            (void)plan_spans(b.plan, &spans);
            card_assert(spans > a.graph->forward_end);
            side_end(&a);
            side_end(&b);
            case_empty(&data);
        }
}

static void two_runs_have_the_same_bits(void **state)
{
    (void)state;
    with_card(run_twice, NULL);
}

/* Steps handed over two at a time come out as those waited for one by one. */
static void run_ahead(void *arg)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side a, b;
    struct step_values one, other;
    uint64_t tickets[2], unused;
    struct err e = {0};

    (void)arg;
    case_spec(&spec);
    begin(&a, &backend_cuda, nets[0], &spec, PRECISION_BF16);
    begin(&b, &backend_cuda, nets[0], &spec, PRECISION_BF16);
    case_fill(a.graph, &data);
    for (uint64_t i = 0; i < 6; i += 2) {
        for (uint64_t j = 0; j < 2; j++) {
            struct step step = {.number = i + j, .flags = STEP_WHOLE, .lr = 0.01f};

            for (int k = 0; k < b.graph->input_count; k++)
                step.feed[k] = data.feed[k];
            card_assert(plan_run(b.plan, &step, &tickets[j], &e) == 0);
        }
        card_assert(plan_run(b.plan, &(struct step){.flags = STEP_WHOLE}, &unused, &e) < 0);
        for (uint64_t j = 0; j < 2; j++) {
            one = side_run(&a, &data,
                           (struct step){.number = i + j, .flags = STEP_WHOLE, .lr = 0.01f});
            card_assert(plan_wait(b.plan, tickets[j], &other, &e) == 0);
            compare_values(&one, &other, 0, "two ahead");
        }
    }
    compare_bits(&a, &b, "two ahead");
    card_assert(plan_wait(b.plan, tickets[1] + 1, &other, &e) < 0);
    side_end(&a);
    side_end(&b);
    case_empty(&data);
}

static void steps_may_be_handed_over_ahead(void **state)
{
    (void)state;
    with_card(run_ahead, NULL);
}

/* Params, slots and running statistics go out and in as they are, whatever the layout. */
static void run_round_trip(void *arg)
{
    static const char *const names[] = {"conv, odd channels, uneven pads", "conv, groups",
                                        "bn, relu, odd channels", "linear",
                                        "transformer, fused"};

    (void)arg;
    for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
        struct case_data data = {0};
        struct step_spec spec;
        struct side a, b;

        case_spec(&spec);
        begin(&a, &backend_cuda, names[n], &spec, PRECISION_BF16);
        begin(&b, &backend_cuda, names[n], &spec, PRECISION_BF16);
        case_fill(a.graph, &data);
        side_run(&a, &data, (struct step){.flags = STEP_WHOLE, .lr = 0.1f});
        for (int t = 0; t < a.graph->tensor_count; t++) {
            const struct tensor *tensor = &a.graph->tensors[t];
            size_t bytes = (size_t)tensor_elements(tensor) * sizeof(float);

            if (tensor->role != ROLE_PARAM && tensor->role != ROLE_STATE)
                continue;
            auto_free float *values = side_read(&a, t);
            card_assert(values && plan_write(b.plan, t, values, bytes, NULL) == 0);
        }
        for (uint64_t i = 1; i < 3; i++) {
            struct step step = {.number = i, .flags = STEP_WHOLE, .lr = 0.1f};

            side_run(&a, &data, step);
            side_run(&b, &data, step);
        }
        compare_bits(&a, &b, "written and read");
        side_end(&a);
        side_end(&b);
        case_empty(&data);
    }
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    with_card(run_round_trip, NULL);
}

/* An eval graph on the trained params of another plan, in its precision and in another. */
static void run_eval(const char *name, enum precision trained, enum precision precision)
{
    struct side ref, card, ref_eval = {0}, card_eval = {0};
    struct case_data data = {0};
    struct step_spec spec;
    struct err e = {0};

    case_spec(&spec);
    begin(&ref, &backend_ref, name, &spec, PRECISION_FP32);
    begin(&card, &backend_cuda, name, &spec, trained);
    case_fill(ref.graph, &data);
    card_assert(case_graph_with(case_named(name), NULL, &ref_eval.graph, &e) == 0);
    card_assert(case_graph_with(case_named(name), NULL, &card_eval.graph, &e) == 0);
    card_assert(plan_new(ref.device, ref_eval.graph, &(struct plan_options){.shares = ref.plan},
                         &ref_eval.plan, &e) == 0);
    if (plan_new(card.device, card_eval.graph,
                 &(struct plan_options){.shares = card.plan, .precision = precision},
                 &card_eval.plan, &e) < 0)
        card_fail("%s: %s", name, e.msg);
    for (uint64_t n = 0; n < 3; n++) {
        struct step step = {.number = n, .flags = STEP_WHOLE, .lr = 0.05f};
        struct step_values a, b;

        side_run(&ref, &data, step);
        side_run(&card, &data, step);
        a = side_run(&ref_eval, &data, (struct step){0});
        b = side_run(&card_eval, &data, (struct step){0});
        if (!(fabsf(a.value[VALUE_LOSS] - b.value[VALUE_LOSS]) <
              (trained == PRECISION_FP32 && precision == PRECISION_FP32 ? 1e-3f : 0.1f)))
            card_fail("%s: eval %g, not %g", name, (double)b.value[VALUE_LOSS],
                      (double)a.value[VALUE_LOSS]);
    }
    plan_free(ref_eval.plan);
    plan_free(card_eval.plan);
    graph_free(ref_eval.graph);
    graph_free(card_eval.graph);
    side_end(&ref);
    side_end(&card);
    case_empty(&data);
}

static void run_evals(void *arg)
{
    (void)arg;
    for (size_t n = 0; n < ARRAY_SIZE(nets); n++) {
        run_eval(nets[n], PRECISION_FP32, PRECISION_FP32);
        run_eval(nets[n], PRECISION_BF16, PRECISION_BF16);
        run_eval(nets[n], PRECISION_BF16, PRECISION_FP32);
        run_eval(nets[n], PRECISION_FP32, PRECISION_FP16);
    }
}

static void eval_shares_what_training_moves(void **state)
{
    (void)state;
    with_card(run_evals, NULL);
}

static void run_refusals(void *arg)
{
    struct case_data data = {0};
    struct step_spec spec;
    struct side s;
    struct device *device;
    struct err e = {0};
    uint64_t ticket;

    (void)arg;
    case_spec(&spec);
    begin(&s, &backend_cuda, "linear", &spec, PRECISION_BF16);
    card_assert(plan_run(s.plan, &(struct step){.flags = STEP_WHOLE}, &ticket, &e) < 0);
    card_assert(e.code == ERR_INVALID); /* never fed */
    for (int t = 0; t < s.graph->tensor_count; t++)
        if (s.graph->tensors[t].role == ROLE_ACTIVATION) {
            float values[4096];
            size_t bytes = (size_t)tensor_elements(&s.graph->tensors[t]) * sizeof *values;

            card_assert(plan_read(s.plan, t, values, bytes, &e) < 0 && e.code == ERR_METHOD);
        }
    card_assert(
        device_open(&backend_cuda, &(struct device_options){.card = 1000}, &device, &e) < 0 &&
        e.code == ERR_NOT_FOUND);
    side_end(&s);
    case_empty(&data);
}

static void refuses_what_it_cannot_do(void **state)
{
    (void)state;
    with_card(run_refusals, NULL);
}

/* Without a card, the error says which part is missing. */
static void a_missing_card_is_named(void **state)
{
    struct device *device;
    struct err e = {0};

    (void)state;
    if (cuda_cards() > 0)
        skip();
    assert_int_equal(device_open(&backend_cuda, &(struct device_options){0}, &device, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "NVIDIA driver"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimisers_move_as_the_oracles_do),
        cmocka_unit_test(passes_add_up_as_the_oracles_do),
        cmocka_unit_test(a_loss_scale_that_overflows_skips_the_step),
        cmocka_unit_test(two_runs_have_the_same_bits),
        cmocka_unit_test(steps_may_be_handed_over_ahead),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(eval_shares_what_training_moves),
        cmocka_unit_test(refuses_what_it_cannot_do),
        cmocka_unit_test(a_missing_card_is_named), /* last: it asks the driver */
    };

    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
