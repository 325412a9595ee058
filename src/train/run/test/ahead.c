/* A backend that returns early is given a step before the one before is waited for, and nobody
 * can tell from the outside.
 *
 * The backend `late` here hands everything to the oracle, but computes a pass only when
 * somebody waits for it: then what the host borrowed to it too briefly is wrong, and who looks
 * at parameters while a pass is under way is refused.  Each run is compared with the same run
 * on the oracle itself: what was printed, and every byte of every checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "train/backend/ref/ref.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/backends.h"
#include "train/run/run-internal.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the late backend ------------------------------------------------------------------------
 */

struct late_device {
    struct device_head head;
    struct device *inner;
};

struct late_plan {
    struct plan_head head;
    struct plan *inner;
    struct step steps[PLAN_MOST_AHEAD]; /* not yet done, oldest first */
    int count;
    uint64_t given, done; /* tickets */
    struct step_values values[PLAN_MOST_AHEAD];
};

static struct backend_ops backend_late; /* filled in by main() */
static int most_pending, runs_until_signal;

static struct late_plan *late(const struct plan *plan)
{
    return (struct late_plan *)(void *)(uintptr_t)plan;
}

static int late_device_open(const struct device_options *options,
                            struct device **ret_device,
                            struct err *e)
{
    struct late_device *device = xcalloc(1, sizeof(*device));

    device->head.ops = &backend_late;
    *ret_device = (struct device *)(void *)device;
    return device_open(&backend_ref, options, &device->inner, e);
}

static void late_device_free(struct device *device)
{
    device_free(((struct late_device *)(void *)device)->inner);
    free(device);
}

static void late_device_facts(const struct device *device, struct device_facts *ret_facts)
{
    device_facts(((const struct late_device *)(const void *)device)->inner, ret_facts);
}

static int late_plan_new(struct device *device,
                         const struct graph *graph,
                         const struct plan_options *options,
                         struct plan **ret_plan,
                         struct err *e)
{
    struct late_plan *plan = xcalloc(1, sizeof(*plan));
    struct plan_options inner = *options;

    plan->head = (struct plan_head){&backend_late, graph};
    inner.shares = options->shares ? late(options->shares)->inner : NULL;
    *ret_plan = (struct plan *)(void *)plan;
    return plan_new(((struct late_device *)(void *)device)->inner, graph, &inner, &plan->inner,
                    e);
}

static void late_plan_free(struct plan *plan)
{
    assert_int_equal(late(plan)->count, 0); /* nothing is left in the air, after errors too */
    plan_free(late(plan)->inner);
    free(plan);
}

static int
late_plan_run(struct plan *plan, const struct step *step, uint64_t *ret_ticket, struct err *e)
{
    struct late_plan *p = late(plan);

    if (p->count == PLAN_MOST_AHEAD)
        return err_set(e, ERR_INTERNAL, "more passes than may be ahead");
    p->steps[p->count++] = *step;
    if (p->count > most_pending)
        most_pending = p->count;
    *ret_ticket = ++p->given;
    if (runs_until_signal > 0 && --runs_until_signal == 0)
        raise(SIGTERM);
    return 0;
}

static int do_oldest(struct late_plan *p, struct err *e)
{
    struct step step = p->steps[0];

    p->steps[0] = p->steps[1];
    p->count--;
    p->done++;
    return plan_step(p->inner, &step, &p->values[p->done % PLAN_MOST_AHEAD], e);
}

static int late_plan_wait(struct plan *plan,
                          uint64_t ticket,
                          struct step_values *ret_values,
                          struct err *e)
{
    struct late_plan *p = late(plan);

    while (p->done < ticket)
        if (do_oldest(p, e) < 0)
            return -1;
    *ret_values = p->values[ticket % PLAN_MOST_AHEAD];
    return 0;
}

static int between_steps(const struct plan *plan, struct err *e)
{
    return late(plan)->count ? err_set(e, ERR_INTERNAL, "a pass is under way") : 0;
}

static int
late_plan_read(struct plan *plan, int tensor, void *values, size_t bytes, struct err *e)
{
    if (between_steps(plan, e) < 0)
        return -1;
    return plan_read(late(plan)->inner, tensor, values, bytes, e);
}

static int
late_plan_write(struct plan *plan, int tensor, const void *values, size_t bytes, struct err *e)
{
    if (between_steps(plan, e) < 0)
        return -1;
    return plan_write(late(plan)->inner, tensor, values, bytes, e);
}

