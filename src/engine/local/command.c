/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/command.h"

#include "base/clock.h"
#include "base/mem.h"
#include "engine/local/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    SLICE_MS = 200, /* how often a stopping engine is looked for */
};

struct ends {
    int in[2], out[2], errors[2];
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_ends(struct ends *ends)
{
    for (int i = 0; i < 2; i++) {
        close_end(&ends->in[i]);
        close_end(&ends->out[i]);
        close_end(&ends->errors[i]);
    }
}

static int open_ends(struct ends *ends, struct err *e)
{
    if (pipe2(ends->in, O_CLOEXEC) < 0 || pipe2(ends->out, O_CLOEXEC) < 0 ||
        pipe2(ends->errors, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not make a pipe");
    fcntl(ends->in[1], F_SETFL, O_NONBLOCK);
    fcntl(ends->out[0], F_SETFL, O_NONBLOCK);
    fcntl(ends->errors[0], F_SETFL, O_NONBLOCK);
    return 0;
}

/* The engine's threads block signals for the loop's signalfd; programs must not inherit that.
 */
static int
spawn(const struct command *command, const struct ends *ends, pid_t *ret_pid, struct err *e)
{
    const char *const *argv = command->argv;
    char *const *env = command->env ? (char *const *)command->env : environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int rc;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends->in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends->out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends->errors[1], STDERR_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                        POSIX_SPAWN_SETPGROUP);
    rc = posix_spawnp(ret_pid, argv[0], &actions, &attr, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (rc == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "there is no program \"%s\"", argv[0]);
    return rc ? err_sys(e, rc, "could not start \"%s\"", argv[0]) : 0;
}

/* False when the other side has closed it. */
static bool read_some(int fd, struct str *into)
{
    char buffer[4096];
    ssize_t n = read(fd, buffer, sizeof(buffer));

    if (n > 0 && into->len + (size_t)n <= COMMAND_MOST_OUTPUT)
        str_add_len(into, buffer, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* False when all is written, or nobody reads. */
static bool write_some(int fd, const char **input)
{
    ssize_t n = write(fd, *input, strlen(*input));

    if (n > 0)
        *input += n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    return **input != '\0';
}

/* One turn of moving bytes; false when the program has closed both outputs. */
static bool
move_bytes(struct ends *ends, const char **input, struct command_outcome *outcome, int wait_ms)
{
    struct pollfd fds[] = {
        {.fd = ends->out[0], .events = POLLIN},
        {.fd = ends->errors[0], .events = POLLIN},
        {.fd = ends->in[1], .events = POLLOUT},
    };

    if (poll(fds, ARRAY_SIZE(fds), wait_ms) <= 0)
        return true;
    if (fds[0].revents && !read_some(ends->out[0], &outcome->out))
        close_end(&ends->out[0]);
    if (fds[1].revents && !read_some(ends->errors[0], &outcome->errors))
        close_end(&ends->errors[0]);
    if (fds[2].revents && !write_some(ends->in[1], input))
        close_end(&ends->in[1]);
    return ends->out[0] >= 0 || ends->errors[0] >= 0;
}

/* A program may close its outputs and go on: both ends are waited for. */
static bool is_over(pid_t pid, int *ret_status, bool is_quiet)
{
    if (waitpid(pid, ret_status, WNOHANG) == pid)
        return true;
    if (is_quiet)
        usleep(2000);
    return false;
}

static bool should_give_up(const struct command *command, int64_t due_ms)
{
    return clock_mono_ms() >= due_ms ||
           (command->errands && errands_are_stopping(command->errands)) ||
           (command->is_cancelled && atomic_load(command->is_cancelled));
}

static void attend(const struct command *command,
                   pid_t pid,
                   struct ends *ends,
                   struct command_outcome *outcome)
{
    int64_t due_ms = clock_mono_ms() + command->timeout_ms;
    const char *input = command->input ? command->input : "";
    bool is_talking = true;
    int status = 0;

    if (!*input)
        close_end(&ends->in[1]);
    while (is_talking) {
        if (should_give_up(command, due_ms))
            break;
        is_talking = move_bytes(ends, &input, outcome, SLICE_MS);
        /* A child that it left behind may hold the pipes for ever. */
        if (is_talking && is_over(pid, &status, false)) {
            while (move_bytes(ends, &input, outcome, 0) &&
                   poll(&(struct pollfd){.fd = ends->out[0], .events = POLLIN}, 1, 0) > 0)
                ;
            goto ended;
        }
    }
    while (!is_over(pid, &status, true)) {
        if (outcome->is_late || !should_give_up(command, due_ms))
            continue;
        outcome->is_late = true;
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL);
    }
ended:
    outcome->code = WIFEXITED(status) && !outcome->is_late ? WEXITSTATUS(status) : -1;
}

int command_run(const struct command *command,
                struct command_outcome *ret_outcome,
                struct err *e)
{
    struct ends ends = {{-1, -1}, {-1, -1}, {-1, -1}};
    pid_t pid;

    if (open_ends(&ends, e) < 0 || spawn(command, &ends, &pid, e) < 0) {
        close_ends(&ends);
        return -1;
    }
    close_end(&ends.in[0]);
    close_end(&ends.out[1]);
    close_end(&ends.errors[1]);
    *ret_outcome = (struct command_outcome){.code = -1};
    attend(command, pid, &ends, ret_outcome);
    close_ends(&ends);
    return 0;
}

void command_last_line(const struct str *text, struct str *out)
{
    const char *begin = str_text(text), *end = begin + strlen(begin);
    const char *line;

    while (end > begin && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
        end--;
    for (line = end; line > begin && line[-1] != '\n';)
        line--;
    str_add_len(out, line, (size_t)(end - line));
}

int command_must(const struct command *command, struct err *e)
{
    auto_outcome outcome = {0};
    auto_str line = {0};

    if (command_run(command, &outcome, e) < 0)
        return -1;
    if (outcome.code == 0)
        return 0;
    if (outcome.is_late)
        return err_set(e, ERR_TIMEOUT, "%s took longer than %lld s", command->argv[0],
                       (long long)command->timeout_ms / 1000);
    command_last_line(outcome.errors.len ? &outcome.errors : &outcome.out, &line);
    return err_set(e, ERR_INTERNAL, "%s failed with %d: %s", command->argv[0], outcome.code,
                   str_text(&line));
}

void command_outcome_done(struct command_outcome *outcome)
{
    str_done(&outcome->out);
    str_done(&outcome->errors);
}
