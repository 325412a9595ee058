/* yard-shim: holds one task; see run.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "shim/node.h"
#include "shim/record.h"
#include "shim/run.h"

#include <stdio.h>

static int run_folder(int argc, char **argv)
{
    (void)argc;
    return shim_run(argv[0]);
}

static int run_node(int argc, char **argv)
{
    (void)argc;
    return shim_node_run(argv[0]);
}

/* For people and tests: where is this task? */
static int look_folder(int argc, char **argv)
{
    static const char *const words[] = {"absent", "alive", "ended", "lost"};
    struct shim_record record;
    auto_str text = {0};
    enum shim_state state;
    struct err e;
    pid_t pid = 0;

    (void)argc;
    if (shim_look(argv[0], &state, &record, &pid, &e) < 0) {
        fprintf(stderr, "yard-shim: %s\n", e.msg);
        return SHIM_EXIT_NOTHING;
    }
    if (state == SHIM_ENDED)
        shim_record_format(&record, &text);
    printf("%s", words[state]);
    if (state == SHIM_ALIVE)
        printf(" %d", (int)pid);
    printf("%s%s", text.len ? " " : "\n", str_text(&text));
    return 0;
}

static int print_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("yard-shim " YARD_VERSION);
    return 0;
}

/* What comes after the mode's word is its argc and argv. */
static const struct mode {
    const char *word; /* NULL = none: the last row */
    int least, most;  /* arguments */
    int (*run)(int argc, char **argv);
    const char *usage;
} modes[] = {
    {"--node", 1, 1, run_node, "--node FOLDER"},
    {"--look", 1, 1, look_folder, "--look RUNFOLDER"},
    {"--version", 0, 0, print_version, "--version"},
    {NULL, 1, 1, run_folder, "RUNFOLDER"},
};

static int usage(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        fprintf(stderr, "%s yard-shim %s\n", i ? "      " : "usage:", modes[i].usage);
    return SHIM_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        const struct mode *mode = &modes[i];
        int skip = mode->word ? 2 : 1;
        int left = argc - skip;

        if (mode->word ? argc < 2 || !str_equal(argv[1], mode->word)
                       : argc >= 2 && argv[1][0] == '-')
            continue;
        if (left < mode->least || left > mode->most)
            return usage();
        return mode->run(left, argv + skip);
    }
    return usage();
}
