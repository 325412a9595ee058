/* launch-tensorflow.c - parameter server i on node i, workers spread evenly, worker 0 the
 * master. A job that counts neither is one worker.
 *
 * Each has a port on its host, counted from the first: servers, then workers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/launch-internal.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

struct cluster {
    int workers, servers;
    int per_node;              /* the most workers on one node */
    const char **worker_hosts; /* "address:port" */
    const char **server_hosts;
};

static int count_of(const struct launch *l, const char *name)
{
    return (int)json_integer_value(json_object_get(l->settings, name));
}

/* "address:port", the next free port of the node; ports has one counter for each host. */
static const char *next_host(const struct launch *l, size_t node, int *ports)
{
    size_t host = l->input->has_ssh ? node : 0;

    return arena_printf(l->arena, "%s:%d", launch_address(l, node),
                        launch_first_port(l) + ports[host]++);
}

static void make_cluster(const struct launch *l, struct cluster *c)
{
    int *ports = arena_alloc(l->arena, l->input->node_count * sizeof(*ports));

    c->workers = count_of(l, "workerCount");
    c->workers = c->workers ? c->workers : 1;
    c->servers = count_of(l, "parameterServerCount");
    c->per_node = launch_spread(l, c->workers);
    c->worker_hosts = arena_alloc(l->arena, (size_t)c->workers * sizeof(char *));
    c->server_hosts = arena_alloc(l->arena, (size_t)c->servers * sizeof(char *));
    for (int i = 0; i < c->servers; i++)
        c->server_hosts[i] = next_host(l, launch_node_of(l, i, 1), ports);
    for (int i = 0; i < c->workers; i++)
        c->worker_hosts[i] = next_host(l, launch_node_of(l, i, c->per_node), ports);
}

static json_t *json_hosts(const char *const *hosts, int count)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(array, json_string(hosts[i]));
    return array;
}

static const char *comma_hosts(const struct launch *l, const char *const *hosts, int count)
{
    auto_str out = {0};

    for (int i = 0; i < count; i++)
        str_addf(&out, "%s%s", i ? "," : "", hosts[i]);
    return arena_strdup(l->arena, str_text(&out));
}

/* Takes over the references. */
static void
set_config(struct env *env, const char *name, json_t *cluster, const char *type, int index)
{
    auto_json json_t *config = json_pack("{so s{ss si} ss}", "cluster", cluster, "task", "type",
                                         type, "index", index, "environment", "cloud");
    auto_str text = {0};

    json_write(&text, config);
    env_set(env, name, str_text(&text));
}

/* The service's form: the master is one of the workers. */
static void set_plain(const struct cluster *c, const char *type, int index, struct env *env)
{
    set_config(env, "TF_CONFIG",
               json_pack("{so so}", "ps", json_hosts(c->server_hosts, c->servers), "worker",
                         json_hosts(c->worker_hosts, c->workers)),
               type, index);
}

/* The form of Estimators: the chief is none of them, and they are counted without it. */
static void
set_with_chief(const struct cluster *c, const char *type, int index, struct env *env)
{
    json_t *cluster = json_pack("{so so}", "chief", json_hosts(c->worker_hosts, 1), "ps",
                                json_hosts(c->server_hosts, c->servers));

    if (c->workers > 1)
        json_object_set_new(cluster, "worker", json_hosts(c->worker_hosts + 1, c->workers - 1));
    if (str_equal(type, "master"))
        set_config(env, "YARD_TF_CONFIG", cluster, "chief", 0);
    else
        set_config(env, "YARD_TF_CONFIG", cluster, type,
                   str_equal(type, "worker") ? index - 1 : index);
}

/* --- GPUs: TensorFlow takes all memory of all it sees, so workers of a node part them --- */

static const char *slice(struct arena *arena, const char *list, int from, int to)
{
    auto_str out = {0};

    for (int i = 0; *list; i++) {
        size_t len = strcspn(list, ",");

        if (i >= from && i < to)
            str_addf(&out, "%s%.*s", out.len ? "," : "", (int)len, list);
        list += len;
        list += *list == ',';
    }
    return arena_strdup(arena, str_text(&out));
}

static int length_of(const char *list)
{
    int count = *list ? 1 : 0;

    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* The share of worker `at` of the `on_node` workers of its node. */
static void part_gpus(const struct launch *l, int at, int on_node, struct env *env)
{
    const char *list = env_get(env, "CUDA_VISIBLE_DEVICES");
    int gpus = list ? length_of(list) : 0;

    if (gpus >= on_node && on_node > 1)
        env_set(env, "CUDA_VISIBLE_DEVICES",
                slice(l->arena, list, at * gpus / on_node, (at + 1) * gpus / on_node));
}

/* --- tasks --- */

static void add_cluster(const struct launch *l,
                        const struct cluster *c,
                        const char *type,
                        int index,
                        struct env *env)
{
    env_setf(env, "AZ_BATCHAI_TASK_INDEX", "%d", index);
    env_set(env, "AZ_BATCHAI_TASK_TYPE", type);
    env_set(env, "AZ_BATCHAI_PS_HOSTS", comma_hosts(l, c->server_hosts, c->servers));
    env_set(env, "AZ_BATCHAI_WORKER_HOSTS", comma_hosts(l, c->worker_hosts, c->workers));
    if (c->workers + c->servers > 1) {
        set_plain(c, type, index, env);
        set_with_chief(c, type, index, env);
    }
}

static void
end_task(struct launch *l, struct launch_task *task, struct env *env, const char *arguments)
{
    const char *command = shell_python(l->arena, l->settings, arguments);

    env_add_user(env, l->input->job);
    launch_end_task(l, task, env, arena_printf(l->arena, "-%s", task->name),
                    shell_with_rc(l->arena, command));
}

static void add_worker(struct launch *l, const struct cluster *c, int index)
{
    size_t node = launch_node_of(l, index, c->per_node);
    int first = (int)node * c->per_node;
    int on_node = c->workers - first < c->per_node ? c->workers - first : c->per_node;
    struct env env;
    struct launch_task *task = launch_begin_task(l, node, &env);

    task->name = arena_printf(l->arena, "wk-%d", index);
    task->rank = index;
    task->role = index == 0 ? LAUNCH_MASTER : LAUNCH_WORKER;
    part_gpus(l, index - first, on_node, &env);
    add_cluster(l, c, index == 0 ? "master" : "worker", index, &env);
    end_task(l, task, &env, index == 0 ? "masterCommandLineArgs" : "workerCommandLineArgs");
}

static void add_server(struct launch *l, const struct cluster *c, int index)
{
    struct env env;
    struct launch_task *task = launch_begin_task(l, launch_node_of(l, index, 1), &env);

    task->name = arena_printf(l->arena, "ps-%d", index);
    task->rank = c->workers + index;
    task->role = LAUNCH_SERVER;
    if (env_get(&env, "CUDA_VISIBLE_DEVICES"))
        env_set(&env, "CUDA_VISIBLE_DEVICES", "");
    add_cluster(l, c, "ps", index, &env);
    end_task(l, task, &env, "parameterServerCommandLineArgs");
}

void launch_tensorflow(struct launch *l)
{
    struct cluster c;

    make_cluster(l, &c);
    for (int i = 0; i < c.workers; i++)
        add_worker(l, &c, i);
    for (int i = 0; i < c.servers; i++)
        add_server(l, &c, i);
}
