/* batchai-verb.h - what the verbs of the Batch AI nouns share: options, paths, requests, and
 * how their results are printed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_VERB_H
#define CLI_BATCHAI_VERB_H

#include "base/err.h"
#include "cli/command.h"
#include "cli/shape.h"

#include <jansson.h>

struct call;

/* Patterns for arm_path: each {key} is an option. */
#define BATCHAI_PROVIDER    "/providers/Microsoft.BatchAI"
#define BATCHAI_WORKSPACES  "/resourceGroups/{resource-group}" BATCHAI_PROVIDER "/workspaces"
#define BATCHAI_WORKSPACE   BATCHAI_WORKSPACES "/{workspace}"
#define BATCHAI_EXPERIMENTS BATCHAI_WORKSPACE "/experiments"
#define BATCHAI_CLUSTERS    BATCHAI_WORKSPACE "/clusters"
#define BATCHAI_SERVERS     BATCHAI_WORKSPACE "/fileServers"
#define BATCHAI_JOBS        BATCHAI_EXPERIMENTS "/{experiment}/jobs"

extern const struct option_row batchai_workspace, batchai_experiment, batchai_config_file;
/* Whose account the nodes have. */
extern const struct option_row batchai_user_name, batchai_ssh_key, batchai_password,
    batchai_generate_keys;
#define BATCHAI_USER_OPTIONS                                                                   \
    &batchai_user_name, &batchai_ssh_key, &batchai_password, &batchai_generate_keys
/* What is mounted. */
extern const struct option_row batchai_account_name, batchai_account_key, batchai_afs,
    batchai_afs_path, batchai_bfs, batchai_bfs_path, batchai_nfs, batchai_nfs_path;
#define BATCHAI_STORAGE_OPTIONS                                                                \
    &batchai_account_name, &batchai_account_key, &batchai_afs, &batchai_afs_path,              \
        &batchai_bfs, &batchai_bfs_path, &batchai_nfs, &batchai_nfs_path
/* Of node exec. */
extern const struct option_row batchai_node_id, batchai_exec, batchai_address,
    batchai_node_password, batchai_private_key;
#define BATCHAI_NODE_OPTIONS                                                                   \
    &batchai_node_id, &batchai_exec, &batchai_address, &batchai_node_password,                 \
        &batchai_private_key
/* Of file lists. */
extern const struct option_row batchai_path, batchai_expiry;

extern const struct shape batchai_cluster_shape, batchai_job_shape, batchai_server_shape,
    batchai_file_shape;
extern const char batchai_cluster_table[], batchai_job_table[], batchai_server_table[],
    batchai_file_table[], batchai_node_table[];

/* One request to the path of a pattern; rest_long when it may go on. */
int batchai_act(struct call *call,
                const char *pattern,
                const char *method,
                const json_t *body,
                bool wait,
                json_t **ret_result,
                struct err *e);
int batchai_list(struct call *call, const char *pattern, json_t **ret_result, struct err *e);

/* POST a list (listOutputFiles, ...), page by page; more is added to the query: "&a=b". */
int batchai_post_list(struct call *call,
                      const char *pattern,
                      const char *more,
                      json_t **ret_items,
                      struct err *e);

/* Fail with ERR_CONFLICT when something is there already. */
int batchai_need_new(struct call *call, const char *pattern, const char *what, struct err *e);

/* The value of an option as a number from least to most; *ret is untouched when the option was
 * not given. */
int batchai_number(
    struct call *call, const char *key, long least, long most, long *ret, struct err *e);

/* The object that is a member of parent, made when it is not there.  Borrowed. */
json_t *batchai_object(json_t *parent, const char *name);

/* Is it "/subscriptions/.../providers/..."? */
bool batchai_is_id(const char *text);

#endif
