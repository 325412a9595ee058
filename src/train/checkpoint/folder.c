/* folder.c - the checkpoints of a folder: names, the newest, the old ones.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors-internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "model-", suffix[] = ".safetensors";

char *checkpoint_path(const char *folder, int64_t step)
{
    return xasprintf("%s/%s%" PRId64 "%s", folder, prefix, step, suffix);
}

/* model-<digits>.safetensors */
static bool step_of(const char *name, int64_t *ret_step)
{
    const char *digits = name + sizeof(prefix) - 1;
    char *end;

    if (!str_starts(name, prefix) || *digits < '0' || *digits > '9')
        return false;
    errno = 0;
    *ret_step = strtoll(digits, &end, 10);
    return !errno && str_equal(end, suffix);
}

struct steps {
    int64_t *step;
    size_t count, room;
};

static void steps_done(struct steps *steps)
{
    free(steps->step);
}
#define auto_steps __attribute__((cleanup(steps_done))) struct steps

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void add_step(struct steps *steps, int64_t step)
{
    if (steps->count == steps->room) {
        steps->room = steps->room ? 2 * steps->room : 16;
        steps->step = xreallocarray(steps->step, steps->room, sizeof(*steps->step));
    }
    steps->step[steps->count++] = step;
}

/* A folder that is not there has none. */
static int list(const char *folder, struct steps *steps, struct err *e)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    if (!dir && errno == ENOENT)
        return 0;
    if (!dir)
        return err_sys(e, errno, "could not read the folder \"%.200s\"", folder);
    while ((entry = readdir(dir))) {
        int64_t step;

        if (step_of(entry->d_name, &step))
            add_step(steps, step);
    }
    closedir(dir);
    if (steps->count)
        qsort(steps->step, steps->count, sizeof(*steps->step), newest_first);
    return 0;
}

int checkpoint_latest(const char *folder, char **ret_path, struct err *e)
{
    auto_steps steps = {0};
    struct err first = {0};

    *ret_path = NULL;
    if (list(folder, &steps, e) < 0)
        return -1;
    for (size_t i = 0; i < steps.count; i++) {
        auto_free char *path = checkpoint_path(folder, steps.step[i]);
        autoptr(safetensors) file = NULL;

        if (safetensors_open(path, &file, i ? NULL : &first) == 0) {
            *ret_path = take_ptr(&path);
            return 0;
        }
    }
    /* Files, but no whole one: to begin anew in silence would throw work away. */
    return steps.count ? err_set(e, first.code, "%s", first.msg) : 0;
}

/* model-<digits>.safetensors.part-..., of a run that was killed while it wrote. */
static bool is_part(const char *name)
{
    return str_starts(name, prefix) && strstr(name, ".safetensors.part-");
}

static int remove_parts(const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return err_sys(e, errno, "could not read the folder \"%.200s\"", folder);
    while (rc == 0 && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("%s/%s", folder, entry->d_name);

        if (is_part(entry->d_name))
            rc = fs_remove(path, e);
    }
    closedir(dir);
    return rc;
}

int checkpoint_prune(const char *folder, int keep, struct err *e)
{
    auto_steps steps = {0};

    if (remove_parts(folder, e) < 0)
        return -1;
    if (keep <= 0)
        return 0;
    if (list(folder, &steps, e) < 0)
        return -1;
    for (size_t i = (size_t)keep; i < steps.count; i++) {
        auto_free char *path = checkpoint_path(folder, steps.step[i]);

        if (fs_remove(path, e) < 0)
            return -1;
    }
    return 0;
}
