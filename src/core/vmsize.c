/* SPDX-License-Identifier: Apache-2.0 */
#include "core/vmsize.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

/* As their documentation has them; memory in MiB, because 3.5 GiB is common. */
static const struct vmsize builtin[] = {
    {"STANDARD_NC6", "NC", 6, 57344, 1, false},
    {"STANDARD_NC12", "NC", 12, 114688, 2, false},
    {"STANDARD_NC24", "NC", 24, 229376, 4, false},
    {"STANDARD_NC24r", "NC", 24, 229376, 4, true},
    {"STANDARD_NC6s_v2", "NCv2", 6, 114688, 1, false},
    {"STANDARD_NC12s_v2", "NCv2", 12, 229376, 2, false},
    {"STANDARD_NC24s_v2", "NCv2", 24, 458752, 4, false},
    {"STANDARD_NC24rs_v2", "NCv2", 24, 458752, 4, true},
    {"STANDARD_NC6s_v3", "NCv3", 6, 114688, 1, false},
    {"STANDARD_NC12s_v3", "NCv3", 12, 229376, 2, false},
    {"STANDARD_NC24s_v3", "NCv3", 24, 458752, 4, false},
    {"STANDARD_NC24rs_v3", "NCv3", 24, 458752, 4, true},
    {"STANDARD_NC4as_T4_v3", "NCasT4_v3", 4, 28672, 1, false},
    {"STANDARD_NC8as_T4_v3", "NCasT4_v3", 8, 57344, 1, false},
    {"STANDARD_NC16as_T4_v3", "NCasT4_v3", 16, 112640, 1, false},
    {"STANDARD_NC64as_T4_v3", "NCasT4_v3", 64, 450560, 4, false},
    {"STANDARD_NC24ads_A100_v4", "NCadsA100_v4", 24, 225280, 1, false},
    {"STANDARD_NC48ads_A100_v4", "NCadsA100_v4", 48, 450560, 2, false},
    {"STANDARD_NC96ads_A100_v4", "NCadsA100_v4", 96, 901120, 4, false},
    {"STANDARD_NC40ads_H100_v5", "NCadsH100_v5", 40, 327680, 1, false},
    {"STANDARD_NC80adis_H100_v5", "NCadsH100_v5", 80, 655360, 2, false},
    {"STANDARD_ND6s", "ND", 6, 114688, 1, false},
    {"STANDARD_ND12s", "ND", 12, 229376, 2, false},
    {"STANDARD_ND24s", "ND", 24, 458752, 4, false},
    {"STANDARD_ND24rs", "ND", 24, 458752, 4, true},
    {"STANDARD_ND40rs_v2", "NDv2", 40, 688128, 8, true},
    {"STANDARD_ND96asr_v4", "NDv4", 96, 921600, 8, true},
    {"STANDARD_ND96amsr_A100_v4", "NDv4", 96, 1945600, 8, true},
    {"STANDARD_ND96isr_H100_v5", "NDv5", 96, 1945600, 8, true},
    {"STANDARD_ND96isr_H200_v5", "NDv5", 96, 1894400, 8, true},
    {"STANDARD_NV6", "NV", 6, 57344, 1, false},
    {"STANDARD_NV12", "NV", 12, 114688, 2, false},
    {"STANDARD_NV24", "NV", 24, 229376, 4, false},
    {"STANDARD_NV6s_v2", "NVv2", 6, 114688, 1, false},
    {"STANDARD_NV12s_v2", "NVv2", 12, 229376, 2, false},
    {"STANDARD_NV24s_v2", "NVv2", 24, 458752, 4, false},
    {"STANDARD_NV12s_v3", "NVv3", 12, 114688, 1, false},
    {"STANDARD_NV24s_v3", "NVv3", 24, 229376, 2, false},
    {"STANDARD_NV48s_v3", "NVv3", 48, 458752, 4, false},
    {"STANDARD_D1", "D", 1, 3584, 0, false},
    {"STANDARD_D2", "D", 2, 7168, 0, false},
    {"STANDARD_D3", "D", 4, 14336, 0, false},
    {"STANDARD_D4", "D", 8, 28672, 0, false},
    {"STANDARD_D11", "D", 2, 14336, 0, false},
    {"STANDARD_D12", "D", 4, 28672, 0, false},
    {"STANDARD_D13", "D", 8, 57344, 0, false},
    {"STANDARD_D14", "D", 16, 114688, 0, false},
    {"STANDARD_DS1", "DS", 1, 3584, 0, false},
    {"STANDARD_DS2", "DS", 2, 7168, 0, false},
    {"STANDARD_DS3", "DS", 4, 14336, 0, false},
    {"STANDARD_DS4", "DS", 8, 28672, 0, false},
    {"STANDARD_DS11", "DS", 2, 14336, 0, false},
    {"STANDARD_DS12", "DS", 4, 28672, 0, false},
    {"STANDARD_DS13", "DS", 8, 57344, 0, false},
    {"STANDARD_DS14", "DS", 16, 114688, 0, false},
    {"STANDARD_D1_v2", "Dv2", 1, 3584, 0, false},
    {"STANDARD_D2_v2", "Dv2", 2, 7168, 0, false},
    {"STANDARD_D3_v2", "Dv2", 4, 14336, 0, false},
    {"STANDARD_D4_v2", "Dv2", 8, 28672, 0, false},
    {"STANDARD_D5_v2", "Dv2", 16, 57344, 0, false},
    {"STANDARD_D11_v2", "Dv2", 2, 14336, 0, false},
    {"STANDARD_D12_v2", "Dv2", 4, 28672, 0, false},
    {"STANDARD_D13_v2", "Dv2", 8, 57344, 0, false},
    {"STANDARD_D14_v2", "Dv2", 16, 114688, 0, false},
    {"STANDARD_D15_v2", "Dv2", 20, 143360, 0, false},
    {"STANDARD_DS1_v2", "DSv2", 1, 3584, 0, false},
    {"STANDARD_DS2_v2", "DSv2", 2, 7168, 0, false},
    {"STANDARD_DS3_v2", "DSv2", 4, 14336, 0, false},
    {"STANDARD_DS4_v2", "DSv2", 8, 28672, 0, false},
    {"STANDARD_DS5_v2", "DSv2", 16, 57344, 0, false},
    {"STANDARD_DS11_v2", "DSv2", 2, 14336, 0, false},
    {"STANDARD_DS12_v2", "DSv2", 4, 28672, 0, false},
    {"STANDARD_DS13_v2", "DSv2", 8, 57344, 0, false},
    {"STANDARD_DS14_v2", "DSv2", 16, 114688, 0, false},
    {"STANDARD_DS15_v2", "DSv2", 20, 143360, 0, false},
    {"STANDARD_D2_v3", "Dv3", 2, 8192, 0, false},
    {"STANDARD_D4_v3", "Dv3", 4, 16384, 0, false},
    {"STANDARD_D8_v3", "Dv3", 8, 32768, 0, false},
    {"STANDARD_D16_v3", "Dv3", 16, 65536, 0, false},
    {"STANDARD_D32_v3", "Dv3", 32, 131072, 0, false},
    {"STANDARD_D48_v3", "Dv3", 48, 196608, 0, false},
    {"STANDARD_D64_v3", "Dv3", 64, 262144, 0, false},
    {"STANDARD_D2s_v3", "DSv3", 2, 8192, 0, false},
    {"STANDARD_D4s_v3", "DSv3", 4, 16384, 0, false},
    {"STANDARD_D8s_v3", "DSv3", 8, 32768, 0, false},
    {"STANDARD_D16s_v3", "DSv3", 16, 65536, 0, false},
    {"STANDARD_D32s_v3", "DSv3", 32, 131072, 0, false},
    {"STANDARD_D48s_v3", "DSv3", 48, 196608, 0, false},
    {"STANDARD_D64s_v3", "DSv3", 64, 262144, 0, false},
    {"STANDARD_D2_v4", "Dv4", 2, 8192, 0, false},
    {"STANDARD_D4_v4", "Dv4", 4, 16384, 0, false},
    {"STANDARD_D8_v4", "Dv4", 8, 32768, 0, false},
    {"STANDARD_D16_v4", "Dv4", 16, 65536, 0, false},
    {"STANDARD_D32_v4", "Dv4", 32, 131072, 0, false},
    {"STANDARD_D48_v4", "Dv4", 48, 196608, 0, false},
    {"STANDARD_D64_v4", "Dv4", 64, 262144, 0, false},
    {"STANDARD_E2_v3", "Ev3", 2, 16384, 0, false},
    {"STANDARD_E4_v3", "Ev3", 4, 32768, 0, false},
    {"STANDARD_E8_v3", "Ev3", 8, 65536, 0, false},
    {"STANDARD_E16_v3", "Ev3", 16, 131072, 0, false},
    {"STANDARD_E20_v3", "Ev3", 20, 163840, 0, false},
    {"STANDARD_E32_v3", "Ev3", 32, 262144, 0, false},
    {"STANDARD_E64_v3", "Ev3", 64, 442368, 0, false},
    {"STANDARD_E2s_v3", "ESv3", 2, 16384, 0, false},
    {"STANDARD_E4s_v3", "ESv3", 4, 32768, 0, false},
    {"STANDARD_E8s_v3", "ESv3", 8, 65536, 0, false},
    {"STANDARD_E16s_v3", "ESv3", 16, 131072, 0, false},
    {"STANDARD_E20s_v3", "ESv3", 20, 163840, 0, false},
    {"STANDARD_E32s_v3", "ESv3", 32, 262144, 0, false},
    {"STANDARD_E64s_v3", "ESv3", 64, 442368, 0, false},
    {"STANDARD_F1", "F", 1, 2048, 0, false},
    {"STANDARD_F2", "F", 2, 4096, 0, false},
    {"STANDARD_F4", "F", 4, 8192, 0, false},
    {"STANDARD_F8", "F", 8, 16384, 0, false},
    {"STANDARD_F16", "F", 16, 32768, 0, false},
    {"STANDARD_F1s", "FS", 1, 2048, 0, false},
    {"STANDARD_F2s", "FS", 2, 4096, 0, false},
    {"STANDARD_F4s", "FS", 4, 8192, 0, false},
    {"STANDARD_F8s", "FS", 8, 16384, 0, false},
    {"STANDARD_F16s", "FS", 16, 32768, 0, false},
    {"STANDARD_F2s_v2", "FSv2", 2, 4096, 0, false},
    {"STANDARD_F4s_v2", "FSv2", 4, 8192, 0, false},
    {"STANDARD_F8s_v2", "FSv2", 8, 16384, 0, false},
    {"STANDARD_F16s_v2", "FSv2", 16, 32768, 0, false},
    {"STANDARD_F32s_v2", "FSv2", 32, 65536, 0, false},
    {"STANDARD_F64s_v2", "FSv2", 64, 131072, 0, false},
    {"STANDARD_F72s_v2", "FSv2", 72, 147456, 0, false},
    {"STANDARD_H8", "H", 8, 57344, 0, false},
    {"STANDARD_H16", "H", 16, 114688, 0, false},
    {"STANDARD_H8m", "H", 8, 114688, 0, false},
    {"STANDARD_H16m", "H", 16, 229376, 0, false},
    {"STANDARD_H16r", "H", 16, 114688, 0, true},
    {"STANDARD_H16mr", "H", 16, 229376, 0, true},
    {"STANDARD_HB60rs", "HB", 60, 233472, 0, true},
    {"STANDARD_HC44rs", "HC", 44, 360448, 0, true},
    {"STANDARD_A1", "A", 1, 1792, 0, false},
    {"STANDARD_A2", "A", 2, 3584, 0, false},
    {"STANDARD_A3", "A", 4, 7168, 0, false},
    {"STANDARD_A4", "A", 8, 14336, 0, false},
    {"STANDARD_A5", "A", 2, 14336, 0, false},
    {"STANDARD_A6", "A", 4, 28672, 0, false},
    {"STANDARD_A7", "A", 8, 57344, 0, false},
    {"STANDARD_A8", "A", 8, 57344, 0, true},
    {"STANDARD_A9", "A", 16, 114688, 0, true},
    {"STANDARD_A10", "A", 8, 57344, 0, false},
    {"STANDARD_A11", "A", 16, 114688, 0, false},
    {"STANDARD_A1_v2", "Av2", 1, 2048, 0, false},
    {"STANDARD_A2_v2", "Av2", 2, 4096, 0, false},
    {"STANDARD_A4_v2", "Av2", 4, 8192, 0, false},
    {"STANDARD_A8_v2", "Av2", 8, 16384, 0, false},
    {"STANDARD_A2m_v2", "Av2", 2, 16384, 0, false},
    {"STANDARD_A4m_v2", "Av2", 4, 32768, 0, false},
    {"STANDARD_A8m_v2", "Av2", 8, 65536, 0, false},
};

