/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settings.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

enum type {
    TEXT,
    NUMBER,
    LEVEL,
};

static const struct setting {
    const char *name; /* with underscores; options have hyphens */
    enum type type;
    size_t offset;
    const char *preset;
    long least, most;
    const char *help;
} table[] = {
    {"address", TEXT, offsetof(struct settings, address), "127.0.0.1", 0, 0,
     "Address to serve the API on with TLS. Plain http stays on loopback whatever this says."},
    {"https_port", NUMBER, offsetof(struct settings, https_port), "7443", 0, 65535,
     "Port of the API with TLS; the next free one when it is taken, any when 0."},
    {"http_port", NUMBER, offsetof(struct settings, http_port), "7480", 0, 65535,
     "Port of the page and the API without TLS, on loopback only; likewise."},
    {"host_names", TEXT, offsetof(struct settings, host_names), "", 0, 0,
     "More names that clients may use for this yard, separated by commas; they enter the "
     "certificate."},
    {"blob_port", NUMBER, offsetof(struct settings, blob_port), "10000", 0, 65535,
     "Port of the blob service: TLS, and plain http from loopback. Clients take 10000 for an "
     "address with the account in its path."},
    {"file_port", NUMBER, offsetof(struct settings, file_port), "10004", 0, 65535,
     "Port of the file service; likewise."},
    {"storage_suffix", TEXT, offsetof(struct settings, storage_suffix), "", 0, 0,
     "What follows the account in host-style addresses, separated by commas: yard.example "
     "makes "
     "ACCOUNT.blob.yard.example and ACCOUNT.file.yard.example work."},
    {"tls_cert", TEXT, offsetof(struct settings, tls_cert), "", 0, 0,
     "Certificate chain (PEM) to use instead of one from the yard's own authority."},
    {"tls_key", TEXT, offsetof(struct settings, tls_key), "", 0, 0,
     "Private key (PEM) of tls_cert."},
    {"threads", NUMBER, offsetof(struct settings, threads), "0", 0, 256,
     "Threads that serve connections; 0 means one per core."},
    {"most_per_commit", NUMBER, offsetof(struct settings, most_per_commit), "256", 1, 10000,
     "How many changes may share one commit; 1 gives each its own fsync."},
    {"max_body_kib", NUMBER, offsetof(struct settings, max_body_kib), "1024", 1, 65536,
     "Largest JSON request, in KiB."},
    {"max_connections", NUMBER, offsetof(struct settings, max_connections), "20000", 1, 1000000,
     "Connections at once; more are turned away with 503."},
    {"drain_seconds", NUMBER, offsetof(struct settings, drain_seconds), "10", 0, 3600,
     "How long running requests may go on after SIGTERM."},
    {"audit_days", NUMBER, offsetof(struct settings, audit_days), "365", 0, 36500,
     "How many days the audit log goes back; 0 keeps it for ever."},
    {"nodes", TEXT, offsetof(struct settings, nodes), "auto", 0, 0,
     "What a node is: namespaces (a host of its own; needs root), processes (folders and "
     "process "
     "groups), or auto: namespaces for root."},
    {"node_subnet", TEXT, offsetof(struct settings, node_subnet), "", 0, 0,
     "Network of the nodes, such as 10.77.0.0/16; empty takes one that is free."},
    {"most_nodes", NUMBER, offsetof(struct settings, most_nodes), "100", 1, 10000,
     "Nodes of all clusters together."},
    {"oversubscribe", TEXT, offsetof(struct settings, oversubscribe), "yes", 0, 0,
     "yes: nodes may have more cores in all than this machine has, and share them evenly. no: "
     "a cluster stays smaller than asked for, and each node has its processors for itself. "
     "GPUs are never shared."},
    {"vm_sizes", TEXT, offsetof(struct settings, vm_sizes), "", 0, 0,
     "More machine sizes, separated by commas: name cores memory_gib gpus [family]."},
    {"idle_seconds", NUMBER, offsetof(struct settings, idle_seconds), "300", 0, 86400,
     "How long a node is idle before an automatic cluster gives it up."},
    {"most_attempts", NUMBER, offsetof(struct settings, most_attempts), "5", 1, 1000,
     "How often a job is tried in all when its nodes are lost."},
    {"node_pids", NUMBER, offsetof(struct settings, node_pids), "4096", 16, 4194304,
     "Processes and threads that a node's job may have at once."},
    {"node_start_seconds", NUMBER, offsetof(struct settings, node_start_seconds), "3600", 1,
     604800,
     "How long a new node may take until it is ready, its setup task included; then it is "
     "unusable, and says why."},
    {"grace_seconds", NUMBER, offsetof(struct settings, grace_seconds), "30", 0, 3600,
     "How long a job that is told to end may go on before it is killed."},
    {"log_level", LEVEL, offsetof(struct settings, log_level), "info", 0, 0,
     "debug, info, warning or error."},
};

