/* scale.c - see scale.h: the command line, the runs one after another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/scale/scale.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "train/comm/group.h"
#include "train/comm/local.h"
#include "train/comm/mpi-way.h"
#include "train/scale/scale-internal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: yardbench scale --max-ranks N [--network NAME] [--json FILE] [-- FLAGS OF THE "
    "RUN]\n"
    "\n"
    "Run the same thing with 1, 2, 4, ... N ranks on this host and print what more ranks\n"
    "bring, and what they would bring on 8 to 4096 nodes of a network.\n"
    "\n"
    "  --max-ranks N    the most ranks (default: as many as cores)\n"
    "  --network NAME   10gbe 25gbe 100gbe-rdma hdr200 ndr400, or <latency in us>,<Gbit/s>\n"
    "                   (default 25gbe)\n"
    "  --json FILE      the same for programs\n"
    "  -- FLAGS         as for yardbench itself\n"
    "                   (default --model=resnet50 --batch_size=8 --num_batches=10\n"
    "                   --num_warmup_batches=2)\n"
    "\n"
    "example: yardbench scale --max-ranks 4 --network hdr200 -- --model=lenet "
    "--data_name=mnist\n";

struct options {
    int max_ranks; /* 0 = not given */
    const char *network, *json;
    bool wants_help;
    int flag_count;
    char *const *flags;
};

static int usable_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* --- the command line ------------------------------------------------------------------------
 */

static int parse_ranks(const char *text, int *ret_ranks, struct err *e)
{
    char *end;
    long ranks;

    errno = 0;
    ranks = strtol(text, &end, 10);
    if (end == text || *end || errno || ranks < 1 || ranks > GROUP_MOST)
        return err_set(e, ERR_INVALID, "--max-ranks %.20s: a number from 1 to %d", text,
                       GROUP_MOST);
    *ret_ranks = (int)ranks;
    return 0;
}

/* Is this word the option?  "--name value" or "--name=value"; a missing value is empty. */
static bool
takes(const char *name, int count, char *const words[], int *at, const char **ret_value)
{
    size_t len = strlen(name);
    const char *word = words[*at];

    if (str_starts(word, name) && word[len] == '=') {
        *ret_value = word + len + 1;
        return true;
    }
    if (!str_equal(word, name))
        return false;
    *ret_value = *at + 1 < count ? words[++*at] : "";
    return true;
}

static int parse_word(int count, char *const words[], int *at, struct options *o, struct err *e)
{
    const char *ranks = NULL;

    if (str_equal(words[*at], "--help")) {
        o->wants_help = true;
        return 0;
    }
    if (takes("--max-ranks", count, words, at, &ranks))
        return parse_ranks(ranks, &o->max_ranks, e);
    if (takes("--network", count, words, at, &o->network) ||
        takes("--json", count, words, at, &o->json))
        return 0;
    return err_set(e, ERR_INVALID,
                   "scale: \"%.60s\" is not understood; flags of the run come after --",
                   words[*at]);
}

static int parse(int count, char *const words[], struct options *o, struct err *e)
{
    *o = (struct options){.network = "25gbe"};
    for (int i = 0; i < count; i++) {
        if (str_equal(words[i], "--")) {
            o->flags = words + i + 1;
            o->flag_count = count - i - 1;
            return 0;
        }
        if (parse_word(count, words, &i, o, e) < 0)
            return -1;
    }
    return 0;
}

/* --- one run ---------------------------------------------------------------------------------
 */

static const char *const default_flags[] = {"--model=resnet50", "--batch_size=8",
                                            "--num_batches=10", "--num_warmup_batches=2"};

/* NULL-terminated; the caller frees the array, not the words. */
static char **make_argv(const char *self,
                        const struct options *o,
                        const char *threads_flag,
                        const char *json_flag)
{
    size_t count = 0, given = (size_t)o->flag_count;
    char **argv = xcalloc(given + ARRAY_SIZE(default_flags) + 8, sizeof *argv);

    argv[count++] = (char *)self;
    argv[count++] = (char *)threads_flag; /* before the user's: theirs win */
    for (size_t i = 0; given == 0 && i < ARRAY_SIZE(default_flags); i++)
        argv[count++] = (char *)default_flags[i];
    for (size_t i = 0; i < given; i++)
        argv[count++] = o->flags[i];
    argv[count++] = (char *)json_flag;
    return argv;
}

