/* SPDX-License-Identifier: Apache-2.0 */
#include "mount/settings.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum type {
    FLAG,
    TEXT,
    NUMBER,
};

static const struct option_row {
    const char *name;
    enum type type;
    size_t offset;
    int64_t preset, least, most;
    const char *help;
} table[] = {
    {"rw", FLAG, offsetof(struct settings, is_writable), 0, 0, 0,
     "Let files of a container be written, as a whole each time; a share always is writable."},
    {"ro", FLAG, offsetof(struct settings, is_read_only), 0, 0, 0, "Let nothing be written."},
    {"immutable", FLAG, offsetof(struct settings, is_immutable), 0, 0, 0,
     "Nobody changes the data while it is mounted: ask for nothing twice."},
    {"cache-mib", NUMBER, offsetof(struct settings, cache_mib), 256, 8, 1024 * 1024,
     "Memory for what was read ahead and for small files, in MiB."},
    {"fresh-seconds", NUMBER, offsetof(struct settings, fresh_seconds), 10, 0, 86400,
     "How long names and sizes are believed."},
    {"patience-seconds", NUMBER, offsetof(struct settings, patience_seconds), 60, 0, 86400,
     "How long to wait for a server that does not answer before giving an error."},
    {"threads", NUMBER, offsetof(struct settings, threads), 32, 2, 256,
     "How many requests of the kernel are served at once."},
    {"allow-other", FLAG, offsetof(struct settings, allow_other), 0, 0, 0,
     "Let other users in too."},
    {"foreground", FLAG, offsetof(struct settings, in_foreground), 0, 0, 0,
     "Stay in the foreground and log to standard error."},
    {"debug", FLAG, offsetof(struct settings, is_debug), 0, 0, 0, "Log more."},
    {"log", TEXT, offsetof(struct settings, log_file), 0, 0, 0,
     "File to log to when in the background."},
    {"source", TEXT, offsetof(struct settings, source_file), 0, 0, 0,
     "File that says where the data is and what opens it; otherwise standard input does."},
    {"help", FLAG, offsetof(struct settings, wants_help), 0, 0, 0, "Show this help."},
    {"version", FLAG, offsetof(struct settings, wants_version), 0, 0, 0, "Show the version."},
};

void settings_print_help(FILE *out)
{
    fputs(
        "Usage: yardfs [OPTION]... FOLDER\n"
        "Mount a container or a share of a storage account; `yard mount` is the easy way.\n\n",
        out);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        auto_free char *name = xasprintf("--%s%s", table[i].name,
                                         table[i].type == FLAG     ? ""
                                         : table[i].type == NUMBER ? " N"
                                                                   : " FILE");

        fprintf(out, "  %-20s %s", name, table[i].help);
        if (table[i].type == NUMBER)
            fprintf(out, " [%lld]", (long long)table[i].preset);
        fputc('\n', out);
    }
    fputs("\nThe source is one JSON object: service (blob or file), endpoint, account, "
          "container, path,\ncaFile, isYard, and one of key, sas, token.\n",
          out);
}

void settings_done(struct settings *s)
{
    free(s->folder);
    free(s->source_file);
    free(s->log_file);
    free(s->endpoint);
    free(s->account);
    free(s->container);
    free(s->path);
    free(s->ca_file);
    free(s->secret);
    *s = (struct settings){0};
}

/* --- the command line --- */

static const struct option_row *find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    }
    return NULL;
}

static int
set_value(struct settings *s, const struct option_row *row, const char *value, struct err *e)
{
    void *to = (char *)s + row->offset;
    char *end;
    long long number;

    if (row->type == TEXT) {
        free(*(char **)to);
        *(char **)to = xstrdup(value);
        return 0;
    }
    errno = 0;
    number = strtoll(value, &end, 10);
    if (!*value || *end || errno || number < row->least || number > row->most)
        return err_set(e, ERR_INVALID, "--%s: \"%.64s\" is not a number from %lld to %lld",
                       row->name, value, (long long)row->least, (long long)row->most);
    *(int64_t *)to = number;
    return 0;
}

