/* memplan.c - see memplan.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/graph/memplan.h"

#include "base/mem.h"
#include "train/graph/graph.h"

#include <stdint.h>

/* A place: an item with all that lies in it. */
struct place {
    size_t bytes, offset;
    int first, last;
    int item; /* the first of those that share it; ties of size go by it, so that the plan is
                 the same every time */
};

static int root_of(const struct memplan_item *items, int i)
{
    while (items[i].shares >= 0)
        i = items[i].shares;
    return i;
}

static void widen(struct place *place, const struct memplan_item *item)
{
    if (item->bytes > place->bytes)
        place->bytes = item->bytes;
    if (item->first < place->first)
        place->first = item->first;
    if (item->last > place->last)
        place->last = item->last;
}

static int larger_first(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->item - y->item;
}

static bool meet(const struct place *a, const struct place *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Move up past every earlier place that is in the way, lowest first: at[] is kept in order of
 * offset, so one walk finds the lowest gap. */
static size_t lowest(const struct place *place, struct place *const *at, int count)
{
    size_t offset = 0;

    for (int i = 0; i < count; i++) {
        if (!meet(place, at[i]))
            continue;
        if (offset + place->bytes <= at[i]->offset)
            break;
        if (at[i]->offset + at[i]->bytes > offset)
            offset = at[i]->offset + at[i]->bytes;
    }
    return offset;
}

static void insert(struct place **at, int count, struct place *place)
{
    int i = count;

    for (; i > 0 && at[i - 1]->offset > place->offset; i--)
        at[i] = at[i - 1];
    at[i] = place;
}

static size_t put_all(struct place *places, int count)
{
    auto_free struct place **at = xcalloc((size_t)count + 1, sizeof(struct place *));
    size_t end = 0;

    qsort(places, (size_t)count, sizeof *places, larger_first);
    for (int i = 0; i < count; i++) {
        places[i].offset = lowest(&places[i], at, i);
        insert(at, i, &places[i]);
        if (places[i].offset + places[i].bytes > end)
            end = places[i].offset + places[i].bytes;
    }
    return end;
}

static size_t most_alive(const struct place *places, int count)
{
    size_t most = 0;

    for (int i = 0; i < count; i++) { /* the most begins where some place begins */
        size_t sum = 0;

        for (int j = 0; j < count; j++)
            if (places[j].first <= places[i].first && places[i].first <= places[j].last)
                sum += places[j].bytes;
        if (sum > most)
            most = sum;
    }
    return most;
}

static int gather(const struct memplan_item *items, int count, size_t align, struct place *ret)
{
    auto_free int *index = xcalloc((size_t)count + 1, sizeof *index);
    int places = 0;

    for (int i = 0; i < count; i++)
        if (items[i].shares < 0) {
            index[i] = places;
            ret[places++] =
                (struct place){.first = items[i].first, .last = items[i].last, .item = i};
        }
    for (int i = 0; i < count; i++)
        widen(&ret[index[root_of(items, i)]], &items[i]);
    for (int i = 0; i < places; i++)
        ret[i].bytes = (ret[i].bytes + align - 1) & ~(align - 1);
    return places;
}

void memplan_make(struct memplan_item *items, int count, size_t align, struct memplan *ret_plan)
{
    auto_free struct place *places = xcalloc((size_t)count + 1, sizeof *places);
    int n = gather(items, count, align, places);

    ret_plan->bytes = put_all(places, n);
    ret_plan->at_least = most_alive(places, n);
    for (int i = 0; i < n; i++)
        items[places[i].item].offset = places[i].offset;
    for (int i = 0; i < count; i++)
        items[i].offset = items[root_of(items, i)].offset;
}

static bool lives_on(const struct graph *graph, int tensor)
{
    enum role role = graph->tensors[tensor].role;

    for (int i = 0; i < VALUES; i++)
        if (graph->values[i] == tensor)
            return true;
    return role == ROLE_INPUT || role == ROLE_PARAM || role == ROLE_STATE || role == ROLE_GRAD;
}

void graph_life(const struct graph *graph, int tensor, int *ret_first, int *ret_last)
{
    *ret_first = 0;
    *ret_last = graph->op_count - 1;
    if (lives_on(graph, tensor) || graph->tensors[tensor].producer < 0)
        return;
    *ret_first = *ret_last = graph->tensors[tensor].producer;
    for (int i = *ret_first; i < graph->op_count; i++)
        for (int j = 0; j < graph->ops[i].in_count; j++)
            if (graph->ops[i].in[j] == tensor)
                *ret_last = i;
}
