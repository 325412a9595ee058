/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/graph/diff.h"
#include "train/graph/fuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct model_options options_of(int64_t classes)
{
    return (struct model_options){.batch = 2, .classes = classes, .image_scale = {1, 1, 1, 1}};
}

/* Elements of all parameters with 1000 classes: torchvision's figures where its network is the
 * same, else worked out from the layers (a weight K C R S, two for each batch norm). */
static const struct {
    const char *name, *dataset;
    int64_t params;
} counts[] = {
    {"alexnet", "imagenet", 61838248},       {"vgg11", "imagenet", 132863336},
    {"vgg16", "imagenet", 138357544},        {"vgg19", "imagenet", 143667240},
    {"inception3", "imagenet", 23834568},    {"resnet18", "imagenet", 11689512},
    {"resnet34", "imagenet", 21797672},      {"resnet50", "imagenet", 25557032},
    {"resnet50_v1.5", "imagenet", 25557032}, {"resnet101", "imagenet", 44549160},
    {"resnet152", "imagenet", 60192808},     {"resnet50_v2", "imagenet", 25549480},
    {"googlenet", "imagenet", 6998552},      {"lenet", "mnist", 2171240},
};

static void networks_have_as_many_parameters_as_elsewhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct model_options options = options_of(1000);
        const struct model *model;
        struct graph *g;

        assert_int_equal(model_find(counts[i].name, counts[i].dataset, &model, NULL), 0);
        assert_int_equal(model_graph(model, GRAPH_TRAIN, &options, &g, NULL), 0);
        if (graph_param_count(g) != counts[i].params)
            fail_msg("%s has %lld", counts[i].name, (long long)graph_param_count(g));
        graph_free(g);
    }
}

static void every_network_can_be_trained_and_evaluated(void **state)
{
    (void)state;
    for (const struct model *m = model_table(); m->name; m++) {
        struct model_options options = options_of(10);
        struct graph *train = NULL, *eval = NULL;
        struct err e = {0};

        if (model_graph(m, GRAPH_TRAIN, &options, &train, &e) < 0 ||
            model_graph(m, GRAPH_EVAL, &options, &eval, &e) < 0) {
            fail_msg("%s: %s", m->name, e.msg);
            return;
        }
        graph_fuse(train, ~0u);
        if (graph_differentiate(train, &e) < 0)
            fail_msg("%s: %s", m->name, e.msg);
        assert_int_equal(graph_param_count(train), graph_param_count(eval));
        for (int n = 0; n < eval->op_count; n++)
            assert_int_not_equal(eval->ops[n].kind, OP_DROPOUT);
        graph_free(train);
        graph_free(eval);
    }
}

/* Multiply-adds of a forward pass, as they are published for these networks. */
static void networks_need_the_published_arithmetic(void **state)
{
    static const struct {
        const char *name;
        double giga_macs, most_off;
    } table[] = {
        {"resnet50_v1.5", 4.09, 0.02}, {"vgg16", 15.47, 0.02}, {"resnet101", 7.57, 0.05}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct model_options options = options_of(1000);
        const struct model *model;
        struct graph *g;
        double found;

        assert_int_equal(model_find(table[i].name, "imagenet", &model, NULL), 0);
        assert_int_equal(model_graph(model, GRAPH_TRAIN, &options, &g, NULL), 0);
        found = graph_flops(g, true) / 2 / 2e9;
        if (found < table[i].giga_macs - table[i].most_off ||
            found > table[i].giga_macs + table[i].most_off)
            fail_msg("%s: %g", table[i].name, found);
        graph_free(g);
    }
}

static void names_are_torchvisions(void **state)
{
    static const char *const names[] = {"conv1.weight",
                                        "bn1.running_mean",
                                        "layer1.0.conv1.weight",
                                        "layer1.0.downsample.0.weight",
                                        "layer1.0.downsample.1.bias",
                                        "layer4.2.bn3.running_var",
                                        "fc.bias"};
    struct model_options options = options_of(1000);
    const struct model *model;
    struct graph *g;

    (void)state;
    assert_int_equal(model_find("resnet50", "imagenet", &model, NULL), 0);
    assert_int_equal(model_graph(model, GRAPH_TRAIN, &options, &g, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (graph_find(g, names[i]) < 0)
            fail_msg("no %s", names[i]);
    graph_free(g);
}

static void a_wrong_name_is_answered_with_the_nearest(void **state)
{
    const struct model *model;
    struct err e = {0};

    (void)state;
    assert_int_equal(model_find("resnet5O", "imagenet", &model, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_non_null(strstr(e.msg, "\"resnet50\""));
    assert_int_equal(model_find("resnet20", "imagenet", &model, &e), -1);
    assert_non_null(strstr(e.msg, "cifar10"));
}

static void a_picture_too_small_is_the_users_error(void **state)
{
    struct model_options options = options_of(10);
    const struct model *model;
    struct graph *g;
    struct err e = {0};

    (void)state;
    options.height = options.width = 20;
    assert_int_equal(model_find("inception3", "imagenet", &model, NULL), 0);
    assert_int_equal(model_graph(model, GRAPH_TRAIN, &options, &g, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.msg, "inception3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_as_many_parameters_as_elsewhere),
        cmocka_unit_test(every_network_can_be_trained_and_evaluated),
        cmocka_unit_test(networks_need_the_published_arithmetic),
        cmocka_unit_test(names_are_torchvisions),
        cmocka_unit_test(a_wrong_name_is_answered_with_the_nearest),
        cmocka_unit_test(a_picture_too_small_is_the_users_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
