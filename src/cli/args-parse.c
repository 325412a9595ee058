/* The grammar: from words to a command and the values of its options.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include "base/str.h"
#include "base/text.h"
#include "cli/args-internal.h"
#include "cli/command.h"
#include "cli/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The words and where we are in them. */
struct cursor {
    char *const *words;
    int at, count;
};

/* ---- options ---- */

static bool is_option_word(const char *word)
{
    if (word[0] != '-' || !word[1] || strchr(word, ' '))
        return false;
    return !(isdigit((unsigned char)word[1]) ||
             (word[1] == '.' && isdigit((unsigned char)word[2])));
}

static bool row_has_spelling(const struct option_row *row, const char *name)
{
    char buf[OPTION_BYTES];

    for (size_t i = 0; option_spelling(row, i, buf); i++) {
        if (str_equal(buf, name))
            return true;
    }
    return false;
}

static bool row_has_prefix(const struct option_row *row, const char *name)
{
    char buf[OPTION_BYTES];

    for (size_t i = 0; option_spelling(row, i, buf); i++) {
        if (str_starts(buf, "--") && str_starts(buf, name))
            return true;
    }
    return false;
}

static int unknown_option(const struct args *args, const char *name, struct err *e)
{
    struct suggest near;
    char buf[OPTION_BYTES];

    suggest_init(&near, name);
    for (size_t i = 0; i < args->count; i++) {
        for (size_t j = 0; option_spelling(args->values[i].row, j, buf); j++) {
            if (str_starts(buf, "--"))
                suggest_see(&near, buf);
        }
    }
    if (!args->command)
        return args_fail(e, name, "the option %.64s must come after a command%s%s", name,
                         near.best[0] ? "; did you mean " : "", near.best);
    if (near.best[0])
        return args_fail(e, name, "unrecognized option: %.64s; did you mean %s?", name,
                         near.best);
    return args_fail(e, name, "unrecognized option: %.64s", name);
}

static struct args_value *find_option(struct args *args, const char *name, struct err *e)
{
    struct args_value *found = NULL;

    for (size_t i = 0; i < args->count; i++) {
        if (!option_is_positional(args->values[i].row) &&
            row_has_spelling(args->values[i].row, name))
            return &args->values[i];
    }
    for (size_t i = 0; str_starts(name, "--") && name[2] && i < args->count; i++) {
        char a[OPTION_BYTES], b[OPTION_BYTES];

        if (!row_has_prefix(args->values[i].row, name))
            continue;
        if (found) {
            option_spelling(found->row, 0, a);
            option_spelling(args->values[i].row, 0, b);
            args_fail(e, name, "ambiguous option: %.64s could be %s or %s", name, a, b);
            return NULL;
        }
        found = &args->values[i];
    }
    if (!found)
        unknown_option(args, name, e);
    return found;
}

struct choice {
    const char *typed;
    char found[OPTION_BYTES];
    struct suggest near;
};

static bool see_choice(void *context, const char *word)
{
    struct choice *choice = context;

    suggest_see(&choice->near, word);
    if (!str_equal_nocase(word, choice->typed))
        return true;
    snprintf(choice->found, sizeof(choice->found), "%s", word);
    return false;
}

static int add_value(struct args_value *value, const char *text, struct err *e)
{
    const char *choices = value->row->choices;
    struct choice choice = {.typed = text};
    char name[OPTION_BYTES];

    if (value->row->kind == OPTION_SWITCH)
        choices = "true false";
    if (!choices) {
        args_value_append(value, text);
        return 0;
    }
    suggest_init(&choice.near, text);
    words_each(choices, see_choice, &choice);
    if (choice.found[0]) {
        args_value_append(value, choice.found);
        return 0;
    }
    option_spelling(value->row, 0, name);
    return args_fail(e, name, "%s: \"%.64s\" is not a valid value; take one of: %s%s%s%s", name,
                     text, choices, choice.near.best[0] ? "; did you mean " : "",
                     choice.near.best, choice.near.best[0] ? "?" : "");
}

/* The next word, if it can be a value. */
static const char *next_value(const struct args *args, struct cursor *cursor)
{
    if (cursor->at >= cursor->count)
        return NULL;
    if (!args->options_ended && is_option_word(cursor->words[cursor->at]))
        return NULL;
    return cursor->words[cursor->at++];
}

static int take_values(struct args *args,
                       struct args_value *value,
                       const char *inline_text,
                       struct cursor *cursor,
                       struct err *e)
{
    char name[OPTION_BYTES];
    const char *text = inline_text;

    option_spelling(value->row, 0, name);
    if (!value->row->repeats)
        args_value_clear(value);
    switch (value->row->kind) {
    case OPTION_FLAG:
        /* azcopy's users write --recursive=true. */
        if (inline_text && str_equal(inline_text, "false"))
            return 0;
        if (inline_text && !str_equal(inline_text, "true"))
            return args_fail(e, name, "the option %s takes no value", name);
        args_value_append(value, "true");
        return 0;
    case OPTION_SWITCH:
        if (!text)
            text = next_value(args, cursor);
        return add_value(value, text ? text : "true", e);
    case OPTION_LIST:
        value->given = true;
        if (text && add_value(value, text, e) < 0)
            return -1;
        while ((text = next_value(args, cursor))) {
            if (add_value(value, text, e) < 0)
                return -1;
        }
        return 0;
    case OPTION_VALUE:
        break;
    }
    if (!text)
        text = next_value(args, cursor);
    if (!text)
        return args_fail(e, name,
                         "the option %s needs a value (one that begins with a dash is "
                         "written %s=VALUE)",
                         name, name);
    return add_value(value, text, e);
}

