/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/checkpoint.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/backend.h"
#include "train/checkpoint/safetensors-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char format_name[] = "yardbench 1";
static const char slot_prefix[] = "optimizer.";

/* The tensors of a plan that are kept, in the order of the graph. */
struct kept {
    struct plan *plan;
    int *tensor;
    struct safetensor *described;
    int count;
};

static void kept_done(struct kept *kept)
{
    free(kept->tensor);
    free(kept->described);
}
#define auto_kept __attribute__((cleanup(kept_done))) struct kept

static bool is_kept(const struct tensor *t)
{
    return t->role == ROLE_PARAM || t->role == ROLE_STATE;
}

static struct safetensor describe(const struct tensor *t)
{
    struct safetensor s = {
        .name = t->name,
        .dtype = "F32",
        .dims = t->dims,
        .bytes = (size_t)tensor_elements(t) * sizeof(float),
    };

    memcpy(s.dim, t->dim, (size_t)t->dims * sizeof(*t->dim));
    return s;
}

static void kept_init(struct kept *kept, struct plan *plan)
{
    const struct graph *g = plan_graph(plan);
    size_t room = (size_t)g->tensor_count;

    kept->plan = plan;
    kept->tensor = xcalloc(room, sizeof(*kept->tensor));
    kept->described = xcalloc(room, sizeof(*kept->described));
    for (int i = 0; i < g->tensor_count; i++) {
        if (!is_kept(&g->tensors[i]))
            continue;
        kept->tensor[kept->count] = i;
        kept->described[kept->count++] = describe(&g->tensors[i]);
    }
}

static int fill(void *arg, int index, void *data, size_t bytes, struct err *e)
{
    struct kept *kept = arg;

    return plan_read(kept->plan, kept->tensor[index], data, bytes, e);
}

int checkpoint_save(struct plan *plan,
                    const char *path,
                    const struct checkpoint_facts *facts,
                    struct err *e)
{
    auto_kept kept = {0};
    autoptr(arena) arena = arena_new();
    const struct safetensors_pair pairs[] = {
        {"format", format_name},
        {"model", facts->model},
        {"dataset", facts->dataset},
        {"optimizer", facts->optimizer},
        {"step", arena_printf(arena, "%" PRId64, facts->step)},
        {"batches", arena_printf(arena, "%" PRId64, facts->batches)},
        {"seed", arena_printf(arena, "%" PRIu64, facts->seed)},
        {"loss_scale", arena_printf(arena, "%.17g", facts->loss_scale)},
        {"good_steps", arena_printf(arena, "%" PRId64, facts->good_steps)},
        {"ranks", arena_printf(arena, "%d", facts->ranks)},
        {"classes", arena_printf(arena, "%" PRId64, facts->classes)},
    };

    kept_init(&kept, plan);
    return safetensors_write(path, kept.described, kept.count, pairs, (int)ARRAY_SIZE(pairs),
                             fill, &kept, e);
}

/* "[64, 3, 7, 7]" */
static const char *shape_text(struct arena *arena, int dims, const int64_t *dim)
{
    char *text = arena_strdup(arena, "[");

    for (int i = 0; i < dims; i++)
        text = arena_printf(arena, "%s%s%" PRId64, text, i ? ", " : "", dim[i]);
    return arena_printf(arena, "%s]", text);
}

static int
check_shape(const struct safetensor *have, const struct safetensor *want, struct err *e)
{
    autoptr(arena) arena = arena_new();

    if (!str_equal(have->dtype, "F32"))
        return err_set(e, ERR_INVALID, "tensor \"%.100s\" is %.10s, not F32", have->name,
                       have->dtype);
    if (have->dims == want->dims &&
        memcmp(have->dim, want->dim, (size_t)want->dims * sizeof(*want->dim)) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "tensor \"%.100s\" is %s there and %s in this network",
                   have->name, shape_text(arena, have->dims, have->dim),
                   shape_text(arena, want->dims, want->dim));
}

static int take_tensor(const struct kept *kept,
                       int i,
                       const struct safetensors *file,
                       bool params_only,
                       int *missing,
                       struct err *e)
{
    const struct safetensor *want = &kept->described[i];
    const struct safetensor *have;
    bool is_slot = str_starts(want->name, slot_prefix);

    if (is_slot && params_only)
        return 0;
    have = safetensors_find(file, want->name);
    if (!have && is_slot) {
        *missing += 1;
        return 0;
    }
    if (!have)
        return err_set(e, ERR_INVALID, "it has no tensor \"%.100s\"", want->name);
    if (check_shape(have, want, e) < 0)
        return -1;
    return plan_write(kept->plan, kept->tensor[i], have->data, have->bytes, e);
}

