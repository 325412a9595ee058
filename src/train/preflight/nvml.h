/* nvml.h - what NVIDIA's driver knows of a card, through its library, loaded at run time.
 *
 * A figure that the driver or the card does not give is -1, or NaN: virtual machines hide some,
 * and older cards have no remapped rows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_PREFLIGHT_NVML_H
#define TRAIN_PREFLIGHT_NVML_H

#include "base/err.h"

#include <stdint.h>

struct nvml; /* opaque */

enum { /* bits of struct nvml_state's throttle, as the driver has them */
       NVML_IDLE = 0x1,
       NVML_CLOCKS_SET = 0x2,
       NVML_POWER_CAP = 0x4,
       NVML_HW_SLOWDOWN = 0x8,
       NVML_SYNC_BOOST = 0x10,
       NVML_SW_THERMAL = 0x20,
       NVML_HW_THERMAL = 0x40,
       NVML_POWER_BRAKE = 0x80,
};

struct nvml_state {
    char name[96];
    char driver[32];
    int temperature_c, slowdown_c; /* now; where the card begins to slow down */
    int clock_mhz, most_clock_mhz; /* of the multiprocessors */
    int64_t throttle;              /* bits; -1 = not known */
    double power_w, limit_w, default_limit_w;
    int pcie_width, most_pcie_width, pcie_generation;
    /* Errors of memory since the driver was loaded, and ever; what could not be corrected. */
    int64_t ecc_corrected, ecc_uncorrected, ever_corrected, ever_uncorrected;
    /* Rows that were replaced; one that waits for a reset; one that could not be replaced. */
    int remapped_corrected, remapped_uncorrected, is_remap_pending, has_remap_failed;
    int64_t used_bytes;
};

/* All figures "not known". */
void nvml_unknown(struct nvml_state *ret_state);

/* NULL in `library` is the driver's own, "" this program (for tests).  ERR_NOT_FOUND when it is
 * not there, or is something else. */
int nvml_open(const char *library, struct nvml **ret_nvml, struct err *e);
void nvml_free(struct nvml *nvml);

int nvml_count(struct nvml *nvml);
/* By PCI address, or by number when bus is NULL. */
int nvml_read(
    struct nvml *nvml, const char *bus, int card, struct nvml_state *ret_state, struct err *e);

#endif