static void late_plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    plan_memory(late(plan)->inner, ret_memory);
}

static void late_plan_layout(const struct plan *plan, struct str *out)
{
    plan_layout(late(plan)->inner, out);
}

static int late_plan_time(struct plan *plan, bool is_on, struct err *e)
{
    return between_steps(plan, e) < 0 ? -1 : plan_time(late(plan)->inner, is_on, e);
}

static const struct plan_span *late_plan_spans(struct plan *plan, int *ret_count)
{
    assert_int_equal(late(plan)->count, 0);
    return plan_spans(late(plan)->inner, ret_count);
}

static void make_late(void)
{
    backend_late = backend_ref;
    backend_late.name = "late";
    backend_late.returns_early = true;
    backend_late.device_open = late_device_open;
    backend_late.device_free = late_device_free;
    backend_late.device_facts = late_device_facts;
    backend_late.plan_new = late_plan_new;
    backend_late.plan_free = late_plan_free;
    backend_late.plan_run = late_plan_run;
    backend_late.plan_wait = late_plan_wait;
    backend_late.plan_read = late_plan_read;
    backend_late.plan_write = late_plan_write;
    backend_late.plan_memory = late_plan_memory;
    backend_late.plan_layout = late_plan_layout;
    backend_late.plan_time = late_plan_time;
    backend_late.plan_spans = late_plan_spans;
}

/* Called instead of backends_find() (the linker's --wrap): there is no other way in. */
static const struct backend_ops *wanted;

int __wrap_backends_find(const char *name,
                         const char *device,
                         const struct backend_ops **ret_ops,
                         struct err *e);
int __wrap_backends_find(const char *name,
                         const char *device,
                         const struct backend_ops **ret_ops,
                         struct err *e)
{
    (void)name;
    (void)device;
    (void)e;
    *ret_ops = wanted;
    return 0;
}

/* --- a run, and what came of it --------------------------------------------------------------
 */

enum {
    MOST_WORDS = 24,
    PICTURES = 40,
    SIDE = 28,
};

struct outcome {
    char folder[64];
    struct str said; /* stdout without speeds */
    struct err e;
    int rc, signal, most_pending;
};

static void be32(FILE *file, uint32_t value)
{
    for (int i = 3; i >= 0; i--)
        fputc((int)(value >> (8 * i) & 255), file);
}

static void write_digits(const char *folder, const char *split)
{
    auto_free char *images = xasprintf("%s/%s-images-idx3-ubyte", folder, split);
    auto_free char *labels = xasprintf("%s/%s-labels-idx1-ubyte", folder, split);
    FILE *file = fopen(images, "we");

    be32(file, 0x803);
    be32(file, PICTURES);
    be32(file, SIDE);
    be32(file, SIDE);
    for (int i = 0; i < PICTURES * SIDE * SIDE; i++)
        fputc(i * 7919 / 13 & 255, file);
    fclose(file);
    file = fopen(labels, "we");
    be32(file, 0x801);
    be32(file, PICTURES);
    for (int i = 0; i < PICTURES; i++)
        fputc(i % 10, file);
    fclose(file);
}

/* "10\timages/sec: 5 +/- 1 (jitter = 2)\t2.345" keeps step and loss; totals are speeds only. */
static void keep_line(struct outcome *o, const char *line)
{
    const char *speed = strstr(line, "\timages/sec: "), *loss = strstr(line, ")\t");

    if (strstr(line, "total images/sec") || strstr(line, "examples/sec"))
        return;
    if (speed && loss)
        str_addf(&o->said, "%.*s%s\n", (int)(speed - line), line, loss + 1);
    else
        str_addf(&o->said, "%s\n", line);
}

static void keep_said(struct outcome *o, FILE *file)
{
    char line[512];

    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        keep_line(o, line);
    }
}

static void run_words(struct outcome *o, int count, char **words)
{
    auto_str notes = {0};
    auto_flags flags;
    struct comm *comm;
    FILE *out = tmpfile();
    int kept = dup(STDOUT_FILENO);

    assert_int_equal(flags_parse(&flags, count, words, &notes, NULL), 0);
    assert_int_equal(comm_open(&comm, NULL), 0);
    fflush(stdout);
    dup2(fileno(out), STDOUT_FILENO);
    o->rc = run_train(&flags, comm, &o->signal, &o->e);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    keep_said(o, out);
    fclose(out);
    comm_free(comm);
}

