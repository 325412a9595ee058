/* work.h - what clusters, nodes, jobs and attempts are doing: the mind of the yard to and from
 * tables (core/yard.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_WORK_H
#define STORE_WORK_H

#include "base/crypt.h"
#include "base/err.h"
#include "core/yard.h"
#include "db/db.h"

#include <jansson.h>
#include <stdint.h>

/* --- a new cluster or job; uuid names its output folder for ever --- */

/* steady_ms is 0 until the conductor has seen it. */
int store_add_cluster(struct db *db, int64_t id, const char *uuid, struct err *e);
int store_add_job(struct db *db,
                  int64_t id,
                  int64_t cluster_id,
                  const char *uuid,
                  int64_t now_ms,
                  struct err *e);
/* The owner's wish that it end. */
int store_end_job(struct db *db, int64_t id, struct err *e);

/* --- the conductor's: all of "the mind's own" members --- */

int store_put_cluster(struct db *db, const struct yard_cluster *cluster, struct err *e);
/* NODE_GONE removes the row. */
int store_put_node(struct db *db, const struct yard_node *node, struct err *e);
int store_put_job(struct db *db, const struct yard_job *job, struct err *e);
int store_put_attempt(struct db *db, const struct yard_attempt *attempt, struct err *e);

/* --- reading; *ret_found is false when there is none --- */

struct cluster_work {
    char uuid[CRYPT_UUID_BYTES];
    struct yard_cluster cluster; /* the mind's own members, and the id */
    struct node_counts nodes;
};
int store_find_cluster_work(
    struct db *db, int64_t id, struct cluster_work *ret_work, bool *ret_found, struct err *e);

struct job_work {
    char uuid[CRYPT_UUID_BYTES];
    struct yard_job job; /* the mind's own members, the id, the cluster and is_unwanted */
};
int store_find_job_work(
    struct db *db, int64_t id, struct job_work *ret_work, bool *ret_found, struct err *e);
void job_work_done(struct job_work *work);
#define auto_job_work __attribute__((cleanup(job_work_done))) struct job_work

/* In order of id; of one cluster, or of all (0). */
int store_each_node(struct db *db,
                    int64_t cluster_id,
                    void (*each)(const struct yard_node *node, void *context),
                    void *context,
                    struct err *e);
/* Jobs that have not ended, in order of submission. */
int store_each_unfinished_job(struct db *db,
                              void (*each)(const struct job_work *work, void *context),
                              void *context,
                              struct err *e);
/* Attempts of a job in order (job_id 0: those of all jobs that have not ended). */
int store_each_attempt(struct db *db,
                       int64_t job_id,
                       void (*each)(const struct yard_attempt *attempt, void *context),
                       void *context,
                       struct err *e);
/* The highest ids that nodes and attempts ever had. */
int store_last_work_ids(struct db *db, int64_t *ret_node, int64_t *ret_attempt, struct err *e);

/* --- looking at all of them --- */

struct job_filter {
    const char *group_key; /* of that group, "" = of all */
    unsigned states;       /* bits: 1 << JOB_QUEUED | ... */
    int64_t before_id;     /* only older ones: paging; 0 = any */
    bool oldest_first;
    size_t most;
};
/* The rows of the jobs, newest first unless told otherwise: call each(id). */
int store_each_job(struct db *db,
                   const struct job_filter *filter,
                   void (*each)(int64_t id, void *context),
                   void *context,
                   struct err *e);

/* Jobs below a resource that have not ended; key is the resource's. */
int store_each_job_below(struct db *db,
                         const char *key,
                         void (*each)(int64_t id, void *context),
                         void *context,
                         struct err *e);

struct work_counts {
    int64_t jobs[JOB_STATES]; /* those that have not ended; the others stay 0 */
    int64_t nodes[NODE_STATES];
    int64_t oldest_queued_ms; /* since when the first of the queue waits; 0 = none does */
};
int store_count_work(struct db *db, struct work_counts *ret_counts, struct err *e);

/* --- the image map --- */

/* target NULL removes.  *ret_found (may be NULL) says whether there was one. */
int store_map_image(
    struct db *db, const char *image, const char *target, bool *ret_found, struct err *e);
/* *ret_target is NULL when the image is not mapped; caller frees. */
int store_find_image(struct db *db, const char *image, char **ret_target, struct err *e);
int store_each_image(struct db *db,
                     void (*each)(const char *image, const char *target, void *context),
                     void *context,
                     struct err *e);

#endif
