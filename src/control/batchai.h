/* batchai.h - what is more than a resource in clusters, file servers and jobs: their secrets,
 * their state rows, the operation that made them.  For control's own files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTROL_BATCHAI_H
#define CONTROL_BATCHAI_H

#include "base/err.h"
#include "control/control.h"

#include <jansson.h>

struct db;
struct vault;

/* A client's put made a cluster, file server or job: its secrets, its state row and its
 * operation, in the same transaction.  change->resource has its row. */
int control_begin_work(struct control_change *change,
                       const struct control_put *put,
                       struct db *db,
                       const char *group_key,
                       struct err *e);
/* May what is there become what is put?  A cluster's scale may; anything else is ERR_CONFLICT.
 */
int control_check_same(struct control_change *change,
                       const struct control_put *put,
                       struct db *db,
                       struct err *e);
/* The cluster that a job's put names must be there. */
int control_check_cluster(struct control_change *change,
                          const struct control_put *put,
                          struct db *db,
                          int64_t *ret_cluster_id,
                          struct err *e);

/* A new reference: what is kept of the resource, with its secrets back in their places. */
int control_unseal_spec(const struct vault *vault,
                        struct db *db,
                        const struct resource *resource,
                        json_t **ret_spec,
                        struct err *e);

#endif
