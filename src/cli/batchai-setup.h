/* batchai-setup.h - what the set-up task of a cluster's nodes has written, looked up in
 * storage.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_SETUP_H
#define CLI_BATCHAI_SETUP_H

#include "base/err.h"
#include "cli/storage-address.h"

#include <jansson.h>

struct call;

/* The files of the folder --path below the set-up task's output, with links that hold --expiry
 * minutes: an array of name, isDirectory, size and downloadUrl. */
int batchai_setup_files(struct call *call,
                        const json_t *cluster,
                        json_t **ret_files,
                        struct err *e);

/* Where it lies. */
struct batchai_output {
    enum storage_service service;
    char *account, *name; /* of the share or container */
    char *path;           /* within it */
};
/* cluster is its wire form.  Fails when there is no set-up task, or its output goes to no share
 * and no container. */
int batchai_setup_place(const json_t *cluster, struct batchai_output *ret, struct err *e);
void batchai_output_done(struct batchai_output *output);

#endif
