/* batchai-user.h - who may log in to the nodes: the account that az's options describe.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BATCHAI_USER_H
#define CLI_BATCHAI_USER_H

#include "base/err.h"

#include <jansson.h>

struct call;
struct str;

/* Fill in userAccountSettings of parent (the properties of a cluster, or sshConfiguration):
 * from the options, else from what parent has, else the current user and ~/.ssh/id_rsa.pub.
 * With
 * --generate-ssh-keys that pair is made first when it is missing. */
int batchai_set_user(struct call *call, json_t *parent, struct err *e);

/* The same without options: the current user, with ~/.ssh/id_rsa.pub when that is a key. */
void batchai_set_own_user(json_t *parent);

/* A public key from a text or from the file that it names; one that is no key fails. */
int batchai_read_key(const char *text, struct str *ret_key, struct err *e);

/* Make <folder>/id_rsa and id_rsa.pub (2048 bits) unless they are there.  *ret_made tells. */
int batchai_make_keys(const char *folder, bool *ret_made, struct err *e);

/* ~/.ssh; the caller frees. */
int batchai_key_folder(char **ret_folder, struct err *e);

#endif
