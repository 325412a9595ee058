/* Each script has one list: for each path of words ("storage account"), what may follow.  The
 * code around it finds the path in what was typed so far, by walking the words that are no
 * options.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/complete.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

/* Append text for between single quotes of a shell. */
static void add_quoted(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            str_add(out, "'\\''");
        else
            str_add_char(out, *text);
    }
}

struct words {
    struct str *out;
    bool described; /* "word:summary" in quotes, for zsh; else bare words */
};

static void add_child(void *context, const char *word, const char *summary, bool is_group)
{
    struct words *words = context;

    (void)is_group;
    if (!words->described) {
        str_addf(words->out, "%s ", word);
        return;
    }
    str_addf(words->out, "'%s:", word);
    add_quoted(words->out, summary);
    str_add(words->out, "' ");
}

static void add_options(struct words *words, const struct command *command)
{
    const struct option_row *row;
    char name[OPTION_BYTES];

    for (size_t i = 0; (row = command_option_at(command, i)); i++) {
        for (size_t j = 0; !option_is_positional(row) && option_spelling(row, j, name); j++) {
            /* Short spellings are for fingers that know them. */
            if (str_starts(name, "--"))
                add_child(words, name, row->help, false);
        }
    }
}

/* The lines "    path) words;;" of a case statement, for groups and for commands. */
static void add_cases(struct str *out, bool described, const char *before, const char *after)
{
    struct words words = {.out = out, .described = described};
    const struct command *command;
    const struct group *group;

    str_addf(out, "        '') %s", before);
    command_children("", add_child, &words);
    str_addf(out, "%s;;\n", after);
    for (size_t i = 0; (group = group_at(i)); i++) {
        str_addf(out, "        '%s') %s", group->path, before);
        command_children(group->path, add_child, &words);
        str_addf(out, "%s;;\n", after);
    }
    for (size_t i = 0; (command = command_at(i)); i++) {
        if (command->hidden)
            continue;
        str_addf(out, "        '%s') %s", command->path, before);
        add_options(&words, command);
        str_addf(out, "%s;;\n", after);
    }
}

/* The choices of options, as cases over "path option"; one per option name that has choices
 * anywhere. */
static void add_choices(struct str *out, const char *before, const char *after)
{
    const struct command *command;
    const struct option_row *row;
    char name[OPTION_BYTES];

    for (size_t i = 0; (command = command_at(i)); i++) {
        for (size_t j = 0; (row = command_option_at(command, j)) != global_option_at(0); j++) {
            const char *choices = row->kind == OPTION_SWITCH ? "true false" : row->choices;

            if (!choices || command->hidden || option_is_positional(row))
                continue;
            str_add(out, "        ");
            for (size_t k = 0; option_spelling(row, k, name); k++)
                str_addf(out, "%s'%s %s'", k ? "|" : "", command->path, name);
            str_addf(out, ") %s%s%s;;\n", before, choices, after);
        }
    }
    for (size_t i = 0; (row = global_option_at(i)); i++) {
        if (!row->choices)
            continue;
        str_add(out, "        ");
        for (size_t k = 0; option_spelling(row, k, name); k++)
            str_addf(out, "%s*' %s'", k ? "|" : "", name);
        str_addf(out, ") %s%s%s;;\n", before, row->choices, after);
    }
}

static void add_group_cases(struct str *out)
{
    const struct group *group;

    str_add(out, "            ''");
    for (size_t i = 0; (group = group_at(i)); i++)
        str_addf(out, "|'%s'", group->path);
}

void complete_bash(struct str *out)
{
    str_add(
        out,
        "# bash completion for yard; use it with: source <(yard completion bash)\n"
        "_yard()\n{\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= i w "
        "words=\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        w=${COMP_WORDS[i]}\n"
        "        [[ $w == -* ]] && break\n"
        "        case $path in\n");
    add_group_cases(out);
    str_add(out, ") path=${path:+$path }$w;;\n"
                 "        esac\n"
                 "    done\n"
                 "    case \"$path $prev\" in\n");
    add_choices(out, "words='", "'");
    str_add(out, "    esac\n"
                 "    if [[ -n $words ]]; then\n"
                 "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "        return\n"
                 "    fi\n"
                 "    case $path in\n");
    add_cases(out, false, "words='", "'");
    str_add(out, "    esac\n"
                 "    [[ $words == --* && $cur != -* ]] && return\n"
                 "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "}\n"
                 "complete -o default -F _yard yard\n");
}