struct vmsizes {
    struct arena *arena;  /* own rows and their texts */
    struct vmsize **rows; /* each where it stays, so that what was found stays valid */
    size_t count;
};

static const char SIZE_OF_HOST[] = "host";

static void append(struct vmsizes *sizes, const struct vmsize *size)
{
    struct vmsize *row = arena_alloc(sizes->arena, sizeof(*row));

    *row = *size;
    row->name = arena_strdup(sizes->arena, size->name);
    row->family = arena_strdup(sizes->arena, size->family);
    sizes->rows = xreallocarray(sizes->rows, sizes->count + 1, sizeof(struct vmsize *));
    sizes->rows[sizes->count++] = row;
}

struct vmsizes *vmsizes_new(int host_cores, int host_memory_mib, int host_gpus)
{
    const struct vmsize host = {
        SIZE_OF_HOST, "", host_cores, host_memory_mib, host_gpus, false,
    };
    struct vmsizes *sizes = xcalloc(1, sizeof(*sizes));

    sizes->arena = arena_new();
    append(sizes, &host);
    for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
        append(sizes, &builtin[i]);
    return sizes;
}

void vmsizes_free(struct vmsizes *sizes)
{
    if (!sizes)
        return;
    arena_free(sizes->arena);
    free(sizes->rows);
    free(sizes);
}

