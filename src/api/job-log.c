/* A file that a job writes, as it is written.
 *
 * GET .../log?file=stdout.txt&offset=N answers with the file from its byte N; with follow=true
 * the answer goes on while the job does, and waits for a file that is not there yet.  The
 * header x-yard-offset says which byte the first one is.  An answer that ends well is all there
 * will ever be; one that breaks off is taken up again by asking from where it broke off.
 *
 * Bytes go from the file to the client as fast as it takes them, through one buffer; where they
 * have been sent to is a number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "api/follow.h"
#include "api/output-place.h"
#include "base/fs.h"
#include "engine/engine.h"
#include "storage/blobs.h"
#include "storage/files.h"
#include "store/work.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK = 64 * 1024,
};

struct stream {
    struct follower follower;
    struct call *call;
    struct output_folder where;
    const char *name; /* of the file */
    bool is_following;
    int root_fd;          /* what it lies beneath */
    const char *path;     /* from there */
    int fd;               /* the file, -1 while it is not there */
    int64_t offset;       /* of the next byte to send */
    bool is_final;        /* the job has ended: nobody writes any more */
    bool is_draining;     /* the client is slow */
    bool is_over, is_cut; /* to be ended, or broken off */
    struct err e;         /* why it could not begin */
};

static void drop(void *arg)
{
    struct stream *s = arg;

    follow_drop(&s->follower);
    mem_close_fd(&s->root_fd);
    mem_close_fd(&s->fd);
}

/* Nobody may be about to be told when the reply ends: the request goes with it. */
static void finish(struct stream *s, bool is_cut)
{
    s->is_over = true;
    s->is_cut |= is_cut;
    if (!follow_remove(&s->follower))
        return; /* told comes once more */
    if (s->e.code != ERR_NONE)
        reply_error(s->call, &s->e);
    else if (s->is_cut)
        http_reply_abort(s->call->req);
    else
        http_reply_end(s->call->req);
}

/* --- finding the file --- */

/* 1 when it is there (and open), 0 when it is not. */
static int open_file(struct stream *s, struct err *e)
{
    struct err why = {0};
    struct stat st;
    auto_close int fd = -1;

    if (fs_open_beneath(s->root_fd, s->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &fd, &why) <
        0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "could not read \"%s\"", s->name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "file: \"%.100s\" is not a file", s->name);
    s->fd = take_fd(&fd);
    return 1;
}

/* The deepest folder on the way to the file that is there; how much of the path that is. */
static int open_folder(struct stream *s, int *ret_fd, size_t *ret_len, struct err *e)
{
    auto_free char *path = xstrdup(s->path);

    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (fs_open_beneath(s->root_fd, path, O_PATH | O_DIRECTORY, 0, ret_fd, NULL) == 0) {
            *ret_len = (size_t)(slash - path);
            return 0;
        }
    }
    *ret_len = 0;
    return fs_open_beneath(s->root_fd, ".", O_PATH | O_DIRECTORY, 0, ret_fd, e);
}

/* Open the file and watch it; or watch the folder in which the next part of its path will
 * appear, looking once more after the watch is set: what appeared before is not told. */
static int look_for_file(struct stream *s, struct err *e)
{
    size_t watched = SIZE_MAX;

    for (;;) {
        int found = open_file(s, e);
        auto_close int folder = -1;
        size_t len;

        if (found < 0)
            return -1;
        if (found)
            return follow_watch(&s->follower, s->fd, FOLLOW_FILE, e);
        if (open_folder(s, &folder, &len, e) < 0)
            return -1;
        if (len == watched)
            return 0;
        if (follow_watch(&s->follower, folder, FOLLOW_FOLDER, e) < 0)
            return -1;
        watched = len;
    }
}

/* --- sending --- */

/* Until the file's end, or until the client has enough. */
static void send_bytes(struct stream *s, bool *ret_is_at_end)
{
    static _Thread_local char bytes[CHUNK];
    ssize_t len;

    *ret_is_at_end = false;
    while ((len = pread(s->fd, bytes, sizeof(bytes), s->offset)) > 0) {
        s->offset += len;
        if (http_reply_write(s->call->req, bytes, (size_t)len) >= HTTP_REPLY_HIGH_WATER) {
            s->is_draining = true;
            follow_set_quiet(&s->follower, true);
            return;
        }
    }
    *ret_is_at_end = true;
}

