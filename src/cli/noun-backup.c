/* The whole yard in one file, and back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/daemon.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "http/client.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RESTART_TIMEOUT_MS = 30 * 1000,
};

static const struct option_row file = {
    .names = "FILE",
    .help = "The backup file.",
    .required = true,
};

static int write_to_fd(void *context, const void *bytes, size_t len)
{
    return fs_write_all(*(int *)context, bytes, len, NULL);
}

static int sync_folder_of(const char *path, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    auto_close int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return err_sys(e, errno, "could not sync the folder of \"%s\"", path);
    return 0;
}

/* Receive into fd; the answer must be a 200. */
static int receive(struct call *call, int fd, struct err *e)
{
    auto_answer answer = {0};
    struct http_call http = {.method = "POST", .sink = write_to_fd, .sink_context = &fd};
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || rest_raw(rest, "/yard/backup", &http, &answer, e) < 0)
        return -1;
    if (answer.status >= 400)
        return rest_failure(&answer, e);
    return 0;
}

static int backup(struct call *call, json_t **ret_result, struct err *e)
{
    const char *path = args_get(call->args, "FILE");
    auto_free char *temp = xasprintf("%s.XXXXXX", path);
    auto_close int fd = mkostemp(temp, O_CLOEXEC); /* mode 0600: it holds every secret */
    struct stat st = {0};
    int rc;

    if (fd < 0)
        return err_sys(e, errno, "could not create \"%s\"", temp);
    rc = receive(call, fd, e);
    if (rc == 0 && (fsync(fd) < 0 || fstat(fd, &st) < 0))
        rc = err_sys(e, errno, "could not write \"%s\"", temp);
    if (rc == 0 && rename(temp, path) < 0)
        rc = err_sys(e, errno, "could not rename \"%s\" to \"%s\"", temp, path);
    if (rc < 0) {
        unlink(temp);
        return -1;
    }
    if (sync_folder_of(path, e) < 0)
        return -1;
    *ret_result = json_pack("{s:s, s:I}", "file", path, "size", (json_int_t)st.st_size);
    return 0;
}

/* No daemon runs: let its program lay the file ready for the next start. */
static int stage(const char *path, struct err *e)
{
    auto_free char *program = NULL;
    pid_t child;
    int state;

    if (daemon_program(&program, e) < 0)
        return -1;
    child = fork();
    if (child < 0)
        return err_sys(e, errno, "could not start \"%s\"", program);
    if (child == 0) {
        execl(program, program, "--stage-restore", path, (char *)NULL);
        _exit(127);
    }
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return err_set(e, ERR_INTERNAL, "could not restore \"%s\"", path);
    return 0;
}

static int restore_running(struct call *call, FILE *stream, struct err *e)
{
    static const char *const headers[] = {"Content-Type: application/octet-stream", NULL};
    auto_answer answer = {0};
    struct http_call http = {.method = "POST", .headers = headers, .body_file = stream};
    struct rest *rest;

    if (call_rest(call, &rest, e) < 0 || rest_raw(rest, "/yard/restore", &http, &answer, e) < 0)
        return -1;
    if (answer.status >= 400)
        return rest_failure(&answer, e);
    call_info(call, "the yard restarts on the restored data");
    return 0;
}

static int send_file(struct call *call, const char *path, struct err *e)
{
    FILE *stream = fopen(path, "re");
    int rc;

    if (!stream)
        return err_sys(e, errno, "could not open \"%s\"", path);
    rc = restore_running(call, stream, e);
    fclose(stream);
    return rc;
}

static int restore(struct call *call, json_t **ret_result, struct err *e)
{
    const char *path = args_get(call->args, "FILE");
    auto_json json_t *before = daemon_status(call->home);
    struct place *place;

    (void)ret_result;
    if (access(path, R_OK) < 0)
        return err_sys(e, errno, "could not open \"%s\"", path);
    if (call_place(call, &place, e) < 0)
        return str_equal(err_reason_of(e), "YardNotRunning") ? stage(path, e) : -1;
    if (send_file(call, path, e) < 0)
        return -1;
    if (!place->is_local)
        return 0;
    return daemon_wait(call->home, json_string_value(json_object_get(before, "startedAt")),
                       RESTART_TIMEOUT_MS, e);
}

const struct command backup_commands[] = {
    {
        .path = "backup",
        .summary = "Write the whole yard into one file, while it runs.",
        .options = OPTIONS(&file),
        .examples = {{"Back up.", "yard backup /mnt/backups/yard-monday"}},
        .run = backup,
    },
    {
        .path = "restore",
        .summary = "Replace everything in the yard by what a backup holds.",
        .options = OPTIONS(&file),
        .examples = {{"Restore without being asked.",
                      "yard restore /mnt/backups/yard-monday --yes"}},
        .run = restore,
        .confirms = true,
    },
    {0},
};
