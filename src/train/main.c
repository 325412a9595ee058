/* yardbench: the trainer and benchmark.  main and the choice of a subcommand, nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "train/comm/comm.h"
#include "train/flags/flags.h"
#include "train/run/backends.h"
#include "train/run/run.h"
#include "train/scale/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WRONG_COMMAND_LINE = 2,
    SIGNALLED = 128,
};

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

static int run_flags(const struct flags *flags, const struct str *notes)
{
    struct comm *comm;
    struct err e;
    int ended_by = 0, rc;

    if (comm_open(&comm, &e) < 0)
        return fail(NULL, &e);
    if (comm_facts(comm)->rank == 0)
        say_notes(notes);
    rc = flags->eval ? run_eval(flags, comm, &e) : run_train(flags, comm, &ended_by, &e);
    if (rc < 0)
        return fail(comm, &e);
    comm_free(comm);
    if (fflush(stdout) != 0) {
        perror("yardbench: stdout");
        return EXIT_FAILURE;
    }
    return ended_by ? SIGNALLED + ended_by : 0;
}

static int run_scale(int count, char **words)
{
    struct err e = {0};
    int status = EXIT_FAILURE;

    if (scale_main("/proc/self/exe", count, words, &status, &e) < 0)
        return fail(NULL, &e);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

int main(int count, char **words)
{
    auto_flags flags;
    auto_str notes = {0};
    struct err e;

    if (count > 1 && str_equal(words[1], "scale"))
        return run_scale(count - 2, words + 2);
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
    return run_flags(&flags, &notes);
}
