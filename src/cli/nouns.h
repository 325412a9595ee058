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
extern const struct command blob_batch_commands[];
extern const struct command blob_commands[];
extern const struct command cluster_commands[];
extern const struct command configure_commands[];
extern const struct command container_commands[];
extern const struct command copy_commands[];
extern const struct command daemon_commands[];
extern const struct command data_commands[];
extern const struct command directory_commands[];
extern const struct command doctor_commands[];
extern const struct command file_batch_commands[];
extern const struct command file_commands[];
extern const struct command file_server_commands[];
extern const struct command group_commands[];
extern const struct command image_commands[];
extern const struct command job_commands[];
extern const struct command job_file_commands[];
extern const struct command login_commands[];
extern const struct command logs_commands[];
extern const struct command meta_commands[];
extern const struct command mount_commands[];
extern const struct command query_commands[];
extern const struct command rest_commands[];
extern const struct command run_commands[];
extern const struct command share_commands[];
extern const struct command storage_commands[];
extern const struct command sync_commands[];
extern const struct command token_commands[];
extern const struct command top_commands[];

#endif
