/* The tasks of an attempt: started, taken up, stopped.  SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/local-internal.h"

#include <stdio.h>

static void journal_end(struct work *work)
{
    const struct task_report *report = &work->report;

    if (report->end != TASK_ENDED)
        journal_add(work->part, "task %s: %s", work->task->name,
                    report->error[0] ? report->error : "lost");
    else if (report->record.signal)
        journal_add(work->part, "task %s: ended by signal %d", work->task->name,
                    report->record.signal);
    else
        journal_add(work->part, "task %s: exit code %d", work->task->name, report->record.code);
}

static void on_work_ended(void *context, const struct task_report *report)
{
    struct work *work = context;

    task_free(take_ptr(&work->live));
    work->has_ended = true;
    work->report = *report;
    journal_end(work);
    attempt_look_again(work->attempt);
}

/* Ranks that come by ssh live in the group of the node's sshd: their want of memory counts
 * too. */
static const char **list_memory(const struct work *work)
{
    const struct attempt *attempt = work->attempt;
    struct cgroups *cgroups = attempt->local->cgroups;
    struct arena *arena = work->part->arena;
    const char **list, **own = work->memory, **boxed = work->part->boxed_memory;
    const char **folders, **ssh;
    size_t most = 16 + attempt->told.node_count * 4, count = 0;

    list = arena_alloc(arena, most * sizeof(*list));
    for (; own && *own; own++)
        list[count++] = *own;
    for (; boxed && *boxed; boxed++)
        list[count++] = *boxed;
    for (size_t i = 0; i < attempt->told.node_count; i++) {
        cgroup_make_leaf(cgroups, attempt->parts[i].node->name, "ssh", arena, &folders, &ssh);
        for (; *ssh; ssh++)
            list[count++] = *ssh;
    }
    return list;
}

static void start_work(struct work *work)
{
    struct attempt *attempt = work->attempt;
    struct arena *arena = work->part->arena;
    const struct node *node = work->part->node;
    struct shim_spec spec;
    struct err e = {0};

    if (attempt->told.image)
        work_spec_contained(work, arena, &spec);
    else
        work_spec(attempt, node, work->task,
                  arena_printf(arena, "%s/%s", node->root, attempt->plan.work_folder), arena,
                  &spec);
    spec.cgroups = work->cgroups;
    spec.memory = list_memory(work);
    if (task_start(attempt->local->tasks, work->folder, &spec, on_work_ended, work, &work->live,
                   &e) == 0) {
        journal_add(work->part, "task %s: started", work->task->name);
        return;
    }
    work->has_ended = true;
    work->report = (struct task_report){.end = TASK_NOT_STARTED};
    snprintf(work->report.error, sizeof(work->report.error), "%s", e.msg);
    attempt_look_again(attempt);
}

void works_start(struct attempt *attempt, bool preparations)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        struct work *work = &attempt->works[i];

        if (work->is_preparation == preparations && !work->has_ended && !work->live)
            start_work(work);
    }
}

static bool has_failed(const struct work *work)
{
    const struct shim_record *record = &work->report.record;

    return work->has_ended && (work->report.end != TASK_ENDED || record->code != 0 ||
                               record->signal || record->was_stopped);
}

/* One has failed, or all that count are done. */
bool works_are_over(const struct attempt *attempt, bool preparations)
{
    bool is_over = true;

    for (size_t i = 0; i < attempt->work_count; i++) {
        const struct work *work = &attempt->works[i];

        if (work->is_preparation != preparations)
            continue;
        if (has_failed(work))
            return true;
        if (!work->has_ended && (preparations || work->task->role != LAUNCH_SERVER))
            is_over = false;
    }
    return is_over;
}

bool works_have_failed(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        if (has_failed(&attempt->works[i]))
            return true;
    }
    return false;
}

void works_stop(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        struct work *work = &attempt->works[i];

        if (!work->live)
            continue;
        if (work->part->node->stage == NODE_IS_BROKEN)
            task_kill(work->live);
        else
            task_stop(work->live, -1);
    }
}

/* What a daemon before us left running is watched again, so that it can be stopped. */
void works_adopt(struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        struct work *work = &attempt->works[i];

        if (work->live || work->has_ended || work->found == SHIM_ABSENT)
            continue;
        if (task_adopt(attempt->local->tasks, work->folder, on_work_ended, work, &work->live,
                       NULL) < 0) {
            work->has_ended = true;
            work->report.end = TASK_LOST;
        }
    }
}

bool works_are_alive(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->work_count; i++) {
        if (attempt->works[i].live)
            return true;
    }
    return false;
}
