/* SPDX-License-Identifier: Apache-2.0 */
#include "train/preflight/processor.h"

#include "base/fs.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLOPS_FUSED = 32,
    FLOPS_PLAIN = 8,
    MOST_CPUINFO = 16 << 20,
};

/* What follows "key\t: " in its first line; false when there is none. */
static bool find_line(const char *text, const char *key, char *out, size_t room)
{
    size_t len = strlen(key);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = line + len;

        if (strncmp(line, key, len) != 0)
            continue;
        value += strspn(value, "\t ");
        if (*value++ != ':')
            continue;
        value += strspn(value, " ");
        snprintf(out, room, "%.*s", (int)strcspn(value, "\n"), value);
        return true;
    }
    return false;
}

/* "... CPU @ 2.30GHz" is what the processor is sold as; the line "cpu MHz" is what it does now,
 * and only virtual machines make it the same. */
static double nominal_hz(const char *name, const char *cpuinfo)
{
    const char *at = strstr(name, "@ ");
    char text[64], *end;
    double value;

    if (at) {
        value = strtod(at + 2, &end);
        if (end > at + 2 && str_starts(end, "GHz"))
            return value * 1e9;
    }
    if (!find_line(cpuinfo, "cpu MHz", text, sizeof text))
        return NAN;
    value = strtod(text, &end);
    return end > text && value > 0 ? value * 1e6 : NAN;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || at[-1] == ' ') && (!at[len] || at[len] == ' '))
            return true;
    return false;
}

void processor_parse(const char *cpuinfo, struct processor *ret_processor)
{
    struct processor p = {.name = "a processor without a name"};
    char flags[8192] = "";

    find_line(cpuinfo, "model name", p.name, sizeof p.name);
    find_line(cpuinfo, "flags", flags, sizeof flags);
    p.nominal_hz = nominal_hz(p.name, cpuinfo);
    p.flops_per_cycle = has_word(flags, "fma") ? FLOPS_FUSED : FLOPS_PLAIN;
    *ret_processor = p;
}

void processor_read(struct processor *ret_processor)
{
    auto_str text = {0}, base = {0};
    double khz;

    if (fs_read("/proc/cpuinfo", MOST_CPUINFO, &text, NULL) < 0)
        str_truncate(&text, 0);
    processor_parse(str_text(&text), ret_processor);
    if (strstr(ret_processor->name, "@ ") ||
        fs_read("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency", 64, &base, NULL) < 0)
        return;
    khz = strtod(str_text(&base), NULL);
    if (khz > 0)
        ret_processor->nominal_hz = khz * 1e3;
}

double processor_fma_floor(const struct processor *processor, int cores)
{
    return PROCESSOR_FMA_SHARE * cores * processor->nominal_hz * processor->flops_per_cycle;
}

double processor_memory_floor(int threads, int on_host)
{
    double host = PROCESSOR_THREAD_GB_S * on_host;

    if (host > PROCESSOR_HOST_GB_S)
        host = PROCESSOR_HOST_GB_S;
    return 1e9 * host * threads / on_host;
}