static const struct setting *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (str_equal(name, table[i].name))
            return &table[i];
    }
    return NULL;
}

static int unknown(struct err *e, const char *name)
{
    const char *nearest = NULL;
    size_t best = 4; /* farther is no help */

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t distance = str_distance(name, table[i].name);

        if (distance < best) {
            best = distance;
            nearest = table[i].name;
        }
    }
    return err_set(e, ERR_INVALID, "there is no setting \"%.64s\"%s%s%s", name,
                   nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                   nearest ? "\"?" : "");
}

static int set_number(const struct setting *row, int *to, const char *value, struct err *e)
{
    char *end;
    long number = strtol(value, &end, 10);

    if (!*value || *end || number < row->least || number > row->most)
        return err_set(e, ERR_INVALID, "%s: \"%.64s\" is not a number from %ld to %ld",
                       row->name, value, row->least, row->most);
    *to = (int)number;
    return 0;
}

static int set(struct settings *s, const char *name, const char *value, struct err *e)
{
    const struct setting *row = find(name);
    void *to;

    if (!row)
        return unknown(e, name);
    to = (char *)s + row->offset;
    switch (row->type) {
    case TEXT:
        free(*(char **)to);
        *(char **)to = xstrdup(value);
        return 0;
    case NUMBER:
        return set_number(row, to, value, e);
    case LEVEL:
        return log_parse_level(value, to, e);
    }
    return 0;
}

/* "name = value"; the line is changed. */
static int set_line(struct settings *s, char *line, struct err *e)
{
    char *equals, *end;

    line += strspn(line, " \t");
    if (!*line || *line == '#')
        return 0;
    equals = strchr(line, '=');
    if (!equals)
        return err_set(e, ERR_INVALID, "expected \"name = value\", got \"%.64s\"", line);
    for (end = equals; end > line && isspace((unsigned char)end[-1]); end--)
        continue;
    *end = '\0';
    equals++;
    equals += strspn(equals, " \t");
    for (end = equals + strlen(equals); end > equals && isspace((unsigned char)end[-1]); end--)
        continue;
    *end = '\0';
    return set(s, line, equals, e);
}

static int read_file(struct settings *s, struct err *e)
{
    auto_free char *path = xasprintf("%s/yardd.conf", s->home);
    auto_str text = {0};
    struct err why = {0};
    char *saved = NULL;
    int number = 0;

    if (fs_read(path, 1024 * 1024, &text, &why) < 0) {
        if (why.code == ERR_NOT_FOUND)
            return 0;
        *e = why;
        return -1;
    }
    for (char *line = text.data; line; line = saved) {
        saved = strchr(line, '\n');
        if (saved)
            *saved++ = '\0';
        number++;
        if (set_line(s, line, e) < 0)
            return err_wrap(e, "%s:%d", path, number);
    }
    return 0;
}

static char *default_home(void)
{
    const char *home = getenv("YARD_HOME"), *user = getenv("HOME");

    if (home && *home)
        return xstrdup(home);
    return xasprintf("%s/.trainyard", user && *user ? user : "/root");
}

/* One argument: "--name=value" or "--name value".  Moves *i over what it took. */
static int
option(int argc, char **argv, int *i, char **ret_name, const char **ret_value, struct err *e)
{
    char *equals;

    if (!str_starts(argv[*i], "--"))
        return err_set(e, ERR_INVALID, "\"%.64s\" is not an option; see yardd --help",
                       argv[*i]);
    *ret_name = xstrdup(argv[*i] + 2);
    equals = strchr(*ret_name, '=');
    if (equals) {
        *equals = '\0';
        *ret_value = strchr(argv[*i], '=') + 1;
    } else if (*i + 1 < argc) {
        *ret_value = argv[++*i];
    } else {
        err_set(e, ERR_INVALID, "--%s wants a value; see yardd --help", *ret_name);
        free(take_ptr(ret_name));
        return -1;
    }
    for (char *p = *ret_name; *p; p++)
        *p = *p == '-' ? '_' : *p;
    return 0;
}