/* "-yo json", "-gNAME", "-g=NAME": letters after a flag are more flags, after others the value.
 */
static int
parse_short(struct args *args, const char *word, struct cursor *cursor, struct err *e)
{
    for (const char *p = word + 1; *p; p++) {
        char name[3] = {'-', *p, '\0'};
        struct args_value *value = find_option(args, name, e);

        if (!value)
            return -1;
        if (value->row->kind != OPTION_FLAG)
            return take_values(args, value, p[1] ? p + 1 + (p[1] == '=') : NULL, cursor, e);
        if (take_values(args, value, NULL, cursor, e) < 0)
            return -1;
    }
    return 0;
}

static int parse_long(struct args *args, const char *word, struct cursor *cursor, struct err *e)
{
    const char *equals = strchr(word, '=');
    auto_free char *name = equals ? xstrndup(word, (size_t)(equals - word)) : xstrdup(word);
    struct args_value *value = find_option(args, name, e);

    if (!value)
        return -1;
    return take_values(args, value, equals ? equals + 1 : NULL, cursor, e);
}

/* ---- command words ---- */

struct search {
    const char *word;
    char found[64];
    char other[64]; /* a second one with the same prefix */
    bool is_group;
    struct suggest near;
};

static void see_child(void *context, const char *word, const char *summary, bool is_group)
{
    struct search *search = context;

    (void)summary;
    suggest_see(&search->near, word);
    if (!str_starts(word, search->word))
        return;
    if (search->found[0] && !str_equal(word, search->word)) {
        snprintf(search->other, sizeof(search->other), "%s", word);
        return;
    }
    if (str_equal(word, search->word))
        search->other[0] = '\0';
    snprintf(search->found, sizeof(search->found), "%s", word);
    search->is_group = is_group;
}

static void enter(struct args *args, const char *word)
{
    if (args->path.len)
        str_add_char(&args->path, ' ');
    str_add(&args->path, word);
}

static int not_a_command(const struct args *args, const struct search *search, struct err *e)
{
    const char *path = str_text(&args->path);
    auto_free char *whole = xasprintf("yard%s%s", *path ? " " : "", path);

    if (search->other[0])
        return args_fail(e, NULL, "\"%.64s\" is ambiguous in \"%s\": it could be %s or %s",
                         search->word, whole, search->found, search->other);
    if (search->near.best[0])
        return args_fail(e, NULL, "\"%.64s\" is not a command of \"%s\"; did you mean %s?",
                         search->word, whole, search->near.best);
    return args_fail(e, NULL, "\"%.64s\" is not a command of \"%s\"; see: %s --help",
                     search->word, whole, whole);
}

static int parse_command_word(struct args *args, const char *word, struct err *e)
{
    struct search search = {.word = word};
    auto_free char *exact =
        xasprintf("%s%s%s", str_text(&args->path), args->path.len ? " " : "", word);
    const struct command *command = command_find(exact);

    if (!command) {
        suggest_init(&search.near, word);
        command_children(str_text(&args->path), see_child, &search);
        /* An exact word wins over longer ones that begin with it, in whatever order they came.
         */
        if (group_find(exact)) {
            snprintf(search.found, sizeof(search.found), "%s", word);
            search.other[0] = '\0';
        }
        if (!*word || !search.found[0] || search.other[0])
            return not_a_command(args, &search, e);
        word = search.found;
    }
    enter(args, word);
    command = command_find(str_text(&args->path));
    if (command)
        args_learn(args, command);
    return 0;
}

/* A word after a command may go on to one below it: "copy", then "list". */
static bool enter_below(struct args *args, const char *word)
{
    auto_free char *path = xasprintf("%s %s", str_text(&args->path), word);
    const struct command *command = args->positionals ? NULL : command_find(path);

    if (!command)
        return false;
    enter(args, word);
    args_learn(args, command);
    return true;
}

static int parse_positional(struct args *args, const char *word, struct err *e)
{
    size_t seen = 0;

    for (size_t i = 0; i < args->count; i++) {
        struct args_value *value = &args->values[i];

        if (!option_is_positional(value->row))
            continue;
        if (value->row->kind == OPTION_LIST)
            return add_value(value, word, e);
        if (seen++ < args->positionals)
            continue;
        args->positionals++;
        return add_value(value, word, e);
    }
    return args_fail(e, NULL, "unrecognized argument: \"%.64s\"", word);
}

int args_parse(int count, char *const words[], struct args **ret_args, struct err *e)
{
    struct args *args = xcalloc(1, sizeof(*args));
    struct cursor cursor = {.words = words, .count = count};

    *ret_args = args;
    args_learn(args, NULL);
    for (int i = 0; i < count; i++) {
        if (!text_is_utf8(words[i], strlen(words[i])))
            return args_fail(e, NULL, "argument %d is not UTF-8", i + 1);
    }
    while (cursor.at < cursor.count) {
        const char *word = cursor.words[cursor.at++];
        int rc;

        if (!args->options_ended && str_equal(word, "--")) {
            args->options_ended = true;
            continue;
        }
        if (!args->options_ended && is_option_word(word))
            rc = word[1] == '-' ? parse_long(args, word, &cursor, e)
                                : parse_short(args, word, &cursor, e);
        else if (!args->command)
            rc = parse_command_word(args, word, e);
        else
            rc = enter_below(args, word) ? 0 : parse_positional(args, word, e);
        if (rc < 0)
            return -1;
        /* Help wins over whatever is wrong behind it, but the command may still have to come.
         */
        if (args->command && args_flag(args, "help"))
            return 0;
    }
    return 0;
}
