/* batchai.h - bodies of Microsoft.BatchAI: checked, filled in, parted from their secrets.
 *
 * A client's "properties" go in; out come the properties as they are kept and shown (unknown
 * members dropped, defaults filled in, secrets gone) and the secrets by name, for the vault.
 * With the secrets put back (batchai_with_secrets) the kept form is what engines and launch
 * plans read.  Errors name the member with its path ("properties.nodeCount") and say what
 * would be right; nothing is half taken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BATCHAI_H
#define CORE_BATCHAI_H

#include "base/err.h"
#include "core/yard.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct vmsizes;

/* A checked body. */
struct batchai_spec {
    json_t *kept;    /* both are the caller's: batchai_spec_done */
    json_t *secrets; /* object: a JSON pointer into `kept` ("/secrets/0/value",
                        "/mountVolumes/azureFileShares/1/credentials/accountKey") -> text */
};
void batchai_spec_done(struct batchai_spec *spec);

/* body is the whole request body: {"properties": {...}} (and location, $schema, ..., ignored).
 * For a job cluster ids are checked for form alone.  vm size "vmSize" must be in the catalogue.
 */
int batchai_read_cluster(const json_t *body,
                         const struct vmsizes *sizes,
                         struct batchai_spec *ret_spec,
                         struct err *e);
/* PATCH: properties.scaleSettings alone; ret_scale is a new reference. */
int batchai_read_scale(const json_t *body, json_t **ret_scale, struct err *e);
int batchai_read_job(const json_t *body, struct batchai_spec *ret_spec, struct err *e);
int batchai_read_file_server(const json_t *body,
                             const struct vmsizes *sizes,
                             struct batchai_spec *ret_spec,
                             struct err *e);

/* A copy of `kept` with the secrets back in their places; the caller owns it.  A secret whose
 * place is not there (the kept form was changed since) is left out. */
json_t *batchai_with_secrets(const json_t *kept, const json_t *secrets);

/* Members of yard_cluster and yard_job that follow from the kept form: not ids, names, wishes,
 * nor what depends on the machine (cores, gpus) or its settings (idle_ms). */
void batchai_fill_cluster(const json_t *kept, struct yard_cluster *cluster);
void batchai_fill_job(const json_t *kept, struct yard_job *job);

/* "horovod", "custom", "custommpi", ...: toolType, by which settings block is there. */
const char *batchai_tool(const json_t *kept);
/* That block; borrowed. */
const json_t *batchai_tool_settings(const json_t *kept);
/* The id of the job's cluster; borrowed. */
const char *batchai_job_cluster(const json_t *kept);

/* --- volumes --- */

enum volume_kind {
    VOLUME_FILE_SHARE,
    VOLUME_BLOBS,
    VOLUME_FILE_SERVER,
    VOLUME_UNMANAGED,
};

/* One of mountVolumes; strings are borrowed from the JSON. */
struct volume {
    enum volume_kind kind;
    const char *account, *name; /* of the share or container; a share's are in the arena */
    const char *key;            /* account key, NULL when it was not given or is not put back */
    const char *server_id;      /* ARM id of the file server */
    const char *folder;         /* sourceDirectory within it, relative; NULL = all */
    const char *command;        /* unmanaged */
    const char *options;        /* mountOptions, NULL */
    const char *path;           /* relativeMountPath */
};
/* In the order they are mounted: NFS, shares, blobs, unmanaged.  kept is of a job or of a
 * cluster (its nodeSetup).  Names of shares are taken from azureFileUrl; the account is the
 * first label of its host, or the first segment of its path in path-style addresses.
 * *ret_volumes is in the arena. */
int batchai_volumes(const json_t *kept,
                    struct arena *arena,
                    struct volume **ret_volumes,
                    size_t *ret_count,
                    struct err *e);

/* --- where a job's output lies --- */

/* The folder of an output directory id ("stdouterr" or one of outputDirectories) as volume and
 * path within it; segment is jobOutputDirectoryPathSegment.  cluster_kept is the kept form of
 * the cluster, for its volumes; NULL when it is gone.  ERR_NOT_FOUND for an unknown id, and for
 * what lies on volumes of a cluster that is gone; ERR_INVALID "the specified
 * outputDirectoryId x is not present on a mount root" when it is on no share or
 * container.  Strings in the arena. */
int batchai_output_place(const json_t *job_kept,
                         const json_t *cluster_kept,
                         const char *segment,
                         const char *id,
                         struct arena *arena,
                         struct volume *ret_volume,
                         const char **ret_path,
                         struct err *e);

/* The same folder as the job names it, variables and all:
 * "$AZ_BATCHAI_JOB_TEMP/<segment>/stdouterr".  In the arena.  ERR_NOT_FOUND for an unknown id.
 */
int batchai_output_path(const json_t *job_kept,
                        const char *segment,
                        const char *id,
                        struct arena *arena,
                        const char **ret_path,
                        struct err *e);

/* "P1DT2H" or "1.02:00:00" in milliseconds; ERR_INVALID. */
int batchai_read_duration(const char *text, int64_t *ret_ms, struct err *e);

#endif
