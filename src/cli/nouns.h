/* nouns.h - the rows of each noun; see nouns.c for the list of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_NOUNS_H
#define CLI_NOUNS_H

#include "cli/command.h"

extern const struct command account_commands[];
extern const struct command audit_commands[];
extern const struct command backup_commands[];
extern const struct command batchai_commands[];
extern const struct command configure_commands[];
extern const struct command daemon_commands[];
extern const struct command doctor_commands[];
extern const struct command group_commands[];
extern const struct command login_commands[];
extern const struct command meta_commands[];
extern const struct command query_commands[];
extern const struct command rest_commands[];
extern const struct command storage_commands[];
extern const struct command token_commands[];

#endif