static void go_on(struct stream *s)
{
    bool is_ended, is_cut, is_at_end = true;
    struct err e = {0};

    follow_state(&s->follower, &is_ended, &is_cut);
    s->is_final |= is_ended; /* before the file is read: what it holds now is all */
    if (is_cut || http_req_is_gone(s->call->req)) {
        finish(s, true);
        return;
    }
    if (s->is_draining)
        return;
    if (s->fd < 0 && look_for_file(s, &e) < 0) {
        finish(s, true);
        return;
    }
    if (s->fd >= 0)
        send_bytes(s, &is_at_end);
    if (is_at_end && s->is_final)
        finish(s, false);
}

static void told(struct follower *follower)
{
    struct stream *s = container_of(follower, struct stream, follower);

    if (s->is_over)
        finish(s, false);
    else
        go_on(s);
}

static void drained(struct http_req *req)
{
    struct call *call = http_req_context(req);
    struct stream *s = call->stream;

    if (s->is_over)
        return;
    s->is_draining = false;
    follow_set_quiet(&s->follower, false);
    go_on(s);
}

/* --- beginning --- */

static void start_headers(struct stream *s)
{
    reply_usual_headers(s->call);
    http_reply_header(s->call->req, "Content-Type", "application/octet-stream");
    http_reply_headerf(s->call->req, "x-yard-offset", "%lld", (long long)s->offset);
}

static int no_such_file(struct stream *s, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "file: there is no \"%.100s\" in %s%s%s of this job", s->name,
            s->where.id, *s->where.within ? "/" : "", s->where.within);
    err_reason(e, "FileNotFound");
    return err_target(e, "file");
}

/* Is it over?  Asked after the follower was added, so that the end cannot slip through between
 * the two. */
static int read_state(struct stream *s, struct err *e)
{
    auto_job_work work = {0};
    auto_reader reader = {0};
    bool found;

    if (store_pool_take(s->call->api->config.pool, &reader, e) < 0 ||
        store_find_job_work(reader.db, s->where.job.id, &work, &found, e) < 0)
        return -1;
    s->is_final = !found || job_is_final(work.job.state);
    return 0;
}

static int add_follower(struct stream *s, struct err *e)
{
    s->follower.req = s->call->req;
    s->follower.told = told;
    s->follower.job_id = s->where.job.id;
    if (follow_add(s->call->api->follows, &s->follower, e) < 0 || read_state(s, e) < 0 ||
        look_for_file(s, e) < 0)
        return -1;
    return s->is_final && s->fd < 0 ? no_such_file(s, e) : 0;
}

static void follow(struct stream *s)
{
    if (add_follower(s, &s->e) < 0) {
        finish(s, false);
        return;
    }
    start_headers(s);
    http_reply_on_drain(s->call->req, drained);
    http_reply_start(s->call->req, 200, -1);
    go_on(s);
}

static void send_once(struct stream *s)
{
    struct err e = {0};
    struct stat st;
    int found = open_file(s, &e);

    if (found == 0)
        found = no_such_file(s, &e);
    if (found > 0 && fstat(s->fd, &st) < 0)
        found = err_sys(&e, errno, "could not read \"%s\"", s->name);
    if (found < 0) {
        reply_error(s->call, &e);
        return;
    }
    start_headers(s);
    http_reply_file(s->call->req, 200, take_fd(&s->fd), s->offset,
                    st.st_size > s->offset ? (size_t)(st.st_size - s->offset) : 0);
}

static void begin(struct stream *s)
{
    if (s->is_following && !str_equal(http_req_method(s->call->req), "HEAD"))
        follow(s);
    else
        send_once(s);
}

/* --- where it lies --- */

/* On a share or in a container. */
static int
open_volume(struct stream *s, const struct volume *volume, const char *folder, struct err *e)
{
    struct api *api = s->call->api;
    auto_free char *tree = volume->kind == VOLUME_BLOBS
                               ? blobs_tree_path(api->blobs, volume->account, volume->name)
                               : files_tree_path(api->files, volume->account, volume->name);

    s->path = arena_printf(s->call->arena, "%s/%s", folder, s->name);
    s->root_fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->root_fd >= 0)
        return 0;
    err_set(e, ERR_NOT_FOUND, "the %s \"%.64s\" of the account \"%.64s\" does not exist",
            volume->kind == VOLUME_BLOBS ? "container" : "share", volume->name,
            volume->account);
    return err_reason(e, volume->kind == VOLUME_BLOBS ? "ContainerNotFound" : "ShareNotFound");
}

