/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/place.h"
#include "http/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_TIMEOUT_MS = 10 * 1000,
    STOP_TIMEOUT_MS = 60 * 1000, /* running requests may take their time to end */
    TAIL_BYTES = 2000,
    LOG_TEXT_BYTES = 400, /* what fits into an error beside the rest */
};

int daemon_program(char **ret_path, struct err *e)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_free char *path = NULL;
    char *slash = self ? strrchr(self, '/') : NULL;

    if (!slash)
        return err_sys(e, errno, "could not find this program's own folder");
    *slash = '\0';
    path = xasprintf("%s/yardd", self);
    if (access(path, X_OK) < 0)
        return err_sys(e, errno, "could not find the daemon at \"%s\"", path);
    *ret_path = take_ptr(&path);
    return 0;
}

bool daemon_is_healthy(const char *url, const char *ca_file)
{
    autoptr(http_client) client = NULL;
    auto_answer answer = {0};
    auto_free char *health = xasprintf("%s/healthz", url);
    struct http_client_config config;
    struct http_call call = {.method = "GET", .url = health};

    http_client_config_init(&config);
    config.most_retries = 0;
    config.connect_timeout_ms = 2000;
    config.ca_file = ca_file;
    if (http_client_new(&config, &client, NULL) < 0)
        return false;
    return http_client_call(client, &call, &answer, NULL) == 0 && answer.status == 200;
}

static bool answers(const char *home, const char *not_started)
{
    auto_json json_t *card = NULL;
    pid_t pid = place_holder(home);
    const char *started;

    if (!pid || place_card(home, &card, NULL) < 0 ||
        json_integer_value(json_object_get(card, "pid")) != pid ||
        !json_is_string(json_object_get(card, "apiUrl")))
        return false;
    started = json_string_value(json_object_get(card, "startedAt"));
    if (not_started && started && str_equal(started, not_started))
        return false;
    return daemon_is_healthy(json_string_value(json_object_get(card, "apiUrl")),
                             json_string_value(json_object_get(card, "caFile")));
}

int daemon_wait(const char *home, const char *not_started, int64_t timeout_ms, struct err *e)
{
    int64_t deadline_ms = clock_mono_ms() + timeout_ms;

    while (!answers(home, not_started)) {
        if (clock_mono_ms() > deadline_ms)
            return err_set(e, ERR_TIMEOUT, "the yard did not answer within %d s; see %s/log",
                           (int)(timeout_ms / 1000), home);
        usleep(20 * 1000);
    }
    return 0;
}

/* In the child: nothing but system calls. */
static void become_daemon(const char *program, int log_fd)
{
    char *argv[] = {(char *)program, NULL};
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(log_fd, STDOUT_FILENO) < 0 ||
        dup2(log_fd, STDERR_FILENO) < 0)
        _exit(126);
    execv(program, argv);
    _exit(127);
}

static char *log_tail(const char *path, off_t from)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[TAIL_BYTES + 1];
    off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    ssize_t got = -1;

    if (end > from + TAIL_BYTES)
        from = end - TAIL_BYTES;
    if (end > 0)
        got = pread(fd, text, TAIL_BYTES, from);
    if (got <= 0)
        return xstrdup("(the log is empty)");
    while (got > 0 && text[got - 1] == '\n')
        got--;
    return xstrndup(text, (size_t)got);
}

static int open_log(const char *path, int *ret_fd, off_t *ret_end, struct err *e)
{
    auto_close int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "could not open the log \"%s\"", path);
    *ret_end = lseek(fd, 0, SEEK_END);
    *ret_fd = take_fd(&fd);
    return 0;
}

static int
watch_start(const char *home, pid_t child, const char *log, off_t from, struct err *e)
{
    int64_t deadline_ms = clock_mono_ms() + START_TIMEOUT_MS;
    int state;

    while (!answers(home, NULL)) {
        if (waitpid(child, &state, WNOHANG) == child) {
            auto_free char *tail = log_tail(log, from);
            size_t len = strlen(tail);

            return err_set(e, ERR_INTERNAL, "the yard could not start; its log %s ends:\n%s",
                           log, len > LOG_TEXT_BYTES ? tail + len - LOG_TEXT_BYTES : tail);
        }
        if (clock_mono_ms() > deadline_ms)
            return err_set(e, ERR_TIMEOUT,
                           "the yard did not answer within %d s; see its log %s",
                           START_TIMEOUT_MS / 1000, log);
        usleep(20 * 1000);
    }
    return 0;
}

int daemon_start(const char *home, struct err *e)
{
    auto_free char *program = NULL;
    auto_free char *folder = xasprintf("%s/log", home);
    auto_free char *log = xasprintf("%s/yardd.log", folder);
    auto_close int log_fd = -1;
    off_t from;
    pid_t child;

    if (daemon_program(&program, e) < 0 || fs_make_folders(folder, 0700, e) < 0 ||
        open_log(log, &log_fd, &from, e) < 0)
        return -1;
    /* The daemon reads YARD_HOME itself; say the folder that we mean, also when it is the
     * default. */
    if (setenv("YARD_HOME", home, 1) < 0)
        return err_sys(e, errno, "could not set YARD_HOME");
    child = fork();
    if (child < 0)
        return err_sys(e, errno, "could not start the daemon");
    if (child == 0)
        become_daemon(program, log_fd);
    return watch_start(home, child, log, from, e);
}

int daemon_stop(const char *home, bool *ret_was, struct err *e)
{
    pid_t pid = place_holder(home);
    auto_close int fd = -1;
    struct pollfd wait = {.events = POLLIN};

    *ret_was = pid > 0;
    if (!pid)
        return 0;
    /* Hold on to the process by descriptor, then look again: so the signal cannot reach another
     * that has got its number in between. */
    fd = pidfd_open(pid, 0);
    if (fd < 0 && errno == ESRCH)
        return 0;
    if (fd < 0)
        return err_sys(e, errno, "could not watch the daemon, process %d", (int)pid);
    if (place_holder(home) != pid)
        return 0;
    if (pidfd_send_signal(fd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
        return err_sys(e, errno, "could not stop the daemon, process %d", (int)pid);
    wait.fd = fd;
    if (poll(&wait, 1, STOP_TIMEOUT_MS) <= 0)
        return err_set(e, ERR_TIMEOUT, "the daemon, process %d, did not stop within %d s",
                       (int)pid, STOP_TIMEOUT_MS / 1000);
    return 0;
}

json_t *daemon_status(const char *home)
{
    pid_t pid = place_holder(home);
    auto_json json_t *card = NULL;
    const char *started;
    int64_t started_ms;

    if (!pid || place_card(home, &card, NULL) < 0) {
        return json_pack("{s:b, s:s, s:n, s:n, s:n, s:n, s:n, s:n, s:n}", "running", 0, "home",
                         home, "apiUrl", "httpUrl", "caFile", "tokenFile", "pid", "version",
                         "uptime");
    }
    started = json_string_value(json_object_get(card, "startedAt"));
    json_object_set_new(card, "running", json_true());
    json_object_set_new(card, "home", json_string(home));
    json_object_set_new(card, "pid", json_integer(pid));
    if (started && clock_parse_iso(started, &started_ms, NULL) == 0)
        json_object_set_new(card, "uptime",
                            json_integer((clock_wall_ms() - started_ms) / 1000));
    return take_ptr(&card);
}
