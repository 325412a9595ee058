/* args-internal.h - what was typed, for args.c and args-parse.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ARGS_INTERNAL_H
#define CLI_ARGS_INTERNAL_H

#include "base/str.h"
#include "cli/args.h"

#include <stddef.h>

struct option_row;

enum {
    MOST_OPTIONS = 48, /* of one command, global ones included; an assert guards it */
};

struct args_value {
    const struct option_row *row;
    char **texts;
    size_t count;
    bool given;
};

struct args {
    const struct command *command;
    struct str path;
    struct args_value values[MOST_OPTIONS];
    size_t count;
    size_t positionals; /* how many positional arguments are filled */
    bool options_ended; /* "--" was seen */
};

/* Forget what an option was given; give it one more text. */
void args_value_clear(struct args_value *value);
void args_value_append(struct args_value *value, const char *text);

/* Make room for the options of a command (NULL = the global ones alone), keeping what global
 * options were given already. */
void args_learn(struct args *args, const struct command *command);

#endif
