/* Containers and shares as folders: mount, umount, mounts.
 *
 * The work is yardfs's, a program of its own beside this one.  It is handed the secret through
 * its standard input: everybody can read a command line.  With --bind it is the kernel's alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/nouns.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/bind.h"
#include "cli/call.h"
#include "cli/mounts.h"
#include "cli/place.h"
#include "cli/storage-account.h"
#include "cli/term.h"
#include "cli/transfer-ends.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ANSWER_TIMEOUT_MS = 10 * 1000,
    MOST_WORDS = 24,
};

static const struct option_row place = {
    .names = "PLACE",
    .help = "URL of a container or share, or account/container; a path below is fine.",
    .required = true,
};
static const struct option_row folder = {
    .names = "FOLDER",
    .help = "Folder to mount it on; made when it is not there.",
    .required = true,
};
static const struct option_row mounted = {
    .names = "FOLDER",
    .help = "Folder that it is mounted on.",
    .required = true,
};
static const struct option_row share = {
    .names = "--share",
    .help = "It is a share, when the name alone does not tell.",
    .kind = OPTION_FLAG,
};
static const struct option_row rw = {
    .names = "--rw",
    .help = "Let files of a container be written, as a whole each time. A share always is "
            "writable.",
    .kind = OPTION_FLAG,
};
static const struct option_row ro = {
    .names = "--ro",
    .help = "Let nothing be written.",
    .kind = OPTION_FLAG,
};
static const struct option_row immutable = {
    .names = "--immutable",
    .help = "Nobody changes the data while it is mounted: ask for nothing twice.",
    .kind = OPTION_FLAG,
};
static const struct option_row cache_mib = {
    .names = "--cache-mib",
    .help = "Memory for what was read ahead and for small files, in MiB: 256 when not given.",
};
static const struct option_row fresh_seconds = {
    .names = "--fresh-seconds",
    .help = "How long names and sizes are believed: 10 when not given.",
};
static const struct option_row allow_other = {
    .names = "--allow-other",
    .help = "Let other users in too.",
    .kind = OPTION_FLAG,
};
static const struct option_row foreground = {
    .names = "--foreground",
    .help = "Stay until it is unmounted, and log here.",
    .kind = OPTION_FLAG,
};
static const struct option_row bind_it = {
    .names = "--bind",
    .help =
        "On the machine of the yard, as root: mount the folder where the data lies, as fast "
        "as the disk. A container is read-only unless --rw is given.",
    .kind = OPTION_FLAG,
};
static const struct option_row lazy = {
    .names = "--lazy",
    .help = "Also when it is in use: it ends with the last use.",
    .kind = OPTION_FLAG,
};

/* --- the other program --- */

static int find_program(char **ret_path, struct err *e)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_free char *path = NULL;
    char *slash = self ? strrchr(self, '/') : NULL;

    if (!slash)
        return err_sys(e, errno, "could not find this program's own folder");
    *slash = '\0';
    path = xasprintf("%s/yardfs", self);
    if (access(path, X_OK) < 0)
        return err_sys(e, errno, "could not find \"%s\"", path);
    *ret_path = take_ptr(&path);
    return 0;
}

struct words {
    char *word[MOST_WORDS];
    size_t count;
};

static void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->word[i]);
}
#define auto_words __attribute__((cleanup(words_done))) struct words

static void add_word(struct words *words, const char *word)
{
    words->word[words->count++] = xstrdup(word); /* far fewer than there is room for */
}

/* The options that both programs have under the same name. */
static void add_options(struct words *words, const struct args *args)
{
    static const char *const flags[] = {"rw", "ro", "immutable", "allow-other", "foreground"};
    static const char *const values[] = {"cache-mib", "fresh-seconds"};

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (args_flag(args, flags[i])) {
            auto_free char *word = xasprintf("--%s", flags[i]);

            add_word(words, word);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        if (args_has(args, values[i])) {
            auto_free char *word = xasprintf("--%s=%s", values[i], args_get(args, values[i]));

            add_word(words, word);
        }
    }
}