/* A signal that ended a run is still pending. */
static void forget_signal(void)
{
    struct timespec now = {0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigtimedwait(&set, NULL, &now);
}

/* Again in the same folder when it has one. */
static void run_once(struct outcome *o, const struct backend_ops *backend, const char *text)
{
    auto_free char *line = xasprintf("--model=trivial --batch_size=4 --display_every=1 "
                                     "--num_intra_threads=1 --train_dir=%s/train %s",
                                     o->folder, text);
    char *words[MOST_WORDS], *rest = line, *word;
    int count = 0;

    while ((word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    wanted = backend;
    most_pending = 0;
    run_words(o, count, words);
    o->most_pending = most_pending;
    forget_signal();
}

static void begin(struct outcome *o)
{
    *o = (struct outcome){.folder = "/tmp/yardbench-ahead-XXXXXX"};
    assert_non_null(mkdtemp(o->folder));
}

static void remove_in(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_free char *path = xasprintf("%s/%s", folder, entry->d_name);

        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void end(struct outcome *o)
{
    auto_free char *train = xasprintf("%s/train", o->folder);

    remove_in(train);
    remove_in(o->folder);
    str_done(&o->said);
}

/* Every file of one folder is in the other, byte for byte; how many there are. */
static int compare_files(const struct outcome *a, const struct outcome *b)
{
    auto_free char *train = xasprintf("%s/train", a->folder);
    DIR *dir = opendir(train);
    struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir))) {
        auto_free char *one = xasprintf("%s/%s", train, entry->d_name);
        auto_free char *other = xasprintf("%s/train/%s", b->folder, entry->d_name);
        auto_str x = {0}, y = {0};

        if (entry->d_name[0] == '.')
            continue;
        assert_int_equal(fs_read(one, 1 << 26, &x, NULL), 0);
        assert_int_equal(fs_read(other, 1 << 26, &y, NULL), 0);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.data, y.data, x.len);
        count++;
    }
    if (dir)
        closedir(dir);
    return count;
}

static void compare(const struct outcome *ref, const struct outcome *other)
{
    assert_int_equal(other->rc, ref->rc);
    assert_int_equal(other->signal, ref->signal);
    if (ref->rc < 0)
        assert_string_equal(other->e.msg, ref->e.msg);
    assert_string_equal(str_text((struct str *)&other->said),
                        str_text((struct str *)&ref->said));
    assert_int_equal(compare_files(ref, other), compare_files(other, ref));
}

/* --- the tests -------------------------------------------------------------------------------
 */

/* The same words on both, run after run. */
static void compare_runs(const char *const *texts, int files, int pending)
{
    struct outcome ref, other;

    begin(&ref);
    begin(&other);
    for (; *texts; texts++) {
        run_once(&ref, &backend_ref, *texts);
        run_once(&other, &backend_late, *texts);
        assert_int_equal(ref.most_pending, 0);
        assert_int_equal(other.most_pending, pending);
        compare(&ref, &other);
    }
    assert_int_equal(compare_files(&ref, &other), files);
    end(&ref);
    end(&other);
}

static char digits[] = "/tmp/yardbench-digits-XXXXXX";

static void of_digits(const char *text, int files, int pending)
{
    auto_free char *line = xasprintf("--data_dir=%s %s", digits, text);

    compare_runs((const char *const[]){line, NULL}, files, pending);
}

static void steps_are_handed_over_ahead(void **state)
{
    (void)state;
    compare_runs((const char *const[]){"--data_name=mnist --num_batches=12 "
                                       "--num_warmup_batches=3 --optimizer=momentum",
                                       NULL},
                 1, 2);
    of_digits("--num_batches=12 --num_warmup_batches=3 --distortions --optimizer=adam", 1, 2);
    of_digits("--num_batches=1 --num_warmup_batches=0", 1, 1);
    of_digits("--num_batches=6 --forward_only", 0, 2);
}

static void checkpoints_and_evaluations_see_their_own_step(void **state)
{
    (void)state;
    of_digits("--num_batches=11 --num_warmup_batches=2 --save_model_steps=4 "
              "--eval_during_training_every_n_steps=3 --optimizer=momentum",
              3, 2);
    of_digits("--num_batches=4 --num_warmup_batches=0 --save_model_steps=1", 4, 1);
    of_digits("--num_batches=4 --num_warmup_batches=0 --eval_during_training_at_specified_steps"
              "=1,3 --print_training_accuracy",
              1, 2);
}

