/* Attention on the card, element by element: y, dq, dk and dv against double precision,
 * reckoned from the very qkv and dy that the card's kernels have read, so that nothing but
 * attention itself can be wrong (attention-oracle.h).  What is run twice must have the same
 * bits.
 *
 * One line for each case that is wrong, and on to the next.
 *
 * Usage by hand: attention [fp32|bf16|fp16 [length [width of a head]]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "attention-oracle.h"
#include "card.h"

#include "train/num/par.h"

enum {
    SEED = 4,
    TENSORS = 4, /* that are compared */
};

struct shape {
    int64_t length, heads, width; /* of a head */
    int rounds;                   /* how many of those below */
};

/* Around the tiles of 64, and what is shorter than a piece of one; several tiles; heads of
 * other widths, with rows that are padded; more heads than there are multiprocessors. */
static const struct shape shapes[] = {
    {1, 2, 64, 6},    {2, 2, 64, 6},    {16, 2, 64, 6},   {17, 2, 64, 6},  {32, 2, 64, 6},
    {63, 2, 64, 6},   {64, 2, 64, 6},   {65, 2, 64, 6},   {96, 1, 64, 6},  {100, 2, 64, 6},
    {112, 3, 64, 6},  {127, 2, 64, 6},  {128, 2, 64, 6},  {128, 1, 64, 6}, {129, 2, 64, 6},
    {192, 1, 64, 6},  {200, 1, 64, 6},  {256, 2, 64, 6},  {384, 1, 64, 6}, {512, 2, 64, 3},
    {128, 50, 64, 1}, {64, 3, 32, 6},   {128, 1, 32, 6},  {100, 2, 32, 6}, {192, 2, 32, 3},
    {128, 1, 128, 6}, {65, 2, 128, 3},  {192, 1, 128, 3}, {65, 3, 12, 6},  {50, 1, 40, 3},
    {128, 2, 40, 2},  {1024, 2, 64, 1},
};

static const float dropouts[] = {0, 0.1f};

/* Which keys are looked at.  Sequences differ. */
enum looks {
    LOOKS_TAIL, /* all, half and one: padding behind */
    LOOKS_ALL,
    LOOKS_HOLES,
    LOOKS_HEAD,   /* padding in front */
    LOOKS_MIDDLE, /* a whole tile is hidden between others, two and more in long ones */
    LOOKS_BLANK,  /* one sequence sees nothing at all */
};

/* `spread` of qkv: with 2 a few keys have nearly all of a row's probability. */
static const struct round {
    const char *name;
    enum looks looks;
    float spread;
} rounds[] = {
    {"padded behind", LOOKS_TAIL, 1},   {"full, few keys count", LOOKS_ALL, 2},
    {"a tile hidden", LOOKS_MIDDLE, 2}, {"with holes", LOOKS_HOLES, 1},
    {"padded in front", LOOKS_HEAD, 1}, {"a blank sequence", LOOKS_BLANK, 1},
};

static const struct rounding roundings[] = {
    {PRECISION_FP32, 0x1p-24, 0x1p-126, 0x1p-17},
    {PRECISION_BF16, 0x1p-8, 0x1p-126, 0x1p-15},
    {PRECISION_FP16, 0x1p-11, 0x1p-14, 0x1p-15},
};

static const char *wanted_precision = "";
static int64_t wanted_length, wanted_width; /* 0 = all */

/* A plan of one shape, and what its kernels read and wrote. */
struct trial {
    const struct shape *shape;
    float dropout;
    const struct rounding *rounding;
    const struct card *card;
    struct side side;
    const struct op *op, *grad;
    uint64_t step;
    const int32_t *mask;
    float *qkv, *dy, *y, *dqkv;
    struct finding (*findings)[TENSORS]; /* by head */
    int wrong;                           /* cases so far */
};

static struct head head_of(const struct trial *t, int64_t at, struct sum *room)
{
    int64_t length = t->shape->length, width = t->shape->width, d = t->shape->heads * width;
    int64_t n = at / t->shape->heads, h = at % t->shape->heads, count = length * width;
    const float *q = t->qkv + n * length * 3 * d + h * width;

