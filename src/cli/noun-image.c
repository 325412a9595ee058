/* The image map: which image, or the host itself, stands in for the one that a job names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/rest.h"

static const struct option_row image = {
    .names = "IMAGE",
    .help = "Image that jobs name, for example tensorflow/tensorflow:1.8.0-gpu.",
    .required = true,
};
static const struct option_row target = {
    .names = "TARGET",
    .help = "Image to take instead, or host for no container at all.",
    .required = true,
};

static char *path_of(struct call *call)
{
    auto_str path = {0};

    str_add(&path, "/yard/images/");
    text_percent(&path, args_get(call->args, "IMAGE"));
    return str_take(&path);
}

static int map(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = path_of(call);
    auto_json json_t *body = json_pack("{s:s}", "target", args_get(call->args, "TARGET"));
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    return rest_call(rest, "PUT", path, body, ret_result, e);
}

static int unmap(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *path = path_of(call);
    struct rest *rest;

    (void)ret_result;
    if (call_rest(call, &rest, e) < 0)
        return -1;
    return rest_call(rest, "DELETE", path, NULL, NULL, e);
}

static int list(struct call *call, json_t **ret_result, struct err *e)
{
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0)
        return -1;
    return rest_list(rest, "/yard/images", ret_result, e);
}

static const char table[] = "{Image: image, Target: target}";

const struct command image_commands[] = {
    {
        .path = "image map",
        .summary = "Run jobs that name an image in another one, or on the host.",
        .options = OPTIONS(&image, &target),
        .examples = {{"On the host.", "yard image map tensorflow/tensorflow:1.8.0-gpu host"},
                     {"In another image.", "yard image map microsoft/cntk:2.5.1-gpu-py2.7 "
                                           "registry.example/cntk:latest"}},
        .run = map,
        .table = table,
    },
    {
        .path = "image list",
        .summary = "List which image stands in for which.",
        .examples = {{"As a table.", "yard image list -o table"}},
        .run = list,
        .table = table,
    },
    {
        .path = "image unmap",
        .summary = "Let an image stand for itself again.",
        .options = OPTIONS(&image),
        .examples = {{"Take it back.", "yard image unmap tensorflow/tensorflow:1.8.0-gpu"}},
        .run = unmap,
    },
    {0},
};
