/* model.c - the table of networks: see model.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/model/layers.h"

#define RESNET(name, batch, depth, version)                                                    \
    {                                                                                          \
        name, "imagenet", "ResNet for ImageNet", 224, batch, 0.128, true, build_resnet, depth, \
            version                                                                            \
    }
#define CIFAR(name, depth, version)                                                            \
    {                                                                                          \
        name, "cifar10", "ResNet for CIFAR-10", 32, 128, 0.1, false, build_resnet_cifar,       \
            depth, version                                                                     \
    }

static const struct model table[] = {
    {"trivial", "imagenet", "three linear layers, for trying things out", 227, 32, 0.005, false,
     build_trivial, 0, 0},
    {"trivial", "cifar10", "likewise", 32, 32, 0.005, false, build_trivial, 0, 0},
    {"trivial", "mnist", "likewise", 28, 32, 0.005, false, build_trivial, 0, 0},
    {"lenet", "mnist", "LeNet-5 for digits", 28, 32, 0.005, false, build_lenet, 0, 0},
    {"lenet", "imagenet", "LeNet-5 on small pictures", 28, 32, 0.005, false, build_lenet, 0, 0},
    {"lenet", "cifar10", "LeNet-5", 32, 32, 0.005, false, build_lenet, 0, 0},
    {"alexnet", "imagenet", "AlexNet", 227, 512, 0.005, false, build_alexnet, 0, 0},
    {"vgg11", "imagenet", "VGG, model A", 224, 64, 0.005, false, build_vgg, 11, 0},
    {"vgg16", "imagenet", "VGG, model D", 224, 64, 0.005, false, build_vgg, 16, 0},
    {"vgg19", "imagenet", "VGG, model E", 224, 64, 0.005, false, build_vgg, 19, 0},
    {"googlenet", "imagenet", "Inception v1", 224, 32, 0.005, false, build_googlenet, 0, 0},
    {"inception3", "imagenet", "Inception v3", 299, 32, 0.005, false, build_inception3, 0, 0},
    RESNET("resnet18", 32, 18, 1),
    RESNET("resnet18_v1.5", 32, 18, 15),
    RESNET("resnet18_v2", 32, 18, 2),
    RESNET("resnet34", 32, 34, 1),
    RESNET("resnet34_v1.5", 32, 34, 15),
    RESNET("resnet34_v2", 32, 34, 2),
    RESNET("resnet50", 64, 50, 1),
    RESNET("resnet50_v1.5", 64, 50, 15),
    RESNET("resnet50_v2", 64, 50, 2),
    RESNET("resnet101", 32, 101, 1),
    RESNET("resnet101_v1.5", 32, 101, 15),
    RESNET("resnet101_v2", 32, 101, 2),
    RESNET("resnet152", 32, 152, 1),
    RESNET("resnet152_v1.5", 32, 152, 15),
    RESNET("resnet152_v2", 32, 152, 2),
    CIFAR("resnet20", 20, 1),
    CIFAR("resnet20_v2", 20, 2),
    CIFAR("resnet32", 32, 1),
    CIFAR("resnet32_v2", 32, 2),
    CIFAR("resnet44", 44, 1),
    CIFAR("resnet44_v2", 44, 2),
    CIFAR("resnet56", 56, 1),
    CIFAR("resnet56_v2", 56, 2),
    CIFAR("resnet110", 110, 1),
    CIFAR("resnet110_v2", 110, 2),
    {0},
};

const struct model *model_table(void)
{
    return table;
}

static int none_for_dataset(const char *name, const char *dataset, struct err *e)
{
    auto_str has = {0};

    for (const struct model *m = table; m->name; m++)
        if (str_equal(m->name, name))
            str_addf(&has, " %s", m->dataset);
    return err_set(e, ERR_NOT_FOUND, "model \"%s\" is not made for dataset \"%s\", but for:%s",
                   name, dataset, str_text(&has));
}

static const char *nearest(const char *name)
{
    const char *best = table[0].name;

    for (const struct model *m = table; m->name; m++)
        if (str_distance(m->name, name) < str_distance(best, name))
            best = m->name;
    return best;
}

int model_find(const char *name,
               const char *dataset,
               const struct model **ret_model,
               struct err *e)
{
    bool is_known = false;

    for (const struct model *m = table; m->name; m++) {
        is_known |= str_equal(m->name, name);
        if (str_equal(m->name, name) && str_equal(m->dataset, dataset)) {
            *ret_model = m;
            return 0;
        }
    }
    if (is_known)
        return none_for_dataset(name, dataset, e);
    return err_set(e, ERR_NOT_FOUND, "no model is called \"%s\"; did you mean \"%s\"?", name,
                   nearest(name));
}

int model_graph(const struct model *model,
                enum graph_mode mode,
                const struct model_options *options,
                struct graph **ret_graph,
                struct err *e)
{
    enum graph_mode as = options->is_frozen ? GRAPH_EVAL : mode;
    struct graph *graph = graph_new(model->name, as, options->batch);

    model->build(graph, model, options);
    if (graph_check(graph, e) < 0) {
        graph_free(graph);
        return -1;
    }
    *ret_graph = graph;
    return 0;
}
