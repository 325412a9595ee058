/* yardfs: mounts a container or a share.
 *
 * Everything that can go wrong is tried in the foreground, where it can be said; then the
 * process goes to the background, and its starter returns when the kernel has been answered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "mount/mount.h"
#include "mount/ops.h"
#include "mount/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_SOURCE_BYTES = 64 * 1024,
    KEPT_BYTES = 16 * 1024 * 1024,
};

static int fail(const struct err *e)
{
    fprintf(stderr, "yardfs: %s\n", e->msg);
    return 1;
}

PRINTF_LIKE(2, 0)
static void log_fuse(enum fuse_log_level level, const char *format, va_list args)
{
    auto_str text = {0};

    str_vaddf(&text, format, args);
    while (text.len && text.data[text.len - 1] == '\n')
        str_truncate(&text, text.len - 1);
    log_line(level <= FUSE_LOG_ERR ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
             "event=fuse text=\"%s\"", str_text(&text));
}

/* --- the source --- */

static int read_stdin(struct str *out, struct err *e)
{
    for (;;) {
        char *room = str_reserve(out, 4096);
        ssize_t got = read(STDIN_FILENO, room, 4096);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(e, errno, "could not read the source from standard input");
        if (got == 0)
            return 0;
        out->len += (size_t)got;
        if (out->len > MOST_SOURCE_BYTES)
            return err_set(e, ERR_TOO_LARGE, "the source is too long");
    }
}

static int read_source(struct settings *settings, struct err *e)
{
    auto_str text = {0};
    int rc = settings->source_file ? fs_read(settings->source_file, MOST_SOURCE_BYTES, &text, e)
                                   : read_stdin(&text, e);

    if (rc == 0)
        rc = settings_parse_source(settings, str_text(&text), text.len, e);
    if (text.len)
        explicit_bzero(text.data, text.len);
    return rc;
}

/* --- the background --- */

/* The starter: waits for one byte, which says that the mount is answered for. */
static int wait_for_child(int fd, pid_t child)
{
    char byte;
    ssize_t got;
    int state = 0;

    do {
        got = read(fd, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1)
        return 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) && WEXITSTATUS(state) ? WEXITSTATUS(state) : 1;
}

static int open_log(const struct settings *settings, int *ret_fd, struct err *e)
{
    const char *path = settings->log_file ? settings->log_file : "/dev/null";
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not open the log \"%s\"", path);
    *ret_fd = fd;
    return 0;
}

/* Returns in the child, with the end of the pipe to say ready on; the starter exits. */
static int go_to_background(const struct settings *settings, int *ret_ready, struct err *e)
{
    auto_close int log_fd = -1;
    auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int pipe_fds[2];
    pid_t child;

    if (open_log(settings, &log_fd, e) < 0)
        return -1;
    if (null_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not go to the background");
    child = fork();
    if (child < 0)
        return err_sys(e, errno, "could not go to the background");
    if (child > 0) {
        close(pipe_fds[1]);
        _exit(wait_for_child(pipe_fds[0], child));
    }
    close(pipe_fds[0]);
    setsid();
    if (chdir("/") < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
        dup2(log_fd, STDERR_FILENO) < 0)
        return err_sys(e, errno, "could not go to the background");
    *ret_ready = pipe_fds[1];
    return 0;
}

/* --- mounting --- */

static struct fuse_session *
make_session(struct mount *mount, const struct settings *s, const struct fuse_lowlevel_ops *ops)
{
    auto_free char *name =
        xasprintf("-ofsname=%s/%s%s%s,subtype=yardfs%s%s,max_read=%d", s->endpoint,
                  s->container, *s->path ? "/" : "", s->path, mount->is_writable ? "" : ",ro",
                  s->allow_other ? ",allow_other,default_permissions" : "", READER_MOST_BYTES);
    char *argv[] = {(char *)"yardfs", name, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(2, argv);
    struct fuse_session *session = fuse_session_new(&args, ops, sizeof(*ops), mount);

    fuse_opt_free_args(&args);
    return session;
}

static int serve(const struct settings *settings, struct fuse_session *session)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int rc;

    fuse_loop_cfg_set_max_threads(config, (unsigned)settings->threads);
    fuse_loop_cfg_set_idle_threads(config, (unsigned)settings->threads);
    fuse_loop_cfg_set_clone_fd(config, 1);
    rc = fuse_session_loop_mt(session, config);
    fuse_loop_cfg_destroy(config);
    return rc;
}

/* While somebody looks on. */
static int set_up(struct mount *mount, const struct fuse_lowlevel_ops *ops, struct err *e)
{
    const char *folder = mount->settings->folder;

    mount->session = make_session(mount, mount->settings, ops);
    if (!mount->session || fuse_set_signal_handlers(mount->session) != 0)
        return err_set(e, ERR_INTERNAL, "could not set up the mount");
    if (fuse_session_mount(mount->session, folder) != 0)
        return err_set(e, ERR_INTERNAL, "could not mount on \"%s\"%s", folder,
                       access("/dev/fuse", R_OK | W_OK) < 0 ? ": /dev/fuse cannot be opened"
                                                            : "");
    return 0;
}

static int serve_in_place(struct mount *mount, struct err *e)
{
    const struct settings *settings = mount->settings;
    int rc = 0;

    if (!settings->in_foreground)
        rc = go_to_background(settings, &mount->ready_fd, e);
    if (rc == 0) {
        log_info("event=mounted folder=\"%s\" of=\"%s/%s\" writable=%d", settings->folder,
                 settings->endpoint, settings->container, mount->is_writable);
        if (serve(settings, mount->session) < 0)
            rc = err_set(e, ERR_INTERNAL, "the mount broke");
        mount_stop(mount);
    }
    fuse_session_unmount(mount->session);
    log_info("event=unmounted folder=\"%s\"", settings->folder);
    return rc;
}

static int run(struct settings *settings, struct err *e)
{
    struct fuse_lowlevel_ops ops;
    struct mount mount;
    int rc;

    if (read_source(settings, e) < 0 || mount_probe(settings, e) < 0 ||
        mount_open(&mount, settings, e) < 0)
        return -1;
    ops_init(&ops, &mount);
    rc = set_up(&mount, &ops, e);
    if (rc == 0)
        rc = serve_in_place(&mount, e);
    if (mount.session) {
        fuse_remove_signal_handlers(mount.session);
        fuse_session_destroy(mount.session);
    }
    mount_done(&mount);
    return rc;
}

int main(int argc, char *argv[])
{
    auto_settings settings = {0};
    struct err e = {0};

    fuse_set_log_func(log_fuse);
    if (settings_parse(&settings, argc - 1, argv + 1, &e) < 0) {
        fail(&e);
        return 2;
    }
    if (settings.is_debug)
        log_set_level(LOG_LEVEL_DEBUG);
    if (settings.wants_help) {
        settings_print_help(stdout);
        return 0;
    }
    if (settings.wants_version) {
        puts("yardfs " YARD_VERSION);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    /* Memory of one request is that of the next: giving it back between costs more. */
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_TOP_PAD, KEPT_BYTES / 16);
    return run(&settings, &e) < 0 ? fail(&e) : 0;
}
