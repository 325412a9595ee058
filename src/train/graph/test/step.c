/* SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/step.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/build.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct window three = {3, 3, 1, 1, 1, 1, 1, 1, 1, 1};

/* A residual block and a linear layer. */
static struct graph *network(void)
{
    static const float one[4] = {1, 1, 1, 1}, zero[4] = {0};
    struct graph *g = graph_new("small", GRAPH_TRAIN, 2);
    struct init init = {INIT_NORMAL, 0.1f};
    int images = graph_input(g, "images", DTYPE_F32, 4, (const int64_t[]){2, 6, 6, 3});
    int labels = graph_input(g, "labels", DTYPE_I32, 1, (const int64_t[]){2});
    int x = graph_image(g, images, one, zero);

    x = graph_conv(g, "conv1", x, 8, &three, 1, init, false);
    x = graph_act(g, graph_bn(g, "bn1", x, 1e-5f, 0.9f, true, 1), ACT_RELU);
    int y = graph_conv(g, "conv2", x, 8, &three, 1, init, false);
    y = graph_bn(g, "bn2", y, 1e-5f, 0.9f, true, 1);
    x = graph_act(g, graph_add(g, x, y), ACT_RELU);
    x = graph_linear(g, "fc", graph_global_pool(g, x), 5, init, true);
    graph_xent(g, x, labels, 5, 0);
    return g;
}

static struct graph *step_of(const struct step_spec *spec)
{
    struct graph *g = network();
    struct err e = {0};

    graph_fuse(g, FUSE_BN_RELU | FUSE_BN_ADD_RELU);
    if (graph_differentiate(g, &e) < 0 || graph_finish_step(g, spec, &e) < 0)
        fail_msg("%s", e.msg);
    return g;
}

static struct step_spec spec_of(int64_t ranks, bool updates_early)
{
    struct step_spec spec = {.fusion_bytes = 800, /* bytes: 200 floats */
                             .ranks = ranks,
                             .updates_early = updates_early,
                             .passes = 1};

    optim_defaults(&spec.optim, OPTIM_MOMENTUM);
    spec.optim.loss_scale = 1;
    return spec;
}

static const char alone[] =
    "0 image \"image\" (images) -> %2:2x3x6x6\n"
    "1 conv \"conv1\" 3x3 pad 1,1,1,1 (%2, conv1.weight) -> %4:2x8x6x6\n"
    "2 bn \"bn1\" relu (%4, bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var) -> "
    "%12:2x8x6x6, %10:8, %11:8\n"
    "3 conv \"conv2\" 3x3 pad 1,1,1,1 (%12, conv2.weight) -> %14:2x8x6x6\n"
    "4 bn \"bn2\" relu (%14, bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var, %12) -> "
    "%23:2x8x6x6, %20:8, %21:8\n"
    "5 avg_pool \"avg_pool\" 6x6 (%23) -> %24:2x8x1x1\n"
    "6 reshape \"reshape\" (%24) -> %25:2x8\n"
    "7 linear \"fc\" (%25, fc.weight, fc.bias) -> %28:2x5\n"
    "8 xent \"xent\" (%28, labels) -> %29:scalar, %30:scalar, %31:scalar, %32:2x5\n"
    "backward\n"
    "9 xent_grad \"xent\" (%32, labels) -> %33:2x5\n"
    "10 linear_weight_grad \"fc\" (%33, %25) -> %34:5x8=grad.fc.weight, %35:5=grad.fc.bias\n"
    "11 linear_data_grad \"fc\" (%33, fc.weight) -> %36:2x8\n"
    "12 reshape \"reshape\" (%36) -> %37:2x8x1x1\n"
    "13 avg_pool_grad \"avg_pool\" 6x6 (%37) -> %38:2x8x6x6\n"
    "14 bn_grad \"bn2\" relu (%38, %14, bn2.weight, %20, %21, %23) -> %39:2x8x6x6, "
    "%40:8=grad.bn2.weight, %41:8=grad.bn2.bias, %42:2x8x6x6\n"
    "15 update bucket 0\n"
    "16 conv_weight_grad \"conv2\" 3x3 pad 1,1,1,1 (%39, %12) -> "
    "%43:8x8x3x3=grad.conv2.weight\n"
    "17 conv_data_grad \"conv2\" 3x3 pad 1,1,1,1 (%39, conv2.weight) -> %44:2x8x6x6\n"
    "18 update bucket 1\n"
    "19 sum (%42, %44) -> %45:2x8x6x6\n"
    "20 bn_grad \"bn1\" relu (%45, %4, bn1.weight, %10, %11, %12) -> %46:2x8x6x6, "
    "%47:8=grad.bn1.weight, %48:8=grad.bn1.bias\n"
    "21 update bucket 2\n"
    "22 conv_weight_grad \"conv1\" 3x3 pad 1,1,1,1 (%46, %2) -> %49:8x3x3x3=grad.conv1.weight\n"
    "23 update bucket 3\n";

