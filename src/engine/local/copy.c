/* What was told, copied into an arena.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/local-internal.h"

static const char *copy_text(const char *text, struct arena *arena)
{
    return text ? arena_strdup(arena, text) : NULL;
}

static void drop_json(void *value)
{
    json_decref(value);
}

static const json_t *copy_json(const json_t *value, struct arena *arena)
{
    json_t *copy = json_deep_copy(value);

    if (copy)
        arena_defer(arena, drop_json, copy);
    return copy;
}

static void
copy_volume(const struct engine_volume *from, struct arena *arena, struct engine_volume *ret)
{
    const struct volume *v = &from->volume;

    *ret = (struct engine_volume){
        .volume =
            {
                .kind = v->kind,
                .account = copy_text(v->account, arena),
                .name = copy_text(v->name, arena),
                .key = NULL, /* the yard's own folders need none */
                .server_id = copy_text(v->server_id, arena),
                .folder = copy_text(v->folder, arena),
                .command = copy_text(v->command, arena),
                .options = copy_text(v->options, arena),
                .path = copy_text(v->path, arena),
            },
        .source = copy_text(from->source, arena),
        .error_code = copy_text(from->error_code, arena),
        .error_message = copy_text(from->error_message ? from->error_message : "", arena),
        .error_info = copy_text(from->error_info, arena),
    };
}

static const struct engine_volume *
copy_volumes(const struct engine_volume *from, size_t count, struct arena *arena)
{
    struct engine_volume *list = arena_alloc(arena, (count + 1) * sizeof(*list));

    for (size_t i = 0; i < count; i++)
        copy_volume(&from[i], arena, &list[i]);
    return list;
}

const struct engine_cluster *copy_cluster(const struct engine_cluster *from,
                                          struct arena *arena)
{
    struct engine_cluster *to = arena_alloc(arena, sizeof(*to));

    *to = *from;
    to->name = copy_text(from->name, arena);
    to->spec = copy_json(from->spec, arena);
    to->suffix = copy_text(from->suffix, arena);
    to->volumes = copy_volumes(from->volumes, from->volume_count, arena);
    return to;
}

void copy_attempt(const struct engine_attempt *from,
                  struct arena *arena,
                  struct engine_attempt *ret)
{
    int64_t *nodes = arena_alloc(arena, (from->node_count + 1) * sizeof(*nodes));

    for (size_t i = 0; i < from->node_count; i++)
        nodes[i] = from->nodes[i];
    *ret = (struct engine_attempt){
        .id = from->id,
        .uuid = copy_text(from->uuid, arena),
        .number = from->number,
        .workspace = copy_text(from->workspace, arena),
        .experiment = copy_text(from->experiment, arena),
        .job = copy_text(from->job, arena),
        .segment = copy_text(from->segment, arena),
        .spec = copy_json(from->spec, arena),
        .image = copy_text(from->image, arena),
        .registry_user = copy_text(from->registry_user, arena),
        .registry_password = copy_text(from->registry_password, arena),
        .registry_server = copy_text(from->registry_server, arena),
        .cluster = copy_cluster(from->cluster, arena),
        .volumes = copy_volumes(from->volumes, from->volume_count, arena),
        .volume_count = from->volume_count,
        .nodes = nodes,
        .node_count = from->node_count,
    };
}
