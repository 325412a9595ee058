/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shape.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/batchai.h"

#include <string.h>

char *shape_time(const char *wire)
{
    char micros[7] = "000000";
    const char *dot = strchr(wire, '.');
    const char *zone;
    auto_free char *seconds = NULL;
    size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;
    int64_t ignored;

    if (strlen(wire) < 20 || wire[10] != 'T' || clock_parse_iso(wire, &ignored, NULL) < 0)
        return NULL;
    zone = dot ? dot + 1 + digits : wire + 19;
    seconds = xstrndup(wire, 19);
    memcpy(micros, dot ? dot + 1 : "", digits < 6 ? digits : 6);
    if (str_equal(zone, "Z") || str_equal(zone, "z"))
        zone = "+00:00";
    if (str_equal(micros, "000000"))
        return xasprintf("%s%s", seconds, zone);
    return xasprintf("%s.%s%s", seconds, micros, zone);
}

char *shape_duration(const char *wire)
{
    auto_str text = {0};
    int64_t ms, seconds, days;

    if (batchai_read_duration(wire, &ms, NULL) < 0)
        return NULL;
    seconds = ms / 1000 % 86400;
    days = ms / 86400000;
    if (days)
        str_addf(&text, "%lld day%s, ", (long long)days, days == 1 ? "" : "s");
    str_addf(&text, "%d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
             (int)(seconds % 60));
    if (ms % 1000)
        str_addf(&text, ".%03d000", (int)(ms % 1000));
    return str_take(&text);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *sorted_object(json_t *object)
{
    json_t *copy = json_object(), *value;
    size_t count = json_object_size(object), i = 0;
    const char **names = xcalloc(count + 1, sizeof(*names));
    const char *name;

    json_object_foreach(object, name, value) names[i++] = name;
    qsort(names, count, sizeof(*names), compare_names);
    for (i = 0; i < count; i++)
        json_object_set_new(copy, names[i], shape_sorted(json_object_get(object, names[i])));
    free(names);
    return copy;
}

json_t *shape_sorted(json_t *value)
{
    json_t *copy, *item;
    size_t i;

    if (json_is_object(value))
        return sorted_object(value);
    if (!json_is_array(value))
        return json_incref(value);
    copy = json_array();
    json_array_foreach(value, i, item) json_array_append_new(copy, shape_sorted(item));
    return copy;
}

/* "/subscriptions/s/resourceGroups/g/providers/p/t/n" and deeper have a resource group to show;
 * the id of a group itself does not. */
static char *group_of(const char *id)
{
    static const char marker[] = "/resourceGroups/";
    const char *start, *p;
    int slashes = 0;

    for (p = id; *p; p++)
        slashes += *p == '/';
    if (!str_starts_nocase(id, "/subscriptions/") || slashes < 8)
        return NULL;
    start = strchr(id + strlen("/subscriptions/"), '/');
    if (!start || !str_starts_nocase(start, marker))
        return NULL;
    start += strlen(marker);
    return xstrndup(start, strcspn(start, "/"));
}

static void add_groups(json_t *value)
{
    const char *id;
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value)) {
        json_array_foreach(value, i, member) add_groups(member);
    }
    if (!json_is_object(value))
        return;
    id = json_string_value(json_object_get(value, "id"));
    if (id && !json_object_get(value, "resourceGroup")) {
        auto_free char *group = group_of(id);

        if (group)
            json_object_set_new(value, "resourceGroup", json_string(group));
    }
    json_object_foreach(value, key, member) add_groups(member);
}

static bool add_member(void *context, const char *word)
{
    json_t *object = context;

    if (!json_object_get(object, word))
        json_object_set_new(object, word, json_null());
    return true;
}

static bool rename_member(void *context, const char *word)
{
    json_t *object = context;
    const char *equals = strchr(word, '=');
    auto_free char *from = xstrndup(word, (size_t)(equals - word));
    json_t *value = json_object_get(object, from);

    if (value) {
        json_object_set(object, equals + 1, value);
        json_object_del(object, from);
    }
    return true;
}

static bool reform_time(void *context, const char *word)
{
    json_t *object = context;
    const char *wire = json_string_value(json_object_get(object, word));
    auto_free char *text = wire ? shape_time(wire) : NULL;

    if (text)
        json_object_set_new(object, word, json_string(text));
    return true;
}

static bool reform_duration(void *context, const char *word)
{
    json_t *object = context;
    const char *wire = json_string_value(json_object_get(object, word));
    auto_free char *text = wire ? shape_duration(wire) : NULL;

    if (text)
        json_object_set_new(object, word, json_string(text));
    return true;
}

static void reform(const struct shape *shape, json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value)) {
        json_array_foreach(value, i, member) reform(shape, member);
    }
    if (!json_is_object(value))
        return;
    words_each(shape->times, reform_time, value);
    words_each(shape->durations, reform_duration, value);
    json_object_foreach(value, key, member) reform(shape, member);
}

/* Is the object at parent/key the one that the part means? */
static bool is_at(const char *at, const char *parent, const char *key)
{
    const char *slash = strchr(at, '/');

    if (!slash)
        return str_equal(at, key);
    return str_equal(slash + 1, key) && strlen(parent) == (size_t)(slash - at) &&
           str_starts(at, parent);
}

static void fill_part(const struct shape_part *part, json_t *value)
{
    json_t *item;
    size_t i;

    if (json_is_array(value)) {
        json_array_foreach(value, i, item) fill_part(part, item);
    }
    if (!json_is_object(value))
        return;
    words_each(part->renames, rename_member, value);
    words_each(part->members, add_member, value);
}

/* Names are those of the wire on the way down: what is renamed is renamed on the way up. */
static void
fill_parts(const struct shape_part *parts, const char *parent, const char *key, json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;

    if (json_is_array(value)) {
        json_array_foreach(value, i, member) fill_parts(parts, parent, key, member);
        return;
    }
    if (!json_is_object(value))
        return;
    json_object_foreach(value, name, member) fill_parts(parts, key, name, member);
    for (const struct shape_part *part = parts; part && part->at; part++) {
        if (is_at(part->at, parent, key))
            fill_part(part, value);
    }
}

static json_t *shape_one(const struct shape *shape, json_t *value)
{
    auto_json json_t *copy = json_deep_copy(value);
    json_t *properties = json_object_get(copy, "properties");

    if (shape->flat && json_is_object(properties)) {
        json_incref(properties);
        json_object_del(copy, "properties");
        json_object_update_missing(copy, properties);
        json_decref(properties);
    }
    words_each(shape->renames, rename_member, copy);
    reform(shape, copy);
    add_groups(copy);
    fill_parts(shape->parts, "", "", copy);
    words_each(shape->members, add_member, copy);
    return json_incref(copy);
}

json_t *shape_apply(const struct shape *shape, json_t *value)
{
    json_t *all, *item;
    size_t i;

    if (json_is_object(value))
        return shape_one(shape, value);
    if (!json_is_array(value))
        return json_incref(value);
    all = json_array();
    json_array_foreach(value, i, item) json_array_append_new(all, shape_apply(shape, item));
    return all;
}
