/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim/optim.h"

#include "base/mem.h"
#include "train/num/par.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    STEPS = 3,
};

static const float rate = 0.1F, decay = 0.01F;

/* One element in double, as the header writes it: the formula that the loops must follow. */
struct one {
    double w, m, v;
};

static double clip(const struct optim_spec *s, double g)
{
    double c = (double)s->clip_value;

    return c > 0 ? fmin(fmax(g, -c), c) : g;
}

static void expect_adam(struct one *x, const struct optim_spec *s, double g, double lr, int t)
{
    double b1 = (double)s->beta1, b2 = (double)s->beta2;
    double fix = sqrt(1 - pow(b2, t)) / (1 - pow(b1, t));

    x->m = b1 * x->m + (1 - b1) * g;
    x->v = b2 * x->v + (1 - b2) * g * g;
    if (s->kind == OPTIM_ADAM)
        x->w -= lr * fix * x->m / (sqrt(x->v) + (double)s->epsilon);
    else
        x->w -= lr * (fix * x->m / (sqrt(x->v) + (double)s->epsilon) +
                      (double)s->weight_decay * x->w);
}

static void expect(struct one *x, const struct optim_spec *s, double raw, int t)
{
    double lr = (double)rate, mu = (double)s->momentum, rho = (double)s->rmsprop_decay;
    bool decouples = s->kind == OPTIM_ADAMW;
    double g = clip(s, raw + (decouples ? 0 : (double)s->weight_decay * x->w));

    if (s->kind == OPTIM_SGD) {
        x->w -= lr * g;
    } else if (s->kind == OPTIM_MOMENTUM) {
        x->m = mu * x->m + g;
        x->w -= lr * (s->with_nesterov ? g + mu * x->m : x->m);
    } else if (s->kind == OPTIM_RMSPROP) {
        x->m = rho * x->m + (1 - rho) * g * g;
        x->v = mu * x->v + lr * g / sqrt(x->m + (double)s->epsilon);
        x->w -= x->v;
    } else {
        expect_adam(x, s, g, lr, t);
    }
}

static void run_kind(enum optim_kind kind, bool with_nesterov, float clip_value)
{
    const float grads[STEPS] = {0.5F, -2.0F, 0.25F};
    struct optim_spec spec;
    const struct optim_info *info = optim_info(kind);
    float w[] = {1.5F}, g[1], slots[2][1] = {{info->slot_begins[0]}, {info->slot_begins[1]}};
    struct optim_param param = {
        .value = w, .grad = g, .slot = {slots[0], slots[1]}, .count = 1, .decays = true};
    struct one x = {.w = 1.5, .m = (double)info->slot_begins[0]};

    optim_defaults(&spec, kind);
    spec.weight_decay = decay;
    spec.with_nesterov = with_nesterov;
    spec.clip_value = clip_value;
    for (int t = 1; t <= STEPS; t++) {
        struct optim_step step = {.lr = rate, .grad_scale = 0.5F, .clip_scale = 1, .number = t};
        double before = x.w;

        g[0] = 2 * grads[t - 1];
        assert_float_equal(optim_apply(&spec, &param, &step), before * before / 2, 1e-6);
        expect(&x, &spec, (double)grads[t - 1], t);
        assert_float_equal(w[0], x.w, 1e-6); /* some ulp of a float */
    }
}

static void kinds_follow_their_formulas(void **state)
{
    (void)state;
    run_kind(OPTIM_SGD, false, 0);
    run_kind(OPTIM_SGD, false, 0.3F);
    run_kind(OPTIM_MOMENTUM, false, 0);
    run_kind(OPTIM_MOMENTUM, true, 0);
    run_kind(OPTIM_RMSPROP, false, 0);
    run_kind(OPTIM_ADAM, false, 0);
    run_kind(OPTIM_ADAMW, false, 0);
}

static void lars_scales_by_the_norms(void **state)
{
    float w[] = {3, 4}, g[] = {0.6F, 0.8F}, m[] = {0, 0};
    struct optim_param param = {.value = w, .grad = g, .slot = {m}, .count = 2, .decays = true};
    struct optim_step step = {.lr = 1, .grad_scale = 1, .clip_scale = 1, .number = 1};
    struct optim_spec spec;
    /* |w| = 5, |g| = 1 */
    double trust = 0.001 * 5 / (1 + 0.1 * 5);

    (void)state;
    optim_defaults(&spec, OPTIM_LARS);
    spec.weight_decay = 0.1F;
    optim_apply(&spec, &param, &step);
    assert_float_equal(w[0], 3 - trust * (0.6 + 0.1 * 3), 1e-6);
    assert_float_equal(w[1], 4 - trust * (0.8 + 0.1 * 4), 1e-6);
    param.decays = false; /* a bias: plain momentum */
    w[0] = 1;
    m[0] = 0;
    optim_apply(&spec, &param, &step);
    assert_float_equal(w[0], 1 - 0.6, 1e-6);
}