/* On a node: the engine knows where. */
struct place {
    struct call_question question;
    struct stream *stream;
    const char *path; /* as the job sees it */
};

static void ask_place(struct call_question *question, const struct control_view *view)
{
    struct place *place = container_of(question, struct place, question);
    const struct output_job *job = &place->stream->where.job;
    auto_str path = {0};
    struct err why = {0};

    if (view->engine && job->attempt_id &&
        view->engine->ops->job_path(view->engine, job->attempt_id, place->path, &path, &why) ==
            0)
        question->result = json_string(str_text(&path));
}

/* The data folder is opened, and the rest resolved beneath it without links: jobs write there.
 */
static int open_place(struct stream *s, const char *path, struct err *e)
{
    const char *home = s->call->api->config.home;
    size_t len = strlen(home);

    if (!path && !job_is_final(s->where.job.state))
        return err_set(e, ERR_BUSY, "the job has written nothing yet; ask again");
    if (!path || !str_starts(path, home) || path[len] != '/')
        return no_such_file(s, e);
    s->path = arena_strdup(s->call->arena, path + len + strspn(path + len, "/"));
    s->root_fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return s->root_fd < 0 ? err_sys(e, errno, "could not open the data folder") : 0;
}

static void place_known(struct call_question *question)
{
    struct stream *s = container_of(question, struct place, question)->stream;
    struct err e = {0};

    if (open_place(s, json_string_value(question->result), &e) < 0)
        reply_error(s->call, &e);
    else
        begin(s);
}

static void find_place(struct stream *s)
{
    struct place *place = arena_alloc(s->call->arena, sizeof(*place));
    const struct output_folder *where = &s->where;
    const char *folder;
    struct err e = {0};

    if (batchai_output_path(where->job.kept, where->job.segment, where->id, s->call->arena,
                            &folder, &e) < 0) {
        reply_error(s->call, &e);
        return;
    }
    place->stream = s;
    place->path = arena_printf(s->call->arena, "%s%s%s/%s", folder, *where->within ? "/" : "",
                               where->within, s->name);
    place->question =
        (struct call_question){.call = s->call, .ask = ask_place, .answer = place_known};
    call_ask(&place->question);
}

/* --- the handler --- */

static int read_name(struct call *call, const char **ret_name, struct err *e)
{
    const char *name = http_req_query(call->req, "file");

    *ret_name = name ? name : "stdout.txt";
    if (**ret_name && !strchr(*ret_name, '/') && !str_equal(*ret_name, ".") &&
        !str_equal(*ret_name, ".."))
        return 0;
    err_set(e, ERR_INVALID,
            "file: \"%.100s\" is not the name of a file; folders go into \"directory\"",
            *ret_name);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "file");
}

static int read_flag(struct call *call, const char *name, bool *ret_flag, struct err *e)
{
    const char *text = http_req_query(call->req, name);

    *ret_flag = text && str_equal_nocase(text, "true");
    if (!text || *ret_flag || str_equal_nocase(text, "false"))
        return 0;
    err_set(e, ERR_INVALID, "%s: \"%.40s\" is neither true nor false", name, text);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, name);
}

static int read_request(struct stream *s, struct err *e)
{
    struct call *call = s->call;
    const char *id = http_req_query(call->req, "outputdirectoryid");
    const char *folder = http_req_query(call->req, "directory");

    if (read_name(call, &s->name, e) < 0 ||
        read_flag(call, "follow", &s->is_following, e) < 0 ||
        call_read_number(call, "offset", 0, INT64_MAX / 2, &s->offset, e) < 0)
        return -1;
    return call_output_folder(call, id ? id : "stdouterr", folder ? folder : ".", &s->where, e);
}

void handle_job_log(struct call *call)
{
    struct stream *s = arena_alloc(call->arena, sizeof(*s));
    struct volume volume;
    const char *folder;
    struct err e = {0};

    s->call = call;
    s->root_fd = s->fd = -1;
    call->stream = s;
    arena_defer(call->arena, drop, s);
    if (read_request(s, &e) < 0) {
        reply_error(call, &e);
    } else if (output_on_volume(call, &s->where, &volume, &folder, &e) == 0) {
        if (open_volume(s, &volume, folder, &e) < 0)
            reply_error(call, &e);
        else
            begin(s);
    } else if (e.code == ERR_INVALID) {
        find_place(s); /* on no share of ours */
    } else {
        reply_error(call, &e);
    }
}
