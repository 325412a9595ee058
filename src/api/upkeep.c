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
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

struct errand {
    struct call *call;
    void (*work)(struct errand *errand);   /* on its own thread */
    void (*answer)(struct errand *errand); /* back on the request's */
    bool is_change;                        /* for the record, when it is refused */
    struct err e;
    char *path; /* a temporary file */
    json_t *findings;
    int fd;
};

static void errand_done(struct errand *errand)
{
    free(errand->path);
    json_decref(errand->findings);
    if (errand->fd >= 0)
        close(errand->fd);
    free(errand);
}

static void back(struct http_req *req, void *arg)
{
    struct errand *errand = arg;

    (void)req;
    if (errand->e.code != ERR_NONE && errand->is_change)
        call_record_refusal(errand->call, &errand->e);
    if (errand->e.code != ERR_NONE)
        reply_error(errand->call, &errand->e);
    else
        errand->answer(errand);
    errand_done(errand);
}

static void *errand_main(void *arg)
{
    struct errand *errand = arg;

    errand->work(errand);
    http_req_post(errand->call->req, back, errand);
    return NULL;
}

static struct errand *errand_new(struct call *call,
                                 void (*work)(struct errand *errand),
                                 void (*answer)(struct errand *errand))
{
    struct errand *errand = xcalloc(1, sizeof(*errand));

    errand->call = call;
    errand->work = work;
    errand->answer = answer;
    errand->fd = -1;
    return errand;
}

static void errand_start(struct errand *errand)
{
    pthread_t thread;
    int rc = pthread_create(&thread, NULL, errand_main, errand);

    if (rc != 0) {
        err_sys(&errand->e, rc, "could not start a thread");
        back(errand->call->req, errand);
        return;
    }
    pthread_detach(thread);
}

/* --- doctor --- */

static void add_finding(const char *name, bool ok, const char *detail, void *context)
{
    struct errand *errand = context;

    json_array_append_new(errand->findings, json_pack("{s:s, s:b, s:s}", "name", name, "ok", ok,
                                                      "detail", detail));
}

static void examine(struct errand *errand)
{
    auto_reader reader = {0};

    if (store_pool_take(errand->call->api->config.pool, &reader, &errand->e) == 0)
        store_check_invariants(reader.db, add_finding, errand, &errand->e);
}

static void tell_findings(struct errand *errand)
{
    reply_json(errand->call, 200, json_pack("{s:O}", "value", errand->findings));
}

void handle_doctor(struct call *call)
{
    struct errand *errand = errand_new(call, examine, tell_findings);

    errand->findings = json_array();
    errand_start(errand);
}

/* --- backup --- */

static void copy_out(struct errand *errand)
{
    const struct api_config *config = &errand->call->api->config;

    if (store_backup(config->db_path, config->home, config->backup_files, errand->path,
                     &errand->e) < 0)
        return;
    errand->fd = open(errand->path, O_RDONLY | O_CLOEXEC);
    if (errand->fd < 0)
        err_sys(&errand->e, errno, "could not open the copy");
    unlink(errand->path); /* the descriptor keeps it until it is sent */
}

static void send_copy(struct errand *errand)
{
    struct stat file;

    if (fstat(errand->fd, &file) < 0) {
        err_sys(&errand->e, errno, "could not read the copy");
        reply_error(errand->call, &errand->e);
        return;
    }
    call_record_use(errand->call); /* it carries every secret there is */
    http_reply_header(errand->call->req, "Content-Type", "application/vnd.sqlite3");
    http_reply_header(errand->call->req, "Content-Disposition",
                      "attachment; filename=\"yard.backup\"");
    http_reply_file(errand->call->req, 200, take_fd(&errand->fd), 0, (size_t)file.st_size);
}

void handle_backup(struct call *call)
{
    struct errand *errand = errand_new(call, copy_out, send_copy);

    errand->path = xasprintf("%s/backup.%s", call->api->config.home, http_req_id(call->req));
    errand_start(errand);
}

/* --- restore: the body goes to a file, is examined, waits for the next start, which comes at
 * once --- */

static int note_restore(struct errand *errand)
{
    const struct call *call = errand->call;
    const struct event event = {
        .at_ms = clock_wall_ms(),
        .principal = call->who.name,
        .peer = http_req_peer(call->req),
        .operation = call->route->operation_id,
        .target = http_req_raw_path(call->req),
        .request_id = http_req_id(call->req),
        .outcome = "Succeeded",
    };

    return store_note_in_backup(errand->path, &event, &errand->e);
}

static void take_over(struct errand *errand)
{
    const struct api_config *config = &errand->call->api->config;
    auto_free char *waiting = xasprintf("%s/%s", config->home, STORE_RESTORE_FILE);

    if (fsync(errand->fd) < 0)
        err_sys(&errand->e, errno, "could not write the backup");
    else if (store_check_backup(errand->path, &errand->e) == 0 && note_restore(errand) == 0)
        fs_rename_durably(errand->path, waiting, &errand->e);
    if (errand->e.code != ERR_NONE)
        unlink(errand->path);
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
    struct errand *errand;
};

static void got_bytes(struct http_req *req, const void *bytes, size_t len)
{
    struct upload *upload = http_req_context(req);

    if (upload->errand->e.code == ERR_NONE)
        fs_write_all(upload->errand->fd, bytes, len, &upload->errand->e);
}

static void got_all(struct http_req *req)
{
    struct upload *upload = http_req_context(req);
    struct errand *errand = upload->errand;

    http_req_set_context(req, upload->call);
    if (errand->e.code != ERR_NONE) {
        unlink(errand->path);
        back(req, errand);
        return;
    }
    errand_start(errand);
}

static void got_broken(struct http_req *req)
{
    struct upload *upload = http_req_context(req);

    http_req_set_context(req, upload->call);
    err_set(&upload->errand->e, ERR_INVALID, "the upload was cut off; nothing was changed");
    unlink(upload->errand->path);
    back(req, upload->errand);
}

static const struct http_sink upload_sink = {got_bytes, got_all, got_broken};

void handle_restore(struct call *call)
{
    struct errand *errand = errand_new(call, take_over, restarting);
    struct upload *upload = arena_alloc(call->arena, sizeof(*upload));

    errand->is_change = true;
    errand->path = xasprintf("%s/restore.%s", call->api->config.home, http_req_id(call->req));
    errand->fd = open(errand->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (errand->fd < 0) {
        err_sys(&errand->e, errno, "could not create \"%s\"", errand->path);
        back(call->req, errand);
        return;
    }
    upload->call = call;
    upload->errand = errand;
    http_req_set_context(call->req, upload);
    http_req_stream(call->req, &upload_sink);
}
