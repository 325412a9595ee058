/* Two ranks that were told different things: both are refused, and the message says what
 * differs.  And with the same thing said in two ways, they train.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "train/run/run.h"

#include <setjmp.h>
#include <stdarg.h>

#include "../../comm/test/ranks.h"

#include <cmocka.h>

enum {
    MOST_WORDS = 24,
};

struct pair {
    const char *one, *other; /* what rank 0 and rank 1 are told besides */
    const char *what;        /* differs; NULL = nothing */
};

static const char common[] = "--model=trivial --data_name=mnist --backend=ref --batch_size=2 "
                             "--num_batches=2 --num_warmup_batches=0 --num_intra_threads=1 "
                             "--variable_update=replicated";

static int train(struct comm *comm, const char *text, struct err *e)
{
    auto_free char *line = xasprintf("%s %s", common, text);
    char *words[MOST_WORDS], *rest = line, *word;
    auto_str notes = {0};
    auto_flags flags;
    int count = 0, ended_by;

    while ((word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    if (flags_parse(&flags, count, words, &notes, e) < 0)
        return -1;
    return run_train(&flags, comm, &ended_by, e);
}

static int be_one(struct comm *comm, void *arg)
{
    const struct pair *pair = arg;
    struct err e = {0};
    int rc;

    CHECK(freopen("/dev/null", "we", stdout));
    rc = train(comm, comm_facts(comm)->rank == 0 ? pair->one : pair->other, &e);
    if (!pair->what) {
        CHECK_OK(rc);
        return 0;
    }
    CHECK(rc < 0 && e.code == ERR_CONFLICT);
    if (!str_starts(e.msg, pair->what) || !str_ends(e.msg, ": rank 1 differs from rank 0")) {
        fprintf(stderr, "%s | %s: %s\n", pair->one, pair->other, e.msg);
        return 1;
    }
    return 0;
}

static void check(const struct pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ranks_run(2, be_one, (void *)(uintptr_t)&pairs[i], NULL) != 0)
            fail_msg("\"%s\" and \"%s\"", pairs[i].one, pairs[i].other);
}

static void what_differs_is_said(void **state)
{
    static const struct pair pairs[] = {
        {"", "--batch_size=3", "network, data, batches and steps"},
        {"--num_batches=3", "--num_batches=4", "network, data, batches and steps"},
        {"", "--data_name=cifar10", "network, data, batches and steps"},
        {"", "--precision=bf16", "network, data, batches and steps"},
        {"", "--variable_update=horovod", "network, data, batches and steps"},
        {"", "--gradient_accumulation_steps=2", "network, data, batches and steps"},
        {"", "--label_smoothing=0.1", "network, data, batches and steps"},
        {"--optimizer=sgd", "--optimizer=momentum", "optimizer"},
        {"--optimizer=momentum", "--optimizer=momentum --momentum=0.8", "optimizer"},
        {"--optimizer=rmsprop", "--optimizer=rmsprop --rmsprop_decay=0.91", "optimizer"},
        {"--optimizer=adam", "--optimizer=adam --adam_beta1=0.8", "optimizer"},
        {"--optimizer=adam", "--optimizer=adam --adam_beta2=0.8", "optimizer"},
        {"--optimizer=adam", "--optimizer=adam --adam_epsilon=1e-6", "optimizer"},
        {"", "--weight_decay=0.1", "optimizer"},
        {"", "--gradient_clip=1", "optimizer"},
        {"", "--clip_norm=1", "optimizer"},
        {"", "--fp16_loss_scale=8", "optimizer"},
        {"", "--fp16_enable_auto_loss_scale", "optimizer"},
        {"", "--init_learning_rate=0.1", "learning rates"},
        {"--init_learning_rate=0.1", "--init_learning_rate=0.1000001", "learning rates"},
        {"--piecewise_learning_rate_schedule=0.1;1;0.2",
         "--piecewise_learning_rate_schedule=0.1;1;0.3", "learning rates"},
        {"--init_learning_rate=0.1", "--init_learning_rate=0.1 --learning_rate_schedule=cosine",
         "learning rates"},
        {"", "--eval_during_training_every_n_steps=1", "evaluation and checkpoints"},
        {"--save_model_steps=1", "", "evaluation and checkpoints"},
        {"", "--seed=7", "seed"},
    };

    (void)state;
    check(pairs, ARRAY_SIZE(pairs));
}

static void the_same_in_other_words_is_the_same(void **state)
{
    static const struct pair pairs[] = {
        {"", "", NULL},
        {"--init_learning_rate=0.1", "--init_learning_rate=1e-1 --display_every=3", NULL},
        {"--optimizer=momentum", "--optimizer=momentum --momentum=0.9", NULL},
    };

    (void)state;
    check(pairs, ARRAY_SIZE(pairs));
}

static void empty(const char *folder)
{
    static const char *const names[] = {"model-2.safetensors", "model-4.safetensors"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        auto_free char *path = xasprintf("%s/%s", folder, names[i]);

        unlink(path);
    }
    rmdir(folder);
}

/* Ranks whose folders hold other checkpoints would go on from other places. */
static void all_go_on_from_the_same_checkpoint(void **state)
{
    char one[] = "/tmp/yardbench-one-XXXXXX", other[] = "/tmp/yardbench-other-XXXXXX";
    auto_free char *flag = NULL, *other_flag = NULL, *on = NULL;

    (void)state;
    assert_true(mkdtemp(one) && mkdtemp(other));
    flag = xasprintf("--train_dir=%s", one);
    other_flag = xasprintf("--train_dir=%s --num_batches=4", other);
    on = xasprintf("--train_dir=%s --num_batches=4", one);
    check(&(struct pair){flag, flag, NULL}, 1);
    check(&(struct pair){on, other_flag, "newest checkpoint"}, 1);
    check(&(struct pair){on, on, NULL}, 1);
    check(&(struct pair){on, other_flag, "newest checkpoint"}, 1);
    empty(one);
    empty(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_is_said),
        cmocka_unit_test(the_same_in_other_words_is_the_same),
        cmocka_unit_test(all_go_on_from_the_same_checkpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
