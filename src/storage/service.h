/* service.h - the storage service as a daemon sees it: one object, two entry points.
 *
 * A request takes the same way whatever it is for: the Host and the path say which account
 * (421, 400), method and query say which operation (400, 405), the signature says who (401,
 * 403), the body goes where the operation wants it, and the operation runs: on the loop thread
 * when it is quick, on a worker when it waits for the disk.
 *
 * Lifetime: make it before the servers that call it; free it after http_server_drain and after
 * the pool of workers is freed, since both hold calls of it.
 *
 * Threads: the entry points run on the loop threads of their server; the callbacks below are
 * called from those and from workers, at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_SERVICE_H
#define STORAGE_SERVICE_H

#include "base/crypt.h"
#include "base/err.h"

#include <stddef.h>

struct blobs;
struct files;
struct http_req;
struct storage_service; /* opaque */
struct work_pool;

enum {
    STORAGE_KEY_BYTES = 128, /* an account key in base64, with its NUL */
};

struct storage_config {
    struct blobs *blobs;
    struct files *files; /* NULL: no file service, every file request is answered 501 */
    struct work_pool *pool;

    /* Names and addresses under which the account is the first segment of the path
     * (http://name:10000/account/...).  IP addresses, "localhost" and names without a dot
     * always are such. */
    const char *const *hosts;
    size_t host_count;
    /* What follows the account in a host-style address: "yard.example" makes
     * account.blob.yard.example and account.file.yard.example work.  Any other name is 421. */
    const char *const *suffixes;
    size_t suffix_count;
    /* Tenant and key id material of user delegation keys: the keys are derived from this secret
     * and never stored, so that a new secret revokes them all. */
    unsigned char delegation_secret[CRYPT_KEY_BYTES];
    const char *tenant_id; /* a UUID */

    /* Both keys of an account, base64, "" for a key that is not there.  ERR_NOT_FOUND when
     * there is no such account.  Called for every request: must not wait. */
    int (*account_keys)(void *context,
                        const char *account,
                        char key1[STORAGE_KEY_BYTES],
                        char key2[STORAGE_KEY_BYTES],
                        struct err *e);
    /* Whose token is it, and may it read (or write) the data of this account?
     * ERR_UNAUTHORIZED when the token is not known, ERR_FORBIDDEN when it is but may not.
     * ret_who is the id of the principal, a UUID.  NULL: no bearer tokens. */
    int (*bearer)(void *context,
                  const char *token,
                  const char *account,
                  bool write,
                  char ret_who[CRYPT_UUID_BYTES],
                  struct err *e);
    /* May this principal still read (or write) the account?  Asked when a user delegation SAS
     * is used, so that revoking the principal revokes what it handed out.  NULL: no user
     * delegation. */
    int (*principal)(
        void *context, const char *who, const char *account, bool write, struct err *e);
    void *context;
};

/* The config's strings are borrowed until storage_service_free. */
struct storage_service *storage_service_new(const struct storage_config *config);
void storage_service_free(struct storage_service *service);

/* on_request of a struct http_config; the context is the service. */
void storage_on_blob_request(struct http_req *req, void *service);
void storage_on_file_request(struct http_req *req, void *service);

#endif
