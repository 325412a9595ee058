/* complete.h - completion scripts for bash, zsh and fish, made from the table of commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

struct str;

void complete_bash(struct str *out);
void complete_zsh(struct str *out);
void complete_fish(struct str *out);

#endif
