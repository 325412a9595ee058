/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include "base/str.h"
#include "cli/args-internal.h"
#include "cli/command.h"

#include <assert.h>
#include <string.h>

const char CLI_USAGE[] = "Usage";

int args_fail(struct err *e, const char *target, const char *format, ...)
{
    va_list args;
    auto_free char *text = NULL;

    va_start(args, format);
    text = xvasprintf(format, args);
    va_end(args);
    err_set(e, ERR_INVALID, "%s", text);
    err_reason(e, CLI_USAGE);
    return target ? err_target(e, target) : -1;
}

bool args_failed(const struct err *e)
{
    return e->reason == CLI_USAGE;
}

void args_value_clear(struct args_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        free(value->texts[i]);
    free(value->texts);
    value->texts = NULL;
    value->count = 0;
    value->given = false;
}

void args_value_append(struct args_value *value, const char *text)
{
    value->texts = xreallocarray(value->texts, value->count + 2, sizeof(*value->texts));
    value->texts[value->count++] = xstrdup(text);
    value->texts[value->count] = NULL;
    value->given = true;
}

void args_free(struct args *args)
{
    if (!args)
        return;
    for (size_t i = 0; i < args->count; i++)
        args_value_clear(&args->values[i]);
    str_done(&args->path);
    free(args);
}

void args_learn(struct args *args, const struct command *command)
{
    const struct option_row *row;
    struct args_value kept[MOST_OPTIONS];
    size_t kept_count = args->count;

    /* Global options may have come before the command was known: their values move along. */
    memcpy(kept, args->values, sizeof(kept));
    memset(args->values, 0, sizeof(args->values));
    args->count = 0;
    for (size_t i = 0;; i++) {
        row = command ? command_option_at(command, i) : global_option_at(i);
        if (!row)
            break;
        assert(args->count < MOST_OPTIONS);
        args->values[args->count].row = row;
        for (size_t j = 0; j < kept_count; j++) {
            if (kept[j].row == row)
                args->values[args->count] = kept[j];
        }
        args->count++;
    }
    args->command = command;
}

const struct command *args_command(const struct args *args)
{
    return args->command;
}

const char *args_path(const struct args *args)
{
    return str_text(&args->path);
}

static const struct args_value *look_up(const struct args *args, const char *key)
{
    for (size_t i = 0; i < args->count; i++) {
        if (option_has_key(args->values[i].row, key))
            return &args->values[i];
    }
    assert(!"the command has this option");
    return NULL;
}

void args_defaults(struct args *args,
                   const char *(*look)(void *context, const char *default_key),
                   void *context)
{
    for (size_t i = 0; i < args->count; i++) {
        struct args_value *value = &args->values[i];
        const char *text = NULL;

        if (value->given)
            continue;
        if (value->row->default_key)
            text = look(context, value->row->default_key);
        if (!text)
            text = value->row->default_text;
        if (text)
            args_value_append(value, text);
    }
}

/* Does "resourceGroups=resource-group workspaces=name" give this key? */
static bool ids_give(const char *ids, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = ids; (p = strchr(p, '=')); p++) {
        if (strncmp(p + 1, key, len) == 0 && (p[1 + len] == ' ' || p[1 + len] == '\0'))
            return true;
    }
    return false;
}

int args_check(const struct args *args, struct err *e)
{
    auto_str missing = {0};
    const char *ids = args->command->ids;
    bool by_ids = ids && args_has(args, "ids");
    size_t count;

    if (by_ids && (args_list(args, "ids", &count), count == 0))
        return args_fail(e, "--ids", "the option --ids needs at least one resource id");
    for (size_t i = 0; i < args->count; i++) {
        const struct args_value *value = &args->values[i];
        char name[OPTION_BYTES], key[OPTION_BYTES];

        if (!value->row->required || value->given)
            continue;
        if (by_ids && ids_give(ids, option_key(value->row, key)))
            continue;
        if (missing.len)
            str_add(&missing, ", ");
        for (size_t j = 0; option_spelling(value->row, j, name); j++)
            str_addf(&missing, "%s%s", j ? "/" : "", name);
    }
    if (missing.len)
        return args_fail(e, NULL, "the following arguments are required: %s",
                         str_text(&missing));
    return 0;
}

bool args_has(const struct args *args, const char *key)
{
    return look_up(args, key)->given;
}

const char *args_get(const struct args *args, const char *key)
{
    const struct args_value *value = look_up(args, key);

    return value->count ? value->texts[value->count - 1] : NULL;
}

bool args_flag(const struct args *args, const char *key)
{
    return look_up(args, key)->given;
}

int args_switch(const struct args *args, const char *key)
{
    const char *text = args_get(args, key);

    return text ? str_equal(text, "true") : -1;
}

const char *const *args_list(const struct args *args, const char *key, size_t *ret_count)
{
    const struct args_value *value = look_up(args, key);

    *ret_count = value->count;
    return (const char *const *)value->texts;
}

void args_set(struct args *args, const char *key, const char *value)
{
    struct args_value *found = (struct args_value *)look_up(args, key);

    args_value_clear(found);
    args_value_append(found, value);
}
