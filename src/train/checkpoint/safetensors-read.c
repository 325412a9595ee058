/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/checkpoint/safetensors-internal.h"
#include "train/checkpoint/safetensors.h"
#include "train/record/json-plain.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LENGTH_BYTES = 8,
    MOST_HEADER = 100 * 1000 * 1000, /* as the format's own library bounds it */
};

struct safetensors {
    struct arena *arena;
    void *map; /* NULL = the caller's memory */
    size_t map_len;
    struct safetensor *tensors; /* in order of their data */
    int count;
    const struct jsonr *meta;
};

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4},  {"I16", 2},
    {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1},
};

static size_t dtype_bytes(const char *dtype)
{
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
        if (str_equal(dtypes[i].name, dtype))
            return dtypes[i].bytes;
    return 0;
}

static int bad_tensor(const struct safetensor *t, const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID, "tensor \"%.100s\": %s", t->name, what);
}

/* The bytes that the shape asks for. */
static int
read_shape(struct safetensor *t, const struct jsonr *shape, size_t *ret_bytes, struct err *e)
{
    size_t bytes = dtype_bytes(t->dtype);

    if (!bytes)
        return bad_tensor(t, "unknown dtype", e);
    if (!shape || shape->type != JSONR_ARRAY)
        return bad_tensor(t, "no shape", e);
    for (const struct jsonr *d = shape->first; d; d = d->next) {
        int64_t dim;

        if (t->dims == SAFETENSORS_MOST_DIMS)
            return bad_tensor(t, "too many dimensions", e);
        if (jsonr_int(d, 0, INT64_MAX, &dim, NULL) < 0 ||
            __builtin_mul_overflow(bytes, (size_t)dim, &bytes))
            return bad_tensor(t, "bad shape", e);
        t->dim[t->dims++] = dim;
    }
    *ret_bytes = bytes;
    return 0;
}

/* Offsets into the data, checked against its length and the shape. */
static int read_offsets(struct safetensor *t,
                        const struct jsonr *offsets,
                        const char *data,
                        size_t data_len,
                        size_t bytes,
                        struct err *e)
{
    const struct jsonr *first = offsets ? offsets->first : NULL;
    int64_t begin, end;

    if (!first || !first->next || first->next->next || offsets->type != JSONR_ARRAY)
        return bad_tensor(t, "no data_offsets", e);
    if (jsonr_int(first, 0, INT64_MAX, &begin, NULL) < 0 ||
        jsonr_int(first->next, begin, INT64_MAX, &end, NULL) < 0 || (size_t)end > data_len)
        return bad_tensor(t, "its data lie outside the file", e);
    if ((size_t)(end - begin) != bytes)
        return bad_tensor(t, "its data do not fit its shape", e);
    t->data = data + begin;
    t->bytes = bytes;
    return 0;
}

static int read_tensor(struct safetensor *t,
                       const struct jsonr *entry,
                       const char *data,
                       size_t data_len,
                       struct err *e)
{
    const struct jsonr *dtype = jsonr_get(entry, "dtype");
    size_t bytes;

    t->name = entry->key;
    if (!dtype || dtype->type != JSONR_TEXT)
        return bad_tensor(t, "no dtype", e);
    t->dtype = dtype->text;
    if (read_shape(t, jsonr_get(entry, "shape"), &bytes, e) < 0)
        return -1;
    return read_offsets(t, jsonr_get(entry, "data_offsets"), data, data_len, bytes, e);
}

static int by_data(const void *a, const void *b)
{
    const struct safetensor *x = a, *y = b;

    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes; /* empty ones first */
}

/* Data without holes and overlaps, from the first byte to the last. */
static int
check_holes(const struct safetensors *file, const char *data, size_t data_len, struct err *e)
{
    const char *at = data;

    for (int i = 0; i < file->count; i++) {
        if (file->tensors[i].data != at)
            return bad_tensor(&file->tensors[i], "a hole or an overlap before its data", e);
        at += file->tensors[i].bytes;
    }
    if (at != data + data_len)
        return err_set(e, ERR_INVALID, "%td bytes behind the last tensor",
                       data + data_len - at);
    return 0;
}

