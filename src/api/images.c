/* The image map: which image, or the host itself, stands in for the one that a job names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "store/work.h"

#include <ctype.h>
#include <string.h>

enum {
    MOST_IMAGE = 512,
};

static json_t *shape_image(const char *image, const char *target)
{
    return json_pack("{s:s, s:s}", "image", image, "target", target);
}

static void add_image(const char *image, const char *target, void *context)
{
    json_array_append_new(context, shape_image(image, target));
}

void handle_image_list(struct call *call)
{
    json_t *value = json_array();
    auto_reader reader = {0};
    struct err e = {0};

    if (store_pool_take(call->api->config.pool, &reader, &e) < 0 ||
        store_each_image(reader.db, add_image, value, &e) < 0) {
        json_decref(value);
        reply_error(call, &e);
        return;
    }
    reply_json(call, 200, json_pack("{s:o}", "value", value));
}

/* What registries and runtimes take; no option of theirs begins so. */
static int check_image(const char *target, const char *image, struct err *e)
{
    size_t len = strlen(image);

    if (len > 0 && len <= MOST_IMAGE && isalnum((unsigned char)image[0])) {
        size_t i = 0;

        while (i < len && (isalnum((unsigned char)image[i]) || strchr("._-/:@", image[i])))
            i++;
        if (i == len)
            return 0;
    }
    err_set(e, ERR_INVALID,
            "%s: \"%.100s\" is not the name of an image; give one such as \"ubuntu:22.04\"",
            target, image);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, target);
}

static void mapped(struct call *call, struct control_change *change, const struct err *why)
{
    const struct control_image *image = change->request;

    if (why->code != ERR_NONE)
        reply_error(call, why);
    else if (image->target)
        reply_json(call, 200, shape_image(image->image, image->target));
    else
        reply_empty(call, 200);
}

static void map_image(struct call *call, const char *target)
{
    struct control_change *change = call_change(call);

    call_when_done(call, change, mapped);
    control_map_image(call->api->config.control, change, call_param(call, "imageName"), target);
}

void handle_image_put(struct call *call)
{
    const char *target;
    struct err e = {0};

    if (check_image("imageName", call_param(call, "imageName"), &e) < 0 ||
        json_get_string(call->body, "target", &target, &e) < 0 ||
        check_image("target", target ? target : "", &e) < 0)
        call_refuse(call, &e);
    else
        map_image(call, target);
}

void handle_image_delete(struct call *call)
{
    map_image(call, NULL);
}
