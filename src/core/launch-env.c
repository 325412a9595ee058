/* SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/str.h"
#include "core/batchai.h"

#include <ctype.h>
#include <string.h>

static size_t find(const struct env *env, const char *name, size_t len)
{
    for (size_t i = 0; i < env->count; i++) {
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return i;
    }
    return env->count;
}

static void reserve(struct env *env, size_t room)
{
    const char **items = arena_alloc(env->arena, (room + 1) * sizeof(*items));

    if (env->count > 0)
        memcpy(items, env->items, env->count * sizeof(*items));
    env->items = items;
    env->room = room;
}

void env_set(struct env *env, const char *name, const char *value)
{
    size_t at = find(env, name, strlen(name));

    if (at == env->room)
        reserve(env, env->room ? env->room * 2 : 64);
    env->items[at] = arena_printf(env->arena, "%s=%s", name, value);
    if (at == env->count)
        env->items[++env->count] = NULL;
}

void env_setf(struct env *env, const char *name, const char *format, ...)
{
    auto_str value = {0};
    va_list args;

    va_start(args, format);
    str_vaddf(&value, format, args);
    va_end(args);
    env_set(env, name, str_text(&value));
}

const char *env_get(const struct env *env, const char *name)
{
    size_t len = strlen(name), at = find(env, name, len);

    return at < env->count ? env->items[at] + len + 1 : NULL;
}

void env_copy(struct env *to, const struct env *from)
{
    *to = *from;
    reserve(to, from->count + 32);
    to->items[to->count] = NULL;
}

/* --- expansion --- */

/* The value of a name in a list, NULL when it is not there. */
static const char *value_of(const char *const *env, const char *name, size_t len)
{
    for (; *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    }
    return NULL;
}

/* The name after a '$', bare or in braces: its start and length, and how long all of it is with
 * the '$'; false when it is none. */
static bool read_name(const char *text, const char **ret_name, size_t *ret_len, size_t *ret_all)
{
    bool has_brace = text[1] == '{';
    const char *name = text + 1 + has_brace;
    size_t len = 0;

    while (isalnum((unsigned char)name[len]) || name[len] == '_')
        len++;
    if (len == 0 || isdigit((unsigned char)name[0]) || (has_brace && name[len] != '}'))
        return false;
    *ret_name = name;
    *ret_len = len;
    *ret_all = 1 + len + (has_brace ? 2 : 0);
    return true;
}

const char *launch_expand(const char *text, const char *const *env, struct arena *arena)
{
    auto_str out = {0};

    while (*text) {
        size_t plain = strcspn(text, "$"), len, all;
        const char *name, *value = NULL;

        str_add_len(&out, text, plain);
        text += plain;
        if (!*text)
            break;
        if (read_name(text, &name, &len, &all))
            value = value_of(env, name, len);
        if (value) {
            str_add(&out, value);
            text += all;
        } else {
            str_add_char(&out, *text++);
        }
    }
    return arena_strdup(arena, str_text(&out));
}

/* --- what the user adds --- */

/* A copy of the service's own variables: nothing else is expanded, a password may have a '$'.
 */
static const char *const *own_variables(const struct env *env)
{
    const char **own = arena_alloc(env->arena, (env->count + 1) * sizeof(*own));
    size_t count = 0;

    for (size_t i = 0; i < env->count; i++) {
        if (str_starts(env->items[i], "AZ_BATCH"))
            own[count++] = env->items[i];
    }
    return own;
}

void env_add_user(struct env *env, const json_t *spec)
{
    static const char *const lists[] = {"environmentVariables", "secrets"};
    const char *const *own = own_variables(env);

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const json_t *row;
        size_t j;

        json_array_foreach(json_object_get(spec, lists[i]), j, row)
        {
            const char *name = json_string_value(json_object_get(row, "name"));
            const char *value = json_string_value(json_object_get(row, "value"));

            if (name && value)
                env_set(env, name, launch_expand(value, own, env->arena));
        }
    }
}