/* The last line that a rank wrote to its stderr: what it died of. */
static void add_last_words(const char *folder, int ranks, struct str *out)
{
    for (int r = 0; r < ranks && out->len == 0; r++) {
        auto_free char *path = xasprintf("%s/rank-%d.err", folder, r);
        auto_str text = {0};
        char *line;

        if (fs_read(path, 1 << 20, &text, NULL) < 0 || text.len == 0)
            continue;
        while (text.len > 0 && text.data[text.len - 1] == '\n')
            str_truncate(&text, text.len - 1);
        line = strrchr(str_text(&text), '\n');
        str_add(out, line ? line + 1 : str_text(&text));
    }
}

static int run_once(const char *self,
                    const struct options *o,
                    int threads,
                    int ranks,
                    const char *folder,
                    struct scale_run *ret_run,
                    struct err *e)
{
    auto_free char *report = xasprintf("%s/report.json", folder);
    auto_free char *json_flag = xasprintf("--json=%s", report);
    auto_free char *threads_flag = xasprintf("--num_intra_threads=%d", threads);
    auto_free char **argv = make_argv(self, o, threads_flag, json_flag);
    auto_str text = {0};

    if (scale_launch(argv, ranks, folder, e) < 0) {
        add_last_words(folder, ranks, &text);
        if (text.len > 0)
            return err_set(e, e ? e->code : ERR_INTERNAL, "with %d ranks: %s (%s)", ranks,
                           str_text(&text), e ? e->msg : "");
        return err_wrap(e, "with %d ranks", ranks);
    }
    if (fs_read(report, 64 << 20, &text, e) < 0 ||
        scale_read_report(str_text(&text), text.len, ret_run, e) < 0)
        return err_wrap(e, "with %d ranks", ranks);
    return 0;
}

static void empty_folder(const char *folder, int ranks)
{
    static const char *const tails[] = {"out", "err"};
    auto_free char *report = xasprintf("%s/report.json", folder);

    fs_remove(report, NULL);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
            auto_free char *path = xasprintf("%s/rank-%d.%s", folder, r, tails[i]);

            fs_remove(path, NULL);
        }
    rmdir(folder);
}

static const char *model_of(const struct options *o)
{
    const char *model = o->flag_count > 0 ? "trivial" : "resnet50";

    for (int i = 0; i < o->flag_count; i++)
        takes("--model", o->flag_count, o->flags, &i, &model);
    return model;
}

/* --- all of them -----------------------------------------------------------------------------
 */

static int run_all(const char *self,
                   const struct options *o,
                   const char *folder,
                   struct scale_figures *figures,
                   struct err *e)
{
    for (int ranks = 1;; ranks *= 2) {
        if (ranks > o->max_ranks)
            ranks = o->max_ranks;
        fprintf(stderr, "yardbench: %d rank%s ...\n", ranks, ranks == 1 ? "" : "s");
        if (run_once(self, o, figures->threads, ranks, folder,
                     &figures->runs[figures->run_count], e) < 0)
            return -1;
        figures->run_count++;
        if (ranks == o->max_ranks)
            return 0;
    }
}

static int measure(const char *self, const struct options *o, struct err *e)
{
    struct scale_figures figures = {.model = model_of(o), .cores = usable_cores()};
    const char *place = getenv("TMPDIR");
    auto_free char *folder = xasprintf("%s/yardbench-XXXXXX", place ? place : "/tmp");
    int rc;

    figures.threads = figures.cores > o->max_ranks ? figures.cores / o->max_ranks : 1;
    if (predict_parse_network(o->network, &figures.network, e) < 0)
        return -1;
    if (!mkdtemp(folder))
        return err_sys(e, errno, "could not make a folder \"%s\"", folder);
    rc = run_all(self, o, folder, &figures, e);
    empty_folder(folder, o->max_ranks);
    if (rc == 0)
        scale_print(&figures, stdout);
    if (rc == 0 && o->json)
        rc = scale_write_json(&figures, o->json, e);
    for (int i = 0; i < figures.run_count; i++)
        scale_run_done(&figures.runs[i]);
    return rc;
}

int scale_main(const char *self, int count, char *const words[], int *ret_status, struct err *e)
{
    struct options o;

    if (parse(count, words, &o, e) < 0)
        return -1;
    if (o.wants_help) {
        fputs(help, stdout);
        *ret_status = 0;
        return 0;
    }
    if (mpi_way_is_launched() || getenv(LOCAL_VARIABLE))
        return err_set(e, ERR_INVALID, "scale starts ranks by itself: run it without mpirun");
    if (o.max_ranks == 0)
        o.max_ranks = usable_cores() < GROUP_MOST ? usable_cores() : GROUP_MOST;
    if (measure(self, &o, e) < 0)
        return -1;
    *ret_status = 0;
    return 0;
}
