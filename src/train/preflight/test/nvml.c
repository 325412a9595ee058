/* The driver's library is played by this program: it exports the calls that nvml.c looks for,
 * all but two, as older drivers do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/nvml.h"

#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    NOT_SUPPORTED = 3, /* of the library */
    NOT_FOUND = 6,
};

static struct fake {
    int opened;
    bool is_dead;
} fake;

/* Exported: declared, since nothing else does. */
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlSystemGetDriverVersion(char *text, unsigned len);
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **card);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **card);
int nvmlDeviceGetName(void *card, char *text, unsigned len);
int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *c);
int nvmlDeviceGetClockInfo(void *card, int kind, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(void *card, int kind, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *bits);
int nvmlDeviceGetPowerUsage(void *card, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(void *card, unsigned *mw);
int nvmlDeviceGetPowerManagementDefaultLimit(void *card, unsigned *mw);
int nvmlDeviceGetCurrPcieLinkWidth(void *card, unsigned *lanes);
int nvmlDeviceGetMaxPcieLinkWidth(void *card, unsigned *lanes);
int nvmlDeviceGetCurrPcieLinkGeneration(void *card, unsigned *generation);
int nvmlDeviceGetTotalEccErrors(void *card, int kind, int since, unsigned long long *count);
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *info);

static char card_1; /* the handle */

int nvmlInit_v2(void)
{
    fake.opened += !fake.is_dead;
    return fake.is_dead ? 9 : 0;
}

int nvmlShutdown(void)
{
    fake.opened--;
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned len)
{
    snprintf(text, len, "580.1");
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **card)
{
    *card = &card_1;
    return number == 1 ? 0 : NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **card)
{
    *card = &card_1;
    return str_equal(bus, "0000:1b:00.0") ? 0 : NOT_FOUND;
}

int nvmlDeviceGetName(void *card, char *text, unsigned len)
{
    assert_ptr_equal(card, &card_1);
    snprintf(text, len, "NVIDIA H200");
    return 0;
}

int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *c)
{
    (void)card;
    *c = 51;
    return sensor == 0 ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetClockInfo(void *card, int kind, unsigned *mhz)
{
    (void)card;
    *mhz = kind == 1 ? 1400 : 3201;
    return 0;
}

int nvmlDeviceGetMaxClockInfo(void *card, int kind, unsigned *mhz)
{
    (void)card;
    *mhz = kind == 1 ? 1980 : 3201;
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *bits)
{
    (void)card;
    *bits = NVML_POWER_CAP;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *card, unsigned *mw)
{
    (void)card;
    *mw = 690500;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *card, unsigned *mw)
{
    (void)card;
    *mw = 700000;
    return 0;
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *card, unsigned *mw)
{
    (void)card;
    (void)mw;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetCurrPcieLinkWidth(void *card, unsigned *lanes)
{
    (void)card;
    *lanes = 8;
    return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *card, unsigned *lanes)
{
    (void)card;
    *lanes = 16;
    return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *card, unsigned *generation)
{
    (void)card;
    *generation = 5;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(void *card, int kind, int since, unsigned long long *count)
{
    (void)card;
    *count = (unsigned long long)(10 * since + kind + 1);
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *info)
{
    (void)card;
    info[0] = 150ULL << 30;
    info[1] = 149ULL << 30;
    info[2] = 1ULL << 30;
    return 0;
}

static void check_state(const struct nvml_state *s)
{
    assert_string_equal(s->name, "NVIDIA H200");
    assert_string_equal(s->driver, "580.1");
    assert_true(s->temperature_c == 51 && s->clock_mhz == 1400 && s->most_clock_mhz == 1980);
    assert_true(s->throttle == NVML_POWER_CAP);
    assert_true(fabs(s->power_w - 690.5) < 1e-9 && fabs(s->limit_w - 700) < 1e-9);
    assert_true(s->pcie_width == 8 && s->most_pcie_width == 16 && s->pcie_generation == 5);
    assert_true(s->ecc_corrected == 1 && s->ecc_uncorrected == 2);
    assert_true(s->ever_corrected == 11 && s->ever_uncorrected == 12);
    assert_true(s->used_bytes == 1LL << 30);
}

static void test_every_figure_is_read(void **state)
{
    struct nvml *nvml;
    struct nvml_state s;

    (void)state;
    assert_int_equal(nvml_open("", &nvml, NULL), 0);
    assert_int_equal(nvml_count(nvml), 2);
    assert_int_equal(nvml_read(nvml, "0000:1b:00.0", 0, &s, NULL), 0);
    check_state(&s);
    assert_int_equal(nvml_read(nvml, NULL, 1, &s, NULL), 0);
    check_state(&s);
    nvml_free(nvml);
    assert_int_equal(fake.opened, 0);
}

static void test_what_the_driver_lacks_is_not_known(void **state)
{
    struct nvml *nvml;
    struct nvml_state s;

    (void)state;
    assert_int_equal(nvml_open("", &nvml, NULL), 0);
    assert_int_equal(nvml_read(nvml, NULL, 1, &s, NULL), 0);
    assert_true(s.slowdown_c == -1);         /* no such call */
    assert_true(s.remapped_corrected == -1); /* likewise */
    assert_true(isnan(s.default_limit_w));   /* the call fails */
    nvml_free(nvml);
}

static void test_a_card_that_is_not_there_is_an_error(void **state)
{
    struct nvml *nvml;
    struct nvml_state s;
    struct err e = {0};

    (void)state;
    assert_int_equal(nvml_open("", &nvml, NULL), 0);
    assert_int_equal(nvml_read(nvml, NULL, 0, &s, &e), -1);
    assert_int_equal(nvml_read(nvml, "0000:ff:00.0", 1, &s, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    nvml_free(nvml);
}

static void test_no_library_another_one_and_a_dead_driver_are_told(void **state)
{
    struct nvml *nvml;
    struct err e = {0};

    (void)state;
    assert_int_equal(nvml_open("libnot-there.so.1", &nvml, &e), -1);
    assert_non_null(strstr(e.msg, "libnot-there"));
    assert_int_equal(nvml_open("libm.so.6", &nvml, &e), -1);
    assert_non_null(strstr(e.msg, "nvmlInit_v2"));
    fake.is_dead = true;
    assert_int_equal(nvml_open("", &nvml, &e), -1);
    assert_non_null(strstr(e.msg, "does not answer"));
    fake.is_dead = false;
    nvml_free(NULL);
    assert_int_equal(fake.opened, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure_is_read),
        cmocka_unit_test(test_what_the_driver_lacks_is_not_known),
        cmocka_unit_test(test_a_card_that_is_not_there_is_an_error),
        cmocka_unit_test(test_no_library_another_one_and_a_dead_driver_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