void complete_zsh(struct str *out)
{
    str_add(out, "#compdef yard\n"
                 "# zsh completion for yard; use it with: source <(yard completion zsh)\n"
                 "_yard()\n{\n"
                 "    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} path_= i w\n"
                 "    local -a choices items\n"
                 "    for ((i = 2; i < CURRENT; i++)); do\n"
                 "        w=${words[i]}\n"
                 "        [[ $w == -* ]] && break\n"
                 "        case $path_ in\n");
    add_group_cases(out);
    str_add(out, ") path_=${path_:+$path_ }$w;;\n"
                 "        esac\n"
                 "    done\n"
                 "    case \"$path_ $prev\" in\n");
    add_choices(out, "choices=(", ")");
    str_add(out, "    esac\n"
                 "    if (( ${#choices} )); then\n"
                 "        compadd -a choices\n"
                 "        return\n"
                 "    fi\n"
                 "    case $path_ in\n");
    add_cases(out, true, "items=(", ")");
    str_add(out, "    esac\n"
                 "    if [[ ${items[1]} == --* && $cur != -* ]]; then\n"
                 "        _files\n"
                 "        return\n"
                 "    fi\n"
                 "    _describe yard items\n"
                 "}\n"
                 "(( $+functions[compdef] )) && compdef _yard yard\n");
}

static void
add_fish_child(struct str *out, const char *path, const char *word, const char *summary)
{
    str_addf(out, "complete -c yard -f -n \"__yard_at '%s'\" -a %s -d '", path, word);
    add_quoted(out, summary);
    str_add(out, "'\n");
}

struct fish {
    struct str *out;
    const char *path;
};

static void see_fish_child(void *context, const char *word, const char *summary, bool is_group)
{
    struct fish *fish = context;

    (void)is_group;
    add_fish_child(fish->out, fish->path, word, summary);
}

static void add_fish_option(struct str *out, const char *path, const struct option_row *row)
{
    char name[OPTION_BYTES];
    const char *choices = row->kind == OPTION_SWITCH ? "true false" : row->choices;

    if (option_is_positional(row))
        return;
    str_addf(out, "complete -c yard -n \"__yard_at '%s'\"", path);
    for (size_t i = 0; option_spelling(row, i, name); i++)
        str_addf(out, " -%c %s", name[1] == '-' ? 'l' : 's', name + strspn(name, "-"));
    if (row->kind != OPTION_FLAG)
        str_add(out, choices ? " -x" : " -r");
    if (choices)
        str_addf(out, " -a '%s'", choices);
    str_add(out, " -d '");
    add_quoted(out, row->help);
    str_add(out, "'\n");
}

void complete_fish(struct str *out)
{
    struct fish root = {.out = out, .path = ""};
    const struct command *command;
    const struct option_row *row;
    const struct group *group;

    str_add(out, "# fish completion for yard; use it with: yard completion fish | source\n"
                 "function __yard_at\n"
                 "    set -l path\n"
                 "    for w in (commandline -opc)[2..-1]\n"
                 "        string match -q -- '-*' $w; and break\n"
                 "        set -a path $w\n"
                 "    end\n"
                 "    test \"$path\" = \"$argv[1]\"\n"
                 "end\n");
    command_children("", see_fish_child, &root);
    for (size_t i = 0; (group = group_at(i)); i++) {
        struct fish here = {.out = out, .path = group->path};

        command_children(group->path, see_fish_child, &here);
    }
    for (size_t i = 0; (command = command_at(i)); i++) {
        for (size_t j = 0; !command->hidden && (row = command_option_at(command, j)); j++)
            add_fish_option(out, command->path, row);
    }
}
