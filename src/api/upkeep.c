/* The yard's own administration: doctor, backup, restore.
 *
 * Each may read the whole database, so each works on a thread of its own and answers when it is
 * done.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct task {
    struct errand errand;
    char *path; /* a temporary file */
    json_t *findings;
    int fd;
};

static struct task *task_of(struct errand *errand)
{
    return container_of(errand, struct task, errand);
}

static void task_done(struct errand *errand)
{
    struct task *task = task_of(errand);

    free(task->path);
    json_decref(task->findings);
    if (task->fd >= 0)
        close(task->fd);
    free(task);
}

static struct task *task_new(struct call *call,
                             void (*work)(struct errand *errand),
                             void (*answer)(struct errand *errand))
{
    struct task *task = xcalloc(1, sizeof(*task));

    task->errand = (struct errand){
        .call = call,
        .work = work,
        .answer = answer,
        .done = task_done,
    };
    task->fd = -1;
    return task;
}

/* --- doctor --- */

static void add_finding(const char *name, bool ok, const char *detail, void *context)
{
    struct task *task = context;

    json_array_append_new(
        task->findings, json_pack("{s:s, s:b, s:s}", "name", name, "ok", ok, "detail", detail));
}

static void examine(struct errand *errand)
{
    auto_reader reader = {0};

    const struct api_config *config = &errand->call->api->config;

    if (store_pool_take(config->pool, &reader, &errand->e) < 0 ||
        store_check_invariants(reader.db, add_finding, task_of(errand), &errand->e) < 0)
        return;
    if (config->scrub && http_req_query(errand->call->req, "storage"))
        config->scrub(add_finding, task_of(errand), config->context, &errand->e);
}

static void tell_findings(struct errand *errand)
{
    reply_json(errand->call, 200, json_pack("{s:O}", "value", task_of(errand)->findings));
}

void handle_doctor(struct call *call)
{
    struct task *task = task_new(call, examine, tell_findings);

    task->findings = json_array();
    errand_start(&task->errand);
}

/* --- backup --- */

static void copy_out(struct errand *errand)
{
    const struct api_config *config = &errand->call->api->config;
    struct task *task = task_of(errand);

    if (store_backup(config->db_path, config->home, config->backup_files, task->path,
                     &errand->e) < 0)
        return;
    task->fd = open(task->path, O_RDONLY | O_CLOEXEC);
    if (task->fd < 0)
        err_sys(&errand->e, errno, "could not open the copy");
    unlink(task->path); /* the descriptor keeps it until it is sent */
}

static void send_copy(struct errand *errand)
{
    struct task *task = task_of(errand);
    struct stat file;

    if (fstat(task->fd, &file) < 0) {
        err_sys(&errand->e, errno, "could not read the copy");
        reply_error(errand->call, &errand->e);
        return;
    }
    call_record_use(errand->call); /* it carries every secret there is */
    http_reply_header(errand->call->req, "Content-Type", "application/vnd.sqlite3");
    http_reply_header(errand->call->req, "Content-Disposition",
                      "attachment; filename=\"yard.backup\"");
    http_reply_file(errand->call->req, 200, take_fd(&task->fd), 0, (size_t)file.st_size);
}

void handle_backup(struct call *call)
{
    struct task *task = task_new(call, copy_out, send_copy);

    task->path = xasprintf("%s/backup.%s", call->api->config.home, http_req_id(call->req));
    errand_start(&task->errand);
}

/* --- restore: the body goes to a file, is examined, waits for the next start, which comes at
 * once --- */

static int note_restore(struct task *task)
{
    const struct call *call = task->errand.call;
    const struct event event = {
        .at_ms = clock_wall_ms(),
        .principal = call->who.name,
        .peer = http_req_peer(call->req),
        .operation = call->route->operation_id,
        .target = http_req_raw_path(call->req),
        .request_id = http_req_id(call->req),
        .outcome = "Succeeded",
    };

    return store_note_in_backup(task->path, &event, &task->errand.e);
}

static void take_over(struct errand *errand)
{
    const struct api_config *config = &errand->call->api->config;
    auto_free char *waiting = xasprintf("%s/%s", config->home, STORE_RESTORE_FILE);
    struct task *task = task_of(errand);

    if (fsync(task->fd) < 0)
        err_sys(&errand->e, errno, "could not write the backup");
    else if (store_check_backup(task->path, &errand->e) == 0 && note_restore(task) == 0)
        fs_rename_durably(task->path, waiting, &errand->e);
    if (errand->e.code != ERR_NONE)
        unlink(task->path);
}

static void restarting(struct errand *errand)
{
    const struct api_config *config = &errand->call->api->config;

    log_info("event=restore principal=%s next=restart", errand->call->who.name);
    reply_empty(errand->call, 202); /* and the call may be gone */
    config->restart(config->context);
}

struct upload {
    struct call *call;
    struct task *task;
};

static void got_bytes(struct http_req *req, const void *bytes, size_t len)
{
    struct upload *upload = http_req_context(req);

    if (upload->task->errand.e.code == ERR_NONE)
        fs_write_all(upload->task->fd, bytes, len, &upload->task->errand.e);
}

static void got_all(struct http_req *req)
{
    struct upload *upload = http_req_context(req);
    struct task *task = upload->task;

    http_req_set_context(req, upload->call);
    if (task->errand.e.code != ERR_NONE) {
        unlink(task->path);
        errand_answer(&task->errand);
        return;
    }
    errand_start(&task->errand);
}

static void got_broken(struct http_req *req)
{
    struct upload *upload = http_req_context(req);

    http_req_set_context(req, upload->call);
    err_set(&upload->task->errand.e, ERR_INVALID,
            "the upload was cut off; nothing was changed");
    unlink(upload->task->path);
    errand_answer(&upload->task->errand);
}

static const struct http_sink upload_sink = {got_bytes, got_all, got_broken};

void handle_restore(struct call *call)
{
    struct task *task = task_new(call, take_over, restarting);
    struct upload *upload = arena_alloc(call->arena, sizeof(*upload));

    task->errand.is_change = true;
    task->path = xasprintf("%s/restore.%s", call->api->config.home, http_req_id(call->req));
    task->fd = open(task->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (task->fd < 0) {
        err_sys(&task->errand.e, errno, "could not create \"%s\"", task->path);
        errand_answer(&task->errand);
        return;
    }
    upload->call = call;
    upload->task = task;
    http_req_set_context(call->req, upload);
    http_req_stream(call->req, &upload_sink);
}
