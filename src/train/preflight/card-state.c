/* card-state.c - the verdict on what the driver says of a card; see card.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/preflight/card.h"
#include "train/preflight/nvml.h"

#include <inttypes.h>
#include <math.h>

enum {
    HOT_C = 90,            /* where the card does not say itself */
    MANY_CORRECTED = 1000, /* since the driver was loaded */
};
#define USED_BY_OTHERS 2e9 /* the driver's own share, of large cards, is below that */
/* Large products run into the power limit and cost clock, down to some 60 % of the most. */
#define LEAST_CLOCK_SHARE 0.5
#define LEAST_LIMIT_SHARE 0.85

/* Errors of this boot condemn a card; those of its past are for the operator to know. */
static void judge_ecc(struct checks *checks, const struct nvml_state *s)
{
    if (s->ecc_uncorrected < 0)
        checks_add(checks, VERDICT_UNKNOWN, "ecc", NAN, "", "off, or the driver does not say");
    else if (s->ecc_uncorrected > 0)
        checks_add(checks, VERDICT_BAD, "ecc", (double)s->ecc_uncorrected, "errors",
                   "not corrected, since the driver was loaded");
    else
        checks_add(checks, s->ecc_corrected > MANY_CORRECTED ? VERDICT_LOOK : VERDICT_OK, "ecc",
                   0, "errors",
                   "not corrected, and %" PRId64 " corrected, since the driver was loaded",
                   s->ecc_corrected);
    if (s->ever_uncorrected >= 0)
        checks_add(checks, s->ever_uncorrected > 0 ? VERDICT_LOOK : VERDICT_OK, "ecc_history",
                   (double)s->ever_uncorrected, "errors",
                   "not corrected, and %" PRId64 " corrected, ever", s->ever_corrected);
}

static void judge_rows(struct checks *checks, const struct nvml_state *s)
{
    const char *note = "rows of memory replaced";
    enum verdict verdict = VERDICT_OK;

    if (s->remapped_corrected < 0)
        return; /* the card has none */
    if (s->remapped_uncorrected > 0) {
        verdict = VERDICT_LOOK;
        note = "rows replaced, some after errors that could not be corrected";
    }
    if (s->is_remap_pending > 0) {
        verdict = VERDICT_BAD;
        note = "a row waits to be replaced: reset the card";
    }
    if (s->has_remap_failed > 0) {
        verdict = VERDICT_BAD;
        note = "a row could not be replaced: the card is to be exchanged";
    }
    checks_add(checks, verdict, "remapped_rows",
               s->remapped_corrected + s->remapped_uncorrected, "rows", "%s", note);
}

static void judge_clock(struct checks *checks, const struct nvml_state *s)
{
    if (s->clock_mhz < 0 || s->most_clock_mhz < 0)
        checks_add(checks, VERDICT_UNKNOWN, "clock", NAN, "MHz", "the driver does not say");
    else
        checks_least(checks, "clock", s->clock_mhz, LEAST_CLOCK_SHARE * s->most_clock_mhz,
                     "MHz", "under load; %.0f %% of %d", 100 * LEAST_CLOCK_SHARE,
                     s->most_clock_mhz);
}

static const struct reason {
    int64_t bit;
    enum verdict verdict;
    const char *text;
} reasons[] = {
    {NVML_POWER_BRAKE, VERDICT_BAD, "power brake"},
    {NVML_HW_THERMAL, VERDICT_BAD, "too hot (hardware)"},
    {NVML_HW_SLOWDOWN, VERDICT_BAD, "hardware slowdown"},
    {NVML_SW_THERMAL, VERDICT_LOOK, "hot (driver)"},
    {NVML_SYNC_BOOST, VERDICT_LOOK, "bound to other cards' clocks"},
    {NVML_CLOCKS_SET, VERDICT_LOOK, "clocks set by hand"},
    {NVML_POWER_CAP, VERDICT_OK, "at the power limit, as large products are"},
};

static void judge_throttle(struct checks *checks, const struct nvml_state *s)
{
    enum verdict verdict = VERDICT_OK;
    auto_str text = {0};

    if (s->throttle < 0) {
        checks_add(checks, VERDICT_UNKNOWN, "throttle", NAN, "", "the driver does not say");
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (!(s->throttle & reasons[i].bit))
            continue;
        str_addf(&text, "%s%s", text.len ? ", " : "", reasons[i].text);
        if (reasons[i].verdict > verdict)
            verdict = reasons[i].verdict;
    }
    checks_add(checks, verdict, "throttle", NAN, "", "%s", text.len ? str_text(&text) : "none");
}

static void judge_temperature(struct checks *checks, const struct nvml_state *s)
{
    int most = s->slowdown_c > 0 ? s->slowdown_c - 3 : HOT_C;

    if (s->temperature_c < 0)
        checks_add(checks, VERDICT_UNKNOWN, "temperature", NAN, "C", "the driver does not say");
    else
        checks_add(checks, s->temperature_c < most ? VERDICT_OK : VERDICT_BAD, "temperature",
                   s->temperature_c, "C", "below %d", most);
}

static void judge_power(struct checks *checks, const struct nvml_state *s)
{
    if (isnan(s->limit_w) || isnan(s->default_limit_w))
        checks_add(checks, VERDICT_UNKNOWN, "power_limit", s->limit_w, "W",
                   "the driver does not say what is usual");
    else
        checks_least(checks, "power_limit", s->limit_w, LEAST_LIMIT_SHARE * s->default_limit_w,
                     "W", "%.0f %% of the default %.0f; %.0f drawn", 100 * LEAST_LIMIT_SHARE,
                     s->default_limit_w, s->power_w);
}

/* Width does not change when a card idles, as the generation does: fewer lanes are a fault. */
static void judge_pcie(struct checks *checks, const char *name, const struct nvml_state *s)
{
    const struct card_facts *facts = card_find(name);
    int most = s->most_pcie_width > 0 ? s->most_pcie_width : facts ? facts->pcie_width : -1;

    if (s->pcie_width < 1 || most < 1)
        checks_add(checks, VERDICT_UNKNOWN, "pcie_width", NAN, "lanes",
                   "the driver does not say");
    else
        checks_least(checks, "pcie_width", s->pcie_width, most, "lanes", "PCIe generation %d",
                     s->pcie_generation);
}

static void judge_use(struct checks *checks, const struct nvml_state *s)
{
    if (s->used_bytes >= 0)
        checks_add(checks, (double)s->used_bytes > USED_BY_OTHERS ? VERDICT_LOOK : VERDICT_OK,
                   "memory_in_use", (double)s->used_bytes / 1e9, "GB", "before we began");
}

void card_judge_state(struct checks *checks,
                      const char *name,
                      const struct nvml_state *idle,
                      const struct nvml_state *busy)
{
    if (busy) {
        judge_clock(checks, busy);
        judge_throttle(checks, busy);
    } else {
        busy = idle;
    }
    judge_temperature(checks, busy);
    judge_power(checks, busy);
    judge_pcie(checks, name, busy);
    judge_ecc(checks, busy);
    judge_rows(checks, busy);
    judge_use(checks, idle);
}
