/* Every form of a convolution that the backend may choose by its time (our own kernels, cuDNN's
 * with and without what can be fused, the one by the definition), each with its first engines,
 * and products with their first kernels, against the oracle in bf16 and tf32.
 *
 * A choice is forced through the file in which measured ones are kept (tune.h): a repeatable
 * plan tells the keys; the next one takes the direct form for all, which always runs, and says
 * which others can be had; then each plan takes the next one of each list.  So nothing depends
 * on the times of the day.
 *
 * Usage by hand: form [words of a case's name [bf16|tf32]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include "base/fs.h"
#include "base/str.h"
#include "train/backend/cuda/conv-internal.h"

enum {
    PRODUCTS = 4, /* of a product's kernels that are tried */
    MOST_KEYS = 64,
    MOST_FILE = 1 << 20,
};

/* As in op.c, and how many engines of a form are tried. */
struct sweep {
    enum precision precision;
    int engines;
    double most, most_with_kinks, most_of_loss;
};

static const struct sweep sweeps[] = {
    {PRECISION_BF16, 2, 4e-2, 2e-1, 4e-2},
    {PRECISION_TF32, 6, 1e-2, 1e-1, 1e-2},
};
static const struct sweep *sweep; /* that is run */

/* What is forced for one shape of a convolution. */
struct forced {
    char key[400];
    int choices[CANDIDATES];
    int count;
};

struct forms {
    const struct graph_case *c;
    struct forced all[MOST_KEYS];
    int count;
    struct str products; /* lines of the file, as they were measured */
    int taken, refused;
    int engines_for_weights; /* that were taken */
};

static const char *wanted_name = "", *wanted_precision = "";
static struct device *opened; /* by this child */
static char *tune_path;       /* the file that plans on it read and write */

static void
begin(struct side *s, const struct graph_case *c, const struct plan_options *options)
{
    struct err e = {0};

    *s = (struct side){0};
    if (case_graph(c, GRAPH_TRAIN, &s->graph, &e) < 0 ||
        plan_new(opened, s->graph, options, &s->plan, &e) < 0)
        card_fail("%s: %s", c->name, e.msg);
}

static void end(struct side *s)
{
    plan_free(s->plan);
    graph_free(s->graph);
}

static struct plan_options options_of(bool is_repeatable)
{
    return (struct plan_options){.precision = sweep->precision,
                                 .init_seed = 3,
                                 .seed = 4,
                                 .is_repeatable = is_repeatable,
                                 .workspace_cap = (size_t)64 << 20,
                                 .cache_dir = cache_dir};
}

/* Makes the file by a plan that measures its products, and finds out how it is called. */
static void open_card(void)
{
    struct plan_options options = options_of(false);
    struct err e = {0};
    struct side s;
    DIR *dir;

    if (device_open(&backend_cuda, &(struct device_options){0}, &opened, &e) < 0)
        card_fail("%s", e.msg);
    begin(&s, case_named("linear"), &options);
    end(&s);
    dir = opendir(cache_dir);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strstr(entry->d_name, ".tune"))
            tune_path = xasprintf("%s/%s", cache_dir, entry->d_name);
    if (dir)
        closedir(dir);
    if (!tune_path)
        card_fail("no choice was kept in %s", cache_dir);
}

static struct conv_work *conv_of_op(const struct cuda_plan *p, int n)
{
    enum op_kind kind = p->head.graph->ops[n].kind;

    return kind == OP_CONV || kind == OP_CONV_DATA_GRAD || kind == OP_CONV_WEIGHT_GRAD
               ? p->kept[n]
               : NULL;
}

static struct forced *forced_for(struct forms *f, const char *key)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->all[i].key, key) == 0)
            return &f->all[i];
    if (f->count == MOST_KEYS || strlen(key) >= sizeof f->all[0].key)
        card_fail("too many convolutions, or too long a key");
    snprintf(f->all[f->count].key, sizeof f->all[0].key, "%s", key);
    return &f->all[f->count++];
}

