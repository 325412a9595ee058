/* nvml.c - see nvml.h.
 *
 * The library's header is not at hand where we build; the few calls are declared here as its
 * documentation has them.  All return 0 for success.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/nvml.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef void *card_handle;

enum { /* of the library */
       SENSOR_CARD = 0,
       THRESHOLD_SLOWDOWN = 1,
       CLOCK_MULTIPROCESSORS = 1,
       ERRORS_CORRECTED = 0,
       ERRORS_UNCORRECTED = 1,
       SINCE_DRIVER = 0,
       SINCE_EVER = 1,
};

struct memory_info {
    unsigned long long total, free, used;
};

struct nvml {
    void *file;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*driver)(char *text, unsigned len);
    int (*by_number)(unsigned number, card_handle *card);
    int (*by_bus)(const char *bus, card_handle *card);
    /* From here on each may be missing. */
    int (*name)(card_handle card, char *text, unsigned len);
    int (*temperature)(card_handle card, int sensor, unsigned *c);
    int (*threshold)(card_handle card, int kind, unsigned *c);
    int (*clock)(card_handle card, int kind, unsigned *mhz);
    int (*most_clock)(card_handle card, int kind, unsigned *mhz);
    int (*throttle)(card_handle card, unsigned long long *bits);
    int (*power)(card_handle card, unsigned *mw);
    int (*limit)(card_handle card, unsigned *mw);
    int (*default_limit)(card_handle card, unsigned *mw);
    int (*width)(card_handle card, unsigned *lanes);
    int (*most_width)(card_handle card, unsigned *lanes);
    int (*generation)(card_handle card, unsigned *generation);
    int (*errors)(card_handle card, int kind, int since, unsigned long long *count);
    int (*remapped)(card_handle card,
                    unsigned *corrected,
                    unsigned *uncorrected,
                    unsigned *pending,
                    unsigned *failed);
    int (*memory)(card_handle card, struct memory_info *info);
};

static const struct symbol {
    const char *name;
    size_t at;
    bool is_needed;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, count), true},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver), true},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, by_number), true},
    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(struct nvml, by_bus), true},
    {"nvmlDeviceGetName", offsetof(struct nvml, name), false},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature), false},
    {"nvmlDeviceGetTemperatureThreshold", offsetof(struct nvml, threshold), false},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock), false},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, most_clock), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, throttle), false},
    {"nvmlDeviceGetPowerUsage", offsetof(struct nvml, power), false},
    {"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml, limit), false},
    {"nvmlDeviceGetPowerManagementDefaultLimit", offsetof(struct nvml, default_limit), false},
    {"nvmlDeviceGetCurrPcieLinkWidth", offsetof(struct nvml, width), false},
    {"nvmlDeviceGetMaxPcieLinkWidth", offsetof(struct nvml, most_width), false},
    {"nvmlDeviceGetCurrPcieLinkGeneration", offsetof(struct nvml, generation), false},
    {"nvmlDeviceGetTotalEccErrors", offsetof(struct nvml, errors), false},
    {"nvmlDeviceGetRemappedRows", offsetof(struct nvml, remapped), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false},
};

/* --- the library -----------------------------------------------------------------------------
 */

static int load(struct nvml *nvml, const char *library, struct err *e)
{
    nvml->file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->file)
        return err_set(e, ERR_NOT_FOUND, "could not load NVIDIA's driver library: %.300s",
                       dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *found = dlsym(nvml->file, symbols[i].name);

        if (!found && symbols[i].is_needed)
            return err_set(e, ERR_NOT_FOUND, "%s has no %s", library, symbols[i].name);
        memcpy((char *)nvml + symbols[i].at, &found, sizeof found);
    }
    return 0;
}

int nvml_open(const char *library, struct nvml **ret_nvml, struct err *e)
{
    struct nvml *nvml = xcalloc(1, sizeof *nvml);
    int rc = load(nvml, library ? library : "libnvidia-ml.so.1", e);

    if (rc == 0 && (rc = nvml->init()) != 0) {
        nvml->shutdown = NULL; /* nothing to undo */
        rc = err_set(e, ERR_NOT_FOUND, "NVIDIA's driver does not answer (NVML %d)", rc);
    }
    if (rc < 0) {
        nvml->shutdown = NULL;
        nvml_free(nvml);
        return -1;
    }
    *ret_nvml = nvml;
    return 0;
}

void nvml_free(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->shutdown)
        nvml->shutdown();
    if (nvml->file)
        dlclose(nvml->file);
    free(nvml);
}

int nvml_count(struct nvml *nvml)
{
    unsigned count;

    return nvml->count(&count) == 0 ? (int)count : 0;
}

