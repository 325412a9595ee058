/* The conductor with an engine that does what the test says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "control/conductor.h"

#include "base/json.h"
#include "control/test/desk.h"
#include "engine/engine.h"
#include "loop/loop.h"

#include <sys/resource.h>
#include <sys/stat.h>

#define SPACE OURS "/providers/Microsoft.BatchAI/workspaces/w"
#define TRIAL SPACE "/experiments/x"

enum {
    MOST_TOLD = 64,
};

/* What the engine was told. */
struct told {
    int nodes_added, nodes_removed, stopped, forgotten, resumed, discarded;
    char discard[256];
    char started[MOST_TOLD][64]; /* uuids */
    int64_t started_ids[MOST_TOLD];
    int started_count;
    int recorded_first; /* starts whose attempt was in the tables by then */
    char segment[256], secret[64], workspace[64], experiment[64], job[64];
};

/* The engine, and the thread it reports on. */
struct fake {
    struct engine engine;
    struct engine_events events;
    struct loop *loop;
    struct desk *desk;
    const char *file_servers;
    bool is_up;   /* nodes come up at once */
    bool is_down; /* attempts are held until the test ends them */
    pthread_mutex_t lock;
    struct told told; /* under the lock */
};

static struct told look(struct fake *fake)
{
    struct told told;

    pthread_mutex_lock(&fake->lock);
    told = fake->told;
    pthread_mutex_unlock(&fake->lock);
    return told;
}

/* Count one of the told things. */
static void count_up(struct fake *fake, int *counter)
{
    pthread_mutex_lock(&fake->lock);
    ++*counter;
    pthread_mutex_unlock(&fake->lock);
}

struct report {
    struct fake *fake;
    int64_t id;
    int what;
    int code;
};

static void report(void *arg)
{
    struct report *r = arg;
    const struct engine_events *events = &r->fake->events;
    const struct attempt_result result = {
        .end = r->code < 0 ? ENDED_STOPPED : ENDED_EXITED, .exit_code = r->code, .rank = -1};

    switch (r->what) {
    case 'u':
        events->node_up(events->context, r->id);
        break;
    case 'g':
        events->node_gone(events->context, r->id);
        break;
    case 'r':
        events->attempt_running(events->context, r->id);
        break;
    case 'e':
        events->attempt_ended(events->context, r->id, &result, 0, 0);
        break;
    }
    free(r);
}

static void say(struct fake *fake, int what, int64_t id, int code)
{
    struct report *r = xmalloc(sizeof(*r));

    *r = (struct report){.fake = fake, .id = id, .what = what, .code = code};
    loop_post(fake->loop, report, r);
}

static void fake_capacity(struct engine *engine, struct engine_capacity *ret)
{
    (void)engine;
    *ret = (struct engine_capacity){.cores = 8, .memory_mib = 8192};
}

static void fake_node_add(struct engine *engine, const struct engine_node *node)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    count_up(fake, &fake->told.nodes_added);
    if (fake->is_up)
        say(fake, 'u', node->id, 0);
}

static void fake_node_remove(struct engine *engine, int64_t id)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    count_up(fake, &fake->told.nodes_removed);
    say(fake, 'g', id, 0);
}

static void fake_start(struct engine *engine, const struct engine_attempt *a)
{
    struct fake *fake = container_of(engine, struct fake, engine);
    const json_t *secrets = json_object_get(a->spec, "secrets");
    const char *secret =
        json_string_value(json_object_get(json_array_get(secrets, 0), "value"));

    struct told *told = &fake->told;
    bool is_recorded = count(fake->desk, "SELECT count(*) FROM attempt") > 0;

    pthread_mutex_lock(&fake->lock);
    told->recorded_first += is_recorded;
    snprintf(told->segment, sizeof(told->segment), "%s", a->segment);
    snprintf(told->secret, sizeof(told->secret), "%s", secret ? secret : "");
    snprintf(told->workspace, sizeof(told->workspace), "%s", a->workspace);
    snprintf(told->experiment, sizeof(told->experiment), "%s", a->experiment);
    snprintf(told->job, sizeof(told->job), "%s", a->job);
    snprintf(told->started[told->started_count], sizeof(told->started[0]), "%s", a->uuid);
    told->started_ids[told->started_count++] = a->id;
    pthread_mutex_unlock(&fake->lock);
    say(fake, 'r', a->id, 0);
    if (!fake->is_down)
        say(fake, 'e', a->id, 0);
}