/* What opens the data, as yardfs wants it. */
static char *source_text(const struct end *end)
{
    static const char *const secrets[] = {
        [STORAGE_AUTH_KEY] = "key", [STORAGE_AUTH_SAS] = "sas", [STORAGE_AUTH_TOKEN] = "token"};
    const struct storage_account *account = end->account;
    enum storage_service service = end->address.service;
    auto_json json_t *source = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:s*, s:s}", "service", storage_service_name(service),
        "endpoint", account->endpoints[service], "account", account->name, "container",
        end->address.container, "path", end->address.path, "isYard", account->is_ours, "caFile",
        account->ca_file, secrets[account->auth], account->secret);
    auto_str text = {0};

    json_write(&text, source);
    return str_take(&text);
}

/* A pipe that holds the text: it is short, and a pipe takes 64 KiB without a reader. */
static int make_stdin(const char *text, int *ret_fd, struct err *e)
{
    int fds[2];
    int rc;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not make a pipe");
    rc = fs_write_all(fds[1], text, strlen(text), e);
    close(fds[1]);
    if (rc < 0)
        close(fds[0]);
    else
        *ret_fd = fds[0];
    return rc;
}

static void become(const struct words *words, int stdin_fd, int stderr_fd)
{
    if (dup2(stdin_fd, STDIN_FILENO) < 0 ||
        (stderr_fd >= 0 && dup2(stderr_fd, STDERR_FILENO) < 0))
        _exit(126);
    execv(words->word[0], words->word);
    _exit(127);
}

/* Read what the program says until it has nothing more to say, then how it ended. */
static int hear_out(pid_t child, int fd, struct err *e)
{
    auto_str text = {0};
    const char *said;
    int state = 0;

    for (;;) {
        ssize_t got = read(fd, str_reserve(&text, 4096), 4096);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        text.len += (size_t)got;
        text.data[text.len] = '\0';
    }
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return 0;
    while (text.len && text.data[text.len - 1] == '\n')
        str_truncate(&text, text.len - 1);
    /* Its own last word; before may be lines of its log. */
    said = strstr(str_text(&text), "yardfs: ");
    said = said ? said + strlen("yardfs: ") : str_text(&text);
    return err_set(e, ERR_INTERNAL, "could not mount: %.400s", *said ? said : "yardfs failed");
}

static int start(const struct words *words, const char *source, struct err *e)
{
    auto_close int stdin_fd = -1;
    auto_close int heard_fd = -1;
    int fds[2];
    pid_t child;

    if (make_stdin(source, &stdin_fd, e) < 0)
        return -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not make a pipe");
    heard_fd = fds[0];
    child = fork();
    if (child == 0)
        become(words, stdin_fd, fds[1]);
    close(fds[1]);
    if (child < 0)
        return err_sys(e, errno, "could not start \"%s\"", words->word[0]);
    return hear_out(child, heard_fd, e);
}

static int stay(const struct words *words, const char *source, struct err *e)
{
    int stdin_fd;

    if (make_stdin(source, &stdin_fd, e) < 0)
        return -1;
    become(words, stdin_fd, -1);
    return err_set(e, ERR_INTERNAL, "could not start \"%s\"", words->word[0]);
}

/* --- mount --- */

static int make_folder(const char *typed, char **ret_folder, struct err *e)
{
    if (mkdir(typed, 0755) < 0 && errno != EEXIST)
        return err_sys(e, errno, "could not make the folder \"%.200s\"", typed);
    *ret_folder = realpath(typed, NULL);
    if (!*ret_folder && errno == ENOTCONN)
        return err_set(e, ERR_CONFLICT,
                       "a mount on \"%.200s\" has lost its program; first: yard umount --lazy "
                       "%.200s",
                       typed, typed);
    if (!*ret_folder)
        return err_sys(e, errno, "could not find the folder \"%.200s\"", typed);
    if (mounts_find(*ret_folder, NULL))
        return err_set(e, ERR_CONFLICT, "there is a mount on \"%.200s\" already", *ret_folder);
    return 0;
}

