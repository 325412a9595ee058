/* The loop side of a node: its stages.
 *
 *     making -> setting up -> ready -> (keeper ended) broken
 *        any -> broken; any -> leaving -> freed
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"
#include "engine/local/keeper.h"
#include "engine/local/local-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TAIL_MS = 10 * 1000, /* for reading a log */
};

/* An errand for a node. */
struct node_errand {
    struct errand errand;
    struct node *node;
    int rc;
    struct node_outcome failure;
};

static void submit(struct node *node,
                   void (*work)(struct errand *errand),
                   void (*done)(struct errand *errand),
                   const struct node_outcome *failure)
{
    struct node_errand *errand = xcalloc(1, sizeof(*errand));

    errand->errand.work = work;
    errand->errand.done = done;
    errand->node = node;
    if (failure)
        errand->failure = *failure;
    node->is_busy = true;
    errand_submit(node->local->errands, &errand->errand);
}

/* --- reports --- */

static void report(struct node *node)
{
    const struct engine_events *events = &node->local->events;
    const struct node_outcome *why = node->failure;

    if (node->stage == NODE_IS_READY)
        events->node_up(events->context, node->id);
    else if (node->stage == NODE_IS_BROKEN)
        events->node_failed(events->context, node->id, why->code, why->message, why->info);
}

static void tell_again(struct loop_task *task)
{
    report(container_of(task, struct node, tell));
}

static void become(struct node *node, enum node_stage stage)
{
    node->stage = stage;
    loop_timer_cancel(&node->late);
    report(node);
    for (struct attempt *a = node->local->attempts, *next; a; a = next) {
        next = a->next;
        attempt_node_changed(a, node);
    }
}

static void become_broken(struct node *node, const struct node_outcome *failure)
{
    if (node->stage == NODE_IS_BROKEN || node->stage == NODE_IS_LEAVING)
        return;
    node->failure = arena_alloc(node->arena, sizeof(*node->failure));
    *node->failure = *failure;
    become(node, NODE_IS_BROKEN);
}

/* --- leaving --- */

static void work_unmake(struct errand *errand)
{
    struct node *node = ((struct node_errand *)errand)->node;

    if (node->name || node_recall(node, NULL) == 0)
        node_unmake(node);
}

static void done_unmake(struct errand *errand)
{
    struct node *node = ((struct node_errand *)errand)->node;
    struct local *local = node->local;
    int64_t id = node->id;
    struct node **at;

    free(errand);
    for (at = &local->nodes; *at != node;)
        at = &(*at)->next;
    *at = node->next;
    node_free(node);
    local->events.node_gone(local->events.context, id);
}

static void leave_if_possible(struct node *node)
{
    if (!node->is_removing || node->is_busy || node->attempt || node->stage == NODE_IS_LEAVING)
        return;
    node->stage = NODE_IS_LEAVING;
    loop_timer_cancel(&node->late);
    loop_child_unwatch(&node->watch);
    task_free(take_ptr(&node->setup));
    submit(node, work_unmake, done_unmake, NULL);
}

void node_let_go(struct node *node)
{
    node->attempt = NULL;
    leave_if_possible(node);
}

/* --- set-up task --- */

/* Where its logs lie may be slow, or never answer. */
static void work_tail(struct errand *errand)
{
    struct node_errand *self = (struct node_errand *)errand;
    const struct node *node = self->node;
    struct launch_node as_launched = node_launch(node);
    autoptr(arena) arena = arena_new();
    struct launch_task task;

    if (launch_setup_task(node->cluster->spec, node->cluster->name, node->cluster->suffix,
                          &as_launched, arena, &task, NULL) == 0 &&
        task.command)
        result_tail(NULL, node, &task, self->failure.info, sizeof(self->failure.info));
}

static void done_tail(struct errand *errand)
{
    struct node_errand *self = (struct node_errand *)errand;
    struct node *node = self->node;

    node->is_busy = false;
    if (node->is_removing)
        leave_if_possible(node);
    else
        become_broken(node, &self->failure);
    free(self);
}

/* Its set-up has failed: with the last lines of its log, it is broken. */
static void fail_setup(struct node *node, const struct node_outcome *failure)
{
    submit(node, work_tail, done_tail, failure);
}

static void on_setup_ended(void *context, const struct task_report *told)
{
    struct node *node = context;
    struct node_outcome failure = {.code = "NodeSetupFailed"};

    task_free(take_ptr(&node->setup));
    if (node->stage != NODE_IS_SETTING_UP || node->is_busy)
        return; /* it failed otherwise */
    if (told->end == TASK_ENDED && told->record.code == 0) {
        become(node, NODE_IS_READY);
        return;
    }
    if (told->end == TASK_ENDED && told->record.code > 0)
        snprintf(failure.message, sizeof(failure.message),
                 "Node setup task failed with non-zero exit code %d", told->record.code);
    else
        snprintf(failure.message, sizeof(failure.message), "Node setup task failed: %s",
                 told->error[0] ? told->error : "it was killed");
    fail_setup(node, &failure);
}

