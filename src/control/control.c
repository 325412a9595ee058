/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control-internal.h"

#include "control/conductor.h"
#include "control/principals.h"
#include "core/vmsize.h"
#include "engine/engine.h"
#include "store/store.h"

static void *acting_main(void *arg)
{
    struct control *control = arg;

    pthread_setname_np(pthread_self(), "control");
    control_start_sweeping(control);
    loop_run(control->loop);
    loop_timer_cancel(&control->sweep);
    control_answer_last(control);
    if (control->conductor)
        conductor_stop(control->conductor);
    return NULL;
}

/* Everything that is read before the writer thread owns the connection. */
static int recover(struct control *control, struct db *db, struct err *e)
{
    if (store_last_version(db, &control->last_version, e) < 0 ||
        store_last_resource(db, &control->last_resource, e) < 0)
        return -1;
    if (principals_load(control->principals, db, e) < 0)
        return -1;
    return control_act_on_all(control, db, e);
}

/* "host" is what the engine has. */
static int make_sizes(struct control *control, struct err *e)
{
    struct engine *engine = control->conductor ? conductor_engine(control->conductor) : NULL;
    struct engine_capacity capacity = {.cores = 1, .memory_mib = 1024};

    if (engine)
        engine->ops->capacity(engine, &capacity);
    control->sizes = vmsizes_new(capacity.cores, capacity.memory_mib, capacity.gpus);
    return control->config.vm_sizes ? vmsizes_add(control->sizes, control->config.vm_sizes, e)
                                    : 0;
}

const struct vmsizes *control_sizes(const struct control *control)
{
    return control->sizes;
}

static int make_conductor(struct control *control, struct err *e)
{
    if (control->config.make_engine && conductor_new(control, &control->conductor, e) < 0)
        return -1;
    return make_sizes(control, e);
}

static void start_conductor(void *arg)
{
    conductor_start(arg);
}

void control_resume(struct control *control)
{
    if (control->conductor)
        loop_post(control->loop, start_conductor, control->conductor);
}

int control_new(struct db *db,
                const struct control_config *config,
                struct control **ret_control,
                struct err *e)
{
    struct db_writer_config writer_config = {
        .most_per_commit = config->most_per_commit,
        .broken = config->broken,
        .context = config->context,
    };
    struct control *control = xcalloc(1, sizeof(*control));
    int rc;

    control->config = *config;
    control->principals = principals_new();
    pthread_mutex_init(&control->errands_lock, NULL);
    pthread_mutex_init(&control->questions_lock, NULL);
    pthread_mutex_init(&control->watch_lock, NULL);
    if (loop_new(&control->loop, e) < 0 || make_conductor(control, e) < 0 ||
        recover(control, db, e) < 0 ||
        db_writer_new(db, &writer_config, &control->writer, e) < 0) {
        if (!control->writer)
            db_free(db);
        control_free(control);
        return -1;
    }
    rc = pthread_create(&control->thread, NULL, acting_main, control);
    if (rc != 0) {
        control->thread = 0; /* undefined after a failure */
        control_free(control);
        return err_sys(e, rc, "could not start the control thread");
    }
    *ret_control = control;
    return 0;
}

void control_free(struct control *control)
{
    if (!control)
        return;
    if (control->thread) {
        loop_stop(control->loop);
        pthread_join(control->thread, NULL);
    } else if (control->conductor) {
        conductor_stop(control->conductor);
    }
    db_writer_free(control->writer);
    conductor_free(control->conductor);
    vmsizes_free(control->sizes);
    control_drop_errands(control);
    loop_free(control->loop);
    principals_free(control->principals);
    free(control->parent.key);
    pthread_mutex_destroy(&control->errands_lock);
    pthread_mutex_destroy(&control->questions_lock);
    pthread_mutex_destroy(&control->watch_lock);
    free(control);
}

struct principals *control_principals(struct control *control)
{
    return control->principals;
}

void control_writer_counts(struct control *control, struct db_writer_counts *ret_counts)
{
    db_writer_counts(control->writer, ret_counts);
}

uint64_t control_generation(struct control *control)
{
    return db_writer_generation(control->writer);
}
