/* batchai.c - fuzz target: a body of a job, a cluster or a file server.
 *
 * What must hold beyond not crashing: a refusal is ERR_INVALID and says where; what was taken
 * has secrets that fit back, and read again is the same; a job that was taken has volumes, a
 * place or none for each of its outputs, and a plan, whose tasks have commands and names of
 * their own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/batchai.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/launch.h"
#include "core/vmsize.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
    if (!holds)
        abort();
}

enum kind {
    JOB,
    CLUSTER,
    FILE_SERVER,
    KINDS,
};

static int read_as(enum kind kind,
                   const struct vmsizes *sizes,
                   const json_t *body,
                   struct batchai_spec *ret_spec,
                   struct err *e)
{
    if (kind == JOB)
        return batchai_read_job(body, ret_spec, e);
    if (kind == CLUSTER)
        return batchai_read_cluster(body, sizes, ret_spec, e);
    return batchai_read_file_server(body, sizes, ret_spec, e);
}

static void
require_stable(enum kind kind, const struct vmsizes *sizes, const struct batchai_spec *spec)
{
    auto_json json_t *whole = batchai_with_secrets(spec->kept, spec->secrets);
    auto_json json_t *body = json_pack("{sO}", "properties", whole);
    struct batchai_spec again = {0};

    require(read_as(kind, sizes, body, &again, NULL) == 0);
    require(json_equal(again.kept, spec->kept));
    require(json_equal(again.secrets, spec->secrets));
    batchai_spec_done(&again);
}

static void require_volumes(const json_t *kept, struct arena *arena)
{
    struct volume *volumes;
    size_t count;

    require(batchai_volumes(kept, arena, &volumes, &count, NULL) == 0);
    for (size_t i = 0; i < count; i++) {
        require(volumes[i].path[0] != '/' && !str_starts(volumes[i].path, "../"));
        require(!strstr(volumes[i].path, "/../") && !str_ends(volumes[i].path, "/.."));
        require(volumes[i].kind == VOLUME_FILE_SERVER || volumes[i].kind == VOLUME_UNMANAGED ||
                (volumes[i].account && volumes[i].name));
    }
}

static void require_places(const json_t *kept, struct arena *arena)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(kept, "outputDirectories"), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id")), *path;
        struct volume volume;
        struct err e = {0};

        if (batchai_output_place(kept, kept, "s/u", id, arena, &volume, &path, &e) == 0)
            require(path[0] != '/' && !strstr(path, "../"));
        else
            require(e.code == ERR_INVALID);
    }
}

static void require_plan(const json_t *kept, bool has_ssh, struct arena *arena)
{
    const struct launch_node node = {"tvm-1-1", "10.0.0.4", "/r", 2, 2, "0,1"};
    size_t count = (size_t)json_integer_value(json_object_get(kept, "nodeCount"));
    struct launch_node *nodes = arena_alloc(arena, count * sizeof(*nodes));
    const struct launch_input input = {
        .job = kept,
        .workspace = "w",
        .experiment = "e",
        .name = "j",
        .cluster = "c",
        .segment = "s/u",
        .nodes = nodes,
        .node_count = count,
        .has_ssh = has_ssh,
        .attempt = 1,
    };
    struct launch_plan plan;
    struct err e = {0};

    for (size_t i = 0; i < count; i++)
        nodes[i] = node;
    if (launch_plan(&input, arena, &plan, &e) < 0) {
        require(e.code == ERR_INVALID);
        return;
    }
    require(plan.task_count >= 1 && plan.tasks[0].role == LAUNCH_MASTER);
    for (size_t i = 0; i < plan.task_count; i++) {
        require(plan.tasks[i].command && plan.tasks[i].env && plan.tasks[i].node < count);
        require(plan.tasks[i].stdout_path[0] == '/');
        require(i == 0 || !str_equal(plan.tasks[i].name, plan.tasks[i - 1].name));
    }
}

static void try_as(enum kind kind, const struct vmsizes *sizes, const json_t *body)
{
    struct batchai_spec spec = {0};
    autoptr(arena) arena = arena_new();
    struct err e = {0};

    if (read_as(kind, sizes, body, &spec, &e) < 0) {
        require(e.code == ERR_INVALID && *e.msg && !spec.kept && !spec.secrets);
        return;
    }
    require_stable(kind, sizes, &spec);
    require_volumes(spec.kept, arena);
    if (kind == JOB) {
        struct yard_job job = {0};

        batchai_fill_job(spec.kept, &job);
        require(job.node_count >= 1 && job.wall_ms > 0 && job.most_attempts >= 1);
        require_places(spec.kept, arena);
        /* What grows with the square of the nodes would be all that is fuzzed. */
        if (job.node_count <= 16) {
            require_plan(spec.kept, true, arena);
            require_plan(spec.kept, false, arena);
        }
    }
    batchai_spec_done(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct vmsizes *sizes;
    auto_json json_t *body = NULL;

    if (!sizes)
        sizes = vmsizes_new(2, 4096, 0);
    if (json_parse((const char *)bytes, len, &body, NULL) < 0)
        return 0;
    for (int kind = JOB; kind < KINDS; kind++)
        try_as((enum kind)kind, sizes, body);
    return 0;
}
