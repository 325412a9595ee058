/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/arm.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/command.h"

#include <string.h>

static int add_option(struct call *call, const char *key, struct str *path, struct err *e)
{
    const char *value = args_get(call->args, key);

    /* A dot or two would walk up the path on its way. */
    if (!value || !*value || str_equal(value, ".") || str_equal(value, ".."))
        return args_fail(e, key, "--%s: \"%s\" is not a name", key, value ? value : "");
    text_percent(path, value);
    return 0;
}

int arm_path(
    struct call *call, const char *pattern, const char *version, char **ret_path, struct err *e)
{
    auto_str path = {0};
    const char *subscription;

    if (call_subscription(call, &subscription, e) < 0)
        return -1;
    str_add(&path, "/subscriptions/");
    text_percent(&path, subscription);
    for (const char *p = pattern; *p;) {
        size_t len = strcspn(p, "{");

        str_add_len(&path, p, len);
        p += len;
        if (*p == '{') {
            auto_free char *key = xstrndup(p + 1, strcspn(p + 1, "}"));

            if (add_option(call, key, &path, e) < 0)
                return -1;
            p += strlen(key) + 2;
        }
    }
    str_addf(&path, "?api-version=%s", version);
    *ret_path = str_take(&path);
    return 0;
}

char *arm_id_part(const char *id, const char *type)
{
    size_t type_len = strlen(type);

    for (const char *p = id; (p = strchr(p, '/')); p++) {
        if (str_starts_nocase(p + 1, type) && p[1 + type_len] == '/') {
            const char *value = p + 2 + type_len;
            size_t len = strcspn(value, "/");

            return len ? xstrndup(value, len) : NULL;
        }
    }
    return NULL;
}

struct filling {
    struct args *args;
    const char *id;
    const char *missing; /* the first part that the id does not have */
    char buf[64];
};

static bool fill_part(void *context, const char *word)
{
    struct filling *filling = context;
    const char *equals = strchr(word, '=');
    auto_free char *type = xstrndup(word, (size_t)(equals - word));
    auto_free char *value = arm_id_part(filling->id, type);

    if (!value) {
        snprintf(filling->buf, sizeof(filling->buf), "%s", type);
        filling->missing = filling->buf;
        return false;
    }
    args_set(filling->args, equals + 1, value);
    return true;
}

int arm_use_id(struct args *args, const char *id, const char *parts, struct err *e)
{
    struct filling filling = {.args = args, .id = id};
    auto_free char *subscription = arm_id_part(id, "subscriptions");

    if (!subscription || id[0] != '/')
        return args_fail(e, "--ids", "--ids: \"%.200s\" is not a resource id", id);
    words_each(parts, fill_part, &filling);
    if (filling.missing)
        return args_fail(e, "--ids", "--ids: \"%.200s\" has no part /%s/", id, filling.missing);
    args_set(args, "subscription", subscription);
    return 0;
}

json_t *arm_tags(const struct args *args)
{
    json_t *tags;
    size_t count;
    const char *const *texts = args_list(args, "tags", &count);

    if (!args_has(args, "tags"))
        return NULL;
    tags = json_object();
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(texts[i], '=');
        auto_free char *key = xstrndup(texts[i], strcspn(texts[i], "="));

        if (*key)
            json_object_set_new(tags, key, json_string(equals ? equals + 1 : ""));
    }
    return tags;
}
