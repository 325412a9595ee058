/* Attention on tensor cores against the oracle: the cases that all backends share have
 * sequences that are too short for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

struct shape {
    int64_t length;
    int64_t heads, width; /* of a head */
    float dropout;
    bool is_full; /* all keys are looked at */
};

/* One tile of keys and several, tiles that nobody looks at, narrow and wide heads. */
static const struct shape shapes[] = {
    {64, 2, 64, 0, true},      {128, 2, 64, 0.1f, true},  {256, 2, 64, 0.1f, true},
    {256, 1, 64, 0, true},     {128, 2, 64, 0.1f, false}, {128, 2, 64, 0, false},
    {192, 1, 64, 0.1f, false}, {64, 3, 32, 0.2f, false},  {128, 1, 32, 0, true},
    {128, 1, 128, 0, false},   {192, 1, 128, 0.1f, true},
};
static const struct {
    enum precision precision;
    double most; /* in parts of a tensor's size: a few roundings of 2^-8 or 2^-11 */
} precisions[] = {{PRECISION_BF16, 2e-2}, {PRECISION_FP16, 4e-3}};

static void build(struct graph *g, const struct shape *s)
{
    int64_t rows = CASE_ROWS * s->length, wide = 3 * s->heads * s->width;

    labels(g);
    int mask = graph_input(g, "mask", DTYPE_I32, 2, (const int64_t[]){CASE_ROWS, s->length});
    int picked = graph_input(g, "rows", DTYPE_I32, 1, (const int64_t[]){CASE_ROWS});
    int y = graph_attention(g, "attention", matrix(g, "x", rows, wide), mask, (int)s->heads,
                            s->dropout);

    /* Every row has a share in the three that are picked. */
    y = graph_linear(
        g, "mix",
        graph_reshape(g, y, 2, (const int64_t[]){CASE_ROWS, rows / CASE_ROWS * wide / 3}), 16,
        (struct init){INIT_NORMAL, 0.1f}, false);
    finish(g, graph_gather_rows(g, y, picked));
}

static void begin(struct side *side,
                  const struct backend_ops *backend,
                  const struct shape *s,
                  enum precision precision)
{
    struct plan_options options = {.precision = precision,
                                   .init_seed = 3,
                                   .seed = 4,
                                   .is_repeatable = true,
                                   .keeps_all = true};
    struct step_spec spec;
    struct err e = {0};

    *side = (struct side){.graph = graph_new("attention", GRAPH_TRAIN, CASE_ROWS)};
    build(side->graph, s);
    case_spec(&spec);
    if (graph_check(side->graph, &e) < 0 || graph_differentiate(side->graph, &e) < 0 ||
        graph_finish_step(side->graph, &spec, &e) < 0)
        card_fail("%s", e.msg);
    side_plan(side, backend, &options);
}

/* Each sequence is looked at up to another length, with holes. */
static void fill(const struct graph *g, const struct shape *s, struct case_data *data)
{
    int32_t *mask, *rows;

    case_fill(g, data);
    mask = data->feed[1];
    rows = data->feed[2];
    if (!mask || !rows) {
        card_fail("the case has no mask or no rows");
        return;
    }
    for (int64_t i = 0; i < CASE_ROWS * s->length; i++)
        mask[i] =
            s->is_full || (i % s->length < s->length / 2 + 17 * (i / s->length) && i % 7 != 3);
    for (int32_t i = 0; i < CASE_ROWS; i++)
        rows[i] = CASE_ROWS - 1 - i;
}

static void compare(struct side *ref, struct side *card, double most)
{
    const struct graph *g = ref->graph;

    for (int t = 0; t < g->tensor_count; t++) {
        bool is_told = g->tensors[t].role == ROLE_ACTIVATION || g->tensors[t].role == ROLE_GRAD;
        double found = is_told ? side_away(ref, card, t) : 0;

        if (!(found <= most))
            card_fail("%s of %s is %g away", g->tensors[t].name,
                      op_info(g->ops[g->tensors[t].producer].kind)->name, found);
    }
}

static void run_shape(const struct shape *s, enum precision precision, double most)
{
    struct case_data data = {0};
    struct step step = {.number = 5, .flags = STEP_WHOLE, .lr = 0.01f};
    struct side ref, card;

    begin(&ref, &backend_ref, s, precision);
    begin(&card, &backend_cuda, s, precision);
    fill(ref.graph, s, &data);
    side_run(&ref, &data, step);
    side_run(&card, &data, step);
    printf("%s, length %d, heads of %d, dropout %g%s\n", precision_name(precision),
           (int)s->length, (int)s->width, (double)s->dropout, s->is_full ? "" : ", masked");
    compare(&ref, &card, most);
    case_empty(&data);
    side_end(&card);
    side_end(&ref);
}

static void run_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < ARRAY_SIZE(precisions); i++)
        for (size_t j = 0; j < ARRAY_SIZE(shapes); j++)
            run_shape(&shapes[j], precisions[i].precision, precisions[i].most);
}

static void tiles_give_what_the_oracle_gives(void **state)
{
    (void)state;
    with_card(run_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_give_what_the_oracle_gives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
