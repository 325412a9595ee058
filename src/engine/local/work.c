/* From a launch plan to a shim's spec.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/folder.h"
#include "engine/local/local-internal.h"

#include <string.h>

/* What a shell and most programs count on; the plan's own values stand. */
static const char *const defaults[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG=C.UTF-8",
    "SHELL=/bin/bash",
};

static bool has_name(const char *const *env, const char *entry)
{
    size_t len = (size_t)(strchr(entry, '=') - entry) + 1;

    for (; *env; env++) {
        if (strncmp(*env, entry, len) == 0)
            return true;
    }
    return false;
}

/* A node with namespaces is a machine with a home of its own: what one job's shells leave there
 * cannot reach the user's, or another node's.  A plain process is the user's, as is its home.
 */
static const char *home_of(const struct node *node)
{
    const char *home = getenv("HOME");

    if (node->local->net)
        return LOCAL_HOME;
    return home && *home ? home : "/root";
}

static const char **
make_env(const struct node *node, const char *const *env, struct arena *arena)
{
    const char *user = getenv("USER");
    const char *shim = node->local->shim, *slash = strrchr(shim, '/');
    const char *own[] = {
        arena_printf(arena, "YARD_NODE=%s", node->folder),
        /* Where yardbench and its like lie: jobs on the host may use them. */
        arena_printf(arena, "YARD_PROGRAMS=%.*s", (int)(slash ? slash - shim : 0), shim),
        arena_printf(arena, "HOME=%s", home_of(node)),
        arena_printf(arena, "USER=%s", user && *user ? user : "root"),
    };
    size_t count = 0;
    const char **list;

    while (env[count])
        count++;
    list = arena_alloc(arena,
                       (count + ARRAY_SIZE(own) + ARRAY_SIZE(defaults) + 1) * sizeof(*list));
    memcpy(list, env, count * sizeof(*list));
    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        if (i == 0 || !has_name(env, own[i]))
            list[count++] = own[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
        if (!has_name(env, defaults[i]))
            list[count++] = defaults[i];
    }
    return list;
}

void work_spec(const struct attempt *attempt,
               const struct node *node,
               const struct launch_task *task,
               const char *cwd,
               struct arena *arena,
               struct shim_spec *ret_spec)
{
    const char **argv = arena_alloc(arena, 4 * sizeof(*argv));
    bool is_entered = node->keeper_fd >= 0;
    const char *logs;
    const char *out = path_of_log(attempt, node, task->stdout_path, arena, &logs);
    const char *errors = path_of_log(attempt, node, task->stderr_path, arena, &logs);

    argv[0] = "bash";
    argv[1] = "-c";
    argv[2] = task->command;
    *ret_spec = (struct shim_spec){
        .argv = argv,
        .env = make_env(node, task->env, arena),
        .cwd = cwd,
        .stdout_path = out,
        .stderr_path = errors,
        .logs = logs,
        .cpus = node->cpus[0] ? node->cpus : NULL,
        .enter_pid = is_entered ? node->keeper.identity.pid : 0,
        .enter_start = node->keeper.identity.start,
        .namespaces = is_entered ? "mnu" : NULL,
        .grace_ms = node->local->grace_ms,
        .umask = 022,
    };
}

/* --- in a container: the environment travels in a file, not in argv --- */

/* <job>/config/<task>.sh, relative to the root. */
static char *script_path(const struct work *work)
{
    const char *wd = work->attempt->plan.work_folder;
    const char *slash = strrchr(wd, '/');

    return xasprintf("%.*s/config/%s.sh", (int)(slash - wd), wd, work->task->name);
}

static void add_quoted(struct str *out, const char *text)
{
    str_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            str_add(out, "'\\''");
        else
            str_add_char(out, *text);
    }
    str_add_char(out, '\'');
}

static bool is_shell_name(const char *entry)
{
    size_t len = strcspn(entry, "=");

    return len > 0 &&
           strspn(entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
                         "0123456789") == len &&
           (entry[0] < '0' || entry[0] > '9');
}

/* The job writes its logs itself, as on the host: what it says after the runtime's client was
 * told to end is not lost.  Logs that the container does not see go through the client. */
static void add_logs(const struct work *work, struct str *text)
{
    const char *const paths[] = {work->task->stdout_path, work->task->stderr_path};
    static const char *const redirections[] = {"\nexec >>", " 2>>"};
    const char *root = work->part->node->root;
    size_t len = strlen(root);

    if (strncmp(paths[0], root, len) != 0 || strncmp(paths[1], root, len) != 0)
        return;
    str_add(text, "if true");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        str_add(text, " && [ -w ");
        add_quoted(text, paths[i]);
        str_add(text, " ]");
    }
    str_add(text, "; then");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        str_add(text, redirections[i]);
        add_quoted(text, paths[i]);
    }
    str_add(text, "\nfi\n");
}

int work_write_script(const struct work *work, struct err *e)
{
    auto_free char *relative = script_path(work);
    auto_close int root = -1;
    auto_str text = {0};

    if (path_open_root(work->part->node, &root, e) < 0)
        return -1;
    for (const char *const *env = work->task->env; *env; env++) {
        if (!is_shell_name(*env))
            continue;
        str_addf(&text, "export %.*s=", (int)strcspn(*env, "="), *env);
        add_quoted(&text, strchr(*env, '=') + 1);
        str_add(&text, "\n");
    }
    str_addf(&text, "export YARD_NODE=");
    add_quoted(&text, work->part->node->folder);
    str_add(&text, "\n");
    add_logs(work, &text);
    str_add(&text, "cd ");
    add_quoted(&text, work->part->node->root);
    str_addf(&text, "/%s || exit 126\ncommand=", work->attempt->plan.work_folder);
    add_quoted(&text, work->task->command);
    str_add(&text, "\ncommand -v bash >/dev/null 2>&1 && exec bash -c \"$command\"\n"
                   "echo 'there is no bash in this image: jobs need one' >&2\nexit 127\n");
    return folder_write_beneath(root, relative, text.data, text.len, 0700, e);
}

void work_spec_contained(const struct work *work,
                         struct arena *arena,
                         struct shim_spec *ret_spec)
{
    auto_free char *relative = script_path(work);
    const char *const *prefix = work->part->container.exec;
    static const char *const none[] = {NULL};
    size_t count = 0;
    const char **argv;

    while (prefix[count])
        count++;
    argv = arena_alloc(arena, (count + 3) * sizeof(*argv));
    memcpy(argv, prefix, count * sizeof(*argv));
    argv[count] = "sh";
    argv[count + 1] = arena_printf(arena, "%s/%s", work->part->node->root, relative);
    work_spec(work->attempt, work->part->node, work->task, "/", arena, ret_spec);
    ret_spec->argv = argv;
    ret_spec->env = make_env(work->part->node, none, arena);
}
