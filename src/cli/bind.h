/* bind.h - the tree of a container or share of the yard on this machine, mounted as it lies on
 * disk.
 *
 * See docs/design/storage.md for what is in a tree and what is not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BIND_H
#define CLI_BIND_H

#include "base/err.h"
#include "cli/storage-address.h"

struct bind_source {
    const char *home; /* the data folder */
    const char *account;
    enum storage_service service;
    const char *container; /* or share */
    const char *path;      /* below it; "" = all of it */
};

/* Root only.  No link within the tree leads out of it, and nothing in it can be a device or
 * change who runs it. */
int bind_mount(const struct bind_source *source,
               const char *where,
               bool is_read_only,
               struct err *e);
int bind_umount(const char *where, bool is_lazy, struct err *e);

#endif
