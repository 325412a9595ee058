/* storage.h - the storage service, wired into the house: its accounts are the yard's, its
 * tokens too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STORAGE_H
#define DAEMON_STORAGE_H

#include "base/err.h"

struct blobs;
struct control;
struct files;
struct home;
struct http_server;
struct http_tls;
struct listen_names;
struct settings;
struct storage; /* opaque */
struct store_pool;
struct vault;

struct storage_parts {
    const struct settings *settings;
    const struct home *home;
    const struct listen_names *names;
    struct control *control;
    struct store_pool *pool;
    const struct vault *vault;
    const char *tenant_id;
    /* The disk failed us: stop the process.  From a thread of the storage's. */
    void (*broken)(const struct err *why, void *context);
    void *context;
};

/* Open the folders and databases. */
int storage_open(const struct storage_parts *parts,
                 struct storage **ret_storage,
                 struct err *e);
/* Add its two listeners to the server.  The URLs, without account, are storage_blob_url and
 * ..._file_url. */
int storage_listen(struct storage *storage,
                   struct http_server *server,
                   struct http_tls *tls,
                   struct err *e);
const char *storage_blob_url(const struct storage *storage);
const char *storage_file_url(const struct storage *storage);
/* The data itself; borrowed. */
struct blobs *storage_blobs(const struct storage *storage);
struct files *storage_files(const struct storage *storage);

/* Forget all data of an account, so that one of the same name begins empty.  Waits for the
 * disk. */
int storage_purge(struct storage *storage, const char *account, struct err *e);

/* Compare all data with what is known of it; see api.h. */
int storage_scrub(struct storage *storage,
                  void (*finding)(const char *name, bool ok, const char *detail, void *to),
                  void *to,
                  struct err *e);

/* Let running work end; no request may come in any more. */
void storage_stop(struct storage *storage);
void storage_close(struct storage *storage);

#endif