/* true: it runs, or has failed to. */
static bool start_setup(struct node *node)
{
    struct launch_node self = node_launch(node);
    struct launch_task task = {0};
    struct node_outcome failure = {.code = "NodeSetupFailed",
                                   .message = "The node's setup task could not be started"};
    struct shim_spec spec;
    struct err e = {0};

    if (launch_setup_task(node->cluster->spec, node->cluster->name, node->cluster->suffix,
                          &self, node->arena, &task, &e) == 0) {
        if (!task.command)
            return false;
        work_spec(NULL, node, &task, node->root, node->arena, &spec);
        cgroup_make_leaf(node->local->cgroups, node->name, "setup", node->arena, &spec.cgroups,
                         &spec.memory);
        node->stage = NODE_IS_SETTING_UP;
        if (task_start(node->local->tasks, arena_printf(node->arena, "%s/setup", node->folder),
                       &spec, on_setup_ended, node, &node->setup, &e) == 0)
            return true;
    }
    snprintf(failure.info, sizeof(failure.info), "%s", e.msg);
    become_broken(node, &failure);
    return true;
}

/* --- too late --- */

static const char *what_it_did(const struct node *node)
{
    if (node->stage != NODE_IS_SETTING_UP)
        return "it was still being made";
    return node->is_busy ? "its setup task had failed, and its log could not be read"
                         : "its setup task was still running";
}

/* What hangs is left to itself: it is gone with the node. */
static void on_late(struct loop_timer *timer)
{
    struct node *node = container_of(timer, struct node, late);
    struct node_outcome failure = {.code = "NodeStartTimedOut"};

    snprintf(failure.message, sizeof(failure.message),
             "The node was not ready within %lld s: %s (node_start_seconds)",
             (long long)node->local->start_ms / 1000, what_it_did(node));
    if (node->is_busy || node->stage != NODE_IS_SETTING_UP) {
        become_broken(node, &failure);
        return;
    }
    if (node->setup)
        task_kill(node->setup);
    fail_setup(node, &failure);
    /* Its log may be where nothing answers. */
    loop_timer_set(node->local->loop, &node->late, TAIL_MS);
}

/* --- making --- */

static void on_keeper_ended(struct loop_child *child, int wait_status)
{
    struct node *node = container_of(child, struct node, watch);
    struct node_outcome failure = {
        .code = "NodeLost", .message = "The node was lost", .info = "its keeper has ended"};

    (void)wait_status;
    task_free(take_ptr(&node->setup));
    become_broken(node, &failure);
}

static int watch_keeper(struct node *node)
{
    struct err e = {0};

    if (node->keeper_fd < 0)
        return 0;
    node->watch.ended = on_keeper_ended;
    if (loop_child_watch(node->local->loop, &node->watch, node->keeper.identity.pid, &e) < 0)
        return -1;
    /* The number may have been used again between looking and watching. */
    if (keeper_lives(&node->keeper))
        return 0;
    loop_child_unwatch(&node->watch);
    return -1;
}

static void work_make(struct errand *errand)
{
    struct node_errand *self = (struct node_errand *)errand;

    self->rc = node_make(self->node, &self->failure);
}

static void done_make(struct errand *errand)
{
    struct node_errand *self = (struct node_errand *)errand;
    struct node *node = self->node;

    FAULT("node.made");
    node->is_busy = false;
    if (node->stage == NODE_IS_MAKING && self->rc == 0 && watch_keeper(node) < 0) {
        self->rc = -1;
        self->failure = (struct node_outcome){
            .code = "NodeLost", .message = "The node was lost", .info = "its keeper has ended"};
    }
    if (node->is_removing)
        leave_if_possible(node);
    else if (self->rc < 0)
        become_broken(node, &self->failure);
    else if (node->stage == NODE_IS_MAKING && !start_setup(node))
        become(node, NODE_IS_READY);
    free(self);
}

static struct node *node_new(struct local *local, int64_t id)
{
    struct node *node = xcalloc(1, sizeof(*node));

    node->local = local;
    node->arena = arena_new();
    node->id = id;
    node->keeper_fd = node->net_fd = -1;
    node->tell.run = tell_again;
    node->late.fired = on_late;
    node->next = local->nodes;
    local->nodes = node;
    return node;
}

void node_add(struct local *local, const struct engine_node *told)
{
    struct node *node = local_find_node(local, told->id);

    if (node) {
        loop_task_add(local->loop, &node->tell);
        return;
    }
    node = node_new(local, told->id);
    node->name = arena_strdup(node->arena, told->name);
    node->folder = arena_printf(node->arena, "%s/nodes/%s", local->home, told->name);
    node->root = local->net ? LOCAL_ROOT : arena_printf(node->arena, "%s/root", node->folder);
    node->cluster = copy_cluster(told->cluster, node->arena);
    loop_timer_set(local->loop, &node->late, local->start_ms);
    submit(node, work_make, done_make, NULL);
}

void node_remove(struct local *local, int64_t id)
{
    struct node *node = local_find_node(local, id);

    if (!node)
        node = node_new(local, id);
    node->is_removing = true;
    leave_if_possible(node);
}

void node_free(struct node *node)
{
    loop_child_unwatch(&node->watch);
    loop_task_cancel(&node->tell);
    loop_timer_cancel(&node->late);
    task_free(node->setup);
    mem_close_fd(&node->keeper_fd);
    mem_close_fd(&node->net_fd);
    arena_free(node->arena);
    free(node);
}
