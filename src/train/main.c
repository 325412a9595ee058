/* yardbench: the trainer and benchmark.  main and the choice of a subcommand, nothing else.
 *
 * Called by the name onnxruntime_training_bert (a link beside it) it is `yardbench bert`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/bert-data/bert-data.h"
#include "train/bert/bert-flags.h"
#include "train/bert/bert.h"
#include "train/comm/comm.h"
#include "train/flags/flags.h"
#include "train/preflight/preflight.h"
#include "train/run/backends.h"
#include "train/run/run.h"
#include "train/scale/scale.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WRONG_COMMAND_LINE = 2,
    SIGNALLED = 128,
};

static const char bert_name[] = "onnxruntime_training_bert";

static void print_version(void)
{
    printf("yardbench %s\n", YARD_VERSION);
    backends_print(stdout);
}

/* Each name once, with the datasets it is made for. */
static void print_models(void)
{
    const struct model *all = model_table();

    puts("\nNetworks (--model), with the datasets they are made for:");
    for (const struct model *m = all; m->name; m++) {
        bool is_first = true;

        for (const struct model *before = all; before < m; before++)
            is_first = is_first && !str_equal(before->name, m->name);
        if (!is_first)
            continue;
        printf("  %-16s", m->name);
        for (const struct model *same = m; same->name; same++)
            if (str_equal(same->name, m->name))
                printf(" %s", same->dataset);
        putchar('\n');
    }
}

/* A line of notes a time: stderr is shared with other ranks. */
static void say_notes(const struct str *notes)
{
    for (const char *line = str_text(notes); *line;) {
        size_t len = strcspn(line, "\n");

        fprintf(stderr, "yardbench: %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static int fail(struct comm *comm, const struct err *e)
{
    if (comm && comm_facts(comm)->ranks > 1)
        comm_abort(comm, e);
    fprintf(stderr, "yardbench: %s\n", e->msg);
    comm_free(comm);
    return err_info(e->code)->exit_status;
}

/* A run with its ranks around it; its status. */
typedef int run_fn(const void *flags, struct comm *comm, int *ret_signal, struct err *e);

static int run_with_ranks(run_fn *run, const void *flags, const struct str *notes)
{
    struct comm *comm;
    struct err e;
    int ended_by = 0;

    if (comm_open(&comm, &e) < 0)
        return fail(NULL, &e);
    if (comm_facts(comm)->rank == 0)
        say_notes(notes);
    if (run(flags, comm, &ended_by, &e) < 0)
        return fail(comm, &e);
    comm_free(comm);
    if (fflush(stdout) != 0) {
        perror("yardbench: stdout");
        return EXIT_FAILURE;
    }
    return ended_by ? SIGNALLED + ended_by : 0;
}

static int run_pictures(const void *flags, struct comm *comm, int *ret_signal, struct err *e)
{
    const struct flags *f = flags;

    return f->eval ? run_eval(f, comm, e) : run_train(f, comm, ret_signal, e);
}

static int run_bert(const void *flags, struct comm *comm, int *ret_signal, struct err *e)
{
    return bert_train(flags, comm, ret_signal, e);
}

static int bert(const char *called, int count, char **words)
{
    struct bert_flags flags;
    auto_str notes = {0};
    struct err e;

    if (bert_flags_parse(&flags, count, words, &notes, &e) < 0) {
        fprintf(stderr, "%s: %s\n", called, e.msg);
        return WRONG_COMMAND_LINE;
    }
    if (flags.wants_version)
        print_version();
    else if (flags.wants_help || flags.wants_helpfull)
        bert_flags_print_help(stdout, called, flags.wants_helpfull);
    else
        return run_with_ranks(run_bert, &flags, &notes);
    return 0;
}

static int run_scale(int count, char **words)
{
    struct err e = {0};
    int status = EXIT_FAILURE;

    if (scale_main("/proc/self/exe", count, words, &status, &e) < 0)
        return fail(NULL, &e);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

static int run_preflight(int count, char **words)
{
    struct err e = {0};
    int status = EXIT_FAILURE;

    if (preflight_main(count, words, backends_probe, &status, &e) < 0)
        return fail(NULL, &e);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

static int run_bert_here(int count, char **words)
{
    return bert("yardbench bert", count, words);
}

static const struct command {
    const char *name;
    int (*run)(int count, char **words); /* with the words behind the name; its status */
} commands[] = {
    {"bert", run_bert_here},
    {"bert-data", bert_data_main},
    {"preflight", run_preflight},
    {"scale", run_scale},
};

int main(int count, char **words)
{
    auto_flags flags;
    auto_str notes = {0};
    struct err e;

    if (str_equal(program_invocation_short_name, bert_name))
        return bert(bert_name, count - 1, words + 1);
    for (size_t i = 0; i < ARRAY_SIZE(commands) && count > 1; i++)
        if (str_equal(words[1], commands[i].name))
            return commands[i].run(count - 2, words + 2);
    if (flags_parse(&flags, count - 1, words + 1, &notes, &e) < 0) {
        fprintf(stderr, "yardbench: %s\n", e.msg);
        return WRONG_COMMAND_LINE;
    }
    if (flags.wants_version) {
        print_version();
        return 0;
    }
    if (flags.wants_help || flags.wants_helpfull) {
        flags_print_help(stdout, flags.wants_helpfull);
        print_models();
        return 0;
    }
    return run_with_ranks(run_pictures, &flags, &notes);
}