    return (struct head){.q = q,
                         .k = q + d,
                         .v = q + 2 * d,
                         .dy = t->dy + n * length * d + h * width,
                         .length = length,
                         .width = width,
                         .row = 3 * d,
                         .mask = t->mask + n * length,
                         .first = (uint64_t)(at * length * length),
                         .dropout = t->dropout,
                         .key = SEED ^ t->op->attrs.attention.stream,
                         .step = t->step,
                         .scale = (double)t->op->attrs.attention.scale,
                         .rounding = t->rounding,
                         .y = room,
                         .dq = room + count,
                         .dk = room + 2 * count,
                         .dv = room + 3 * count};
}

static void print_trial(const struct trial *t)
{
    printf("%s%s, length %d, %d heads of %d, dropout %g, %s",
           precision_name(t->rounding->precision), t->card->name, (int)t->shape->length,
           (int)t->shape->heads, (int)t->shape->width, (double)t->dropout,
           rounds[t->step].name);
}

static void check_heads(void *arg, int64_t from, int64_t to)
{
    const struct trial *t = arg;

    for (int64_t at = from; at < to; at++) {
        auto_free struct sum *room =
            xcalloc((size_t)(t->shape->length * t->shape->width) * TENSORS, sizeof *room);
        struct head h = head_of(t, at, room);
        struct finding *f = t->findings[at];
        int64_t d = h.row / 3;
        const float *dq = t->dqkv + (h.q - t->qkv);

        head_reckon(&h);
        f[0] = head_compare(&h, h.y, t->y + (h.dy - t->dy), d);
        f[1] = head_compare(&h, h.dq, dq, h.row);
        f[2] = head_compare(&h, h.dk, dq + d, h.row);
        f[3] = head_compare(&h, h.dv, dq + 2 * d, h.row);
    }
}

static void build(struct graph *g, const struct shape *s, float dropout)
{
    int64_t rows = CASE_ROWS * s->length, wide = 3 * s->heads * s->width;

    labels(g);
    int mask = graph_input(g, "mask", DTYPE_I32, 2, (const int64_t[]){CASE_ROWS, s->length});
    int qkv = graph_linear(g, "qkv", matrix(g, "x", rows, 16), wide,
                           (struct init){INIT_NORMAL, 0.25f}, true);
    int y = graph_attention(g, "attention", qkv, mask, (int)s->heads, dropout);

    /* Every element of y has a share in the loss. */
    y = graph_linear(
        g, "mix",
        graph_reshape(g, y, 2, (const int64_t[]){CASE_ROWS, rows / CASE_ROWS * wide / 3}), 16,
        (struct init){INIT_NORMAL, 0.1f}, false);
    finish(g, y);
}

static const struct op *op_of_kind(const struct graph *g, enum op_kind kind)
{
    for (int n = 0; n < g->op_count; n++)
        if (g->ops[n].kind == kind)
            return &g->ops[n];
    card_fail("%s has no %s", g->name, op_info(kind)->name);
    return NULL;
}

/* What makes the gradient of the layer below from dqkv. */
static const struct op *op_reading(const struct graph *g, int dqkv)
{
    for (int n = 0; n < g->op_count; n++)
        if (g->ops[n].kind == OP_LINEAR_WEIGHT_GRAD && g->ops[n].in[0] == dqkv)
            return &g->ops[n];
    card_fail("%s has no layer below", g->name);
    return NULL;
}

/* The loss is scaled so that dy is about 1: nothing is too small for fp16. */
static void begin(struct trial *t)
{
    struct plan_options options = {.precision = t->rounding->precision,
                                   .init_seed = 3,
                                   .seed = SEED,
                                   .is_repeatable = true,
                                   .keeps_all = true};
    struct graph *g = graph_new("attention", GRAPH_TRAIN, CASE_ROWS);
    struct step_spec spec;
    struct err e = {0};

    build(g, t->shape, t->dropout);
    case_spec(&spec);
    spec.optim.loss_scale = 64;
    if (graph_check(g, &e) < 0 || graph_differentiate(g, &e) < 0 ||
        graph_finish_step(g, &spec, &e) < 0 ||
        plan_new(t->side.device, g, &options, &t->side.plan, &e) < 0)
        card_fail("%s", e.msg);
    t->side.graph = g;
    t->op = op_of_kind(g, OP_ATTENTION);
    t->grad = op_of_kind(g, OP_ATTENTION_GRAD);
}

static void end(struct trial *t)
{
    plan_free(t->side.plan);
    graph_free(t->side.graph);
}