/* The folders of sockets and sessions must have short names, or Open MPI cannot make them. */
void env_add_host(struct env *env, bool is_container, const char *home)
{
    env_set(env, "TMPDIR", "/tmp");
    if (is_container)
        return;
    env_set(env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    if (home)
        env_set(env, "HOME", home);
}

/* --- the service's own --- */

static void add_folders(const struct launch *l, const struct launch_node *node, struct env *env)
{
    const char *root = node->root, *job = l->job_folder;

    env_set(env, "AZ_BATCHAI_ROOT", root);
    env_setf(env, "AZ_BATCHAI_MOUNT_ROOT", "%s/mounts", root);
    env_setf(env, "AZ_BATCHAI_JOB_TEMP_DIR", "%s/jobs", root);
    env_setf(env, "AZ_BATCHAI_JOB_TEMP", "%s/%s", root, job);
    env_setf(env, "AZ_BATCHAI_JOB_WORK_DIR", "%s/%s/wd", root, job);
    env_setf(env, "AZ_BATCHAI_SHARED_JOB_TEMP", "%s/%s/shared", root, job);
    env_setf(env, "AZ_BATCHAI_JOB_MOUNT_ROOT", "%s/%s/mounts", root, job);
    env_setf(env, "AZ_BATCHAI_MPI_HOST_FILE", "%s/%s/hostfile", root, job);
}

static void add_hosts(const struct launch *l, size_t node, struct env *env)
{
    const struct launch_node *nodes = l->input->nodes;
    const char *master = launch_address(l, 0);
    auto_str hosts = {0};

    for (size_t i = 0; i < l->input->node_count; i++)
        str_addf(&hosts, "%s%s", i ? "," : "", launch_address(l, i));
    env_set(env, "AZ_BATCH_HOST_LIST", str_text(&hosts));
    env_setf(env, "AZ_BATCH_MASTER_NODE", "%s:6000", master); /* with a port, as Batch has it */
    env_set(env, "AZ_BATCHAI_JOB_MASTER_NODE_IP", master);
    env_set(env, "AZ_BATCH_IS_CURRENT_NODE_MASTER", node == 0 ? "true" : "false");
    env_set(env, "AZ_BATCH_NODE_ID", nodes[node].name);
    env_set(env, "AZ_BATCHAI_CLUSTER_NAME", l->input->cluster);
    env_setf(env, "AZ_BATCHAI_NUM_GPUS", "%d", nodes[node].gpus);
    env_setf(env, "AZ_BATCHAI_NUM_GPUS_PER_NODE", "%d", nodes[node].gpus);
}

/* "prefix/segment/more/suffix" with the variables of prefix expanded; NULL when that is not
 * absolute. */
static const char *output_path(const struct launch *l,
                               const struct env *env,
                               const char *prefix,
                               const char *more,
                               const char *suffix)
{
    const char *start = launch_expand(prefix, env->items, l->arena);
    size_t len = strlen(start);

    if (start[0] != '/')
        return NULL;
    while (len > 0 && start[len - 1] == '/')
        len--;
    return arena_printf(l->arena, "%.*s/%s/%s%s%s", (int)len, start, l->input->segment, more,
                        suffix && *suffix ? "/" : "", suffix ? suffix : "");
}

static int no_path(struct err *e, const char *member, const char *path)
{
    err_set(e, ERR_INVALID,
            "%s: \"%.200s\" is not absolute; take a path that starts with "
            "$AZ_BATCHAI_JOB_MOUNT_ROOT or $AZ_BATCHAI_MOUNT_ROOT",
            member, path);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, member);
}

static int add_inputs(const struct launch *l, struct env *env, struct err *e)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(l->input->job, "inputDirectories"), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *path = json_string_value(json_object_get(row, "path"));
        const char *expanded = launch_expand(path, env->items, l->arena);

        if (expanded[0] != '/')
            return no_path(e, "inputDirectories", path);
        env_set(env, arena_printf(l->arena, "AZ_BATCHAI_INPUT_%s", id), expanded);
    }
    return 0;
}

/* The folder of an attempt is that of its job, so what the one before wrote is found in the
 * same place. */
static int add_outputs(const struct launch *l, struct env *env, struct err *e)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(l->input->job, "outputDirectories"), i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *prefix = json_string_value(json_object_get(row, "pathPrefix"));
        const char *suffix = json_string_value(json_object_get(row, "pathSuffix"));
        const char *path = output_path(l, env, prefix, "outputs", suffix);

        if (!path)
            return no_path(e, "outputDirectories", prefix);
        env_set(env, arena_printf(l->arena, "AZ_BATCHAI_OUTPUT_%s", id), path);
        env_set(env, arena_printf(l->arena, "AZ_BATCHAI_PREV_OUTPUT_%s", id),
                l->input->attempt > 1 ? path : "");
    }
    return 0;
}

static int fill_environment(const struct launch *l, size_t node, struct env *env, struct err *e)
{
    const struct launch_node *n = &l->input->nodes[node];
    const char *prefix =
        json_string_value(json_object_get(l->input->job, "stdOutErrPathPrefix"));
    const char *logs;

    env->arena = l->arena;
    add_folders(l, n, env);
    add_hosts(l, node, env);
    logs = output_path(l, env, prefix, "stdouterr", NULL);
    if (!logs)
        return no_path(e, "stdOutErrPathPrefix", prefix);
    env_set(env, "AZ_BATCHAI_STDOUTERR_DIR", logs);
    if (add_inputs(l, env, e) < 0 || add_outputs(l, env, e) < 0)
        return -1;
    env_add_host(env, l->input->is_container, l->input->home);
    env_set(env, "OMPI_ALLOW_RUN_AS_ROOT", "1");
    env_set(env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    if (n->gpu_list)
        env_set(env, "CUDA_VISIBLE_DEVICES", n->gpu_list);
    if (str_equal(l->tool, "tensorflow") || str_equal(l->tool, "cntk"))
        env_set(env, "KERAS_BACKEND", l->tool);
    return 0;
}

int launch_environments(struct launch *l, struct err *e)
{
    size_t count = l->input->node_count;

    l->envs = arena_alloc(l->arena, count * sizeof(*l->envs));
    for (size_t i = 0; i < count; i++) {
        if (fill_environment(l, i, &l->envs[i], e) < 0)
            return -1;
    }
    return 0;
}
