/* card.h - tests that need a card: each in a process of its own, since an error on the card
 * stays for the rest of a process; and what they share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_BACKEND_CUDA_TEST_CARD_H
#define TRAIN_BACKEND_CUDA_TEST_CARD_H

#include "train/backend/cuda/cuda.h"
#include "train/backend/cuda/plan.h"
#include "train/backend/ref/ref.h"

#include "larger.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    CARD_NONE = 77,
    CARD_SECONDS = 180, /* for one child */
};

/* cmocka's own asserts jump back into its loop, which is the parent's: children say what is
 * wrong and end. */
#define card_fail(...)                                                                         \
    do {                                                                                       \
        printf("FAIL %s: ", __func__);                                                         \
        printf(__VA_ARGS__);                                                                   \
        printf("\n");                                                                          \
        fflush(stdout);                                                                        \
        _exit(1);                                                                              \
    } while (0)
#define card_assert(what)                                                                      \
    do {                                                                                       \
        if (!(what))                                                                           \
            card_fail("%s:%d: %s", __FILE__, __LINE__, #what);                                 \
    } while (0)

struct side {
    struct graph *graph;
    struct device *device;
    struct plan *plan;
};

/* Runs fn in a child; its exit status, 128 + signal when it was killed. */
static inline int in_child(void (*fn)(void *arg), void *arg)
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka would go on with its own loop */
        signal(SIGABRT, SIG_DFL);
        alarm(CARD_SECONDS);
        if (cuda_cards() == 0)
            _exit(CARD_NONE);
        fn(arg);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One test: passes, fails, or is skipped with a word. */
static inline void with_card(void (*fn)(void *arg), void *arg)
{
    int status = in_child(fn, arg);

    if (status == CARD_NONE) {
        print_message("there is no card: skipped\n");
        skip();
    }
    if (status != 0)
        fail_msg("the test ended with %d", status);
}

/* What a device is told about its card before plans are made: other kernels, and loops that a
 * small case would leave after one turn.  0 = as it is. */
struct card {
    const char *name;
    int multiprocessors, capability;
};

static const struct card card_itself = {"", 0, 0}, card_small = {", small card", 1, 0},
                         card_old = {", small card before Hopper", 1, 80};

/* A device of another backend is left alone. */
static inline void card_pretend(struct device *device, const struct card *card)
{
    struct cuda_device *d = (struct cuda_device *)(void *)device;

    if (strcmp(d->head.ops->name, "cuda") != 0)
        return;
    if (card->multiprocessors)
        d->multiprocessors = card->multiprocessors;
    if (card->capability)
        d->capability = card->capability;
}

static inline void side_plan_on(struct side *s,
                                const struct backend_ops *backend,
                                const struct card *card,
                                const struct plan_options *options)
{
    struct err e = {0};

    if (device_open(backend, &(struct device_options){0}, &s->device, &e) < 0)
        card_fail("%s: %s", s->graph->name, e.msg);
    card_pretend(s->device, card);
    if (plan_new(s->device, s->graph, options, &s->plan, &e) < 0)
        card_fail("%s: %s", s->graph->name, e.msg);
}

static inline void side_end(struct side *s)
{
    plan_free(s->plan);
    device_free(s->device);
    graph_free(s->graph);
}

static inline struct step_values
side_run(struct side *s, const struct case_data *data, struct step step)
{
    struct step_values values;
    struct err e = {0};

    for (int i = 0; data && i < s->graph->input_count; i++)
        step.feed[i] = data->feed[i];
    if (plan_step(s->plan, &step, &values, &e) < 0)
        card_fail("%s: %s", s->graph->name, e.msg);
    return values;
}

/* NULL when it cannot be read.  The caller frees. */
static inline float *side_read(const struct side *s, int t)
{
    size_t count = (size_t)tensor_elements(&s->graph->tensors[t]);
    float *values = xcalloc(count + 1, sizeof *values);
    struct err e = {0};

    if (plan_read(s->plan, t, values, count * sizeof *values, &e) == 0)
        return values;
    free(values);
    if (e.code != ERR_METHOD)
        card_fail("%s: %s", s->graph->name, e.msg);
    return NULL;
}

/* The size of the difference in parts of the size of the first, both as roots of sums of
 * squares: a relu that flips or a maximum that moves in the last bit counts for what it is. */
static inline double away(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;

    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];

        if (isnan(b[i]) && !isnan(a[i]))
            return NAN;
        difference += d * d;
        size += (double)a[i] * (double)a[i];
    }
    return sqrt(difference) / (sqrt(size) + 1e-6);
}

static inline double side_away(const struct side *a, const struct side *b, int t)
{
    auto_free float *x = side_read(a, t), *y = side_read(b, t);

    return x && y ? away(x, y, tensor_elements(&a->graph->tensors[t])) : 0;
}

static inline const struct graph_case *case_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(graph_cases); i++)
        if (strcmp(graph_cases[i].name, name) == 0)
            return &graph_cases[i];
    for (size_t i = 0; i < ARRAY_SIZE(larger_cases); i++)
        if (strcmp(larger_cases[i].name, name) == 0)
            return &larger_cases[i];
    card_fail("no case \"%s\"", name);
    return NULL;
}

#endif