/* From a repeatable plan, which never has the form with sums: the number of the direct one. */
static void find_direct(struct forms *f, const struct cuda_plan *p)
{
    for (int n = 0; n < p->head.graph->op_count; n++) {
        const struct conv_work *w = conv_of_op(p, n);
        struct forced *to = w ? forced_for(f, w->set->key) : NULL;
        int at = 0;

        if (!to)
            continue;
        while (at < FORMS - 1 && w->set->forms[at].kind != FORM_DIRECT)
            at++;
        to->choices[0] = (at + (w->sums ? 1 : 0)) * DNN_MOST_CONFIGS;
        to->count = 1;
    }
}

/* All that can be had, the direct one too. */
static void find_forms(struct forms *f, struct cuda_plan *p)
{
    for (int n = 0; n < p->head.graph->op_count; n++) {
        struct conv_work *w = conv_of_op(p, n);
        struct forced *to = w ? forced_for(f, w->set->key) : NULL;

        if (!to)
            continue;
        to->count = 0;
        for (int choice = 0; choice < CANDIDATES; choice++) {
            struct candidate c = candidate_of(w->set, choice);

            if (choice % DNN_MOST_CONFIGS < sweep->engines && candidate_is_ready(p, w, &c))
                to->choices[to->count++] = choice;
        }
    }
}

/* The lines of products, without their choices. */
static void keep_products(struct forms *f)
{
    auto_str text = {0};
    char *next;

    if (fs_read(tune_path, MOST_FILE, &text, NULL) < 0 || text.len == 0)
        return;
    for (char *line = text.data; line && *line; line = next) {
        char *rest = strchr(line, ' ');

        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (rest && strstr(rest, " product "))
            str_addf(&f->products, "%s\n", rest);
    }
}

/* Choice `round` of each list; those that are shorter begin anew. */
static void write_choices(const struct forms *f, int round)
{
    auto_str text = {0}, products = {0};
    char *next;
    struct err e = {0};

    for (int i = 0; i < f->count; i++)
        str_addf(&text, "%d 1 %s\n", f->all[i].choices[round % f->all[i].count], f->all[i].key);
    str_addf(&products, "%s", str_text(&f->products));
    for (char *line = products.data; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        str_addf(&text, "%d%s\n", round % PRODUCTS, line);
    }
    if (fs_write_durably(tune_path, str_text(&text), text.len, 0644, &e) < 0)
        card_fail("%s", e.msg);
}

/* One that cannot run after all was measured anew, which is as it should be. */
static void count_taken(struct forms *f, const struct cuda_plan *p, int round)
{
    for (int n = 0; n < p->head.graph->op_count; n++) {
        const struct conv_work *w = conv_of_op(p, n);
        const struct forced *to = w ? forced_for(f, w->set->key) : NULL;

        if (!to)
            continue;
        if (w->set->choice == to->choices[round % to->count])
            f->taken++;
        else
            f->refused++;
        f->engines_for_weights +=
            w->way == DNN_WEIGHTS && !is_own(candidate_of(w->set, w->set->choice).form->kind);
    }
}

/* Which kernels a plan took, for who looks for the wrong one. */
static void say_kernels(const struct cuda_plan *p)
{
    for (int i = 0; i < p->action_count; i++)
        if (conv_of_op(p, p->actions[i].op))
            printf("      %s\n", p->actions[i].label);
}

static void compare_round(struct side *ref,
                          const struct step_values *wanted,
                          struct side *card,
                          const struct graph_case *c,
                          const struct case_data *data)
{
    struct step step = {.number = 0, .flags = STEP_WHOLE, .lr = 1e-5f};
    struct step_values found = side_run(card, data, step);
    struct finding f;

    if (!values_agree(progress->what, sweep->most_of_loss, wanted, &found))
        return;
    compare_all(ref, card, c->has_kinks ? sweep->most_with_kinks : sweep->most, &f);
    if (f.first >= 0) {
        report(progress->what, ref->graph, 0, &f);
        say_kernels(cuda_plan(card->plan));
    } else
        printf("good %s: at most %.2g away (%s)\n", progress->what, f.worst_away,
               ref->graph->tensors[f.worst].name);
}