static struct vmsize *lookup(const struct vmsizes *sizes, const char *name)
{
    for (size_t i = 0; i < sizes->count; i++) {
        if (str_equal_nocase(sizes->rows[i]->name, name))
            return sizes->rows[i];
    }
    return NULL;
}

static const char *nearest(const struct vmsizes *sizes, const char *name)
{
    auto_free char *wanted = str_lower(name);
    const char *best = NULL;
    size_t least = 4; /* further away it is no slip of the hand any more */

    for (size_t i = 0; i < sizes->count; i++) {
        auto_free char *lower = str_lower(sizes->rows[i]->name);
        size_t distance = str_distance(wanted, lower);

        if (distance < least) {
            least = distance;
            best = sizes->rows[i]->name;
        }
    }
    return best;
}

int vmsizes_find(const struct vmsizes *sizes,
                 const char *name,
                 const struct vmsize **ret_size,
                 struct err *e)
{
    const struct vmsize *size = lookup(sizes, name);
    const char *near;

    if (size) {
        *ret_size = size;
        return 0;
    }
    near = nearest(sizes, name);
    err_set(e, ERR_INVALID,
            "there is no VM size \"%.64s\"%s%s%s; \"host\" is this machine, whole, and the "
            "settings can add sizes",
            name, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "vmSize");
}