static bool is_looked_at(enum looks looks, int64_t n, int64_t j, int64_t length)
{
    int64_t last = (length - 1) * (CASE_ROWS - 1 - n) / (CASE_ROWS - 1);

    switch (looks) {
    case LOOKS_TAIL:
        return j <= last;
    case LOOKS_ALL:
        return true;
    case LOOKS_HOLES:
        return (7 * j + 3 * n) % 5 != 2;
    case LOOKS_HEAD:
        return length - 1 - j <= last;
    case LOOKS_MIDDLE:
        return j < 40 + n || j >= (length > 256 ? length - 70 : 136) - n;
    case LOOKS_BLANK:
        return n != 1 && j % 3 != 2;
    }
    return false;
}

static void fill(const struct trial *t, const struct round *r, struct case_data *data)
{
    int32_t *mask = data->feed[1];
    int64_t length = t->shape->length;

    for (int64_t i = 0; i < CASE_ROWS * length; i++)
        mask[i] = is_looked_at(r->looks, i / length, i % length, length);
}

/* What goes into attention, `factor` times as large as it was. */
static void spread(const struct trial *t, double factor)
{
    int x = graph_find(t->side.graph, "qkv.weight");
    int64_t count = tensor_elements(&t->side.graph->tensors[x]);
    auto_free float *values = side_read(&t->side, x);
    struct err e = {0};

    if (!values)
        card_fail("weights cannot be read");
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)values[i] * factor);
    if (plan_write(t->side.plan, x, values, (size_t)count * sizeof *values, &e) < 0)
        card_fail("%s", e.msg);
}

static float *read_tensor(const struct trial *t, int tensor)
{
    float *values = side_read(&t->side, tensor);

    if (!values)
        card_fail("%s cannot be read", t->side.graph->tensors[tensor].name);
    return values;
}

/* Nothing moves: what was read is still there after the step. */
static void run_step(struct trial *t, const struct case_data *data)
{
    struct step step = {.number = t->step, .flags = STEP_WHOLE, .lr = 0};
    int y = t->op->out[0], dqkv = t->grad->out[0];
    size_t rows = (size_t)(CASE_ROWS * t->shape->length),
           bytes = rows * (size_t)(t->shape->heads * t->shape->width) * sizeof(float);

    side_run(&t->side, data, step);
    auto_free float *y_first = read_tensor(t, y), *first = read_tensor(t, dqkv);
    side_run(&t->side, data, step);
    t->y = read_tensor(t, y);
    t->dqkv = read_tensor(t, dqkv);
    if (memcmp(y_first, t->y, bytes) != 0 || memcmp(first, t->dqkv, 3 * bytes) != 0) {
        printf("WRONG ");
        print_trial(t);
        printf(": %s has other bits the second time\n",
               memcmp(y_first, t->y, bytes) != 0 ? "y" : "dqkv");
        t->wrong++;
    }
    t->qkv = read_tensor(t, t->op->in[0]);
    t->dy = read_tensor(t, t->grad->in[0]);
}

static void report(struct trial *t, const char *tensor, int64_t head, const struct finding *f)
{
    int64_t width = t->shape->width;

    printf("WRONG ");
    print_trial(t);
    printf(": %d of %s of sequence %d, head %d; the first at position %d, column %d is %g, "
           "not %g (within %.2g); the worst is %.3g of what is allowed\n",
           (int)f->wrong, tensor, (int)(head / t->shape->heads), (int)(head % t->shape->heads),
           (int)(f->first / width), (int)(f->first % width), f->found, f->wanted, f->most,
           f->worst);
}

/* The gradient of the bias below, whose sums a kernel of attention may have made along: of all
 * rows of dqkv, before or after these are rounded. */
static void judge_bias(struct trial *t)
{
    int64_t wide = 3 * t->shape->heads * t->shape->width, rows = CASE_ROWS * t->shape->length;
    auto_free float *bias = read_tensor(t, op_reading(t->side.graph, t->grad->out[0])->out[1]);

    for (int64_t x = 0; x < wide; x++) {
        struct sum s = {0};
        double most;

        for (int64_t i = 0; i < rows; i++) {
            double value = (double)t->dqkv[i * wide + x];

            add(&s, value, variance_of(t->rounding, value), fabs(value));
        }
        most = DEVIATIONS * sqrt(s.variance) + t->rounding->noise * s.size + 1e-37;
        if (fabs((double)bias[x] - s.value) <= most)
            continue;
        printf("WRONG ");
        print_trial(t);
        printf(": the bias' gradient %d is %g, not %g (within %.2g)\n", (int)x, (double)bias[x],
               s.value, most);
        t->wrong++;
        return;
    }
}

