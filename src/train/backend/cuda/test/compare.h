/* compare.h - what tests of single ops share: cases run one after another in children, tensors
 * held against the oracle's, one line for each case that is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_TEST_COMPARE_H
#define TRAIN_BACKEND_CUDA_TEST_COMPARE_H

#include "card.h"

#include <dirent.h>
#include <sys/mman.h>

/* What the child tells; lies in memory that both see. */
struct progress {
    size_t at; /* the item that runs */
    int wrong;
    char what[160]; /* it is, in words */
};
static struct progress *progress;

static char cache_dir[] = "/tmp/yardbench-op-XXXXXX";

/* All cases, one list behind the other. */
static inline size_t compared_cases(void)
{
    return ARRAY_SIZE(graph_cases) + ARRAY_SIZE(larger_cases);
}

static inline const struct graph_case *compared_case(size_t i)
{
    return i < ARRAY_SIZE(graph_cases) ? &graph_cases[i]
                                       : &larger_cases[i - ARRAY_SIZE(graph_cases)];
}

/* What the backend need not have as the oracle does: values (compared apart), what was fused
 * away, and attention's own notes. */
static inline bool can_compare(const struct graph *g, int t)
{
    const struct tensor *tensor = &g->tensors[t];

    if (tensor->role == ROLE_INPUT || tensor->dims == 3 || tensor->dims == 0)
        return false;
    if ((tensor->role == ROLE_EXACT || tensor->role == ROLE_ACTIVATION) && tensor->producer < 0)
        return false;
    return tensor->producer < 0 || g->ops[tensor->producer].kind != OP_GRAD_NORM;
}

/* The first that is too far away is where to look; the farthest tells how bad it is. */
struct finding {
    int first, worst; /* -1 = none */
    double first_away, worst_away;
};

static inline void
compare_all(struct side *ref, struct side *card, double most, struct finding *f)
{
    *f = (struct finding){.first = -1, .worst = -1};
    for (int t = 0; t < ref->graph->tensor_count; t++) {
        double found = can_compare(ref->graph, t) ? side_away(ref, card, t) : 0;

        if (!(found <= most) && f->first < 0) {
            f->first = t;
            f->first_away = found;
        }
        if (f->worst < 0 || !(found <= f->worst_away)) {
            f->worst = t;
            f->worst_away = found;
        }
    }
}

static inline const char *producer_of(const struct graph *g, int t)
{
    int n = g->tensors[t].producer;

    return n < 0 ? "-" : op_info(g->ops[n].kind)->name;
}

/* `what`: the sweep and the case, in words. */
static inline void
report(const char *what, const struct graph *g, uint64_t step, const struct finding *f)
{
    printf("WRONG %s step %d: first %s of %s %.3g away; worst %s of %s %.3g\n", what, (int)step,
           g->tensors[f->first].name, producer_of(g, f->first), f->first_away,
           g->tensors[f->worst].name, producer_of(g, f->worst), f->worst_away);
    progress->wrong++;
}

/* `most` of the loss, in parts of it. */
static inline bool values_agree(const char *what,
                                double most,
                                const struct step_values *a,
                                const struct step_values *b)
{
    static const int compared[] = {VALUE_LOSS, VALUE_L2};

    for (size_t i = 0; i < ARRAY_SIZE(compared); i++) {
        double x = (double)a->value[compared[i]], y = (double)b->value[compared[i]];

        if (isnan(x) || fabs(x - y) <= most * (1 + fabs(x)))
            continue;
        printf("WRONG %s: value %d is %g, not %g\n", what, compared[i], y, x);
        progress->wrong++;
        return false;
    }
    return true;
}

struct items {
    size_t count;
    void (*run)(size_t i);
};

/* From where the last child ended. */
static inline void run_from(void *arg)
{
    const struct items *items = arg;

    for (; progress->at < items->count; progress->at++) {
        alarm(CARD_SECONDS);
        items->run(progress->at);
        fflush(stdout);
    }
}

/* Runs all items; behind one that ends its child, in a new one. */
static inline void run_items(const struct items *items)
{
    while (progress->at < items->count) {
        int status = in_child(run_from, (void *)(uintptr_t)items);

        if (status == CARD_NONE) {
            print_message("there is no card: skipped\n");
            skip();
        }
        if (status == 0)
            break;
        printf("WRONG %s: ended with %d\n", progress->what, status);
        progress->wrong++;
        progress->at++;
    }
    if (progress->wrong)
        fail_msg("%d cases are wrong", progress->wrong);
}

/* Files alone lie in it. */
static inline void empty_folder(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        auto_free char *file = xasprintf("%s/%s", path, entry->d_name);

        (void)unlink(file);
    }
    if (dir)
        closedir(dir);
}

/* The test is the only one of its program. */
static inline int run_group(void (*test)(void **state), const char *name)
{
    const struct CMUnitTest tests[] = {{name, test, NULL, NULL, NULL}};
    int failed;

    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED || !mkdtemp(cache_dir))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    empty_folder(cache_dir);
    (void)rmdir(cache_dir);
    return failed;
}

#endif
