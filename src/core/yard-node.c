/* Nodes: their events, their places in the sets of their cluster, their timers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/yard-internal.h"

#include <stdio.h>
#include <string.h>

/* An automatic cluster gives up nodes that have been of no use for idle_ms.  A cluster of fixed
 * size keeps them. */
void mind_time_node(struct yard *y, struct node *n)
{
    const struct yard_cluster *c = &n->cluster->it;
    bool is_useless =
        n->it.state == NODE_IDLE || (n->it.state == NODE_UNUSABLE && n->it.attempt_id == 0);
    int64_t patience_ms = c->idle_ms;

    if (n->it.state == NODE_UNUSABLE && patience_ms < MIND_HEAL_MS)
        patience_ms = MIND_HEAL_MS;
    ordered_remove(&y->idle_timers, &n->timer);
    ordered_remove(&n->cluster->expired, &n->expired);
    if (is_useless && c->is_automatic)
        ordered_add(&y->idle_timers, &n->timer, schedule_add_ms(n->it.since_ms, patience_ms),
                    n->it.id);
}

static void place(struct yard *y, struct node *n)
{
    struct cluster *c = n->cluster;

    ordered_remove(&c->idle, &n->idle);
    if (n->it.state == NODE_IDLE)
        ordered_add(&c->idle, &n->idle, 0, n->it.id);
    mind_time_node(y, n);
}

int mind_move_node(struct yard *y, struct node *n, enum node_event event, struct err *e)
{
    struct cluster *c = n->cluster;
    enum node_state from = n->it.state;

    if (node_apply(&n->it, event, y->now_ms, e) < 0)
        return -1;
    c->count[from]--;
    c->count[n->it.state]++;
    place(y, n);
    mind_changed_node(y, n);
    mind_touch(y, c);
    return 0;
}

void mind_enter_node(struct yard *y, struct node *n, struct cluster *c)
{
    n->cluster = c;
    n->cores = c->it.cores;
    n->gpus = c->it.gpus;
    y->cores += n->cores;
    y->gpus += n->gpus;
    y->node_count++;
    ordered_add(&c->nodes, &n->in_cluster, 0, n->it.id);
    c->count[n->it.state]++;
    if (n->it.state == NODE_UNUSABLE && n->it.attempt_id != 0)
        c->lost++;
    place(y, n);
}

struct node *mind_make_node(struct yard *y, struct cluster *c)
{
    struct yard_node values = {
        .id = ++y->last_node_id,
        .cluster_id = c->it.id,
        .state = NODE_CREATING,
        .since_ms = y->now_ms,
    };
    struct node *n;

    snprintf(values.name, sizeof(values.name), "tvm-%lld-%lld", (long long)c->it.id,
             (long long)values.id);
    n = mind_new_node(y, &values);
    mind_enter_node(y, n, c);
    mind_changed_node(y, n);
    mind_act(y, ACTION_NODE_ADD, n->it.id);
    return n;
}

void mind_let_node_go(struct yard *y, struct node *n)
{
    if (mind_move_node(y, n, NODE_EV_LEAVE, NULL) == 0)
        mind_act(y, ACTION_NODE_REMOVE, n->it.id);
}

void mind_release_node(struct yard *y, struct node *n)
{
    bool is_lost = n->it.state == NODE_UNUSABLE;

    n->it.attempt_id = 0;
    mind_changed_node(y, n);
    if (is_lost) {
        n->cluster->lost--;
        mind_let_node_go(y, n);
    } else {
        mind_move_node(y, n, NODE_EV_RELEASE, NULL);
    }
}

void mind_lose_node(struct yard *y, struct node *n)
{
    struct attempt *a = n->it.attempt_id ? mind_attempt(y, n->it.attempt_id) : NULL;

    if (mind_move_node(y, n, NODE_EV_BREAK, NULL) < 0)
        return;
    if (!a) {
        mind_let_node_go(y, n);
        return;
    }
    n->cluster->lost++;
    n->cluster->held--;
    mind_lose_hold(a, n->it.id);
    mind_stop_attempt(y, a, STOP_NODE_LOST);
}

/* --- events --- */

static int find(struct yard *y, int64_t id, struct node **ret_node, struct err *e)
{
    struct node *n = mind_node(y, id);

    if (!n)
        return err_set(e, ERR_CONFLICT, "node %lld is gone", (long long)id);
    *ret_node = n;
    return 0;
}

int yard_node_up(struct yard *y, int64_t node_id, int64_t now_ms, struct err *e)
{
    struct node *n;

    if (find(y, node_id, &n, e) < 0)
        return -1;
    if (n->it.state == NODE_IDLE || n->it.state == NODE_RUNNING)
        return 0;
    mind_clock(y, now_ms);
    if (mind_move_node(y, n, NODE_EV_UP, e) < 0)
        return -1;
    mind_settle(y);
    return 0;
}

static void
note_error(struct yard_node *node, const char *code, const char *message, const char *info)
{
    snprintf(node->error_code, sizeof(node->error_code), "%s", code ? code : "");
    snprintf(node->error_message, sizeof(node->error_message), "%s", message ? message : "");
    snprintf(node->error_info, sizeof(node->error_info), "%s", info ? info : "");
}

int yard_node_failed(struct yard *y,
                     int64_t node_id,
                     const char *code,
                     const char *message,
                     const char *info,
                     int64_t now_ms,
                     struct err *e)
{
    struct node *n;

    if (find(y, node_id, &n, e) < 0)
        return -1;
    mind_clock(y, now_ms);
    if (n->it.state == NODE_CREATING) {
        mind_move_node(y, n, NODE_EV_BREAK, NULL);
    } else if (n->it.state == NODE_IDLE || n->it.state == NODE_RUNNING) {
        mind_lose_node(y, n);
    } else {
        return err_set(e, ERR_CONFLICT, "node %s is %s: the report comes too late", n->it.name,
                       node_state_name(n->it.state));
    }
    note_error(&n->it, code, message, info);
    mind_settle(y);
    return 0;
}

int yard_node_gone(struct yard *y, int64_t node_id, int64_t now_ms, struct err *e)
{
    struct node *n;

    if (find(y, node_id, &n, e) < 0)
        return -1;
    mind_clock(y, now_ms);
    if (mind_move_node(y, n, NODE_EV_GONE, e) < 0)
        return -1;
    n->cluster->count[NODE_GONE]--;
    ordered_remove(&n->cluster->nodes, &n->in_cluster);
    y->cores -= n->cores;
    y->gpus -= n->gpus;
    y->node_count--;
    mind_bury_node(y, n);
    mind_touch_short(y);
    mind_settle(y);
    return 0;
}
