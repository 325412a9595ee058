/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-cluster.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/batchai-spec.h"
#include "cli/batchai-user.h"
#include "cli/batchai-verb.h"
#include "cli/call.h"

#include <limits.h>
#include <string.h>

int batchai_scale(long target, long min, long max, json_t **ret_scale, struct err *e)
{
    if (target < 0 && min < 0 && max < 0) {
        *ret_scale = NULL;
        return 0;
    }
    if ((min < 0) != (max < 0))
        return args_fail(e, min < 0 ? "--min" : "--max", "--min and --max go together");
    if (min > max)
        return args_fail(e, "--min", "--min is greater than --max");
    if (min == max && (min < 0 || target < 0 || target == min))
        *ret_scale = json_pack("{s:{s:I}}", "manual", "targetNodeCount",
                               (json_int_t)(target >= 0 ? target : min));
    else
        *ret_scale = json_pack("{s:{s:I, s:I, s:I}}", "autoScale", "minimumNodeCount",
                               (json_int_t)min, "maximumNodeCount", (json_int_t)max,
                               "initialNodeCount", (json_int_t)(target >= 0 ? target : 0));
    return 0;
}

static int no_image(const char *text, struct err *e)
{
    return args_fail(e, "--image",
                     "--image: \"%.100s\" is neither UbuntuLTS nor UbuntuDSVM nor "
                     "publisher:offer:sku:version",
                     text);
}

int batchai_image(const char *text, json_t **ret_image, struct err *e)
{
    static const struct alias {
        const char *name, *image;
    } aliases[] = {
        {"UbuntuLTS", "Canonical:UbuntuServer:16.04-LTS:"},
        {"UbuntuDSVM", "microsoft-ads:linux-data-science-vm-ubuntu:linuxdsvmubuntu:"},
    };
    static const char *const names[] = {"publisher", "offer", "sku", "version"};
    auto_json json_t *image = json_object();
    const char *p = text;
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
        if (str_equal_nocase(text, aliases[i].name))
            p = aliases[i].image;
    }
    for (bool is_last = false; !is_last; count++) {
        size_t len = strcspn(p, ":");

        /* Only the version may be left empty. */
        if (count == ARRAY_SIZE(names) || (!len && count < ARRAY_SIZE(names) - 1))
            return no_image(text, e);
        if (len)
            json_object_set_new(image, names[count], json_stringn(p, len));
        is_last = !p[len];
        p += len + !is_last;
    }
    if (count != ARRAY_SIZE(names))
        return no_image(text, e);
    *ret_image = json_incref(image);
    return 0;
}

static int set_image(struct call *call, json_t *properties, struct err *e)
{
    const char *text = args_get(call->args, "image");
    const char *custom = args_get(call->args, "custom-image");
    json_t *machine, *image = NULL;

    if (!text && !custom)
        return 0;
    machine = batchai_object(properties, "virtualMachineConfiguration");
    if (text && batchai_image(text, &image, e) < 0)
        return -1;
    if (image)
        json_object_set_new(machine, "imageReference", image);
    if (!custom)
        return 0;
    if (!batchai_is_id(custom))
        return args_fail(e, "--custom-image", "--custom-image: \"%.100s\" is not a resource id",
                         custom);
    image = json_object_get(machine, "imageReference");
    if (!json_is_object(image))
        return args_fail(e, "--custom-image",
                         "--custom-image needs --image: the image it was made from");
    json_object_set_new(image, "virtualMachineImageId", json_string(custom));
    return 0;
}

static int set_scale(struct call *call, json_t *properties, struct err *e)
{
    long target = -1, min = -1, max = -1;
    json_t *scale = NULL;

    if (batchai_number(call, "target", 0, INT_MAX, &target, e) < 0 ||
        batchai_number(call, "min", 0, INT_MAX, &min, e) < 0 ||
        batchai_number(call, "max", 0, INT_MAX, &max, e) < 0 ||
        batchai_scale(target, min, max, &scale, e) < 0)
        return -1;
    if (scale)
        json_object_set_new(properties, "scaleSettings", scale);
    if (!json_is_object(json_object_get(properties, "scaleSettings")))
        return args_fail(e, "--target",
                         "how many nodes? take --target, or --min and --max, or "
                         "scaleSettings in the configuration file");
    return 0;
}

static int set_nodes(struct call *call, json_t *properties, struct err *e)
{
    const char *size = args_get(call->args, "vm-size");
    const char *priority = args_get(call->args, "vm-priority");
    const char *subnet = args_get(call->args, "subnet");

    if (size)
        json_object_set_new(properties, "vmSize", json_string(size));
    if (!json_is_string(json_object_get(properties, "vmSize")))
        return args_fail(e, "--vm-size",
                         "which size of machine? take --vm-size, or vmSize in the "
                         "configuration file; \"host\" is this machine itself");
    if (priority)
        json_object_set_new(properties, "vmPriority", json_string(priority));
    if (subnet && !batchai_is_id(subnet))
        return args_fail(e, "--subnet", "--subnet: \"%.100s\" is not a resource id", subnet);
    if (subnet)
        json_object_set_new(properties, "subnet", json_pack("{s:s}", "id", subnet));
    return set_scale(call, properties, e) < 0 ? -1 : set_image(call, properties, e);
}

static int set_setup_task(struct call *call, json_t *setup, struct err *e)
{
    const char *command = args_get(call->args, "setup-task");
    const char *output = args_get(call->args, "setup-task-output");
    json_t *task;

    if (!command && !output)
        return 0;
    if (!command || !output)
        return args_fail(e, command ? "--setup-task-output" : "--setup-task",
                         "--setup-task and --setup-task-output go together");
    task = batchai_object(setup, "setupTask");
    json_object_set_new(task, "commandLine", json_string(command));
    json_object_set_new(task, "stdOutErrPathPrefix", json_string(output));
    return 0;
}

static int add_auto_storage(struct call *call, json_t *setup, struct err *e)
{
    auto_json json_t *workspace = NULL;
    const char *location;

    if (!args_flag(call->args, "use-auto-storage"))
        return 0;
    if (batchai_act(call, BATCHAI_WORKSPACE, "GET", NULL, false, &workspace, e) < 0)
        return -1;
    location = json_string_value(json_object_get(workspace, "location"));
    return batchai_add_auto_storage(call, setup, location ? location : "eastus", e);
}

static int set_setup(struct call *call, json_t *properties, struct err *e)
{
    json_t *setup = batchai_object(properties, "nodeSetup");

    if (set_setup_task(call, setup, e) < 0 || batchai_set_volumes(call, setup, e) < 0 ||
        add_auto_storage(call, setup, e) < 0)
        return -1;
    if (!json_object_size(setup))
        json_object_del(properties, "nodeSetup");
    return 0;
}

int batchai_cluster_body(struct call *call, json_t **ret_body, struct err *e)
{
    auto_json json_t *body = NULL;
    json_t *properties;

    if (batchai_read_config(call, &body, e) < 0)
        return -1;
    properties = json_object_get(body, "properties");
    /* What asks nobody comes first: a mistake changes nothing. */
    if (set_nodes(call, properties, e) < 0 || batchai_set_user(call, properties, e) < 0 ||
        set_setup(call, properties, e) < 0)
        return -1;
    *ret_body = json_incref(body);
    return 0;
}