static enum settings_verb verb_of(const char *argument)
{
    if (str_equal(argument, "--help") || str_equal(argument, "-h"))
        return SETTINGS_HELP;
    if (str_equal(argument, "--version"))
        return SETTINGS_VERSION;
    if (str_equal(argument, "--sample-config"))
        return SETTINGS_SAMPLE;
    return SETTINGS_RUN;
}

/* Two passes over the arguments: the first only finds --home, so that its file can come before
 * the rest. */
static int read_options(int argc,
                        char **argv,
                        struct settings *s,
                        bool home_only,
                        enum settings_verb *ret_verb,
                        const char **ret_argument,
                        struct err *e)
{
    for (int i = 1; i < argc; i++) {
        auto_free char *name = NULL;
        const char *value = NULL;

        if (verb_of(argv[i]) != SETTINGS_RUN) {
            *ret_verb = verb_of(argv[i]);
            continue;
        }
        if (option(argc, argv, &i, &name, &value, e) < 0)
            return -1;
        if (str_equal(name, "home")) {
            free(s->home);
            s->home = xstrdup(value);
        } else if (str_equal(name, "stage_restore")) {
            *ret_verb = SETTINGS_STAGE_RESTORE;
            *ret_argument = value;
        } else if (!home_only && set(s, name, value, e) < 0) {
            return -1;
        }
    }
    return 0;
}

int settings_read(int argc,
                  char **argv,
                  struct settings *ret_settings,
                  enum settings_verb *ret_verb,
                  const char **ret_argument,
                  struct err *e)
{
    struct settings s = {.home = default_home()};

    *ret_verb = SETTINGS_RUN;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        set(&s, table[i].name, table[i].preset, NULL);
    if (read_options(argc, argv, &s, true, ret_verb, ret_argument, e) < 0 ||
        read_file(&s, e) < 0 ||
        read_options(argc, argv, &s, false, ret_verb, ret_argument, e) < 0) {
        settings_done(&s);
        return -1;
    }
    *ret_settings = s;
    return 0;
}

void settings_done(struct settings *s)
{
    free(s->home);
    free(s->address);
    free(s->host_names);
    free(s->storage_suffix);
    free(s->tls_cert);
    free(s->tls_key);
    free(s->oversubscribe);
    free(s->nodes);
    free(s->node_subnet);
    free(s->vm_sizes);
    *s = (struct settings){0};
}

void settings_print_help(FILE *out)
{
    fputs(
        "yardd - the Trainyard service\n\n"
        "usage: yardd [--home DIR] [--SETTING VALUE]...\n\n"
        "It serves one data folder and stays in the foreground; \"yard up\" starts it in the\n"
        "background. The log goes to stderr.\n\n"
        "  --home DIR             the data folder; default $YARD_HOME or ~/.trainyard\n"
        "  --sample-config        print a commented yardd.conf\n"
        "  --stage-restore FILE   let the next start take over a backup\n"
        "  --help, --version\n\nsettings (also in DIR/yardd.conf):\n",
        out);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *option_name = xstrdup(table[i].name);

        for (char *p = option_name; *p; p++)
            *p = *p == '_' ? '-' : *p;
        fprintf(out, "  --%-20s %s\n  %-22s default: %s\n", option_name, table[i].help, "",
                *table[i].preset ? table[i].preset : "none");
    }
    fputs("\nexamples:\n"
          "  yardd                                        serve ~/.trainyard on loopback\n"
          "  yardd --home /srv/yard --address 0.0.0.0     serve the network, with TLS only\n"
          "  yardd --sample-config > ~/.trainyard/yardd.conf\n",
          out);
}

void settings_print_sample(FILE *out)
{
    fputs(
        "# yardd.conf - settings of a yard. Lines are \"name = value\"; what is commented out\n"
        "# is the default.\n",
        out);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        fprintf(out, "\n# %s\n#%s = %s\n", table[i].help, table[i].name, table[i].preset);
}
