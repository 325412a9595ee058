/* options.c - the command line of `yardbench preflight`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "train/preflight/preflight-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char preflight_help[] =
    "usage: yardbench preflight [--device auto|cpu|gpu] [--threads N] [--cards LIST]\n"
    "                           [--network NAME] [-o text|json]\n"
    "\n"
    "Measure this machine, or each rank of a gang, and say whether it is fit to train: speed\n"
    "of cores and memory; of each GPU the matrix rate, copies, errors, clocks, temperature;\n"
    "sums over all ranks. Takes a few seconds.\n"
    "\n"
    "  --device WHAT    auto: the processor, and GPUs where there are some (default); cpu;\n"
    "                   gpu: GPUs alone, and it is an error when a rank has none\n"
    "  --threads N      of a rank on the processor (default: its share of the cores)\n"
    "  --cards LIST     GPUs that may be used, as 0,2,3 (default: all)\n"
    "  --network NAME   what lies between hosts, so that sums can be judged: 10gbe 25gbe\n"
    "                   100gbe-rdma hdr200 ndr400, or <latency in us>,<Gbit/s>\n"
    "  -o, --output F   text (default) or json\n"
    "  --help           this text\n"
    "\n"
    "ok: as it should be. look: odd, but no reason to refuse the machine. BAD: do not use it.\n"
    "-: could not be judged. Exit status: 0 nothing is BAD, 1 something is, 2 GPUs were asked\n"
    "for and there are none, or the command line is wrong.\n"
    "\n"
    "examples:\n"
    "  yardbench preflight                               this machine\n"
    "  mpirun -n 8 yardbench preflight --device gpu      a GPU for each rank, and sums over "
    "all\n"
    "  srun --mpi=pmix -N 4 yardbench preflight --network hdr200 -o json\n";

static int parse_number(const char *text, long least, long most, long *ret_value)
{
    char *end;

    errno = 0;
    *ret_value = strtol(text, &end, 10);
    return end == text || *end || errno || *ret_value < least || *ret_value > most ? -1 : 0;
}

static int set_device(const char *text, struct preflight_options *o, struct err *e)
{
    static const char *const words[] = {"auto", "cpu", "gpu"};

    for (int i = 0; i < 3; i++) {
        if (!str_equal_nocase(text, words[i]))
            continue;
        o->device = (enum preflight_device)i;
        return 0;
    }
    return err_set(e, ERR_INVALID, "--device %.20s: auto, cpu or gpu", text);
}

static int set_threads(const char *text, struct preflight_options *o, struct err *e)
{
    long threads;

    if (parse_number(text, 1, 4096, &threads) < 0)
        return err_set(e, ERR_INVALID, "--threads %.20s: a number from 1 to 4096", text);
    o->threads = (int)threads;
    return 0;
}

static int set_cards(const char *text, struct preflight_options *o, struct err *e)
{
    const char *at = text;
    char *end;

    o->cards = 0;
    do {
        long card;

        errno = 0;
        card = strtol(at, &end, 10);
        if (end == at || errno || card < 0 || card > 63 || (*end && *end != ','))
            return err_set(e, ERR_INVALID, "--cards %.40s: numbers from 0 to 63, as 0,2,3",
                           text);
        o->cards |= (uint64_t)1 << card;
        at = end + 1;
    } while (*end);
    return 0;
}

static int set_network(const char *text, struct preflight_options *o, struct err *e)
{
    o->has_network = true;
    return predict_parse_network(text, &o->network, e);
}

static int set_output(const char *text, struct preflight_options *o, struct err *e)
{
    if (!str_equal(text, "text") && !str_equal(text, "json"))
        return err_set(e, ERR_INVALID, "--output %.20s: text or json", text);
    o->is_json = str_equal(text, "json");
    return 0;
}

static const struct row {
    const char *name, *shorter;
    int (*set)(const char *text, struct preflight_options *o, struct err *e);
} rows[] = {
    {"--device", NULL, set_device}, {"--threads", NULL, set_threads},
    {"--cards", NULL, set_cards},   {"--network", NULL, set_network},
    {"--output", "-o", set_output},
};

/* Is this word the option?  "--name value", "--name=value", "-o value"; a missing value is
 * empty. */
static bool
takes(const struct row *row, int count, char *const words[], int *at, const char **ret_value)
{
    size_t len = strlen(row->name);
    const char *word = words[*at];

    if (str_starts(word, row->name) && word[len] == '=') {
        *ret_value = word + len + 1;
        return true;
    }
    if (!str_equal(word, row->name) && !(row->shorter && str_equal(word, row->shorter)))
        return false;
    *ret_value = *at + 1 < count ? words[++*at] : "";
    return true;
}

static int
parse_word(int count, char *const words[], int *at, struct preflight_options *o, struct err *e)
{
    const char *value = NULL;

    if (str_equal(words[*at], "--help") || str_equal(words[*at], "-h")) {
        o->wants_help = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (takes(&rows[i], count, words, at, &value))
            return rows[i].set(value, o, e);
    return err_set(e, ERR_INVALID, "preflight: \"%.60s\" is not understood; see --help",
                   words[*at]);
}

int preflight_parse(int count,
                    char *const words[],
                    struct preflight_options *ret_options,
                    struct err *e)
{
    struct preflight_options o = {0};

    for (int i = 0; i < count; i++)
        if (parse_word(count, words, &i, &o, e) < 0)
            return -1;
    *ret_options = o;
    return 0;
}