static void a_step_alone_updates_behind_the_last_reader(void **state)
{
    struct step_spec spec = spec_of(1, true);
    struct graph *g = step_of(&spec);
    auto_str text = {0};

    (void)state;
    graph_print(g, &text);
    assert_string_equal(str_text(&text), alone);
    graph_free(g);
}

static int place_of(const struct graph *g, enum op_kind kind, int bucket)
{
    for (int n = 0; n < g->op_count; n++)
        if (g->ops[n].kind == kind && g->ops[n].attrs.bucket == bucket)
            return n;
    return -1;
}

static void ranks_hand_over_early_and_update_at_the_end(void **state)
{
    struct step_spec spec = spec_of(4, true);
    struct graph *g = step_of(&spec);

    (void)state;
    assert_int_equal(g->bucket_count, 4);
    for (int b = 0; b < g->bucket_count; b++) {
        int start = place_of(g, OP_REDUCE_START, b), wait = place_of(g, OP_REDUCE_WAIT, b);
        int update = place_of(g, OP_UPDATE, b);

        assert_true(start > g->forward_end && start < g->backward_end);
        assert_true(wait >= g->backward_end);
        assert_true(update > wait);
        for (int i = 0; i < g->buckets[b].count; i++) {
            int param = g->bucket_params[g->buckets[b].first + i];

            assert_true(g->tensors[g->tensors[param].grad].producer < start);
            assert_int_equal(g->tensors[param].bucket, b);
        }
    }
    assert_true(place_of(g, OP_REDUCE_START, 0) < place_of(g, OP_REDUCE_START, 1));
    graph_free(g);
}

static void every_param_is_in_one_bucket_and_has_its_slots(void **state)
{
    struct step_spec spec = spec_of(1, false);
    struct graph *g = step_of(&spec);
    int params = 0, in_buckets = 0;

    (void)state;
    for (int b = 0; b < g->bucket_count; b++)
        in_buckets += g->buckets[b].count;
    for (int t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].role == ROLE_PARAM) {
            char *name = arena_printf(g->arena, "optimizer.momentum.%s", g->tensors[t].name);
            int slot = graph_find(g, name);

            params++;
            assert_true(slot >= 0);
            assert_int_equal(g->tensors[slot].param, t);
            assert_int_equal(tensor_elements(&g->tensors[slot]),
                             tensor_elements(&g->tensors[t]));
        }
    assert_int_equal(params, in_buckets);
    assert_int_equal(params, 8);
    graph_free(g);
}

static void a_loss_scale_or_a_norm_comes_before_updates(void **state)
{
    struct step_spec spec = spec_of(1, true);
    struct graph *g;
    int norm;

    (void)state;
    spec.optim.clip_norm = 1;
    spec.optim.loss_scale = 128;
    g = step_of(&spec);
    norm = place_of(g, OP_GRAD_NORM, 0);
    assert_true(norm >= g->backward_end);
    assert_true(place_of(g, OP_UPDATE, 0) > norm);
    assert_int_equal(g->tensors[g->values[VALUE_GRAD_NORM]].producer, norm);
    assert_true(graph_find(g, "optimizer.loss_scale") >= 0);
    graph_free(g);
}

static void a_param_that_the_loss_does_not_reach_is_named(void **state)
{
    struct graph *g = network();
    struct err e = {0};

    (void)state;
    graph_param(g, "lonely", 1, (const int64_t[]){3}, init_constant(0), false);
    assert_int_equal(graph_differentiate(g, &e), -1);
    assert_non_null(strstr(e.msg, "lonely"));
    graph_free(g);
}

static void a_picture_too_small_is_an_error_with_its_shape(void **state)
{
    struct graph *g = graph_new("small", GRAPH_TRAIN, 1);
    struct window w = three;
    struct err e = {0};
    int x = graph_param(g, "x", 4, (const int64_t[]){1, 3, 2, 2}, init_constant(0), false);

    (void)state;
    w.top = w.bottom = w.left = w.right = 0;
    x = graph_conv(g, "conv", x, 4, &w, 1, init_constant(0), false);
    assert_int_equal(x, -1);
    assert_int_equal(graph_act(g, x, ACT_RELU), -1);
    assert_int_equal(graph_check(g, &e), -1);
    assert_non_null(strstr(e.msg, "1x3x2x2"));
    assert_int_equal(e.code, ERR_INVALID);
    graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_alone_updates_behind_the_last_reader),
        cmocka_unit_test(ranks_hand_over_early_and_update_at_the_end),
        cmocka_unit_test(every_param_is_in_one_bucket_and_has_its_slots),
        cmocka_unit_test(a_loss_scale_or_a_norm_comes_before_updates),
        cmocka_unit_test(a_param_that_the_loss_does_not_reach_is_named),
        cmocka_unit_test(a_picture_too_small_is_an_error_with_its_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
