/* imagenet-folder.c - pictures in a folder for each class: train/CLASS/NAME.jpg, val/...
 *
 * Labels are the classes of train/ in order of name (of val/ when there is no train/), so both
 * splits agree; a class that only val/ has is an error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/data-internal.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct names {
    char **name;
    size_t count, room;
};

struct file {
    uint32_t label;
    char *name; /* within its class's folder */
};

struct folder {
    struct dataset base;
    char *path; /* of the split */
    struct names classes;
    struct file *files;
    size_t file_room;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct names){0};
}
#define auto_names __attribute__((cleanup(names_done))) struct names

static void names_add(struct names *names, const char *name)
{
    if (names->count == names->room) {
        names->room = names->room ? 2 * names->room : 64;
        names->name = xreallocarray(names->name, names->room, sizeof(*names->name));
    }
    names->name[names->count++] = xstrdup(name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder that do not begin with a dot, sorted. */
static int list(const char *path, struct names *names, struct err *e)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return err_sys(e, errno, "could not read the folder \"%.200s\"", path);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            names_add(names, entry->d_name);
    closedir(dir);
    if (names->count)
        qsort(names->name, names->count, sizeof(*names->name), by_name);
    return 0;
}

static bool is_picture(const char *name)
{
    auto_free char *lower = str_lower(name);

    return str_ends(lower, ".jpg") || str_ends(lower, ".jpeg");
}

static const char *eval_name(const char *folder)
{
    return data_has(folder, "val") || !data_has(folder, "validation") ? "val" : "validation";
}

static bool is_folder(const char *folder, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", folder, name);
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool folder_is_like(const char *folder)
{
    return is_folder(folder, "train") || is_folder(folder, eval_name(folder));
}

static void folder_free(struct dataset *dataset)
{
    struct folder *f = (struct folder *)dataset;

    for (int64_t i = 0; i < f->base.facts.count; i++)
        free(f->files[i].name);
    free(f->files);
    names_done(&f->classes);
    free(f->path);
    free(f);
}

static void add_file(struct folder *f, uint32_t label, const char *name)
{
    size_t count = (size_t)f->base.facts.count;

    if (count == f->file_room) {
        f->file_room = f->file_room ? 2 * f->file_room : 4096;
        f->files = xreallocarray(f->files, f->file_room, sizeof(*f->files));
    }
    f->files[count] = (struct file){.label = label, .name = xstrdup(name)};
    f->base.facts.count++;
}

static int label_of(const struct folder *f, const char *class)
{
    char **found =
        bsearch(&class, f->classes.name, f->classes.count, sizeof(*f->classes.name), by_name);

    return found ? (int)(found - f->classes.name) : -1;
}

static int add_class(struct folder *f, const char *class, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", f->path, class);
    auto_names pictures = {0};
    int label = label_of(f, class);

    if (label < 0)
        return err_set(e, ERR_INVALID, "\"%.200s\" is a class that train/ does not have", path);
    if (list(path, &pictures, e) < 0)
        return -1;
    for (size_t i = 0; i < pictures.count; i++)
        if (is_picture(pictures.name[i]))
            add_file(f, (uint32_t)label, pictures.name[i]);
    return 0;
}

static int list_classes(const char *path, struct names *classes, struct err *e)
{
    auto_names all = {0};

    if (list(path, &all, e) < 0)
        return -1;
    for (size_t i = 0; i < all.count; i++)
        if (is_folder(path, all.name[i]))
            names_add(classes, all.name[i]);
    return 0;
}

static int fill(struct folder *f, const struct dataset_options *o, struct err *e)
{
    const char *split = o->split == DATASET_TRAIN ? "train" : eval_name(o->folder);
    const char *labels = is_folder(o->folder, "train") ? "train" : split;
    auto_free char *labels_path = xasprintf("%s/%s", o->folder, labels);
    auto_names classes = {0};

    f->path = xasprintf("%s/%s", o->folder, split);
    if (!is_folder(o->folder, split))
        return 0; /* no examples, which the caller says */
    if (list_classes(labels_path, &f->classes, e) < 0 || list_classes(f->path, &classes, e) < 0)
        return -1;
    f->base.facts.classes = (int64_t)f->classes.count;
    for (size_t i = 0; i < classes.count; i++)
        if (add_class(f, classes.name[i], e) < 0)
            return -1;
    return 0;
}

static int
folder_open(const struct dataset_options *options, struct dataset **ret_dataset, struct err *e)
{
    struct folder *f = xcalloc(1, sizeof(*f));

    f->base.facts.channels = 3;
    if (fill(f, options, e) < 0) {
        folder_free(&f->base);
        return -1;
    }
    *ret_dataset = &f->base;
    return 0;
}

static int folder_decode(const struct dataset *dataset,
                         int64_t number,
                         const struct decode_options *o,
                         struct rng *rng,
                         uint8_t *pixels,
                         int32_t *ret_label,
                         struct err *e)
{
    const struct folder *f = (const struct folder *)dataset;
    const struct file *file = &f->files[number];
    auto_free char *path =
        xasprintf("%s/%s/%s", f->path, f->classes.name[file->label], file->name);
    struct mapping m;
    int rc;

    if (mapping_open(&m, path, e) < 0)
        return -1;
    rc = picture_from_jpeg(m.bytes, m.len, NULL, 0, number, o, rng, pixels, e);
    mapping_done(&m);
    if (rc < 0)
        return err_wrap(e, "%.300s", path);
    *ret_label = (int32_t)file->label;
    return 0;
}

const struct dataset_ops dataset_folder = {
    .kind = "folder",
    .name = "imagenet",
    .looks = "train/CLASS/NAME.jpg pictures",
    .is_like = folder_is_like,
    .open = folder_open,
    .free = folder_free,
    .decode = folder_decode,
};
