/* reader.c - the shards of a folder, mapped and read record by record.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct shard {
    char *path;
    void *bytes;
    size_t len;
    struct bert_shape shape;
    int64_t first, records; /* first: counted through all shards */
};

struct bert_data {
    struct bert_data_facts facts;
    struct shard *shards;
};

void bert_data_free(struct bert_data *data)
{
    if (!data)
        return;
    for (int i = 0; i < data->facts.shards; i++) {
        if (data->shards[i].bytes)
            munmap(data->shards[i].bytes, data->shards[i].len);
        free(data->shards[i].path);
    }
    free(data->shards);
    free(data);
}

static int map(struct shard *s, struct err *e)
{
    auto_close int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *bytes;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", s->path);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return err_set(e, ERR_INVALID, "\"%.200s\" is no shard of BERT data: it is %s", s->path,
                       S_ISREG(st.st_mode) ? "empty" : "no file");
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_sys(e, errno, "could not map \"%.200s\"", s->path);
    s->bytes = bytes;
    s->len = (size_t)st.st_size;
    return 0;
}

static bool is_same_shape(const struct bert_shape *a, const struct bert_shape *b)
{
    return a->sequence == b->sequence && a->predictions == b->predictions &&
           a->vocabulary == b->vocabulary;
}

static int open_shard(struct bert_data *data, struct shard *s, struct err *e)
{
    const struct bert_shape *one = &data->shards[0].shape;

    if (map(s, e) < 0)
        return -1;
    if (shard_check(s->bytes, s->len, &s->shape, e) < 0)
        return err_wrap(e, "\"%.200s\"", s->path);
    if (!is_same_shape(&s->shape, one))
        return err_set(e, ERR_INVALID,
                       "\"%.150s\" has shape %lld, %lld, %lld (tokens, masked, vocabulary), "
                       "\"%.150s\" has %lld, %lld, %lld",
                       data->shards[0].path, (long long)one->sequence,
                       (long long)one->predictions, (long long)one->vocabulary, s->path,
                       (long long)s->shape.sequence, (long long)s->shape.predictions,
                       (long long)s->shape.vocabulary);
    s->first = data->facts.records;
    s->records =
        (int64_t)((s->len - sizeof(struct shard_header)) / (record_words(&s->shape) * 4));
    data->facts.records += s->records;
    return 0;
}

static int open_all(struct bert_data *data, struct err *e)
{
    for (int i = 0; i < data->facts.shards; i++)
        if (open_shard(data, &data->shards[i], e) < 0)
            return -1;
    data->facts.shape = data->shards[0].shape;
    return 0;
}

static void add_shard(struct bert_data *data, char *path)
{
    data->shards =
        xreallocarray(data->shards, (size_t)data->facts.shards + 1, sizeof *data->shards);
    data->shards[data->facts.shards++] = (struct shard){.path = path};
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct shard *)a)->path, ((const struct shard *)b)->path);
}

static int list(struct bert_data *data, const char *folder, struct err *e)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    if (!dir)
        return err_sys(e, errno, "could not open the folder \"%.200s\"", folder);
    while ((entry = readdir(dir)))
        if (str_ends(entry->d_name, SHARD_SUFFIX) && entry->d_name[0] != '.')
            add_shard(data, xasprintf("%s/%s", folder, entry->d_name));
    closedir(dir);
    if (data->facts.shards == 0)
        return err_set(e, ERR_NOT_FOUND, "there are no shards (*%s) in \"%.200s\"",
                       SHARD_SUFFIX, folder);
    qsort(data->shards, (size_t)data->facts.shards, sizeof *data->shards, by_path);
    return 0;
}

int bert_data_open(const char *path, struct bert_data **ret_data, struct err *e)
{
    struct bert_data *data;
    struct stat st;
    int rc = 0;

    if (stat(path, &st) < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    data = xcalloc(1, sizeof *data);
    if (S_ISDIR(st.st_mode))
        rc = list(data, path, e);
    else
        add_shard(data, xstrdup(path));
    if (rc < 0 || open_all(data, e) < 0) {
        bert_data_free(data);
        return -1;
    }
    *ret_data = data;
    return 0;
}

void bert_data_facts(const struct bert_data *data, struct bert_data_facts *ret_facts)
{
    *ret_facts = data->facts;
}

/* The last shard that begins at this record or before it. */
static const struct shard *shard_of(const struct bert_data *data, int64_t number)
{
    int low = 0, high = data->facts.shards - 1;

    while (low < high) {
        int middle = low + (high - low + 1) / 2;

        if (data->shards[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    return &data->shards[low];
}

int bert_data_at(const struct bert_data *data,
                 int64_t number,
                 struct bert_record *ret_record,
                 struct err *e)
{
    const struct shard *s;
    const char *at;

    if (number < 0 || number >= data->facts.records)
        return err_set(e, ERR_RANGE, "record %lld of %lld", (long long)number,
                       (long long)data->facts.records);
    s = shard_of(data, number);
    at = (const char *)s->bytes + sizeof(struct shard_header) +
         (size_t)(number - s->first) * record_words(&s->shape) * 4;
    if (record_read((const int32_t *)(const void *)at, &s->shape, ret_record, e) < 0)
        return err_wrap(e, "record %lld of \"%.200s\"", (long long)(number - s->first),
                        s->path);
    return 0;
}
