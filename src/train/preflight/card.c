/* card.c - see card.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/card.h"

#include "base/mem.h"
#include "base/str.h"
#include "train/backend/probe.h"

#include <math.h>
#include <string.h>

static const struct card_facts table[] = {
    /* name, TFLOP/s and share, GB/s and share, PCIe generation and lanes, NVLink */
    {"B200", 2250, 0.62, 8000, 0.78, 5, 16, 900},
    {"GH200", 989, 0.65, 4000, 0.78, 5, 16, 450},
    {"H200 NVL", 835, 0.55, 4800, 0.80, 5, 16, 450},
    {"H200", 989, 0.68, 4800, 0.80, 5, 16, 450},
    {"H100 NVL", 835, 0.50, 3900, 0.80, 5, 16, 300},
    {"H100 PCIe", 756, 0.50, 2000, 0.80, 5, 16, 0},
    {"H100", 989, 0.65, 3350, 0.78, 5, 16, 450},
    {"H800", 989, 0.65, 3350, 0.78, 5, 16, 200},
    {"H20", 148, 0.75, 4000, 0.78, 5, 16, 450},
    {"A100-SXM4-80GB", 312, 0.70, 2039, 0.78, 4, 16, 300},
    {"A100-SXM4-40GB", 312, 0.70, 1555, 0.78, 4, 16, 300},
    {"A100 80GB PCIe", 312, 0.60, 1935, 0.78, 4, 16, 0},
    {"A100-PCIE-40GB", 312, 0.60, 1555, 0.78, 4, 16, 0},
    {"A800", 312, 0.60, 1935, 0.78, 4, 16, 0},
    {"A30", 165, 0.60, 933, 0.75, 4, 16, 0},
    {"A40", 150, 0.50, 696, 0.72, 4, 16, 0},
    {"A10G", 70, 0.60, 600, 0.70, 4, 16, 0},
    {"A10", 125, 0.40, 600, 0.70, 4, 16, 0},
    {"L40S", 362, 0.45, 864, 0.72, 4, 16, 0},
    {"L40", 181, 0.50, 864, 0.72, 4, 16, 0},
    {"L4", 121, 0.30, 300, 0.70, 4, 16, 0},
    {"RTX 6000 Ada", 364, 0.45, 960, 0.72, 4, 16, 0},
    {"RTX A6000", 155, 0.50, 768, 0.72, 4, 16, 0},
    {"GeForce RTX 4090", 165, 0.70, 1008, 0.72, 4, 16, 0},
    {"GeForce RTX 3090", 71, 0.70, 936, 0.72, 4, 16, 0},
    {"V100-SXM", 125, 0.60, 900, 0.72, 3, 16, 150},
    {"V100-PCIE", 112, 0.60, 900, 0.72, 3, 16, 0},
    {"V100", 112, 0.55, 900, 0.72, 3, 16, 0},
    {"T4", 65, 0.30, 320, 0.62, 3, 16, 0},
};

/* Of the link; pinned memory on the far side of the machine still gives more. */
#define HOST_COPY_SHARE 0.5
/* Of NVLink in one direction, and of PCIe where there is none: NCCL reaches 80 % of the first
 * with eight cards and 70 % with two, and some half of the second through the host. */
#define LINK_SUM_SHARE 0.5
#define PCIE_SUM_SHARE 0.2

const struct card_facts *card_find(const char *name)
{
    static const char *const makers[] = {"NVIDIA ", "Tesla "};
    const struct card_facts *best = NULL;

    if (strstr(name, "Laptop")) /* another chip behind the same number */
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
        if (str_starts(name, makers[i]))
            name += strlen(makers[i]);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t len = strlen(table[i].name);
        char after = str_starts(name, table[i].name) ? name[len] : 'x';
        bool fits = !after || after == ' ' || after == '-' ||
                    (after >= '0' && after <= '9' && str_ends(table[i].name, "SXM"));

        if (fits && (!best || len > strlen(best->name)))
            best = &table[i];
    }
    return best;
}

double card_pcie_gb_s(int generation, int width)
{
    static const double lane[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};

    if (generation < 1 || generation >= (int)ARRAY_SIZE(lane) || width < 1)
        return NAN;
    return lane[generation] * width;
}

double card_sum_floor(const char *name)
{
    const struct card_facts *f = card_find(name);

    if (!f)
        return NAN;
    return 1e9 * (f->link_gb_s > 0
                      ? LINK_SUM_SHARE * f->link_gb_s
                      : PCIE_SUM_SHARE * card_pcie_gb_s(f->pcie_generation, f->pcie_width));
}

static void
judge_known(struct checks *checks, const struct probe_figures *p, const struct card_facts *f)
{
    double link = card_pcie_gb_s(f->pcie_generation, f->pcie_width);

    checks_least(checks, "matrix", p->matrix_flops / 1e12, f->matrix_share * f->matrix_tflops,
                 "TFLOP/s", "%s products; %.0f %% of %.0f", p->is_bf16 ? "bf16" : "fp16",
                 100 * f->matrix_share, f->matrix_tflops);
    checks_least(checks, "copy", p->copy_bytes_s / 1e9, f->copy_share * f->copy_gb_s, "GB/s",
                 "read and written; %.0f %% of %.0f", 100 * f->copy_share, f->copy_gb_s);
    checks_least(checks, "to_card", p->to_card_bytes_s / 1e9, HOST_COPY_SHARE * link, "GB/s",
                 "pinned; %.0f %% of PCIe %d x%d", 100 * HOST_COPY_SHARE, f->pcie_generation,
                 f->pcie_width);
    checks_least(checks, "from_card", p->from_card_bytes_s / 1e9, HOST_COPY_SHARE * link,
                 "GB/s", "pinned; %.0f %% of PCIe %d x%d", 100 * HOST_COPY_SHARE,
                 f->pcie_generation, f->pcie_width);
}

static void judge_unknown(struct checks *checks, const struct probe_figures *p)
{
    static const char why[] = "what such a card should give is not known";

    checks_least(checks, "matrix", p->matrix_flops / 1e12, NAN, "TFLOP/s", "%s", why);
    checks_least(checks, "copy", p->copy_bytes_s / 1e9, NAN, "GB/s", "%s", why);
    checks_least(checks, "to_card", p->to_card_bytes_s / 1e9, NAN, "GB/s", "%s", why);
    checks_least(checks, "from_card", p->from_card_bytes_s / 1e9, NAN, "GB/s", "%s", why);
}

void card_judge_figures(struct checks *checks, const struct probe_figures *figures)
{
    const struct card_facts *facts = card_find(figures->name);

    if (facts)
        judge_known(checks, figures, facts);
    else
        judge_unknown(checks, figures);
    checks_add(checks, figures->is_right ? VERDICT_OK : VERDICT_BAD, "results", NAN, "",
               figures->is_right ? "all products equal and right"
                                 : "products of the same numbers differ, or are wrong");
}