const struct vmsize *vmsizes_at(const struct vmsizes *sizes, size_t index)
{
    return index < sizes->count ? sizes->rows[index] : NULL;
}

/* --- rows of a config --- */

enum {
    FIELDS = 5, /* name cores memory_gib gpus family */
    MOST_NAME = 64,
    MOST_CORES = 4096,
    MOST_GIB = 65536,
    MOST_GPUS = 64,
};

static int bad_row(struct err *e, const char *row, const char *why)
{
    err_set(e, ERR_INVALID,
            "VM size \"%.100s\": %s; write \"name cores memory_gib gpus [family]\"", row, why);
    err_reason(e, "InvalidParameterValue");
    return err_target(e, "vmSize");
}

/* The words of a row in place of its text; how many, FIELDS + 1 when there are more. */
static size_t split_words(char *row, char *words[FIELDS])
{
    char *rest = row, *word;
    size_t count = 0;

    while ((word = strsep(&rest, " \t\r"))) {
        if (!*word)
            continue;
        if (count == FIELDS)
            return FIELDS + 1;
        words[count++] = word;
    }
    return count;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            return false;
    }
    return len >= 1 && len <= MOST_NAME;
}

/* A number without sign or exponent, at most `most`; with a fraction where that is meant. */
static bool read_number(const char *text, bool may_break, double most, double *ret)
{
    double number;

    if (!*text || strlen(text) > 12 ||
        strspn(text, may_break ? "0123456789." : "0123456789") != strlen(text))
        return false;
    if (!isdigit((unsigned char)text[0]) || strchr(text, '.') != strrchr(text, '.'))
        return false;
    number = strtod(text, NULL);
    if (number > most)
        return false;
    *ret = number;
    return true;
}