/* Returns how many words were used, or -1. */
static int
set_option(struct settings *s, const char *word, const char *following, struct err *e)
{
    size_t len = strcspn(word, "=");
    const struct option_row *row = find(word, len);
    const char *value = word[len] ? word + len + 1 : following;

    if (!row)
        return err_set(e, ERR_INVALID, "there is no option --%.64s; see yardfs --help", word);
    if (row->type == FLAG && word[len])
        return err_set(e, ERR_INVALID, "--%s takes no value", row->name);
    if (row->type == FLAG) {
        *(bool *)((char *)s + row->offset) = true;
        return 1;
    }
    if (!value)
        return err_set(e, ERR_INVALID, "--%s needs a value", row->name);
    if (set_value(s, row, value, e) < 0)
        return -1;
    return word[len] ? 1 : 2;
}

static int set_folder(struct settings *s, const char *word, struct err *e)
{
    if (s->folder)
        return err_set(e, ERR_INVALID, "one folder is enough: \"%.200s\"", word);
    /* In the background the working folder is another. */
    s->folder = realpath(word, NULL);
    if (!s->folder)
        return err_sys(e, errno, "could not find the folder \"%.200s\"", word);
    return 0;
}

int settings_parse(struct settings *s, int count, char *const words[], struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (table[i].type == NUMBER)
            *(int64_t *)(void *)((char *)s + table[i].offset) = table[i].preset;
    }
    for (int i = 0; i < count;) {
        int used = 1;

        if (str_starts(words[i], "--"))
            used = set_option(s, words[i] + 2, i + 1 < count ? words[i + 1] : NULL, e);
        else if (set_folder(s, words[i], e) < 0)
            return -1;
        if (used < 0)
            return -1;
        i += used;
    }
    if (!s->folder && !s->wants_help && !s->wants_version)
        return err_set(e, ERR_INVALID, "which folder? see yardfs --help");
    return 0;
}

/* --- the source --- */

static int
take_text(const json_t *object, const char *key, bool is_needed, char **to, struct err *e)
{
    const char *text = NULL;

    if (json_get_string(object, key, &text, e) < 0)
        return -1;
    if (!text && is_needed)
        return err_set(e, ERR_INVALID, "the source does not tell \"%s\"", key);
    free(*to);
    *to = text ? xstrdup(text) : NULL;
    return 0;
}

static int take_secret(const json_t *object, struct settings *s, struct err *e)
{
    static const char *const names[] = {
        [REMOTE_KEY] = "key", [REMOTE_SAS] = "sas", [REMOTE_TOKEN] = "token"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *text = NULL;

        if (take_text(object, names[i], false, &text, e) < 0)
            return -1;
        if (text && s->secret)
            return err_set(e, ERR_INVALID, "the source has more than one of key, sas, token");
        if (text) {
            s->auth = (enum remote_auth)i;
            s->secret = take_ptr(&text);
        }
    }
    if (!s->secret)
        return err_set(e, ERR_INVALID, "the source has none of key, sas, token");
    return 0;
}

static void trim_slashes(char *text)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == '/')
        text[--len] = '\0';
    if (text[0] == '/')
        memmove(text, text + strspn(text, "/"), strlen(text + strspn(text, "/")) + 1);
}

int settings_parse_source(struct settings *s, const char *text, size_t len, struct err *e)
{
    auto_json json_t *object = NULL;
    auto_free char *service = NULL;

    if (json_parse(text, len, &object, e) < 0)
        return err_wrap(e, "the source");
    if (take_text(object, "service", true, &service, e) < 0 ||
        take_text(object, "endpoint", true, &s->endpoint, e) < 0 ||
        take_text(object, "account", true, &s->account, e) < 0 ||
        take_text(object, "container", true, &s->container, e) < 0 ||
        take_text(object, "path", false, &s->path, e) < 0 ||
        take_text(object, "caFile", false, &s->ca_file, e) < 0 ||
        json_get_bool(object, "isYard", &s->is_yard, e) < 0 || take_secret(object, s, e) < 0)
        return -1;
    s->is_share = str_equal(service, "file");
    if (!s->is_share && !str_equal(service, "blob"))
        return err_set(e, ERR_INVALID, "the service is blob or file, not \"%.64s\"", service);
    if (!s->path)
        s->path = xstrdup("");
    trim_slashes(s->path);
    return 0;
}
