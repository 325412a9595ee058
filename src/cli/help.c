/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

enum {
    TEXT_COLUMN = 34, /* where the text begins that stands beside names */
    LAST_COLUMN = 90,
    MOST_GROUP_EXAMPLES = 4,
};

/* Append words from column to LAST_COLUMN, going on below column on the next lines. */
static void wrap(struct str *out, const char *text, size_t column, size_t at)
{
    for (const char *p = text; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");

        if (at > column && at + 1 + len > LAST_COLUMN) {
            str_addf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            str_add_char(out, ' ');
            at++;
        }
        str_add_len(out, p, len);
        at += len;
        p += len;
    }
    str_add_char(out, '\n');
}

static void add_pair(struct str *out, const char *title, const char *text)
{
    size_t len = 4 + strlen(title);

    str_addf(out, "    %s", title);
    if (len + 2 > TEXT_COLUMN)
        str_addf(out, "\n%*s", TEXT_COLUMN, "");
    else
        str_addf(out, "%*s", (int)(TEXT_COLUMN - len), "");
    wrap(out, text, TEXT_COLUMN, TEXT_COLUMN);
}

void help_option_title(struct str *out, const struct option_row *row)
{
    char name[OPTION_BYTES];

    for (size_t i = 0; option_spelling(row, i, name); i++)
        str_addf(out, "%s%s", i ? " " : "", name);
}

static void add_choices(struct str *out, const char *choices)
{
    str_add(out, " One of: ");
    for (const char *p = choices; *p; p++) {
        if (*p == ' ')
            str_add(out, ", ");
        else
            str_add_char(out, *p);
    }
    str_add_char(out, '.');
}

void help_option_text(struct str *out, const struct option_row *row)
{
    str_add(out, row->help);
    if (row->choices)
        add_choices(out, row->choices);
    if (row->kind == OPTION_SWITCH)
        add_choices(out, "true false");
    if (row->default_text)
        str_addf(out, " Default: %s.", row->default_text);
    if (row->default_key)
        str_addf(out, " Can be set with: yard configure --defaults %s=...", row->default_key);
}

static void add_option(struct str *out, const struct option_row *row)
{
    auto_str title = {0}, text = {0};

    help_option_title(&title, row);
    if (row->required)
        str_add(&title, " [Required]");
    help_option_text(&text, row);
    add_pair(out, str_text(&title), str_text(&text));
}

static void add_example(struct str *out, const struct example *example)
{
    str_addf(out, "    %s\n        %s\n\n", example->what, example->how);
}

static void add_examples(struct str *out, const struct command *command)
{
    str_add(out, "\nExamples\n");
    for (size_t i = 0; i < ARRAY_SIZE(command->examples) && command->examples[i].what; i++)
        add_example(out, &command->examples[i]);
}

struct listing {
    struct str *out;
    bool groups; /* list the groups, or the commands */
    bool titled;
};

static void list_child(void *context, const char *word, const char *summary, bool is_group)
{
    struct listing *listing = context;

    if (is_group != listing->groups)
        return;
    if (!listing->titled)
        str_add(listing->out, is_group ? "\nSubgroups\n" : "\nCommands\n");
    listing->titled = true;
    add_pair(listing->out, word, summary);
}

void help_command(struct str *out, const struct command *command)
{
    const struct option_row *row;
    struct listing below = {.out = out};
    bool titled = false;

    str_addf(out, "\nCommand\n    yard %s : %s\n", command->path, command->summary);
    command_children(command->path, list_child, &below);
    for (size_t i = 0; (row = command_option_at(command, i)) != global_option_at(0); i++) {
        if (!titled)
            str_add(out, "\nArguments\n");
        titled = true;
        add_option(out, row);
    }
    str_add(out, "\nGlobal Arguments\n");
    for (size_t i = 0; (row = global_option_at(i)); i++)
        add_option(out, row);
    add_examples(out, command);
}

static void add_group_examples(struct str *out, const char *path)
{
    const struct command *command;
    int count = 0;

    str_add(out, "\nExamples\n");
    for (size_t i = 0; (command = command_at(i)) && count < MOST_GROUP_EXAMPLES; i++) {
        size_t len = strlen(path);

        if (command->hidden || !str_starts(command->path, path) ||
            (len && command->path[len] != ' '))
            continue;
        add_example(out, &command->examples[0]);
        count++;
    }
}

void help_group(struct str *out, const char *path)
{
    const struct group *group = group_find(path);
    struct listing groups = {.out = out, .groups = true}, verbs = {.out = out};

    if (group)
        str_addf(out, "\nGroup\n    yard %s : %s\n", path, group->summary);
    else
        str_add(out, "\nyard : your own training service, from the command line.\n");
    command_children(path, list_child, &groups);
    command_children(path, list_child, &verbs);
    add_group_examples(out, path);
    str_addf(out, "More about one of them: yard%s%s COMMAND --help\n", *path ? " " : "", path);
}
