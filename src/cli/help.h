/* help.h - what --help shows, made from the table of commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

struct command;
struct option_row;
struct str;

/* The help of a verb, or of a group ("" = the program). */
void help_command(struct str *out, const struct command *command);
void help_group(struct str *out, const char *path);

/* "--resource-group -g", with what follows the option: "[true|false]", "VALUE", "NAME ...". */
void help_option_title(struct str *out, const struct option_row *row);
/* Its help with what the row knows besides: choices, defaults, whether it is required. */
void help_option_text(struct str *out, const struct option_row *row);

#endif