static void passes_of_a_step_go_ahead_too(void **state)
{
    (void)state;
    of_digits("--num_batches=6 --num_warmup_batches=1 --gradient_accumulation_steps=3 "
              "--save_model_steps=4",
              2, 2);
    of_digits("--num_batches=2 --num_warmup_batches=0 --gradient_accumulation_steps=2 "
              "--save_model_steps=1",
              2, 2);
}

static void a_run_goes_on_from_its_checkpoint(void **state)
{
    auto_free char *first =
        xasprintf("--data_dir=%s --num_batches=5 --num_warmup_batches=1", digits);
    auto_free char *second =
        xasprintf("--data_dir=%s --num_batches=9 --num_warmup_batches=1", digits);

    (void)state;
    compare_runs((const char *const[]){first, second, NULL}, 2, 2);
}

static void a_dynamic_scale_skips_the_same_steps(void **state)
{
    (void)state;
    of_digits("--num_batches=10 --num_warmup_batches=2 --use_fp16 --fp16_loss_scale=1e8 "
              "--fp16_enable_auto_loss_scale",
              1, 2);
}

static void ops_are_timed_between_steps(void **state)
{
    auto_free char *text = xasprintf("--num_batches=4 --num_warmup_batches=3 "
                                     "--trace_file=%s/trace.json",
                                     digits);

    (void)state;
    of_digits(text, 1, 2);
}

static void a_loss_that_is_not_finite_is_its_own_step_s(void **state)
{
    (void)state;
    of_digits("--num_batches=20 --num_warmup_batches=1 --init_learning_rate=1e30", 0, 2);
}

/* The step that was under way is finished, and the checkpoint is of that one: the same as a
 * run of so many steps leaves. */
static void a_signal_ends_the_run_after_what_is_under_way(void **state)
{
    static const char flags[] = "--data_name=mnist --num_warmup_batches=2 --num_batches=";
    struct outcome late_run, whole;
    auto_free char *path = NULL, *train = NULL, *again = NULL;
    auto_free char *text = xasprintf("%s1000", flags);
    struct checkpoint_facts facts;

    (void)state;
    begin(&late_run);
    begin(&whole);
    runs_until_signal = 7;
    run_once(&late_run, &backend_late, text);
    assert_int_equal(late_run.rc, 0);
    assert_int_equal(late_run.signal, SIGTERM);
    train = xasprintf("%s/train", late_run.folder);
    assert_int_equal(checkpoint_latest(train, &path, NULL), 0);
    assert_int_equal(checkpoint_facts_of(path, &facts, NULL), 0);
    /* It came with pass 7 handed over and 6 not waited for: both are done, and nothing else. */
    assert_int_equal(facts.step, 7);
    assert_int_equal(facts.batches, 7);
    assert_non_null(strstr(str_text(&late_run.said), "\n5\t"));
    assert_null(strstr(str_text(&late_run.said), "\n6\t"));
    again = xasprintf("%s5", flags);
    run_once(&whole, &backend_ref, again);
    assert_int_equal(compare_files(&late_run, &whole), 1);
    end(&late_run);
    end(&whole);
}

static int make_digits(void **state)
{
    (void)state;
    make_late();
    if (!mkdtemp(digits))
        return -1;
    write_digits(digits, "train");
    write_digits(digits, "t10k");
    return 0;
}

static int drop_digits(void **state)
{
    (void)state;
    remove_in(digits);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_handed_over_ahead),
        cmocka_unit_test(checkpoints_and_evaluations_see_their_own_step),
        cmocka_unit_test(passes_of_a_step_go_ahead_too),
        cmocka_unit_test(a_run_goes_on_from_its_checkpoint),
        cmocka_unit_test(a_dynamic_scale_skips_the_same_steps),
        cmocka_unit_test(ops_are_timed_between_steps),
        cmocka_unit_test(a_loss_that_is_not_finite_is_its_own_step_s),
        cmocka_unit_test(a_signal_ends_the_run_after_what_is_under_way),
    };

    return cmocka_run_group_tests(tests, make_digits, drop_digits);
}
