/* command.h - the one table of nouns, verbs and options.
 *
 * A row of struct command is a verb: `yard storage account create`.  One file per noun
 * (noun-*.c) holds its rows; nouns.c lists the nouns.  Parsing, --help, completion, man pages
 * and did-you-mean are all made from these rows, so that a verb exists everywhere or nowhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>

struct call;
struct shape;

enum option_kind {
    OPTION_VALUE,  /* --name value */
    OPTION_FLAG,   /* --yes */
    OPTION_LIST,   /* --tags a=b c=d: everything up to the next option */
    OPTION_SWITCH, /* --https-only [true|false]; without a value it is true */
};

struct option_row {
    /* Spellings, separated by spaces: "--resource-group -g".  The first, without its dashes, is
     * the key that args_get() takes.  Without dashes it is a positional argument: "FILE". */
    const char *names;
    const char *help;
    enum option_kind kind;
    bool required;
    bool repeats;             /* every mention adds to the earlier ones: see args_list */
    const char *choices;      /* "json table tsv"; matched without case; NULL = anything */
    const char *default_key;  /* of `configure --defaults`: "group"; NULL = none */
    const char *default_text; /* used when nothing else is given; NULL = none */
};

/* The options of a command: rows, ended by NULL. */
#define OPTIONS(...) ((const struct option_row *const[]){__VA_ARGS__, NULL})

struct example {
    const char *what; /* "Make a group in East US." */
    const char *how;  /* "yard group create -n recipes -l eastus" */
};

struct command {
    const char *path; /* "storage account create"; NULL ends a noun's rows */
    const char *summary;
    const struct option_row *const *options; /* NULL = none of its own */
    struct example examples[4];
    /* Do it.  *ret_result, owned by the caller, is printed in the format asked for; NULL prints
     * nothing. */
    int (*run)(struct call *call, json_t **ret_result, struct err *e);
    const struct shape *shape; /* how results are made flat; NULL = printed as they come */
    const char *table;         /* JMESPath over one result, for -o table; NULL = its scalars */
    /* How --ids fills options: "resourceGroups=resource-group workspaces=name".  NULL = no
     * --ids. */
    const char *ids;
    bool confirms; /* asks before it runs, unless --yes */
    bool hidden;   /* not in help, man and completion */
};

struct group {
    const char *path; /* "storage account" */
    const char *summary;
};

/* Walk every command, or every group, in the order of help: index from 0, NULL at the end. */
const struct command *command_at(size_t index);
const struct group *group_at(size_t index);

const struct command *command_find(const char *path); /* exact; NULL when there is none */
const struct group *group_find(const char *path);

/* The options that a command takes, global ones last: index from 0, NULL at the end.  The ones
 * that follow from the row's flags (--yes, --ids) are among them. */
const struct option_row *command_option_at(const struct command *command, size_t index);
const struct option_row *global_option_at(size_t index);

enum {
    OPTION_BYTES = 40, /* of one spelling with its NUL */
};
/* Copy the spelling at index ("--resource-group", then "-g"); false beyond the last. */
bool option_spelling(const struct option_row *row, size_t index, char buf[OPTION_BYTES]);
/* Its key: the first spelling without dashes. */
const char *option_key(const struct option_row *row, char buf[OPTION_BYTES]);
bool option_has_key(const struct option_row *row, const char *key);
bool option_is_positional(const struct option_row *row);
/* Call see() with each word of a list such as choices, until it returns false.  text may be
 * NULL. */
void words_each(const char *text, bool (*see)(void *context, const char *word), void *context);

/* The words directly below a path ("" = the root): "create", "show", ...  Calls see() for each
 * once, with its summary. */
void command_children(
    const char *path,
    void (*see)(void *context, const char *word, const char *summary, bool is_group),
    void *context);

/* Rows shared by many nouns. */
extern const struct option_row option_resource_group;          /* required */
extern const struct option_row option_resource_group_optional; /* narrows a list or a search */
extern const struct option_row option_location;
extern const struct option_row option_tags;
extern const struct option_row option_no_wait;

#endif
