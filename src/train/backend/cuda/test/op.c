/* Every kind of op on the card against the oracle, in each precision, also as on a card that is
 * small or older: one line for each case that is wrong, and on to the next.
 *
 * Usage by hand: op [words of a case's name [fp32|tf32|bf16|fp16]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

/* How far tensors may be from the oracle's of the same precision, in parts of their size.
 * fp32: sums of a few hundred terms, divided by deviations in batch norms.  In 16 bits each
 * result is rounded where its kernel ends, which need not be where the oracle rounds: an ulp is
 * 2^-8 (bf16) or 2^-11 (fp16) and goes through some ten ops; a relu or a maximum near the edge
 * may go the other way.  The rate is small, so that no loss comes near zero: there one minus a
 * probability has no bits left. */
struct sweep {
    enum precision precision;
    bool keeps_all; /* every activation is compared, not only what stays */
    const struct card *card;
    double most, most_with_kinks, most_of_loss;
};

static const struct sweep sweeps[] = {
    {PRECISION_FP32, true, &card_itself, 1e-4, 1e-3, 2e-5},
    {PRECISION_FP32, false, &card_itself, 1e-4, 1e-3, 2e-5},
    {PRECISION_FP32, false, &card_small, 1e-4, 1e-3, 2e-5},
    {PRECISION_TF32, false, &card_itself, 1e-2, 1e-1, 1e-2},
    {PRECISION_BF16, true, &card_itself, 4e-2, 2e-1, 4e-2},
    {PRECISION_BF16, false, &card_itself, 4e-2, 2e-1, 4e-2},
    {PRECISION_BF16, true, &card_small, 4e-2, 2e-1, 4e-2},
    {PRECISION_BF16, false, &card_old, 4e-2, 2e-1, 4e-2},
    {PRECISION_FP16, false, &card_itself, 8e-3, 8e-2, 8e-3},
    {PRECISION_FP16, true, &card_old, 8e-3, 8e-2, 8e-3},
};

static const char *wanted_name = "", *wanted_precision = "";

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
                                   .keeps_all = is_ref || sweep->keeps_all};
    struct err e = {0};

    *s = (struct side){0};
    if (is_ref && sweep->precision == PRECISION_TF32)
        options.precision = PRECISION_FP32;
    if (case_graph(c, GRAPH_TRAIN, &s->graph, &e) < 0)
        card_fail("%s: %s", c->name, e.msg);
    side_plan_on(s, backend, sweep->card, &options);
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

        is_good = values_agree(progress->what, sweep->most_of_loss, &a, &b);
        compare_all(&ref, &card, most, &f);
        if (f.first >= 0)
            report(progress->what, ref.graph, i, &f);
        is_good &= f.first < 0;
        if (is_good && i + 1 == steps)
            printf("good %s: at most %.2g away (%s)\n", progress->what, f.worst_away,
                   ref.graph->tensors[f.worst].name);
    }
    case_empty(&data);
    side_end(&card);
    side_end(&ref);
}

static void run_item(size_t i)
{
    const struct sweep *sweep = &sweeps[i / compared_cases()];
    const struct graph_case *c = compared_case(i % compared_cases());

    snprintf(progress->what, sizeof progress->what, "%s%s%s \"%s\"",
             precision_name(sweep->precision), sweep->keeps_all ? ", all kept" : "",
             sweep->card->name, c->name);
    if (strstr(c->name, wanted_name) &&
        strstr(precision_name(sweep->precision), wanted_precision))
        run_case(c, sweep);
}

static void every_tensor_is_the_oracles(void **state)
{
    (void)state;
    run_items(&(struct items){compared_cases() * ARRAY_SIZE(sweeps), run_item});
}

int main(int argc, char **argv)
{
    wanted_name = argc > 1 ? argv[1] : "";
    wanted_precision = argc > 2 ? argv[2] : "";
    return run_group(every_tensor_is_the_oracles, "every_tensor_is_the_oracles");
}
