/* plan.c - places, actions, memory: see plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/backend/onednn/plan.h"

#include "base/mem.h"

static void *grown(void *array, int count, size_t size)
{
    if (count & (count - 1))
        return array;
    return xreallocarray(array, count ? (size_t)count * 2 : 1, size);
}

static int new_item(struct onednn_plan *p, size_t bytes, int n, int shares)
{
    struct memplan_item item = {.bytes = bytes, .first = n, .last = n, .shares = shares};

    if (p->options.keeps_all) {
        item.first = 0;
        item.last = p->head.graph->op_count;
        item.shares = -1;
    }
    p->items = grown(p->items, p->item_count, sizeof *p->items);
    p->items[p->item_count] = item;
    return p->item_count++;
}

void touch_place(struct onednn_plan *p, struct place *place, int n)
{
    if (place->item >= 0 && p->items[place->item].last < n)
        p->items[place->item].last = n;
}

struct place *touch(struct onednn_plan *p, int t, int n)
{
    touch_place(p, &p->places[t], n);
    return &p->places[t];
}

static bool is_planned(const struct tensor *t)
{
    return t->role == ROLE_ACTIVATION || t->role == ROLE_EXACT;
}

struct place *
put_over(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int over, int n)
{
    struct place *place = &p->places[t];
    int shares = over >= 0 && p->last_read[over] <= n ? p->places[over].item : -1;

    place->md = *md;
    place->is_set = true;
    place->bytes = shim_bytes(md);
    /* Loops work in whole blocks, also on what has one element for each channel. */
    if (is_planned(tensor_of(p, t)))
        place->item = new_item(p, (place->bytes + 63) & ~(size_t)63, n, shares);
    return place;
}

struct place *put(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int n)
{
    return put_over(p, t, md, -1, n);
}

const dnnl_memory_desc_t *layout_of(const struct onednn_plan *p, int t)
{
    return &p->places[t].md;
}

static struct place *new_place(struct onednn_plan *p, const dnnl_memory_desc_t *md)
{
    struct place *place = arena_alloc(p->arena, sizeof *place);

    place->item = -1;
    place->md = *md;
    place->is_set = true;
    place->bytes = shim_bytes(md);
    p->more = (struct place **)grown((void *)p->more, p->more_count, sizeof(struct place *));
    p->more[p->more_count++] = place;
    return place;
}

struct place *scratch(struct onednn_plan *p, const dnnl_memory_desc_t *md, int n)
{
    struct place *place = new_place(p, md);

    if (n >= 0)
        place->item = new_item(p, place->bytes, n, -1);
    return place;
}

struct place *scratch_floats(struct onednn_plan *p, int64_t floats, int n)
{
    dnnl_memory_desc_t md = shim_dense(1, &floats);

    return scratch(p, &md, n);
}

struct place *
in_layout(struct onednn_plan *p, int t, const dnnl_memory_desc_t *md, int n, struct err *e)
{
    struct place *from = touch(p, t, n), *to;

    if (shim_same(&from->md, md))
        return from;
    to = scratch(p, md, n);
    p->reorders++;
    return add_reorder(p, n, from, to, e) < 0 ? NULL : to;
}

struct action *add_action(struct onednn_plan *p, int n, action_fn *run, size_t work_bytes)
{
    struct action *a;

    p->actions = grown(p->actions, p->action_count, sizeof *p->actions);
    a = &p->actions[p->action_count++];
    *a = (struct action){.op = n, .run = run, .label = p->head.graph->ops[n].name};
    if (work_bytes)
        a->work = arena_alloc(p->arena, work_bytes);
    return a;
}

/* All scratchpads are one piece of memory: primitives run one after another. */
static int
add_scratchpad(struct onednn_plan *p, struct action *a, dnnl_primitive_desc_t pd, struct err *e)
{
    dnnl_memory_desc_t md = shim_query(pd, dnnl_query_scratchpad_md);
    dnnl_memory_t memory;
    dnnl_status_t status;
    size_t bytes = shim_bytes(&md);

    if (bytes == 0)
        return 0;
    if (p->options.workspace_cap && bytes > p->options.workspace_cap)
        return err_set(e, ERR_TOO_LARGE,
                       "\"%s\" needs %zu bytes of scratch memory, the limit is %zu", a->label,
                       bytes, p->options.workspace_cap);
    status = dnnl_memory_create(&memory, &md, p->engine, DNNL_MEMORY_NONE);
    if (status != dnnl_success)
        return shim_fail(e, status, "scratch memory");
    p->scratches =
        (dnnl_memory_t *)grown((void *)p->scratches, p->scratch_count, sizeof(dnnl_memory_t));
    p->scratches[p->scratch_count++] = memory;
    if (bytes > p->scratch_bytes)
        p->scratch_bytes = bytes;
    a->args[a->arg_count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, memory};
    return 0;
}

struct action *
add_primitive(struct onednn_plan *p, int n, dnnl_primitive_desc_t pd, bool keep, struct err *e)
{
    struct action *a = add_action(p, n, NULL, 0);
    dnnl_status_t status = dnnl_primitive_create(&a->primitive, pd);
    int made = status == dnnl_success ? add_scratchpad(p, a, pd, e)
                                      : shim_fail(e, status, "a primitive");

    if (!keep)
        dnnl_primitive_desc_destroy(pd);
    return made < 0 ? NULL : a;
}

/* The memory object is made when addresses are known; until then the argument holds the
 * place. */
void add_arg(struct action *a, int arg, struct place *place)
{
    a->args[a->arg_count++] = (dnnl_exec_arg_t){arg, (dnnl_memory_t)(void *)place};
}

int add_reorder(
    struct onednn_plan *p, int n, struct place *from, struct place *to, struct err *e)
{
    dnnl_primitive_desc_t pd;
    struct action *a;

    if (shim_reorder(p->engine, &from->md, &to->md, &pd, e) < 0)
        return -1;
    a = add_primitive(p, n, pd, false, e);
    if (!a)
        return -1;
    a->track = 1;
    touch_place(p, from, n);
    touch_place(p, to, n);
    add_arg(a, DNNL_ARG_FROM, from);
    add_arg(a, DNNL_ARG_TO, to);
    return 0;
}
