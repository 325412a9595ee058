/* events.c - tf.Event: 1 wall_time (double), 2 step, 3 file_version, 5 summary;
 * tf.Summary: 1 value (repeated); Value: 1 tag, 2 simple_value (float).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/report/events.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/record/proto.h"
#include "train/record/tfrecord.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

enum {
    FLUSH_MS = 2000, /* soon enough for a person who watches */
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
};

struct events {
    int fd;
    struct str waiting;
    int64_t flushed_ms;
};

static void add_event(struct events *events, const struct str *rest)
{
    auto_str event = {0};

    proto_add_double(&event, EVENT_TIME, (double)clock_wall_ms() / 1000);
    str_add_len(&event, str_text(rest), rest->len);
    tfrecord_add(&events->waiting, str_text(&event), event.len);
}

int events_open(const char *folder, struct events **ret_events, struct err *e)
{
    char host[64] = "";
    auto_free char *path = NULL;
    auto_close int fd = -1;
    auto_str version = {0};
    struct events *events;

    if (fs_make_folders(folder, 0777, e) < 0)
        return -1;
    gethostname(host, sizeof(host) - 1);
    /* A second run within the same second adds to the same file, which is allowed. */
    path = xasprintf("%s/events.out.tfevents.%010" PRId64 ".%s", folder, clock_wall_ms() / 1000,
                     host);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_sys(e, errno, "could not open \"%.200s\"", path);
    events = xcalloc(1, sizeof(*events));
    events->fd = take_fd(&fd);
    proto_add_text(&version, EVENT_VERSION, "brain.Event:2");
    add_event(events, &version);
    *ret_events = events;
    return 0;
}

void events_free(struct events *events)
{
    if (!events)
        return;
    (void)events_flush(events, NULL);
    close(events->fd);
    str_done(&events->waiting);
    free(events);
}

int events_add(struct events *events,
               int64_t step,
               const struct events_scalar *scalars,
               int count,
               struct err *e)
{
    auto_str summary = {0}, rest = {0};

    for (int i = 0; i < count; i++) {
        auto_str value = {0};

        if (isnan(scalars[i].value))
            continue;
        proto_add_text(&value, VALUE_TAG, scalars[i].tag);
        proto_add_float(&value, VALUE_SIMPLE, scalars[i].value);
        proto_add_bytes(&summary, SUMMARY_VALUE, str_text(&value), value.len);
    }
    proto_add_int(&rest, EVENT_STEP, step);
    proto_add_bytes(&rest, EVENT_SUMMARY, str_text(&summary), summary.len);
    add_event(events, &rest);
    if (clock_mono_ms() - events->flushed_ms < FLUSH_MS)
        return 0;
    return events_flush(events, e);
}

int events_flush(struct events *events, struct err *e)
{
    int rc = fs_write_all(events->fd, str_text(&events->waiting), events->waiting.len, e);

    str_truncate(&events->waiting, 0);
    events->flushed_ms = clock_mono_ms();
    return rc < 0 ? err_wrap(e, "could not write events") : 0;
}
