/* execution.log: what the engine did for a job, in the folder of its logs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fs.h"
#include "engine/local/enter.h"
#include "engine/local/local-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

static void add_line(struct part *part, const char *format, va_list args) PRINTF_LIKE(2, 0);

static void add_line(struct part *part, const char *format, va_list args)
{
    char now[CLOCK_ISO_BYTES];

    str_addf(&part->journal, "%s ", clock_format_iso(clock_wall_ms(), now));
    str_vaddf(&part->journal, format, args);
    str_add(&part->journal, "\n");
}

void journal_add(struct part *part, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_line(part, format, args);
    va_end(args);
}

void journal_add_all(struct attempt *attempt, const char *format, ...)
{
    va_list args;

    for (size_t i = 0; i < attempt->told.node_count; i++) {
        va_start(args, format);
        add_line(&attempt->parts[i], format, args);
        va_end(args);
    }
}

struct writing {
    const struct part *part;
    const char *lines;
};

/* In the node: the folder may be a mount that only the node sees. */
static int append(void *arg, struct err *e)
{
    const struct writing *w = arg;
    const struct attempt *attempt = w->part->attempt;
    autoptr(arena) arena = arena_new();
    const char *name = launch_execution_log(&attempt->input, w->part->index, arena);
    const char *path = arena_printf(arena, "%s/%s", path_of_logs(w->part, arena), name);
    auto_close int fd = -1;

    if (path_open(attempt, w->part->node, path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, &fd,
                  e) < 0)
        return -1;
    return fs_write_all(fd, w->lines, strlen(w->lines), e);
}

void journal_write(const struct part *part, const char *lines)
{
    struct writing w = {part, lines};

    /* A log that cannot be written is no reason for anything. */
    if (*lines && part->node && part->attempt->plan.stdouterr_folder)
        enter_run(part->node->keeper_fd, append, &w, NULL);
}