static int wait_for_answer(const char *where, struct err *e)
{
    int64_t deadline_ms = clock_mono_ms() + ANSWER_TIMEOUT_MS;
    struct stat st;

    while (!mounts_find(where, NULL) || stat(where, &st) < 0) {
        if (clock_mono_ms() > deadline_ms)
            return err_set(e, ERR_TIMEOUT, "the mount on \"%.200s\" does not answer", where);
        usleep(10 * 1000);
    }
    return 0;
}

static int open_place(struct call *call, struct end *ret_end, struct err *e)
{
    enum storage_service service =
        args_flag(call->args, "share") ? STORAGE_FILE : STORAGE_UNKNOWN;

    if (end_open(call, args_get(call->args, "PLACE"), service, NULL, true, ret_end, e) < 0)
        return -1;
    if (ret_end->address.service == STORAGE_UNKNOWN)
        ret_end->address.service = STORAGE_BLOB;
    if (!*ret_end->address.container || ret_end->address.pattern)
        return args_fail(e, "PLACE", "name a container or a share, as in account/container");
    return 0;
}

static void close_end(struct end *end)
{
    end_close(end);
}
#define auto_end __attribute__((cleanup(close_end))) struct end

static int make_words(struct call *call, const char *where, struct words *words, struct err *e)
{
    auto_free char *program = NULL;
    auto_free char *logs = xasprintf("%s/log", call->home);
    auto_free char *log = xasprintf("--log=%s/yardfs.log", logs);

    if (find_program(&program, e) < 0 || fs_make_folders(logs, 0700, e) < 0)
        return -1;
    add_word(words, program);
    add_options(words, call->args);
    add_word(words, log);
    add_word(words, where);
    return 0;
}

/* What yardfs alone can do. */
static int refuse_options(const struct args *args, struct err *e)
{
    static const char *const names[] = {"immutable", "allow-other", "foreground", "cache-mib",
                                        "fresh-seconds"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (args_has(args, names[i]))
            return args_fail(e, names[i], "--%s has no meaning together with --bind", names[i]);
    }
    return 0;
}

static int
mount_tree(struct call *call, const struct end *end, const char *where, struct err *e)
{
    const struct address *address = &end->address;
    const struct bind_source source = {call->home, end->account->name, address->service,
                                       address->container, address->path};
    bool is_read_only = args_flag(call->args, "ro") ||
                        (address->service == STORAGE_BLOB && !args_flag(call->args, "rw"));
    struct place *yard;

    if (refuse_options(call->args, e) < 0 || call_place(call, &yard, e) < 0)
        return -1;
    if (!end->account->is_ours || !yard->is_local)
        return err_set(
            e, ERR_INVALID,
            "--bind needs the data folder of the yard on this machine; leave it out");
    return bind_mount(&source, where, is_read_only, e);
}

static int serve_it(struct call *call, const struct end *end, const char *where, struct err *e)
{
    auto_words words = {0};
    auto_free char *source = source_text(end);

    if (make_words(call, where, &words, e) < 0)
        return -1;
    if (args_flag(call->args, "foreground"))
        return stay(&words, source, e);
    return start(&words, source, e) < 0 || wait_for_answer(where, e) < 0 ? -1 : 0;
}

static int mount_it(struct call *call, json_t **ret_result, struct err *e)
{
    auto_end end = {0};
    auto_free char *where = NULL;
    json_t *found = NULL;

    if (open_place(call, &end, e) < 0 ||
        make_folder(args_get(call->args, "FOLDER"), &where, e) < 0 ||
        (args_flag(call->args, "bind") ? mount_tree : serve_it)(call, &end, where, e) < 0)
        return -1;
    mounts_find(where, &found);
    if (!call_wants_text(call)) {
        *ret_result = found;
        return 0;
    }
    call_say(call, "Mounted %s on %s (%s).",
             json_string_value(json_object_get(found, "source")), where,
             json_is_true(json_object_get(found, "readOnly")) ? "read-only" : "read-write");
    json_decref(found);
    return 0;
}