/* The first head of each tensor that is wrong. */
static void judge(struct trial *t)
{
    static const char *const names[TENSORS] = {"y", "dq", "dk", "dv"};
    double worst = 0;
    int wrong = 0;

    for (int i = 0; i < TENSORS; i++) {
        bool is_told = false;

        for (int64_t head = 0; head < CASE_ROWS * t->shape->heads; head++) {
            const struct finding *f = &t->findings[head][i];

            worst = fmax(worst, f->worst);
            wrong += f->wrong > 0;
            if (f->wrong && !is_told)
                report(t, names[i], head, f);
            is_told |= f->wrong > 0;
        }
    }
    t->wrong += wrong > 0;
    if (wrong)
        return;
    printf("good ");
    print_trial(t);
    printf(": at most %.2f of what is allowed\n", worst);
}

static void run_round(struct trial *t, struct case_data *data)
{
    int64_t heads = CASE_ROWS * t->shape->heads;

    fill(t, &rounds[t->step], data);
    t->mask = data->feed[1];
    run_step(t, data);
    t->findings = xcalloc((size_t)heads, sizeof *t->findings);
    par_for(heads, 1, check_heads, t);
    judge(t);
    judge_bias(t);
    fflush(stdout);
    free(t->findings);
    free(t->qkv);
    free(t->dy);
    free(t->y);
    free(t->dqkv);
}

static void run_shape(struct trial *t)
{
    struct case_data data = {0};
    double is = 1;

    begin(t);
    case_fill(t->side.graph, &data);
    for (t->step = 0; t->step < (uint64_t)t->shape->rounds; t->step++) {
        double wanted = (double)rounds[t->step].spread;

        if (wanted != is)
            spread(t, wanted / is);
        is = wanted;
        run_round(t, &data);
    }
    case_empty(&data);
    end(t);
}

static bool is_wanted(const struct shape *s)
{
    return (wanted_length == 0 || s->length == wanted_length) &&
           (wanted_width == 0 || s->width == wanted_width);
}

struct test {
    const struct card *card;
    const struct rounding *rounding;
};

static void run_shapes(void *arg)
{
    const struct test *test = arg;
    struct trial t = {.card = test->card, .rounding = test->rounding};
    struct err e = {0};

    par_init(0);
    if (device_open(&backend_cuda, &(struct device_options){0}, &t.side.device, &e) < 0)
        card_fail("%s", e.msg);
    card_pretend(t.side.device, t.card);
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
        for (size_t j = 0; j < ARRAY_SIZE(dropouts) && is_wanted(&shapes[i]); j++) {
            t.shape = &shapes[i];
            t.dropout = dropouts[j];
            run_shape(&t);
        }
    device_free(t.side.device);
    if (t.wrong)
        card_fail("%d cases are wrong", t.wrong);
}

static void elements_are_what_they_should_be(void **state)
{
    struct test *test = *state;

    if (!strstr(precision_name(test->rounding->precision), wanted_precision))
        skip();
    with_card(run_shapes, test);
}

/* fp32 has one set of kernels for all cards.  On a small one long sequences have a block for
 * each head. */
int main(int argc, char **argv)
{
    static struct test of[] = {
        {&card_itself, &roundings[0]}, {&card_itself, &roundings[1]},
        {&card_itself, &roundings[2]}, {&card_old, &roundings[1]},
        {&card_old, &roundings[2]},    {&card_small, &roundings[1]},
        {&card_small, &roundings[2]},
    };
    const struct CMUnitTest tests[] = {
        {"fp32", elements_are_what_they_should_be, NULL, NULL, &of[0]},
        {"bf16", elements_are_what_they_should_be, NULL, NULL, &of[1]},
        {"fp16", elements_are_what_they_should_be, NULL, NULL, &of[2]},
        {"bf16 before Hopper", elements_are_what_they_should_be, NULL, NULL, &of[3]},
        {"fp16 before Hopper", elements_are_what_they_should_be, NULL, NULL, &of[4]},
        {"bf16, small", elements_are_what_they_should_be, NULL, NULL, &of[5]},
        {"fp16, small", elements_are_what_they_should_be, NULL, NULL, &of[6]},
    };

    wanted_precision = argc > 1 ? argv[1] : "";
    wanted_length = argc > 2 ? atoi(argv[2]) : 0;
    wanted_width = argc > 3 ? atoi(argv[3]) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