/* All shapes first: a checkpoint that does not fit changes nothing. */
static int check_all(const struct kept *kept, const struct safetensors *file, struct err *e)
{
    for (int i = 0; i < kept->count; i++) {
        const struct safetensor *want = &kept->described[i];
        const struct safetensor *have = safetensors_find(file, want->name);

        if (!have && !str_starts(want->name, slot_prefix))
            return err_set(e, ERR_INVALID, "it has no tensor \"%.100s\"", want->name);
        if (have && check_shape(have, want, e) < 0)
            return -1;
    }
    return 0;
}

static void copy_text(char *to, size_t room, const struct safetensors *file, const char *key)
{
    const char *text = safetensors_meta(file, key);

    snprintf(to, room, "%s", text ? text : "");
}

static int
meta_int(const struct safetensors *file, const char *key, int64_t *ret_number, struct err *e)
{
    const char *text = safetensors_meta(file, key);
    char *end;

    if (!text)
        return err_set(e, ERR_INVALID, "its metadata have no \"%s\"", key);
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    if (errno || end == text || *end || *ret_number < 0)
        return err_set(e, ERR_INVALID, "its \"%s\" is no number", key);
    return 0;
}

static int read_facts(const struct safetensors *file, struct checkpoint_facts *f, struct err *e)
{
    int64_t seed, ranks;

    copy_text(f->model, sizeof(f->model), file, "model");
    copy_text(f->dataset, sizeof(f->dataset), file, "dataset");
    copy_text(f->optimizer, sizeof(f->optimizer), file, "optimizer");
    if (meta_int(file, "step", &f->step, e) < 0 ||
        meta_int(file, "batches", &f->batches, e) < 0 || meta_int(file, "seed", &seed, e) < 0 ||
        meta_int(file, "good_steps", &f->good_steps, e) < 0 ||
        meta_int(file, "ranks", &ranks, e) < 0 || meta_int(file, "classes", &f->classes, e) < 0)
        return -1;
    f->seed = (uint64_t)seed;
    f->ranks = (int)ranks;
    f->loss_scale = safetensors_meta(file, "loss_scale")
                        ? strtod(safetensors_meta(file, "loss_scale"), NULL)
                        : 1;
    return 0;
}

static int load(struct plan *plan,
                const struct safetensors *file,
                bool params_only,
                struct checkpoint_facts *ret_facts,
                int *ret_missing,
                struct err *e)
{
    const char *format = safetensors_meta(file, "format");
    struct checkpoint_facts facts = {0};
    auto_kept kept = {0};
    int missing = 0;

    /* Weights from elsewhere have no facts of ours; to go on with a run, they are needed. */
    if (!str_equal(format, format_name) && !params_only)
        return err_set(e, ERR_INVALID, "it is no checkpoint of yardbench");
    if (str_equal(format, format_name) && read_facts(file, &facts, e) < 0)
        return -1;
    kept_init(&kept, plan);
    if (check_all(&kept, file, e) < 0)
        return -1;
    for (int i = 0; i < kept.count; i++)
        if (take_tensor(&kept, i, file, params_only, &missing, e) < 0)
            return -1;
    *ret_facts = facts;
    *ret_missing = missing;
    return 0;
}

int checkpoint_load(struct plan *plan,
                    const char *path,
                    bool params_only,
                    struct checkpoint_facts *ret_facts,
                    int *ret_missing,
                    struct err *e)
{
    autoptr(safetensors) file = NULL;

    if (safetensors_open(path, &file, e) < 0)
        return -1;
    if (load(plan, file, params_only, ret_facts, ret_missing, e) < 0)
        return err_wrap(e, "cannot use the checkpoint \"%.200s\"", path);
    return 0;
}

int checkpoint_facts_of(const char *path, struct checkpoint_facts *ret_facts, struct err *e)
{
    autoptr(safetensors) file = NULL;
    struct checkpoint_facts facts = {0};

    if (safetensors_open(path, &file, e) < 0)
        return -1;
    if (!str_equal(safetensors_meta(file, "format"), format_name))
        return err_set(e, ERR_INVALID, "\"%.200s\" is no checkpoint of yardbench", path);
    if (read_facts(file, &facts, e) < 0)
        return err_wrap(e, "cannot use the checkpoint \"%.200s\"", path);
    *ret_facts = facts;
    return 0;
}