/* --- umount, mounts --- */

static int run_fusermount(const char *where, bool is_lazy, struct err *e)
{
    const char *argv[] = {"fusermount3", is_lazy ? "-uz" : "-u", "--", where, NULL};
    auto_close int heard_fd = -1;
    auto_str text = {0};
    int fds[2];
    pid_t child;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, errno, "could not make a pipe");
    heard_fd = fds[0];
    child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        execvp(argv[0], (char *const *)argv);
        dprintf(STDERR_FILENO, "fusermount3 is missing; install the package fuse3");
        _exit(127);
    }
    close(fds[1]);
    if (child < 0)
        return err_sys(e, errno, "could not start fusermount3");
    if (hear_out(child, heard_fd, e) < 0) {
        const char *colon = strstr(e->msg, ": ");

        str_add(&text, colon ? colon + 2 : e->msg);
        return err_set(e, ERR_BUSY, "could not unmount: %s", str_text(&text));
    }
    return 0;
}

/* Without asking the folder itself: its program may be dead. */
static char *absolute(const char *typed)
{
    auto_free char *resolved = realpath(typed, NULL);
    auto_free char *here = typed[0] == '/' ? xstrdup("") : getcwd(NULL, 0);
    auto_str path = {0};

    if (resolved)
        return take_ptr(&resolved);
    str_addf(&path, "%s%s%s", here ? here : "", typed[0] == '/' ? "" : "/", typed);
    while (path.len > 1 && path.data[path.len - 1] == '/')
        str_truncate(&path, path.len - 1);
    return str_take(&path);
}

static int umount_it(struct call *call, json_t **ret_result, struct err *e)
{
    auto_free char *where = absolute(args_get(call->args, "FOLDER"));
    auto_json json_t *found = NULL;
    const char *type;

    (void)ret_result;
    if (!mounts_find(where, &found))
        return err_set(e, ERR_NOT_FOUND, "no container or share is mounted on \"%.300s\"",
                       where);
    type = json_string_value(json_object_get(found, "type"));
    if ((str_equal(type, "bind") ? bind_umount
                                 : run_fusermount)(where, args_flag(call->args, "lazy"), e) < 0)
        return -1;
    call_say(call, "Unmounted %s.", where);
    return 0;
}

static int list_them(struct call *call, json_t **ret_result, struct err *e)
{
    (void)call;
    return mounts_list(ret_result, e);
}

const struct command mount_commands[] = {
    {
        .path = "mount",
        .summary = "Mount a container or a share on a folder.",
        .options = OPTIONS(&place,
                           &folder,
                           &share,
                           &rw,
                           &ro,
                           &bind_it,
                           &immutable,
                           &cache_mib,
                           &fresh_seconds,
                           &allow_other,
                           &foreground),
        .examples = {{"Look at a container.", "yard mount recipestore/images ~/images"},
                     {"Work on a share.", "yard mount --share recipestore/work ~/work"},
                     {"Train on data that stays as it is.",
                      "yard mount --immutable recipestore/imagenet /data"},
                     {"Train on the machine of the yard.",
                      "yard mount --bind recipestore/imagenet /data"}},
        .run = mount_it,
    },
    {
        .path = "umount",
        .summary = "End a mount.",
        .options = OPTIONS(&mounted, &lazy),
        .examples = {{"End it.", "yard umount ~/images"}},
        .run = umount_it,
    },
    {
        .path = "mounts",
        .summary = "List the containers and shares that are mounted here.",
        .examples = {{"List them.", "yard mounts -o table"}},
        .run = list_them,
        .table = "{Folder: folder, Type: type, Source: source, \"Read-only\": readOnly}",
    },
    {0},
};
