/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/checkpoint/safetensors.h"
#include "train/record/json-plain.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_tensor(struct jsonw *w, const struct safetensor *t, size_t at)
{
    jsonw_open_object(w, t->name);
    jsonw_text(w, "dtype", t->dtype);
    jsonw_open_array(w, "shape");
    for (int i = 0; i < t->dims; i++)
        jsonw_int(w, NULL, t->dim[i]);
    jsonw_close(w);
    jsonw_open_array(w, "data_offsets");
    jsonw_int(w, NULL, (int64_t)at);
    jsonw_int(w, NULL, (int64_t)(at + t->bytes));
    jsonw_close(w);
    jsonw_close(w);
}

static void format_header(struct str *out,
                          const struct safetensor *tensors,
                          int count,
                          const struct safetensors_pair *pairs,
                          int pair_count)
{
    struct jsonw w;
    size_t at = 0;

    jsonw_begin(&w, out);
    jsonw_open_object(&w, "__metadata__");
    for (int i = 0; i < pair_count; i++)
        jsonw_text(&w, pairs[i].key, pairs[i].text);
    jsonw_close(&w);
    for (int i = 0; i < count; i++) {
        add_tensor(&w, &tensors[i], at);
        at += tensors[i].bytes;
    }
    jsonw_end(&w);
    while (out->len % 8)
        str_add_char(out, ' ');
}

static int write_tensors(int fd,
                         const struct safetensor *tensors,
                         int count,
                         safetensors_fill *fill,
                         void *arg,
                         struct err *e)
{
    size_t most = 1;
    auto_free char *bytes = NULL;

    for (int i = 0; i < count; i++)
        if (tensors[i].bytes > most)
            most = tensors[i].bytes;
    bytes = xmalloc(most);
    for (int i = 0; i < count; i++) {
        if (fill(arg, i, bytes, tensors[i].bytes, e) < 0 ||
            fs_write_all(fd, bytes, tensors[i].bytes, e) < 0)
            return -1;
        FAULT("safetensors.tensor");
    }
    return 0;
}

/* The umask is not asked for: it can only be read by setting it.  mkostemp gives 0600, which
 * would keep colleagues from a shared folder's checkpoints. */
static mode_t file_mode(const char *folder_mate)
{
    struct stat st;

    return stat(folder_mate, &st) == 0 ? st.st_mode & 0666 : 0644;
}

int safetensors_write(const char *path,
                      const struct safetensor *tensors,
                      int count,
                      const struct safetensors_pair *pairs,
                      int pair_count,
                      safetensors_fill *fill,
                      void *arg,
                      struct err *e)
{
    auto_free char *temporary = xasprintf("%s.part-XXXXXX", path);
    auto_close int fd = mkostemp(temporary, O_CLOEXEC);
    auto_str header = {0};
    uint64_t length;

    if (fd < 0)
        return err_sys(e, errno, "could not make a file beside \"%.200s\"", path);
    format_header(&header, tensors, count, pairs, pair_count);
    length = htole64((uint64_t)header.len);
    (void)fchmod(fd, file_mode(path)); /* a file system without modes is no reason to fail */
    if (fs_write_all(fd, &length, sizeof(length), e) < 0 ||
        fs_write_all(fd, str_text(&header), header.len, e) < 0 ||
        write_tensors(fd, tensors, count, fill, arg, e) < 0)
        goto undo;
    if (fsync(fd) < 0) {
        err_sys(e, errno, "could not sync");
        goto undo;
    }
    FAULT("safetensors.rename");
    if (fs_rename_durably(temporary, path, e) < 0)
        goto undo;
    return 0;

undo:
    unlink(temporary);
    return err_wrap(e, "could not write \"%.200s\"", path);
}