static void fake_stop(struct engine *engine, int64_t id)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    count_up(fake, &fake->told.stopped);
    say(fake, 'e', id, -1);
}

static void fake_forget(struct engine *engine, const char *uuid)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    (void)uuid;
    count_up(fake, &fake->told.forgotten);
}

static void fake_discard(struct engine *engine, const char *folder)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    pthread_mutex_lock(&fake->lock);
    fake->told.discarded++;
    snprintf(fake->told.discard, sizeof(fake->told.discard), "%s", folder);
    pthread_mutex_unlock(&fake->lock);
}

static void fake_resumed(struct engine *engine)
{
    struct fake *fake = container_of(engine, struct fake, engine);

    count_up(fake, &fake->told.resumed);
}

static void fake_free(struct engine *engine)
{
    (void)engine;
}

static const struct engine_ops fake_ops = {
    .name = "fake",
    .capacity = fake_capacity,
    .node_add = fake_node_add,
    .node_remove = fake_node_remove,
    .attempt_start = fake_start,
    .attempt_stop = fake_stop,
    .attempt_forget = fake_forget,
    .discard = fake_discard,
    .resumed = fake_resumed,
    .free = fake_free,
};

static int make_fake(struct loop *loop,
                     const struct engine_events *events,
                     void *context,
                     struct engine **ret_engine,
                     struct err *e)
{
    struct fake *fake = context;

    (void)e;
    fake->engine.ops = &fake_ops;
    fake->events = *events;
    fake->loop = loop;
    *ret_engine = &fake->engine;
    return 0;
}

static int no_folder(const struct volume *v, void *context, char **ret_path, struct err *e)
{
    (void)v;
    (void)context;
    (void)ret_path;
    return err_set(e, ERR_NOT_FOUND, "there are no volumes here");
}

/* More sizes that the settings have; NULL = none. */
static const char *vm_sizes;

static void start(struct desk *d, struct fake *fake)
{
    struct control_config config = {
        .pool = d->pool,
        .vault = &d->vault,
        .make_engine = make_fake,
        .volume_folder = no_folder,
        .limits = {.oversubscribe = true, .most_nodes = 100},
        .most_attempts = 3,
        .vm_sizes = vm_sizes,
        .file_servers = fake->file_servers ? fake->file_servers : "/nowhere",
        .context = fake,
    };
    struct err e = {0};

    fake->desk = d;
    assert_ok(control_new(take_ptr(&d->yard.db), &config, &d->control, &e), &e);
    control_resume(d->control);
}

/* is_there: it is changed, at once; else made, by an operation that must succeed. */
static void put_text(struct desk *d,
                     enum resource_kind kind,
                     const char *parent,
                     const char *name,
                     const char *properties,
                     const char *secrets,
                     bool is_there)
{
    auto_json json_t *kept = json_loads(properties, 0, NULL);
    auto_json json_t *hidden = secrets ? json_loads(secrets, 0, NULL) : NULL;
    struct control_put put = {
        .kind = kind, .parent_id = parent, .name = name, .properties = kept, .secrets = hidden};
    auto_change change = ask("Put");

    assert_non_null(kept);
    control_put_resource(d->control, change, &put);
    expect_ok(change);
    if (is_there) {
        assert_null(change->operation);
        return;
    }
    assert_non_null(change->operation);
    assert_int_equal(change->operation->state, OPERATION_SUCCEEDED);
}

static void put_json(struct desk *d,
                     enum resource_kind kind,
                     const char *parent,
                     const char *name,
                     const char *properties,
                     const char *secrets)
{
    put_text(d, kind, parent, name, properties, secrets, false);
}

static void have_cluster(struct desk *d, const char *name, int target)
{
    auto_free char *text = xasprintf(
        "{\"vmSize\": \"host\", \"scaleSettings\": {\"manual\": {\"targetNodeCount\": "
        "%d, \"nodeDeallocationOption\": \"requeue\"}}}",
        target);

    put_json(d, RESOURCE_CLUSTER, SPACE, name, text, NULL);
}

#define JOB_TEXT                                                                               \
    "{\"cluster\": {\"id\": \"" SPACE "/clusters/c\"}, \"nodeCount\": %d,"                     \
    " \"schedulingPriority\": \"normal\", \"stdOutErrPathPrefix\": \"/tmp\","                  \
    " \"secrets\": [{\"name\": \"S\"}], \"customToolkitSettings\": {\"commandLine\": "         \
    "\"true\"},"                                                                               \
    " \"constraints\": {\"maxWallClockTime\": \"P7D\"}}"

