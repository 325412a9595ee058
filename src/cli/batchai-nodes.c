/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/batchai-nodes.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/call.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_WORDS = 64,
    MOST_TUNNELS = 16,
    NO_COMMAND = 127, /* what shells say */
};

/* What ssh asks for a password: it is run by ssh with our environment. */
static const char askpass[] = "#!/bin/sh\nprintf '%s\\n' \"$YARD_SSH_PASSWORD\"\n";

struct words {
    const char *texts[MOST_WORDS];
    size_t count;
};

static void add(struct words *words, const char *text)
{
    if (words->count + 1 < MOST_WORDS)
        words->texts[words->count++] = text;
}

void batchai_quote(struct str *out, const char *text)
{
    str_add_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            str_add(out, "'\\''");
        else
            str_add_char(out, *text);
    }
    str_add_char(out, '\'');
}

static int find_node(struct call *call,
                     const json_t *nodes,
                     const char **ret_address,
                     int *ret_port,
                     struct err *e)
{
    const char *wanted = args_get(call->args, "node-id");
    const json_t *node;
    size_t i;

    json_array_foreach(nodes, i, node)
    {
        const char *id = json_string_value(json_object_get(node, "nodeId"));

        if (wanted && (!id || !str_equal(wanted, id)))
            continue;
        *ret_address = json_string_value(json_object_get(node, "ipAddress"));
        *ret_port = (int)json_number_value(json_object_get(node, "port"));
        if (*ret_address)
            return 0;
    }
    if (wanted)
        return err_set(e, ERR_NOT_FOUND, "there is no node \"%.100s\" that can be logged in to",
                       wanted);
    return err_set(e, ERR_NOT_FOUND,
                   "there is no node that can be logged in to (nodes have SSH only when the "
                   "yard runs as root)");
}

static int check_tunnel(const char *text, struct err *e)
{
    size_t port = strspn(text, "0123456789");

    if (port && text[port] == ':' && strchr(text + port + 1, ':'))
        return 0;
    return args_fail(e, "--address", "-L: \"%.100s\" is not LOCALPORT:HOST:PORT", text);
}

static int add_tunnels(struct call *call, struct words *words, struct err *e)
{
    size_t count;
    const char *const *texts = args_list(call->args, "address", &count);

    if (count > MOST_TUNNELS)
        return args_fail(e, "--address", "-L: at most %d", MOST_TUNNELS);
    for (size_t i = 0; i < count; i++) {
        if (check_tunnel(texts[i], e) < 0)
            return -1;
        add(words, "-L");
        add(words, texts[i]);
    }
    if (count && !args_has(call->args, "exec")) {
        add(words, "-N");
        call_say(call, "The ports are led to the node until Ctrl-C.");
    }
    return 0;
}

/* A file that only we can run; the caller unlinks it. */
static int write_askpass(char path[], struct err *e)
{
    auto_close int fd = mkstemp(path);

    if (fd < 0 || fchmod(fd, 0700) < 0)
        return err_sys(e, errno, "could not make a temporary file");
    return fs_write_all(fd, askpass, strlen(askpass), e);
}

/* The status of a program that was run, as shells tell it. */
static int run(const struct words *words, int *ret_status, struct err *e)
{
    extern char **environ;
    pid_t pid;
    int status, rc = posix_spawnp(&pid, words->texts[0], NULL, NULL,
                                  (char *const *)(void *)words->texts, environ);

    if (rc != 0)
        return err_sys(e, rc, "could not run %s", words->texts[0]);
    /* Ctrl-C is for what runs there. */
    signal(SIGINT, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return err_sys(e, errno, "could not wait for %s", words->texts[0]);
    }
    signal(SIGINT, SIG_DFL);
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

static int run_with_password(const struct words *words,
                             const char *password,
                             int *ret_status,
                             struct err *e)
{
    char path[] = "/tmp/yard-askpass-XXXXXX";
    int rc;

    if (write_askpass(path, e) < 0)
        return -1;
    setenv("SSH_ASKPASS", path, 1);
    setenv("SSH_ASKPASS_REQUIRE", "force", 1);
    setenv("YARD_SSH_PASSWORD", password, 1);
    rc = run(words, ret_status, e);
    unsetenv("YARD_SSH_PASSWORD");
    unlink(path);
    return rc;
}

static const char *admin_of(const json_t *cluster)
{
    const json_t *properties = json_object_get(cluster, "properties");
    const char *name = json_string_value(
        json_object_get(json_object_get(properties, "userAccountSettings"), "adminUserName"));

    return name ? name : "root";
}

/* Nodes come and go under the same addresses, each with a host key of its own: what was known
 * of an address says nothing. */
static void add_usual(struct words *words)
{
    add(words, "ssh");
    add(words, "-o");
    add(words, "StrictHostKeyChecking=no");
    add(words, "-o");
    add(words, "UserKnownHostsFile=/dev/null");
    add(words, "-o");
    add(words, "LogLevel=ERROR");
}

int batchai_node_exec(struct call *call,
                      const json_t *cluster,
                      const json_t *nodes,
                      struct err *e)
{
    const char *command = args_get(call->args, "exec");
    const char *password = args_get(call->args, "password");
    const char *key = args_get(call->args, "ssh-private-key"), *address;
    auto_free char *target = NULL, *port_text = NULL;
    auto_str remote = {0};
    struct words words = {0};
    int port = 22, status = NO_COMMAND;

    add_usual(&words);
    if (add_tunnels(call, &words, e) < 0 || find_node(call, nodes, &address, &port, e) < 0)
        return -1;
    port_text = xasprintf("%d", port);
    target = xasprintf("%s@%s", admin_of(cluster), address);
    add(&words, "-p");
    add(&words, port_text);
    if (key) {
        add(&words, "-i");
        add(&words, key);
    }
    if (command && isatty(STDIN_FILENO))
        add(&words, "-t"); /* an interactive shell wants a terminal */
    add(&words, "--");
    add(&words, target);
    if (command) {
        str_add(&remote, isatty(STDIN_FILENO) ? "bash -ilc " : "bash -lc ");
        batchai_quote(&remote, command);
        add(&words, str_text(&remote));
    }
    if ((password ? run_with_password(&words, password, &status, e) : run(&words, &status, e)) <
        0)
        return -1;
    call->exit_status = status;
    return 0;
}
