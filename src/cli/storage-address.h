/* storage-address.h - what a person types for a place of data: a path here, or a URL there.
 *
 * Both forms of storage URLs are known: with the account in the path
 * (http://127.0.0.1:10000/account/container/name, on an IP address, localhost, a host without
 * dots or one of the ports that emulators use) and in the host
 * (https://account.blob.core.windows.net/container/name).
 *
 * A star in the last segment makes that segment a pattern.  In a URL a star that belongs to a
 * name is written %2A.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STORAGE_ADDRESS_H
#define CLI_STORAGE_ADDRESS_H

#include "base/err.h"

#include <stddef.h>

enum storage_service {
    STORAGE_BLOB,
    STORAGE_FILE,
    STORAGE_UNKNOWN, /* the URL does not tell */
};

struct address {
    bool is_local;
    /* Local: as typed.  Remote: decoded, below the container, without slashes at its ends.  The
     * pattern is not in it.  Never NULL. */
    char *path;
    char *pattern;      /* of the last segment: "*", "*.jpg"; NULL = none */
    bool ends_in_slash; /* a folder is meant, whatever is there */

    /* Of a URL only. */
    char *endpoint; /* with the account, without slash: "http://127.0.0.1:10000/account" */
    char *host;     /* with its port */
    char *account;
    char *container; /* or share; "" = the account as a whole */
    char *sas;       /* without '?'; NULL = none */
    enum storage_service service;
    bool is_public_cloud; /* account.blob.core.windows.net */
};

int address_parse(const char *text, struct address *ret_address, struct err *e);
/* The same for "account/container/path", as verbs take it that never mean a local path; the
 * service is unknown and there is no endpoint. */
int address_parse_remote(const char *text, struct address *ret_address, struct err *e);
void address_done(struct address *address);
#define auto_address __attribute__((cleanup(address_done))) struct address

/* "blob" or "file". */
const char *storage_service_name(enum storage_service service);

/* Does it name a loopback host, or the very same one?  host:port each. */
bool address_same_host(const char *a, const char *b);

/* The last segment of a path, trailing slashes aside.  The caller frees. */
char *address_base(const char *path);

#endif