static void have_job(struct desk *d, const char *name, int nodes)
{
    auto_free char *text = xasprintf(JOB_TEXT, nodes);

    put_json(d, RESOURCE_JOB, TRIAL, name, text, "{\"/secrets/0/value\": \"hush\"}");
}

static void begin(struct desk *d, struct fake *fake, bool is_down)
{
    *fake = (struct fake){.is_up = true, .is_down = is_down};
    pthread_mutex_init(&fake->lock, NULL);
    desk_init(d);
    start(d, fake);
    have(d, RESOURCE_GROUP, SUB_A, "ours");
    have(d, RESOURCE_WORKSPACE, OURS, "w");
    have(d, RESOURCE_EXPERIMENT, SPACE, "x");
}

static void a_job_runs_on_the_nodes_of_its_cluster(void **state)
{
    struct fake fake;
    struct told told;
    struct desk d;

    (void)state;
    begin(&d, &fake, false);
    have_cluster(&d, "c", 2);
    eventually(&d, "SELECT count(*) FROM node WHERE state = 1", 2);
    have_job(&d, "j", 2);
    eventually(&d, "SELECT count(*) FROM job_state WHERE state = 3 AND exit_code = 0", 1);
    eventually(&d, "SELECT count(*) FROM node WHERE state = 1 AND attempt_id = 0", 2);
    assert_int_equal(count(&d, "SELECT count(*) FROM attempt WHERE state = 3"), 1);
    assert_int_equal(look(&fake).started_count, 1);
    assert_int_equal(look(&fake).recorded_first, 1);
    told = look(&fake);
    assert_string_equal(told.workspace, "w");
    assert_string_equal(told.experiment, "x");
    assert_string_equal(told.job, "j");
    assert_string_equal(told.secret, "hush");
    assert_non_null(strstr(told.segment, SUB_A_ID "/ours/workspaces/w/experiments/x/jobs/j/"));
    assert_int_equal(look(&fake).resumed, 1);
    desk_done(&d);
}

