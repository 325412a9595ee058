/* storage-object.h - what the verbs for one blob and those for one file of a share share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_OBJECT_H
#define CLI_STORAGE_OBJECT_H

#include "base/err.h"
#include "cli/command.h"
#include "cli/storage-address.h"

#include <jansson.h>

struct call;
struct http_answer;
struct wire;

extern const struct option_row storage_content_type, storage_protocol;

/* The last part of a path; borrowed from it. */
const char *storage_own_name(const char *path);

/* HEAD.  What is missing is said in words, which such an answer has not. */
int storage_look(struct wire *wire,
                 const char *container,
                 const char *path,
                 struct http_answer *answer,
                 struct err *e);

/* The URL of an object, with --protocol's scheme. */
int storage_object_url(struct call *call,
                       enum storage_service service,
                       const char *container,
                       const char *path,
                       json_t **ret_result,
                       struct err *e);

#endif
