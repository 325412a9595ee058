/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/record.h"

#include "base/crc64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Seven numbers of at most 20 digits, their names, the checksum: under 256. */
    RECORD_ROOM_BYTES = 256,
};

static const char beside[] = "exit.new";

void shim_record_format(const struct shim_record *record, struct str *out)
{
    size_t start = out->len;

    str_addf(out,
             "yard-exit 1 code=%d signal=%d oom=%d stopped=%d started=%" PRId64
             " ended=%" PRId64 " pid=%d",
             record->code, record->signal, record->out_of_memory, record->was_stopped,
             record->started_ms, record->ended_ms, (int)record->pid);
    str_addf(out, " crc=%016" PRIx64 "\n", crc64(0, out->data + start, out->len - start));
}

/* Can it be?  A code or a signal, or neither; never both. */
static bool is_sound(const struct shim_record *record)
{
    return record->code >= -1 && record->code <= 255 && record->signal >= 0 &&
           record->signal <= 64 && (record->code == -1 || record->signal == 0) &&
           record->started_ms >= 0 && record->ended_ms >= record->started_ms && record->pid > 0;
}

/* A record is what shim_record_format makes of its fields, to the byte; the checksum is one of
 * those bytes. */
int shim_record_parse(const char *text, struct shim_record *ret_record, struct err *e)
{
    struct shim_record record = {0};
    auto_str again = {0};
    int oom = 0, stopped = 0, pid = 0;
    int got = sscanf(text,
                     "yard-exit 1 code=%d signal=%d oom=%d stopped=%d started=%" SCNd64
                     " ended=%" SCNd64 " pid=%d",
                     &record.code, &record.signal, &oom, &stopped, &record.started_ms,
                     &record.ended_ms, &pid);

    record.out_of_memory = oom == 1;
    record.was_stopped = stopped == 1;
    record.pid = pid;
    if (got != 7 || !is_sound(&record))
        return err_set(e, ERR_INVALID, "this is no exit record");
    shim_record_format(&record, &again);
    if (!str_equal(text, str_text(&again)))
        return err_set(e, ERR_INVALID, "this exit record is torn");
    *ret_record = record;
    return 0;
}

int shim_record_reserve(int folder_fd, struct err *e)
{
    auto_close int fd =
        openat(folder_fd, beside, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || (fallocate(fd, 0, 0, RECORD_ROOM_BYTES) < 0 && errno != EOPNOTSUPP))
        return err_sys(e, errno, "could not take room for the exit record");
    return 0;
}

/* Over what was reserved: not truncated before it is written. */
static int write_beside(int folder_fd, const struct str *text, struct err *e)
{
    auto_close int fd =
        openat(folder_fd, beside, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not create \"%s\"", beside);
    if (fs_write_all(fd, text->data, text->len, e) < 0)
        return err_wrap(e, "\"%s\"", beside);
    if (ftruncate(fd, (off_t)text->len) < 0 || fsync(fd) < 0)
        return err_sys(e, errno, "could not write \"%s\"", beside);
    return 0;
}

int shim_record_write(int folder_fd, const struct shim_record *record, struct err *e)
{
    auto_str text = {0};

    shim_record_format(record, &text);
    if (write_beside(folder_fd, &text, e) < 0)
        return -1;
    if (renameat(folder_fd, beside, folder_fd, "exit") < 0 || fsync(folder_fd) < 0)
        return err_sys(e, errno, "could not write the exit record");
    return 0;
}
