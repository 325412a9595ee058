/* transfer-ends.h - from what was typed to the two sides of a transfer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_ENDS_H
#define CLI_TRANSFER_ENDS_H

#include "base/err.h"
#include "cli/storage-address.h"
#include "cli/transfer-side.h"

struct call;
struct storage_account;

/* One of the two. */
struct end {
    struct address address;
    struct storage_account *account; /* NULL when it is local */
    enum side_kind kind;
};
void end_close(struct end *end);

/* Understand what was typed and find the account.  service: what the person said it is, or
 * STORAGE_UNKNOWN.  sas: to use when the URL has none; NULL = none.  is_remote:
 * "account/container" is one, too, whose service is found out by looking; that of a URL may
 * stay unknown. */
int end_open(struct call *call,
             const char *text,
             enum storage_service service,
             const char *sas,
             bool is_remote,
             struct end *ret_end,
             struct err *e);

struct ends {
    struct end from, to;
};
void ends_close(struct ends *ends);
#define auto_ends __attribute__((cleanup(ends_close))) struct ends

/* from_to: "LocalBlob" and the like; NULL = as the URLs tell. */
int ends_open(struct call *call,
              const char *source,
              const char *destination,
              const char *from_to,
              struct ends *ret_ends,
              struct err *e);

/* A side with that root. */
int end_side(const struct end *end, const char *root, struct side **ret_side, struct err *e);

/* What is there?  *ret_is_folder: a folder, a container, names below a prefix. */
int end_look(struct call *call,
             const struct end *end,
             bool *ret_is_there,
             bool *ret_is_folder,
             struct err *e);

/* Make the container or share when it is missing, and say so. */
int end_need_container(struct call *call, const struct end *end, struct err *e);

/* As typed, made absolute, without any secret: the caller frees. */
char *end_text(const struct end *end);

#endif
