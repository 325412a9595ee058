/* vmsize.h - the catalogue of machine sizes: what a recipe means by "STANDARD_NC24R".
 *
 * Names are compared without case.  "host" is the machine itself, whole.  A config may add
 * sizes: "name cores memory_gib gpus [family]".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_VMSIZE_H
#define CORE_VMSIZE_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

struct vmsize {
    const char *name;
    const char *family; /* "NC", "Dv2", ...; "" for host and sizes of one's own */
    int cores;
    int memory_mib;
    int gpus;
    bool has_infiniband;
};

struct vmsizes; /* the catalogue: what is built in, the host, and what a config adds */

struct vmsizes *vmsizes_new(int host_cores, int host_memory_mib, int host_gpus);
void vmsizes_free(struct vmsizes *sizes);
DEFINE_AUTOPTR(vmsizes)
/* "name cores memory_gib gpus [family]"; rows are parted by commas or line ends.  A name that
 * is there gets the new numbers; "host" stays what it is.  ERR_INVALID names the row; those
 * before it are added. */
int vmsizes_add(struct vmsizes *sizes, const char *text, struct err *e);
/* ERR_INVALID, with the nearest name, when there is none.  Borrowed from the catalogue. */
int vmsizes_find(const struct vmsizes *sizes,
                 const char *name,
                 const struct vmsize **ret_size,
                 struct err *e);
/* All of them, "host" first; NULL after the last. */
const struct vmsize *vmsizes_at(const struct vmsizes *sizes, size_t index);

#endif
