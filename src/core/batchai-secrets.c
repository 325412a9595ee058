/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai.h"

#include "base/mem.h"

#include <string.h>

void batchai_spec_done(struct batchai_spec *spec)
{
    json_decref(spec->kept);
    json_decref(spec->secrets);
    *spec = (struct batchai_spec){0};
}

/* The member or element of that name. */
static json_t *step(json_t *value, const char *name)
{
    if (json_is_array(value))
        return json_array_get(value, (size_t)strtoull(name, NULL, 10));
    return json_object_get(value, name);
}

/* Put a text at a pointer, whose names have neither '/' nor '~': they are those of our tables.
 */
static void put_back(json_t *kept, const char *pointer, json_t *text)
{
    auto_free char *copy = xstrdup(pointer);
    char *name = copy + (*copy == '/'), *slash;

    while ((slash = strchr(name, '/'))) {
        *slash = '\0';
        kept = step(kept, name);
        name = slash + 1;
    }
    if (json_is_object(kept))
        json_object_set(kept, name, text);
}

json_t *batchai_with_secrets(const json_t *kept, const json_t *secrets)
{
    json_t *whole = json_deep_copy(kept), *text;
    const char *pointer;

    json_object_foreach((json_t *)secrets, pointer, text) put_back(whole, pointer, text);
    return whole;
}