static void lamb_moves_by_the_share_of_the_norm(void **state)
{
    float w[] = {3, 4}, g[] = {1, -1}, m[] = {0, 0}, v[] = {0, 0};
    struct optim_param param = {
        .value = w, .grad = g, .slot = {m, v}, .count = 2, .decays = true};
    struct optim_step step = {.lr = 0.1F, .grad_scale = 1, .clip_scale = 1, .number = 1};
    struct optim_spec spec;

    (void)state;
    optim_defaults(&spec, OPTIM_LAMB);
    spec.weight_decay = 0;
    optim_apply(&spec, &param, &step);
    /* The first direction is (1, -1) but for epsilon (1e-6 against sqrt(v) = 0.03); its length
     * becomes |w| = 5 times the rate. */
    assert_float_equal(w[0], 3 - 0.1 * 5 / sqrt(2), 1e-4);
    assert_float_equal(w[1], 4 + 0.1 * 5 / sqrt(2), 1e-4);
}

static void lamb_keeps_within_its_bounds(void **state)
{
    static const struct {
        float least, most;
        double trust;
    } rows[] = {{0, 0, 5 / 1.41421356}, {0, 2, 2}, {4, 9, 4}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        float w[] = {3, 4}, g[] = {1, -1}, m[] = {0, 0}, v[] = {0, 0};
        struct optim_param param = {
            .value = w, .grad = g, .slot = {m, v}, .count = 2, .decays = true};
        struct optim_step step = {.lr = 0.1F, .grad_scale = 1, .clip_scale = 1, .number = 1};
        struct optim_spec spec;

        optim_defaults(&spec, OPTIM_LAMB);
        spec.weight_decay = 0;
        spec.trust_least = rows[i].least;
        spec.trust_most = rows[i].most;
        optim_apply(&spec, &param, &step);
        assert_float_equal(w[0], 3 - 0.1 * rows[i].trust, 1e-4);
    }
}

static void without_bias_correction_the_first_step_is_short(void **state)
{
    static const enum optim_kind kinds[] = {OPTIM_ADAM, OPTIM_ADAMW};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        float w[] = {3}, g[] = {2}, m[] = {0}, v[] = {0};
        struct optim_param param = {.value = w, .grad = g, .slot = {m, v}, .count = 1};
        struct optim_step step = {.lr = 0.1F, .grad_scale = 1, .clip_scale = 1, .number = 1};
        struct optim_spec spec;

        optim_defaults(&spec, kinds[i]);
        spec.is_uncorrected = true;
        optim_apply(&spec, &param, &step);
        /* m = 0.1 g, v = 0.001 g^2; with the correction it would be 0.1 */
        assert_float_equal(w[0], 3 - 0.1 * 0.1 / sqrt(0.001), 1e-5);
    }
}

static void parameters_that_do_not_decay_are_left_alone_by_it(void **state)
{
    float w[] = {2}, g[] = {0};
    struct optim_param param = {.value = w, .grad = g, .count = 1};
    struct optim_step step = {.lr = 1, .grad_scale = 1, .clip_scale = 1, .number = 1};
    struct optim_spec spec;

    (void)state;
    optim_defaults(&spec, OPTIM_SGD);
    spec.weight_decay = 0.5F;
    assert_float_equal(optim_apply(&spec, &param, &step), 0, 0);
    assert_float_equal(w[0], 2, 0);
}

static void sums_of_long_arrays_are_whole(void **state)
{
    size_t count = 5000001; /* blocks of 19.. thousand, and a tail of one */
    auto_free float *values = xreallocarray(NULL, count, sizeof(*values));
    bool is_finite;

    (void)state;
    par_init(2);
    for (size_t i = 0; i < count; i++)
        values[i] = i % 2 ? 1.0F : -2.0F;
    assert_float_equal(optim_square_sum(values, count, &is_finite),
                       4.0 * (double)((count + 1) / 2) + (double)(count / 2), 0);
    assert_true(is_finite);
    values[count - 1] = INFINITY;
    optim_square_sum(values, count, &is_finite);
    assert_false(is_finite);
    values[count - 1] = 0;
    values[77] = NAN;
    optim_square_sum(values, count, &is_finite);
    assert_false(is_finite);
    values[77] = 3e38F; /* large, and finite */
    optim_square_sum(values, count, &is_finite);
    assert_true(is_finite);
}

static void names_are_found_and_wrong_ones_answered_with_the_list(void **state)
{
    enum optim_kind kind;
    struct err e;

    (void)state;
    for (int k = 0; k < OPTIM_KINDS; k++) {
        assert_int_equal(optim_parse(optim_info((enum optim_kind)k)->name, &kind, &e), 0);
        assert_int_equal(kind, k);
    }
    assert_int_equal(optim_parse("sgdm", &kind, &e), -1);
    assert_non_null(strstr(e.msg, "rmsprop"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_follow_their_formulas),
        cmocka_unit_test(lars_scales_by_the_norms),
        cmocka_unit_test(lamb_moves_by_the_share_of_the_norm),
        cmocka_unit_test(lamb_keeps_within_its_bounds),
        cmocka_unit_test(without_bias_correction_the_first_step_is_short),
        cmocka_unit_test(parameters_that_do_not_decay_are_left_alone_by_it),
        cmocka_unit_test(sums_of_long_arrays_are_whole),
        cmocka_unit_test(names_are_found_and_wrong_ones_answered_with_the_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