static int add_row(struct vmsizes *sizes, const char *text, struct err *e)
{
    auto_free char *row = xstrdup(text);
    char *words[FIELDS] = {0};
    size_t count = split_words(row, words);
    double cores, gib, gpus;
    struct vmsize size = {0}, *known;

    if (count == 0)
        return 0;
    if (count < FIELDS - 1 || count > FIELDS)
        return bad_row(e, text, "it has not four or five words");
    if (!is_name(words[0]) || (words[4] && !is_name(words[4])))
        return bad_row(e, text, "names have 1 to 64 letters, digits, '_', '-' and '.'");
    if (str_equal_nocase(words[0], SIZE_OF_HOST))
        return bad_row(e, text, "\"host\" is the machine itself and cannot be another");
    if (!read_number(words[1], false, MOST_CORES, &cores) || cores < 1)
        return bad_row(e, text, "cores is no number from 1 to 4096");
    if (!read_number(words[2], true, MOST_GIB, &gib) || gib * 1024 < 1)
        return bad_row(e, text, "memory_gib is no number above 0, up to 65536");
    if (!read_number(words[3], false, MOST_GPUS, &gpus))
        return bad_row(e, text, "gpus is no number from 0 to 64");
    size = (struct vmsize){
        words[0], words[4] ? words[4] : "", (int)cores, (int)(gib * 1024), (int)gpus, false,
    };
    known = lookup(sizes, size.name);
    if (!known) {
        append(sizes, &size);
        return 0;
    }
    known->cores = size.cores;
    known->memory_mib = size.memory_mib;
    known->gpus = size.gpus;
    if (words[4])
        known->family = arena_strdup(sizes->arena, words[4]);
    return 0;
}

int vmsizes_add(struct vmsizes *sizes, const char *text, struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *row;

    while ((row = strsep(&rest, ",\n"))) {
        if (add_row(sizes, row, e) < 0)
            return -1;
    }
    return 0;
}