/* The oracle's first step, once for all rounds. */
static struct step_values
begin_ref(struct side *ref, const struct graph_case *c, struct case_data *data)
{
    struct plan_options options = options_of(true);
    struct step step = {.number = 0, .flags = STEP_WHOLE, .lr = 1e-5f};
    struct err e = {0};

    *ref = (struct side){0};
    options.keeps_all = true;
    if (options.precision == PRECISION_TF32)
        options.precision = PRECISION_FP32;
    if (case_graph(c, GRAPH_TRAIN, &ref->graph, &e) < 0)
        card_fail("%s: %s", c->name, e.msg);
    side_plan_on(ref, &backend_ref, &card_itself, &options);
    case_fill(ref->graph, data);
    return side_run(ref, data, step);
}

static int rounds_of(const struct forms *f)
{
    int rounds = PRODUCTS;

    for (int i = 0; i < f->count; i++)
        rounds = f->all[i].count > rounds ? f->all[i].count : rounds;
    return rounds;
}

static void say_round(const struct forms *f, int round)
{
    struct str what = {0};

    str_addf(&what, "%s \"%s\", choices", precision_name(sweep->precision), f->c->name);
    for (int i = 0; i < f->count; i++)
        str_addf(&what, " %d", f->all[i].choices[round % f->all[i].count]);
    snprintf(progress->what, sizeof progress->what, "%s", str_text(&what));
    str_done(&what);
}

static void run_round(struct forms *f,
                      struct side *ref,
                      const struct step_values *wanted,
                      const struct case_data *data,
                      int round)
{
    struct plan_options options = options_of(false);
    struct side card;

    say_round(f, round);
    write_choices(f, round);
    begin(&card, f->c, &options);
    count_taken(f, cuda_plan(card.plan), round);
    compare_round(ref, wanted, &card, f->c, data);
    end(&card);
    fflush(stdout);
}

/* With the direct form for all, and what else there is. */
static void learn(struct forms *f)
{
    struct plan_options first = options_of(true), options = options_of(false);
    struct side card;

    begin(&card, f->c, &first);
    find_direct(f, cuda_plan(card.plan));
    end(&card);
    write_choices(f, 0);
    begin(&card, f->c, &options);
    find_forms(f, cuda_plan(card.plan));
    end(&card);
    keep_products(f);
}

static void run_item(size_t i)
{
    const struct graph_case *c = compared_case(i % compared_cases());
    struct case_data data = {0};
    struct step_values wanted;
    struct side ref;

    sweep = &sweeps[i / compared_cases()];
    snprintf(progress->what, sizeof progress->what, "%s \"%s\"",
             precision_name(sweep->precision), c->name);
    if (!strstr(c->name, wanted_name) ||
        !strstr(precision_name(sweep->precision), wanted_precision))
        return;
    if (!opened)
        open_card();
    auto_free struct forms *f = xcalloc(1, sizeof *f);
    f->c = c;
    wanted = begin_ref(&ref, c, &data);
    learn(f);
    for (int round = 0; round < rounds_of(f); round++)
        run_round(f, &ref, &wanted, &data, round);
    printf("     %d choices of convolutions were taken, %d could not be\n", f->taken,
           f->refused);
    if (f->count > 0 && f->taken == 0) {
        printf("WRONG \"%s\": the choices were not taken\n", c->name);
        progress->wrong++;
    }
    /* Those that are refused there are some, not all. */
    if (strcmp(c->name, "strides, padded behind") == 0 && f->engines_for_weights == 0) {
        printf("WRONG \"%s\": no engine makes its gradients of weights\n", c->name);
        progress->wrong++;
    }
    str_done(&f->products);
    case_empty(&data);
    side_end(&ref);
}

static void every_form_is_the_oracles(void **state)
{
    (void)state;
    run_items(&(struct items){compared_cases() * ARRAY_SIZE(sweeps), run_item});
}

int main(int argc, char **argv)
{
    wanted_name = argc > 1 ? argv[1] : "";
    wanted_precision = argc > 2 ? argv[2] : "";
    return run_group(every_form_is_the_oracles, "every_form_is_the_oracles");
}
