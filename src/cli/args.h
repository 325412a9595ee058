/* args.h - what was typed, understood by the table of commands.
 *
 * The grammar is argparse's, which az uses: "--opt value", "--opt=value", "-o value",
 * "-ovalue", unique prefixes of long options, and here of command words too; "--" ends the
 * options.  Global options may stand anywhere.
 *
 * A mistake in what was typed fails with the reason CLI_USAGE, which is exit status 2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include "base/err.h"
#include "base/mem.h"

#include <stddef.h>

struct command;
struct args; /* opaque */

extern const char CLI_USAGE[]; /* err_reason of every usage error */

/* Fail with ERR_INVALID and CLI_USAGE. */
int args_fail(struct err *e, const char *target, const char *format, ...) PRINTF_LIKE(3, 4);
bool args_failed(const struct err *e);

/* Understand the words after the program's name.  Required options are not yet asked for: see
 * args_check.  Even a failure returns *ret_args, so that -h and the path found so far can be
 * used; the caller frees it. */
int args_parse(int count, char *const words[], struct args **ret_args, struct err *e);
void args_free(struct args *args);
DEFINE_AUTOPTR(args)

/* The command, or NULL when the words name a group, whose path is args_path ("" = the root). */
const struct command *args_command(const struct args *args);
const char *args_path(const struct args *args);

/* Give an option the value of `configure --defaults` or of its row, where nothing was typed.
 * look answers with a borrowed value or NULL. */
void args_defaults(struct args *args,
                   const char *(*look)(void *context, const char *default_key),
                   void *context);

/* Are all required options there?  With --ids the ones that the ids give are not asked for. */
int args_check(const struct args *args, struct err *e);

/* The key of an option is its first spelling without dashes; asking for one that the command
 * does not have is a programming error.  Borrowed until the args are freed or the option is
 * set. */
bool args_has(const struct args *args, const char *key);        /* was it typed or defaulted? */
const char *args_get(const struct args *args, const char *key); /* NULL when absent */
bool args_flag(const struct args *args, const char *key);
/* -1 absent, 0 false, 1 true; of an OPTION_SWITCH. */
int args_switch(const struct args *args, const char *key);
/* The values of a list; *ret_count is 0 when absent. */
const char *const *args_list(const struct args *args, const char *key, size_t *ret_count);
void args_set(struct args *args, const char *key, const char *value);

#endif