/* --- a card ----------------------------------------------------------------------------------
 */

void nvml_unknown(struct nvml_state *ret_state)
{
    *ret_state = (struct nvml_state){
        .temperature_c = -1,
        .slowdown_c = -1,
        .clock_mhz = -1,
        .most_clock_mhz = -1,
        .throttle = -1,
        .power_w = NAN,
        .limit_w = NAN,
        .default_limit_w = NAN,
        .pcie_width = -1,
        .most_pcie_width = -1,
        .pcie_generation = -1,
        .ecc_corrected = -1,
        .ecc_uncorrected = -1,
        .ever_corrected = -1,
        .ever_uncorrected = -1,
        .remapped_corrected = -1,
        .remapped_uncorrected = -1,
        .is_remap_pending = -1,
        .has_remap_failed = -1,
        .used_bytes = -1,
    };
}

static int plain(int (*ask)(card_handle card, unsigned *value), card_handle card)
{
    unsigned value;

    return ask && ask(card, &value) == 0 ? (int)value : -1;
}

static int
of_kind(int (*ask)(card_handle card, int kind, unsigned *value), card_handle card, int kind)
{
    unsigned value;

    return ask && ask(card, kind, &value) == 0 ? (int)value : -1;
}

static double watts(int (*ask)(card_handle card, unsigned *value), card_handle card)
{
    int milliwatts = plain(ask, card);

    return milliwatts < 0 ? NAN : milliwatts / 1e3;
}

static int64_t errors(const struct nvml *nvml, card_handle card, int kind, int since)
{
    unsigned long long count;

    return nvml->errors && nvml->errors(card, kind, since, &count) == 0 ? (int64_t)count : -1;
}

static void read_pace(const struct nvml *nvml, card_handle card, struct nvml_state *s)
{
    unsigned long long bits;

    s->temperature_c = of_kind(nvml->temperature, card, SENSOR_CARD);
    s->slowdown_c = of_kind(nvml->threshold, card, THRESHOLD_SLOWDOWN);
    s->clock_mhz = of_kind(nvml->clock, card, CLOCK_MULTIPROCESSORS);
    s->most_clock_mhz = of_kind(nvml->most_clock, card, CLOCK_MULTIPROCESSORS);
    if (nvml->throttle && nvml->throttle(card, &bits) == 0)
        s->throttle = (int64_t)bits;
    s->power_w = watts(nvml->power, card);
    s->limit_w = watts(nvml->limit, card);
    s->default_limit_w = watts(nvml->default_limit, card);
    s->pcie_width = plain(nvml->width, card);
    s->most_pcie_width = plain(nvml->most_width, card);
    s->pcie_generation = plain(nvml->generation, card);
}

static void read_memory(const struct nvml *nvml, card_handle card, struct nvml_state *s)
{
    unsigned corrected, uncorrected, pending, failed;
    struct memory_info info;

    s->ecc_corrected = errors(nvml, card, ERRORS_CORRECTED, SINCE_DRIVER);
    s->ecc_uncorrected = errors(nvml, card, ERRORS_UNCORRECTED, SINCE_DRIVER);
    s->ever_corrected = errors(nvml, card, ERRORS_CORRECTED, SINCE_EVER);
    s->ever_uncorrected = errors(nvml, card, ERRORS_UNCORRECTED, SINCE_EVER);
    if (nvml->remapped &&
        nvml->remapped(card, &corrected, &uncorrected, &pending, &failed) == 0) {
        s->remapped_corrected = (int)corrected;
        s->remapped_uncorrected = (int)uncorrected;
        s->is_remap_pending = pending != 0;
        s->has_remap_failed = failed != 0;
    }
    if (nvml->memory && nvml->memory(card, &info) == 0)
        s->used_bytes = (int64_t)info.used;
}

int nvml_read(
    struct nvml *nvml, const char *bus, int card, struct nvml_state *ret_state, struct err *e)
{
    card_handle handle;
    int rc = bus ? nvml->by_bus(bus, &handle) : nvml->by_number((unsigned)card, &handle);

    if (rc != 0)
        return err_set(e, ERR_NOT_FOUND, "the driver does not know card %d (%s, NVML %d)", card,
                       bus ? bus : "by number", rc);
    nvml_unknown(ret_state);
    if (nvml->driver(ret_state->driver, sizeof ret_state->driver) != 0)
        ret_state->driver[0] = '\0';
    if (!nvml->name || nvml->name(handle, ret_state->name, sizeof ret_state->name) != 0)
        ret_state->name[0] = '\0';
    read_pace(nvml, handle, ret_state);
    read_memory(nvml, handle, ret_state);
    return 0;
}
