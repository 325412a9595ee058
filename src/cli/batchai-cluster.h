/* batchai-cluster.h - the body of a new cluster, from a file and options, by az's rules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_CLUSTER_H
#define CLI_BATCHAI_CLUSTER_H

#include "base/err.h"

#include <jansson.h>

struct call;

/* The whole body; the caller owns it.  Nothing is made but keys and auto storage, when they
 * were asked for. */
int batchai_cluster_body(struct call *call, json_t **ret_body, struct err *e);

/* scaleSettings of -t, --min and --max, -1 = not given: manual for a fixed number, automatic
 * for a range that begins with target.  *ret is NULL when none was given; the caller owns it.
 */
int batchai_scale(long target, long min, long max, json_t **ret_scale, struct err *e);

/* imageReference of --image: UbuntuLTS, UbuntuDSVM, or publisher:offer:sku:version.  The caller
 * owns it. */
int batchai_image(const char *text, json_t **ret_image, struct err *e);

#endif
