/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"

#include "base/fs.h"
#include "base/str.h"

#include <string.h>

enum {
    MOST_BYTES = 1024 * 1024,
};

struct entry {
    char *section, *key, *value;
};

struct config {
    char *folder, *path;
    struct entry *entries;
    size_t count;
};

static void drop(struct entry *entry)
{
    free(entry->section);
    free(entry->key);
    free(entry->value);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->count; i++)
        drop(&config->entries[i]);
    free(config->entries);
    free(config->folder);
    free(config->path);
    free(config);
}

static struct entry *find(const struct config *config, const char *section, const char *key)
{
    for (size_t i = 0; i < config->count; i++) {
        struct entry *entry = &config->entries[i];

        if (str_equal(entry->section, section) && str_equal(entry->key, key))
            return entry;
    }
    return NULL;
}

static void put(struct config *config, const char *section, const char *key, const char *value)
{
    struct entry *entry = find(config, section, key);

    if (entry) {
        free(entry->value);
        entry->value = xstrdup(value);
        return;
    }
    config->entries =
        xreallocarray(config->entries, config->count + 1, sizeof(*config->entries));
    config->entries[config->count++] = (struct entry){
        .section = xstrdup(section),
        .key = xstrdup(key),
        .value = xstrdup(value),
    };
}

static char *trimmed(const char *text, size_t len)
{
    while (len && strchr(" \t\r", text[0])) {
        text++;
        len--;
    }
    while (len && strchr(" \t\r", text[len - 1]))
        len--;
    return xstrndup(text, len);
}

static int read_line(struct config *config, const char *line, char **section)
{
    size_t len = strlen(line);
    const char *equals = strchr(line, '=');
    auto_free char *key = NULL, *value = NULL;

    if (!len || line[0] == '#' || line[0] == ';')
        return 0;
    if (line[0] == '[' && line[len - 1] == ']') {
        free(*section);
        *section = trimmed(line + 1, len - 2);
        return 0;
    }
    if (!equals || equals == line || !*section)
        return -1;
    key = trimmed(line, (size_t)(equals - line));
    value = trimmed(equals + 1, strlen(equals + 1));
    put(config, *section, key, value);
    return 0;
}

static int read_all(struct config *config, const char *text, struct err *e)
{
    auto_free char *section = NULL;
    int number = 1;

    for (const char *p = text; *p; number++) {
        size_t len = strcspn(p, "\n");
        auto_free char *line = trimmed(p, len);

        if (read_line(config, line, &section) < 0)
            return err_set(e, ERR_INVALID,
                           "line %d of \"%s\" is neither [section] nor key = value", number,
                           config->path);
        p += len;
        p += *p == '\n';
    }
    return 0;
}

int config_open(const char *folder, struct config **ret_config, struct err *e)
{
    autoptr(config) config = xcalloc(1, sizeof(*config));
    auto_str text = {0};
    struct err why;

    config->folder = xstrdup(folder);
    config->path = xasprintf("%s/cli.ini", folder);
    if (fs_read(config->path, MOST_BYTES, &text, &why) < 0) {
        if (why.code != ERR_NOT_FOUND) {
            if (e)
                *e = why;
            return -1;
        }
    } else if (read_all(config, str_text(&text), e) < 0) {
        return -1;
    }
    *ret_config = take_ptr(&config);
    return 0;
}

const char *config_get(const struct config *config, const char *section, const char *key)
{
    const struct entry *entry = find(config, section, key);

    return entry ? entry->value : NULL;
}

static void take_away(struct config *config, struct entry *entry)
{
    size_t index = (size_t)(entry - config->entries);

    drop(entry);
    config->count--;
    memmove(entry, entry + 1, (config->count - index) * sizeof(*entry));
}

int config_set(struct config *config,
               const char *section,
               const char *key,
               const char *value,
               struct err *e)
{
    struct entry *entry;

    if (value && strpbrk(value, "\r\n")) {
        err_set(e, ERR_INVALID, "%s: a value cannot have line breaks", key);
        return err_target(e, key);
    }
    if (value && *value) {
        put(config, section, key, value);
        return 0;
    }
    entry = find(config, section, key);
    if (entry)
        take_away(config, entry);
    return 0;
}

void config_clear(struct config *config, const char *section)
{
    for (size_t i = config->count; i-- > 0;) {
        if (str_equal(config->entries[i].section, section))
            take_away(config, &config->entries[i]);
    }
}

bool config_at(const struct config *config,
               const char *section,
               size_t index,
               const char **ret_key,
               const char **ret_value)
{
    for (size_t i = 0; i < config->count; i++) {
        const struct entry *entry = &config->entries[i];

        if (!str_equal(entry->section, section) || index-- > 0)
            continue;
        *ret_key = entry->key;
        *ret_value = entry->value;
        return true;
    }
    return false;
}

int config_save(const struct config *config, struct err *e)
{
    auto_str text = {0};

    for (size_t i = 0; i < config->count; i++) {
        const char *section = config->entries[i].section;
        const char *key, *value;
        bool seen = false;

        for (size_t j = 0; j < i && !seen; j++)
            seen = str_equal(config->entries[j].section, section);
        if (seen)
            continue;
        str_addf(&text, "%s[%s]\n", text.len ? "\n" : "", section);
        for (size_t j = 0; config_at(config, section, j, &key, &value); j++)
            str_addf(&text, "%s = %s\n", key, value);
    }
    if (fs_make_folders(config->folder, 0700, e) < 0)
        return -1;
    return fs_write_durably(config->path, str_text(&text), text.len, 0600, e);
}

const char *config_path(const struct config *config)
{
    return config->path;
}
