/* weights.c - weights as PyTorch's BERT has them: query, key and value apart.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/bert/bert-internal.h"
#include "train/checkpoint/safetensors.h"

#include <inttypes.h>
#include <string.h>

static const char fused[] = ".attention.self.qkv.";
static const char *const parts[] = {"query", "key", "value"};

enum {
    PARTS = 3,
};

/* "....attention.self.qkv.weight" to "....attention.self.key.weight"; NULL when it is none. */
static char *name_of_part(const char *name, int part)
{
    const char *at = strstr(name, fused);

    if (!at)
        return NULL;
    return xasprintf("%.*s.attention.self.%s.%s", (int)(at - name), name, parts[part],
                     at + strlen(fused));
}

/* One tensor of the file: all of a param, or a third of it. */
struct piece {
    int tensor, part;
    char *name;
};

struct pieces {
    struct plan *plan;
    struct piece *each;
    struct safetensor *described;
    int count;
    float *whole; /* the param read last */
    int of;
};

static void pieces_done(struct pieces *p)
{
    for (int i = 0; i < p->count; i++)
        free(p->each[i].name);
    free(p->each);
    free(p->described);
    free(p->whole);
}
#define auto_pieces __attribute__((cleanup(pieces_done))) struct pieces

static void add_piece(struct pieces *p, int tensor, int part)
{
    const struct tensor *t = &plan_graph(p->plan)->tensors[tensor];
    struct piece *piece = &p->each[p->count];
    struct safetensor *s = &p->described[p->count++];

    *piece = (struct piece){.tensor = tensor, .part = part};
    piece->name = part < 0 ? xstrdup(t->name) : name_of_part(t->name, part);
    *s = (struct safetensor){.name = piece->name,
                             .dtype = "F32",
                             .dims = t->dims,
                             .bytes = (size_t)tensor_elements(t) * sizeof(float)};
    memcpy(s->dim, t->dim, (size_t)t->dims * sizeof(*t->dim));
    if (part >= 0) {
        s->dim[0] /= PARTS;
        s->bytes /= PARTS;
    }
}

static void pieces_init(struct pieces *p, struct plan *plan)
{
    const struct graph *g = plan_graph(plan);
    size_t room = PARTS * (size_t)g->tensor_count;

    *p = (struct pieces){.plan = plan, .of = -1};
    p->each = xcalloc(room, sizeof(*p->each));
    p->described = xcalloc(room, sizeof(*p->described));
    for (int t = 0; t < g->tensor_count; t++) {
        if (g->tensors[t].role != ROLE_PARAM)
            continue;
        if (!strstr(g->tensors[t].name, fused))
            add_piece(p, t, -1);
        for (int part = 0; part < PARTS && strstr(g->tensors[t].name, fused); part++)
            add_piece(p, t, part);
    }
}

static int read_whole(struct pieces *p, int tensor, struct err *e)
{
    size_t count = (size_t)tensor_elements(&plan_graph(p->plan)->tensors[tensor]);

    if (p->of == tensor)
        return 0;
    p->of = tensor;
    p->whole = xreallocarray(p->whole, count, sizeof(*p->whole));
    return plan_read(p->plan, tensor, p->whole, count * sizeof(*p->whole), e);
}

static int fill(void *arg, int index, void *data, size_t bytes, struct err *e)
{
    struct pieces *p = arg;
    const struct piece *piece = &p->each[index];
    size_t at = piece->part > 0 ? (size_t)piece->part * bytes : 0;

    if (read_whole(p, piece->tensor, e) < 0)
        return -1;
    memcpy(data, (const char *)p->whole + at, bytes);
    return 0;
}

int bert_weights_save(struct plan *plan, const char *path, struct err *e)
{
    static const struct safetensors_pair pairs[] = {{"format", "pt"}};
    auto_pieces p;

    pieces_init(&p, plan);
    return safetensors_write(path, p.described, p.count, pairs, (int)ARRAY_SIZE(pairs), fill,
                             &p, e);
}

static int check(const struct safetensor *have, const struct safetensor *want, struct err *e)
{
    if (!have)
        return err_set(e, ERR_INVALID, "it has no tensor \"%.100s\"", want->name);
    if (!str_equal(have->dtype, "F32"))
        return err_set(e, ERR_INVALID, "tensor \"%.100s\" is %.10s, not F32", have->name,
                       have->dtype);
    if (have->dims != want->dims ||
        memcmp(have->dim, want->dim, (size_t)want->dims * sizeof(*want->dim)) != 0)
        return err_set(
            e, ERR_INVALID,
            "tensor \"%.100s\" has %zu bytes or another shape, the network's has %zu",
            have->name, have->bytes, want->bytes);
    return 0;
}

/* A checkpoint of ours has query, key and value in one. */
static int
take_whole(struct plan *plan, int tensor, const struct safetensors *file, struct err *e)
{
    const struct tensor *t = &plan_graph(plan)->tensors[tensor];
    const struct safetensor *have = safetensors_find(file, t->name);
    struct safetensor want = {
        .name = t->name, .dims = t->dims, .bytes = (size_t)tensor_elements(t) * sizeof(float)};

    memcpy(want.dim, t->dim, (size_t)t->dims * sizeof(*t->dim));
    if (check(have, &want, e) < 0)
        return -1;
    return plan_write(plan, tensor, have->data, have->bytes, e);
}

/* The last part has the param whole. */
static int take_part(struct pieces *p, int index, const struct safetensors *file, struct err *e)
{
    const struct piece *piece = &p->each[index];
    const struct safetensor *want = &p->described[index];
    const struct safetensor *have = safetensors_find(file, want->name);

    if (check(have, want, e) < 0)
        return -1;
    p->whole = xreallocarray(p->whole, PARTS, want->bytes);
    memcpy((char *)p->whole + (size_t)piece->part * want->bytes, have->data, want->bytes);
    if (piece->part < PARTS - 1)
        return 0;
    return plan_write(p->plan, piece->tensor, p->whole, PARTS * want->bytes, e);
}

static int load(struct plan *plan, const struct safetensors *file, struct err *e)
{
    const struct graph *g = plan_graph(plan);
    auto_pieces p;

    pieces_init(&p, plan);
    for (int i = 0; i < p.count; i++) {
        int tensor = p.each[i].tensor;
        bool is_whole =
            p.each[i].part < 0 || safetensors_find(file, g->tensors[tensor].name) != NULL;

        if (is_whole ? take_whole(plan, tensor, file, e) < 0 : take_part(&p, i, file, e) < 0)
            return -1;
    }
    return 0;
}

int bert_weights_load(struct plan *plan, const char *path, struct err *e)
{
    struct safetensors *file;
    int rc;

    if (safetensors_open(path, &file, e) < 0)
        return -1;
    rc = load(plan, file, e);
    safetensors_free(file);
    return rc < 0 ? err_wrap(e, "cannot use the weights \"%.200s\"", path) : 0;
}