static void a_secret_is_not_in_the_tables_as_it_is(void **state)
{
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, false);
    have_cluster(&d, "c", 0);
    have_job(&d, "j", 1);
    assert_int_equal(count(&d, "SELECT count(*) FROM resource WHERE properties LIKE '%hush%'"),
                     0);
    assert_int_equal(count(&d, "SELECT count(*) FROM secret WHERE sealed LIKE '%hush%'"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM secret WHERE name = 'spec'"), 1);
    desk_done(&d);
}

static void an_attempt_under_way_is_said_again_after_a_restart(void **state)
{
    struct fake fake;
    struct told told;
    char first[64];
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    have_cluster(&d, "c", 1);
    have_job(&d, "j", 1);
    eventually(&d, "SELECT count(*) FROM attempt WHERE state = 1", 1);
    told = look(&fake);
    snprintf(first, sizeof(first), "%s", told.started[0]);
    desk_stop(&d);

    fake.told = (struct told){0};
    start(&d, &fake);
    for (int i = 0; i < 5000 && !look(&fake).resumed; i++)
        usleep(1000);
    assert_int_equal(look(&fake).resumed, 1);
    assert_int_equal(look(&fake).nodes_added, 1);
    assert_int_equal(look(&fake).started_count, 1);
    told = look(&fake);
    assert_string_equal(told.started[0], first);
    say(&fake, 'e', told.started_ids[0], 7);
    eventually(&d, "SELECT exit_code FROM job_state", 7);
    assert_int_equal(count(&d, "SELECT count(*) FROM attempt"), 1);
    desk_done(&d);
}

static void put_tiny(struct desk *d, int target, bool is_there)
{
    auto_free char *text = xasprintf("{\"vmSize\": \"tiny\", \"scaleSettings\": {\"manual\": "
                                     "{\"targetNodeCount\": %d, \"nodeDeallocationOption\": "
                                     "\"requeue\"}}}",
                                     target);

    put_text(d, RESOURCE_CLUSTER, SPACE, "c", text, NULL, is_there);
}

/* Somebody took the size out of the settings, and restarted. */
static void a_job_goes_on_when_the_size_of_its_nodes_is_known_no_more(void **state)
{
    struct fake fake;
    struct told told;
    struct desk d;

    (void)state;
    vm_sizes = "tiny 1 1 0";
    begin(&d, &fake, true);
    put_tiny(&d, 1, false);
    have_job(&d, "j", 1);
    eventually(&d, "SELECT count(*) FROM attempt WHERE state = 1", 1);
    desk_stop(&d);

    vm_sizes = NULL;
    fake.told = (struct told){0};
    start(&d, &fake);
    for (int i = 0; i < 5000 && !look(&fake).resumed; i++)
        usleep(1000);
    told = look(&fake);
    assert_int_equal(told.nodes_added, 1);
    assert_int_equal(told.started_count, 1);
    say(&fake, 'e', told.started_ids[0], 7);
    eventually(&d, "SELECT exit_code FROM job_state", 7);
    /* A new node cannot be had. */
    put_tiny(&d, 2, true);
    eventually(&d,
               "SELECT count(*) FROM node WHERE state = 4 AND error_message LIKE "
               "'there is no VM size \"tiny\"%'",
               1);
    desk_done(&d);
}

static void a_running_job_that_is_terminated_is_stopped_first(void **state)
{
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    have_cluster(&d, "c", 1);
    have_job(&d, "j", 1);
    eventually(&d, "SELECT count(*) FROM attempt WHERE state = 1", 1);
    {
        auto_change change = ask("Terminate");

        control_terminate_job(d.control, change, TRIAL "/jobs/j", "j");
        expect_ok(change);
        assert_non_null(change->operation);
    }
    eventually(&d, "SELECT count(*) FROM operation WHERE kind = 2 AND state = 1", 1);
    assert_int_equal(look(&fake).stopped, 1);
    assert_int_equal(count(&d, "SELECT state FROM job_state"), JOB_FAILED);
    assert_int_equal(
        count(&d, "SELECT count(*) FROM job_state WHERE error_code = 'JobTerminated'"), 1);
    {
        auto_change again = ask("Terminate");

        control_terminate_job(d.control, again, TRIAL "/jobs/j", "j");
        expect_ok(again);
        assert_null(again->operation); /* it has ended: nothing goes on */
    }
    desk_done(&d);
}

static void deleting_a_workspace_lets_jobs_and_nodes_go_first(void **state)
{
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    have_cluster(&d, "c", 2);
    have_job(&d, "j", 1);
    have_job(&d, "waits", 2);
    eventually(&d, "SELECT count(*) FROM attempt WHERE state = 1", 1);
    {
        auto_change change = delete_it(&d, RESOURCE_WORKSPACE, SPACE, false);

        expect_ok(change);
    }
    eventually(&d, "SELECT count(*) FROM resource", 1); /* the group */
    assert_int_equal(look(&fake).stopped, 1);
    assert_int_equal(look(&fake).nodes_removed, 2);
    assert_int_equal(count(&d, "SELECT count(*) FROM node"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM job_state"), 0);
    assert_int_equal(count(&d, "SELECT count(*) FROM operation WHERE state = 0"), 0);
    desk_done(&d);
}

static void have_tree(struct fake *fake, int64_t row)
{
    auto_free char *path = xasprintf("%s/%lld", fake->file_servers, (long long)row);

    assert_int_equal(mkdir(path, 0755), 0);
}

static void drop_tree(struct fake *fake, int64_t row)
{
    auto_free char *path = xasprintf("%s/%lld", fake->file_servers, (long long)row);

    assert_int_equal(rmdir(path), 0);
}

static void await_discarded(struct fake *fake, int64_t row)
{
    auto_free char *path = xasprintf("%s/%lld", fake->file_servers, (long long)row);
    struct told told;

    for (int i = 0; i < 5000 && !look(fake).discarded; i++)
        usleep(1000);
    told = look(fake);
    assert_int_equal(told.discarded, 1);
    assert_string_equal(told.discard, path);
    drop_tree(fake, row);
}

static void a_deleted_file_server_takes_its_tree_with_it(void **state)
{
    char folder[] = "/tmp/yard-servers-XXXXXX";
    struct fake fake = {.is_up = true, .lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t kept, gone;
    struct desk d;

    (void)state;
    fake.file_servers = mkdtemp(folder);
    desk_init(&d);
    have_tree(&fake, 999); /* of before a crash */
    start(&d, &fake);
    await_discarded(&fake, 999);
    fake.told = (struct told){0};
    have(&d, RESOURCE_GROUP, SUB_A, "ours");
    have(&d, RESOURCE_WORKSPACE, OURS, "w");
    put_json(&d, RESOURCE_FILE_SERVER, SPACE, "kept", "{}", NULL);
    put_json(&d, RESOURCE_FILE_SERVER, SPACE, "gone", "{}", NULL);
    kept = count(&d, "SELECT id FROM resource WHERE name = 'kept'");
    gone = count(&d, "SELECT id FROM resource WHERE name = 'gone'");
    have_tree(&fake, kept);
    have_tree(&fake, gone);
    {
        auto_change change = delete_it(&d, RESOURCE_FILE_SERVER, SPACE "/fileservers/gone", 0);

        expect_ok(change);
    }
    await_discarded(&fake, gone);
    desk_done(&d);
    drop_tree(&fake, kept);
    assert_int_equal(rmdir(folder), 0);
}

/* No descriptor is left when the conductor wants to read the job. */
static void a_job_that_cannot_be_read_now_is_read_later(void **state)
{
    struct store_reader held[64] = {0};
    struct rlimit before, none;
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, false);
    have_cluster(&d, "c", 1);
    eventually(&d, "SELECT count(*) FROM node WHERE state = 1", 1);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    for (size_t i = 0; i < 64 && store_pool_take(d.pool, &held[i], NULL) == 0; i++)
        continue;
    have_job(&d, "j", 1);
    usleep(50 * 1000);
    setrlimit(RLIMIT_NOFILE, &before);
    for (size_t i = 0; i < 64; i++)
        store_reader_done(&held[i]);
    eventually(&d, "SELECT count(*) FROM job_state WHERE state = 3 AND exit_code = 0", 1);
    desk_done(&d);
}

static void a_job_without_its_cluster_is_refused(void **state)
{
    auto_free char *text = xasprintf(JOB_TEXT, 1);
    auto_json json_t *kept = json_loads(text, 0, NULL);
    struct control_put put = {
        .kind = RESOURCE_JOB, .parent_id = TRIAL, .name = "j", .properties = kept};
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    {
        auto_change change = ask("Put");

        control_put_resource(d.control, change, &put);
        expect_refused(change, ERR_NOT_FOUND, "ClusterNotFound");
    }
    assert_int_equal(count(&d, "SELECT count(*) FROM job_state"), 0);
    desk_done(&d);
}

static void another_job_of_the_same_name_is_refused(void **state)
{
    auto_free char *text = xasprintf(JOB_TEXT, 2);
    auto_json json_t *kept = json_loads(text, 0, NULL);
    struct control_put put = {
        .kind = RESOURCE_JOB, .parent_id = TRIAL, .name = "j", .properties = kept};
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    have_cluster(&d, "c", 0);
    have_job(&d, "j", 1);
    {
        auto_change change = ask("Put");

        control_put_resource(d.control, change, &put);
        expect_refused(change, ERR_CONFLICT, "ResourceExists");
    }
    desk_done(&d);
}

/* It would run with the old ones, and nobody would know. */
static void the_same_job_with_other_secrets_is_refused(void **state)
{
    auto_free char *text = xasprintf(JOB_TEXT, 1);
    auto_json json_t *kept = json_loads(text, 0, NULL);
    auto_json json_t *secrets = json_pack("{s:s}", "/secrets/0/value", "hush");
    struct control_put put = {.kind = RESOURCE_JOB,
                              .parent_id = TRIAL,
                              .name = "j",
                              .properties = kept,
                              .secrets = secrets};
    struct fake fake;
    struct desk d;

    (void)state;
    begin(&d, &fake, true);
    have_cluster(&d, "c", 0);
    have_job(&d, "j", 1);
    {
        auto_change same = ask("Put");

        control_put_resource(d.control, same, &put);
        expect_ok(same);
    }
    json_object_set_new(secrets, "/secrets/0/value", json_string("shout"));
    {
        auto_change other = ask("Put");

        control_put_resource(d.control, other, &put);
        expect_refused(other, ERR_CONFLICT, "ResourceExists");
    }
    desk_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_on_the_nodes_of_its_cluster),
        cmocka_unit_test(a_secret_is_not_in_the_tables_as_it_is),
        cmocka_unit_test(an_attempt_under_way_is_said_again_after_a_restart),
        cmocka_unit_test(a_job_goes_on_when_the_size_of_its_nodes_is_known_no_more),
        cmocka_unit_test(a_running_job_that_is_terminated_is_stopped_first),
        cmocka_unit_test(deleting_a_workspace_lets_jobs_and_nodes_go_first),
        cmocka_unit_test(a_deleted_file_server_takes_its_tree_with_it),
        cmocka_unit_test(a_job_that_cannot_be_read_now_is_read_later),
        cmocka_unit_test(a_job_without_its_cluster_is_refused),
        cmocka_unit_test(another_job_of_the_same_name_is_refused),
        cmocka_unit_test(the_same_job_with_other_secrets_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
