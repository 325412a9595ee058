/* Every kind of op on the card against the oracle, in each precision: one line for each case
 * that is wrong, and on to the next.
 *
 * Usage by hand: op [words of a case's name [fp32|bf16|fp16]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

#include <dirent.h>
#include <sys/mman.h>

/* How far tensors may be from the oracle's of the same precision, in parts of their size.
 * fp32: sums of a few hundred terms, divided by deviations in batch norms.  In 16 bits each
 * result is rounded where its kernel ends, which need not be where the oracle rounds: an ulp is
 * 2^-8 (bf16) or 2^-11 (fp16) and goes through some ten ops; a relu or a maximum near the edge
 * may go the other way.  The rate is small, so that no loss comes near zero: there one minus a
 * probability has no bits left. */
struct sweep {
    enum precision precision;
    bool keeps_all; /* every activation is compared, not only what stays */
    double most, most_with_kinks, most_of_loss;
};

static const struct sweep sweeps[] = {
    {PRECISION_FP32, true, 1e-4, 1e-3, 2e-5},  {PRECISION_FP32, false, 1e-4, 1e-3, 2e-5},
    {PRECISION_TF32, false, 1e-2, 1e-1, 1e-2}, {PRECISION_BF16, true, 4e-2, 2e-1, 4e-2},
    {PRECISION_BF16, false, 4e-2, 2e-1, 4e-2}, {PRECISION_FP16, false, 8e-3, 8e-2, 8e-3},
};

/* What the child tells; lies in memory that both see. */
struct progress {
    size_t at; /* the case that runs, of all sweeps */
    int wrong;
};
static struct progress *progress;

static const char *wanted_name = "", *wanted_precision = "";
static char cache_dir[] = "/tmp/yardbench-op-XXXXXX";

static void begin(struct side *s,
                  const struct backend_ops *backend,
                  const struct graph_case *c,
                  const struct sweep *sweep)
{
    bool is_ref = backend == &backend_ref;
    struct plan_options options = {.precision = sweep->precision,
                                   .init_seed = 3,
                                   .seed = 4,
                                   .is_repeatable = true,
                                   .keeps_all = is_ref || sweep->keeps_all,
                                   .cache_dir = is_ref ? NULL : cache_dir};
    struct err e = {0};

    *s = (struct side){0};
    if (is_ref && sweep->precision == PRECISION_TF32)
        options.precision = PRECISION_FP32;
    if (case_graph(c, GRAPH_TRAIN, &s->graph, &e) < 0)
        card_fail("%s: %s", c->name, e.msg);
    side_plan(s, backend, &options);
}

/* What the backend need not have as the oracle does: values (compared apart), what was fused
 * away, and attention's own notes. */
static bool can_compare(const struct graph *g, int t)
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

static void compare_all(struct side *ref, struct side *card, double most, struct finding *f)
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

static const char *producer_of(const struct graph *g, int t)
{
    int n = g->tensors[t].producer;

    return n < 0 ? "-" : op_info(g->ops[n].kind)->name;
}

static void report(const struct graph_case *c,
                   const struct sweep *sweep,
                   const struct graph *g,
                   uint64_t step,
                   const struct finding *f)
{
    printf("WRONG %s%s \"%s\" step %d: first %s of %s %.3g away; worst %s of %s %.3g\n",
           precision_name(sweep->precision), sweep->keeps_all ? ", all kept" : "", c->name,
           (int)step, g->tensors[f->first].name, producer_of(g, f->first), f->first_away,
           g->tensors[f->worst].name, producer_of(g, f->worst), f->worst_away);
    progress->wrong++;
}

static bool values_agree(const struct graph_case *c,
                         const struct sweep *sweep,
                         const struct step_values *a,
                         const struct step_values *b)
{
    static const int compared[] = {VALUE_LOSS, VALUE_L2};

    for (size_t i = 0; i < ARRAY_SIZE(compared); i++) {
        double x = (double)a->value[compared[i]], y = (double)b->value[compared[i]];

        if (isnan(x) || fabs(x - y) <= sweep->most_of_loss * (1 + fabs(x)))
            continue;
        printf("WRONG %s \"%s\": value %d is %g, not %g\n", precision_name(sweep->precision),
               c->name, compared[i], y, x);
        progress->wrong++;
        return false;
    }
    return true;
}

static void run_case(const struct graph_case *c, const struct sweep *sweep)
{
    double most = c->has_kinks ? sweep->most_with_kinks : sweep->most;
    uint64_t steps = sweep->precision == PRECISION_FP32 ? 3 : 1;
    struct case_data data = {0};
    struct side ref, card;
    bool is_good = true;

    begin(&ref, &backend_ref, c, sweep);
    begin(&card, &backend_cuda, c, sweep);
    case_fill(ref.graph, &data);
    for (uint64_t i = 0; i < steps && is_good; i++) {
        /* So small that the loss stays where it is: near zero the gradient is what the last bit
         * of a probability near one says. */
        struct step step = {.number = i, .flags = STEP_WHOLE, .lr = 1e-5f};
        struct step_values a = side_run(&ref, &data, step), b = side_run(&card, &data, step);
        struct finding f;

        is_good = values_agree(c, sweep, &a, &b);
        compare_all(&ref, &card, most, &f);
        if (f.first >= 0)
            report(c, sweep, ref.graph, i, &f);
        is_good &= f.first < 0;
        if (is_good && i + 1 == steps)
            printf("good %s%s \"%s\": at most %.2g away (%s)\n",
                   precision_name(sweep->precision), sweep->keeps_all ? ", all kept" : "",
                   c->name, f.worst_away, ref.graph->tensors[f.worst].name);
    }
    fflush(stdout);
    case_empty(&data);
    side_end(&card);
    side_end(&ref);
}

static bool is_wanted(const struct graph_case *c, const struct sweep *sweep)
{
    return strstr(c->name, wanted_name) &&
           strstr(precision_name(sweep->precision), wanted_precision);
}

/* From where the last child ended. */
static void run_from(void *arg)
{
    const size_t cases = ARRAY_SIZE(graph_cases), all = cases * ARRAY_SIZE(sweeps);

    (void)arg;
    for (; progress->at < all; progress->at++) {
        const struct sweep *sweep = &sweeps[progress->at / cases];
        const struct graph_case *c = &graph_cases[progress->at % cases];

        alarm(CARD_SECONDS);
        if (is_wanted(c, sweep))
            run_case(c, sweep);
    }
}

static void every_tensor_is_the_oracles(void **state)
{
    const size_t cases = ARRAY_SIZE(graph_cases), all = cases * ARRAY_SIZE(sweeps);

    (void)state;
    while (progress->at < all) {
        int status = in_child(run_from, NULL);

        if (status == CARD_NONE) {
            print_message("there is no card: skipped\n");
            skip();
        }
        if (status == 0)
            break;
        printf("WRONG %s \"%s\": ended with %d\n",
               precision_name(sweeps[progress->at / cases].precision),
               graph_cases[progress->at % cases].name, status);
        progress->wrong++;
        progress->at++;
    }
    if (progress->wrong)
        fail_msg("%d cases are wrong", progress->wrong);
}

/* Files alone lie in it. */
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        auto_free char *file = xasprintf("%s/%s", path, entry->d_name);

        (void)unlink(file);
    }
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tensor_is_the_oracles)};
    int failed;

    wanted_name = argc > 1 ? argv[1] : "";
    wanted_precision = argc > 2 ? argv[2] : "";
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED || !mkdtemp(cache_dir))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_folder(cache_dir);
    return failed;
}