static int check_meta(const struct jsonr *meta, struct err *e)
{
    if (meta->type != JSONR_OBJECT)
        return err_set(e, ERR_INVALID, "__metadata__ is no object");
    for (const struct jsonr *m = meta->first; m; m = m->next)
        if (m->type != JSONR_TEXT)
            return err_set(e, ERR_INVALID, "__metadata__ \"%.60s\" is no text", m->key);
    return 0;
}

static int read_entries(struct safetensors *file,
                        const struct jsonr *header,
                        const char *data,
                        size_t data_len,
                        struct err *e)
{
    int count = 0;

    for (const struct jsonr *c = header->first; c; c = c->next)
        count++;
    file->tensors = arena_alloc(file->arena, (size_t)(count + 1) * sizeof(*file->tensors));
    for (const struct jsonr *c = header->first; c; c = c->next) {
        if (str_equal(c->key, "__metadata__")) {
            if (check_meta(c, e) < 0)
                return -1;
            file->meta = c;
        } else if (read_tensor(&file->tensors[file->count++], c, data, data_len, e) < 0) {
            return -1;
        }
    }
    qsort(file->tensors, (size_t)file->count, sizeof(*file->tensors), by_data);
    return check_holes(file, data, data_len, e);
}

static int read_all(struct safetensors *file, const char *bytes, size_t len, struct err *e)
{
    const struct jsonr *header;
    uint64_t length;

    if (len < LENGTH_BYTES)
        return err_set(e, ERR_INVALID, "too short to be a safetensors file");
    memcpy(&length, bytes, sizeof(length));
    length = le64toh(length);
    if (length > MOST_HEADER || length > len - LENGTH_BYTES)
        return err_set(e, ERR_INVALID, "no safetensors file, or cut short");
    bytes += LENGTH_BYTES;
    len -= LENGTH_BYTES;
    if (jsonr_parse(file->arena, bytes, (size_t)length, &header, e) < 0)
        return err_wrap(e, "the header is not JSON");
    if (header->type != JSONR_OBJECT)
        return err_set(e, ERR_INVALID, "the header is no JSON object");
    return read_entries(file, header, bytes + length, len - (size_t)length, e);
}

int safetensors_parse(const void *bytes,
                      size_t len,
                      struct safetensors **ret_file,
                      struct err *e)
{
    autoptr(safetensors) file = xcalloc(1, sizeof(*file));

    file->arena = arena_new();
    if (read_all(file, bytes, len, e) < 0)
        return -1;
    *ret_file = take_ptr(&file);
    return 0;
}

static int map_file(struct safetensors *file, const char *path, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return err_set(e, ERR_INVALID, "\"%.200s\" is no file, or empty", path);
    file->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file->map == MAP_FAILED) {
        file->map = NULL;
        return err_sys(e, errno, "could not map \"%.200s\"", path);
    }
    file->map_len = (size_t)st.st_size;
    return 0;
}

int safetensors_open(const char *path, struct safetensors **ret_file, struct err *e)
{
    autoptr(safetensors) file = xcalloc(1, sizeof(*file));

    file->arena = arena_new();
    if (map_file(file, path, e) < 0)
        return -1;
    if (read_all(file, file->map, file->map_len, e) < 0)
        return err_wrap(e, "\"%.200s\"", path);
    *ret_file = take_ptr(&file);
    return 0;
}

void safetensors_free(struct safetensors *file)
{
    if (!file)
        return;
    if (file->map)
        munmap(file->map, file->map_len);
    arena_free(file->arena);
    free(file);
}

int safetensors_count(const struct safetensors *file)
{
    return file->count;
}

const struct safetensor *safetensors_at(const struct safetensors *file, int index)
{
    return &file->tensors[index];
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (str_equal(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

const char *safetensors_meta(const struct safetensors *file, const char *key)
{
    const struct jsonr *value = file->meta ? jsonr_get(file->meta, key) : NULL;

    return value ? value->text : NULL;
}
