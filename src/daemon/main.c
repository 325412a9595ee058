/* yardd - the service.  Builds everything, waits for a signal, takes everything down.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "control/vault.h"
#include "daemon/home.h"
#include "daemon/listen.h"
#include "daemon/settings.h"
#include "daemon/storage.h"
#include "daemon/work.h"
#include "http/server.h"
#include "http/tls.h"
#include "store/backup.h"
#include "store/pool.h"
#include "store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_RESTART = 75, /* a supervisor that passed us sockets starts us again */
};

/* The one context: every part, in the order it is made. */
struct daemon {
    struct settings settings;
    struct home home;
    struct vault vault;
    char *subscription_id, *tenant_id;
    char *file_servers;
    struct store_pool *pool;
    struct control *control;
    struct listen_names names;
    struct http_tls *tls;
    struct storage *storage;
    struct api *api;
    struct http_server *server;
    char *api_url, *http_url, *ca_file;
    atomic_bool restart, broken;
};

/* Callbacks wake the main thread by a signal: it is waiting for one anyway. */
static void on_restart(void *context)
{
    struct daemon *d = context;

    d->restart = true;
    kill(getpid(), SIGTERM);
}

static void on_broken(const struct err *why, void *context)
{
    struct daemon *d = context;

    log_error("event=database error=\"%s\" next=exit", why->msg);
    d->broken = true;
    kill(getpid(), SIGTERM);
}

/* No account is made or removed before the server starts, and by then the storage is open. */
static int on_purge_account(const char *account, void *context, struct err *e)
{
    struct daemon *d = context;

    return storage_purge(d->storage, account, e);
}

static int on_make_engine(struct loop *loop,
                          const struct engine_events *events,
                          void *context,
                          struct engine **ret_engine,
                          struct err *e)
{
    struct daemon *d = context;

    return work_make_engine(&d->settings, &d->home, loop, events, ret_engine, e);
}

static int
on_volume_folder(const struct volume *volume, void *context, char **ret_path, struct err *e)
{
    struct daemon *d = context;

    return work_volume_folder(&d->home, volume, ret_path, e);
}

static int open_state(struct daemon *d, struct err *e)
{
    struct control_config config = {
        .vault = &d->vault,
        .most_per_commit = (size_t)d->settings.most_per_commit,
        .keep_events_ms = (int64_t)d->settings.audit_days * 24 * 60 * 60 * 1000,
        .purge_account = on_purge_account,
        .broken = on_broken,
        .make_engine = on_make_engine,
        .volume_folder = on_volume_folder,
        .context = d,
    };
    autoptr(db) db = NULL;
    bool restored;

    if (work_configure(&d->settings, &d->home, &config, &d->file_servers, e) < 0)
        return -1;
    if (store_take_over_restore(d->home.folder, d->home.db_path, &restored, e) < 0)
        return -1;
    if (restored)
        log_info("event=restore state=done kept=\"%s.before-restore\"", d->home.db_path);
    if (store_open(d->home.db_path, &db, e) < 0 ||
        vault_open(d->home.key_path, db, &d->vault, e) < 0 ||
        home_facts(db, &d->subscription_id, &d->tenant_id, e) < 0 ||
        home_owner(&d->home, db, e) < 0)
        return -1;
    d->pool = store_pool_new(d->home.db_path);
    config.pool = d->pool;
    return control_new(take_ptr(&db), &config, &d->control, e);
}

static int open_storage(struct daemon *d, struct err *e)
{
    const struct storage_parts parts = {
        .settings = &d->settings,
        .home = &d->home,
        .names = &d->names,
        .control = d->control,
        .pool = d->pool,
        .vault = &d->vault,
        .tenant_id = d->tenant_id,
        .broken = on_broken,
        .context = d,
    };

    if (storage_open(&parts, &d->storage, e) < 0)
        return -1;
    control_purge_doomed(d->control);
    control_resume(d->control);
    return 0;
}

static int on_scrub(void (*finding)(const char *name, bool ok, const char *detail, void *to),
                    void *to,
                    void *context,
                    struct err *e)
{
    struct daemon *d = context;

    return storage_scrub(d->storage, finding, to, e);
}

static void make_api(struct daemon *d)
{
    const struct api_config config = {
        .home = d->home.folder,
        .db_path = d->home.db_path,
        .subscription_id = d->subscription_id,
        .tenant_id = d->tenant_id,
        .control = d->control,
        .pool = d->pool,
        .vault = &d->vault,
        .hosts = d->names.names,
        .host_count = d->names.count,
        .max_body_bytes = (size_t)d->settings.max_body_kib * 1024,
        .backup_files = home_backup_files,
        .restart = on_restart,
        .scrub = on_scrub,
        .context = d,
    };

    d->api = api_new(&config);
}

static int open_server(struct daemon *d, struct err *e)
{
    struct http_config config;

    http_config_init(&config);
    /* A blob's name has 1024 characters, of 12 bytes when percent-encoded; and a SAS follows.
     */
    config.max_line_bytes = 16 * 1024;
    config.threads = d->settings.threads;
    config.max_connections = (size_t)d->settings.max_connections;
    config.on_request = api_on_request;
    config.on_done = api_on_done;
    config.context = d->api;
    if (http_server_new(&config, &d->server, e) < 0 ||
        listen_open(&d->settings, d->server, d->tls, &d->api_url, &d->http_url, e) < 0 ||
        storage_listen(d->storage, d->server, d->tls, e) < 0)
        return -1;
    api_set_server(d->api, d->server);
    api_set_storage(d->api, storage_blob_url(d->storage), storage_file_url(d->storage));
    api_set_stores(d->api, storage_blobs(d->storage), storage_files(d->storage));
    return http_server_start(d->server, e);
}

static int announce(struct daemon *d, struct err *e)
{
    struct home_addresses where = {
        .api_url = d->api_url,
        .http_url = d->http_url,
        .blob_url = storage_blob_url(d->storage),
        .file_url = storage_file_url(d->storage),
        .ca_file = d->ca_file,
        .subscription_id = d->subscription_id,
        .tenant_id = d->tenant_id,
    };

    if (home_announce(&d->home, &where, e) < 0)
        return -1;
    log_info("event=ready version=%s home=\"%s\" api=%s page=%s blob=%s file=%s", YARD_VERSION,
             d->home.folder, d->api_url, d->http_url, where.blob_url, where.file_url);
    return 0;
}

static int start(struct daemon *d, struct err *e)
{
    if (home_open(d->settings.home, &d->home, e) < 0 || open_state(d, e) < 0 ||
        listen_names_read(&d->settings, &d->names, e) < 0 ||
        listen_tls(&d->settings, &d->home, &d->names, &d->tls, e) < 0 || open_storage(d, e) < 0)
        return -1;
    d->ca_file = *d->settings.tls_cert ? xstrdup(d->settings.tls_cert)
                                       : xasprintf("%s/ca.pem", d->home.tls_folder);
    make_api(d);
    if (open_server(d, e) < 0)
        return -1;
    return announce(d, e);
}

static void stop(struct daemon *d)
{
    if (d->home.run_path)
        home_withdraw(&d->home);
    if (d->api)
        api_cut_streams(d->api);
    if (d->server)
        http_server_drain(d->server, (int64_t)d->settings.drain_seconds * 1000);
    if (d->api)
        api_wait(d->api);
    storage_stop(d->storage);
    control_free(d->control); /* its last answers go to the server's threads */
    http_server_free(d->server);
    api_free(d->api);
    storage_close(d->storage);
    http_tls_free(d->tls);
    store_pool_free(d->pool);
    listen_names_done(&d->names);
    home_done(&d->home);
    free(d->file_servers);
    free(d->subscription_id);
    free(d->tenant_id);
    free(d->api_url);
    free(d->http_url);
    free(d->ca_file);
}

/* Ten thousand connections want ten thousand descriptors. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int serve(struct daemon *d, char **argv)
{
    struct err e = {0};
    sigset_t signals;
    int got, status = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(0077);
    prctl(PR_SET_DUMPABLE, 0); /* no core with secrets in it */
    raise_limits();

    if (start(d, &e) < 0) {
        log_error("event=start error=\"%s\"", e.msg);
        status = 1;
    } else {
        sigwait(&signals, &got);
        log_info("event=stop signal=%d", got);
    }
    stop(d);
    if (d->broken)
        status = 1;
    if (!d->restart || status != 0)
        return status;
    if (getenv("LISTEN_FDS"))
        return EXIT_RESTART;
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    execv("/proc/self/exe", argv);
    log_error("event=restart error=\"%s\"", strerror(errno));
    return 1;
}

/* Without a daemon to upload it to: put the backup where the next start finds it. */
static int stage_restore(struct settings *settings, const char *file, struct err *e)
{
    auto_free char *waiting = xasprintf("%s/%s", settings->home, STORE_RESTORE_FILE);
    struct home home;
    auto_str content = {0};
    int rc;

    if (store_check_backup(file, e) < 0 || home_open(settings->home, &home, e) < 0)
        return -1;
    rc = fs_read(file, SIZE_MAX / 2, &content, e) < 0
             ? -1
             : fs_write_durably(waiting, str_text(&content), content.len, 0600, e);
    home_done(&home);
    return rc;
}

int main(int argc, char **argv)
{
    struct daemon d = {.home = {.lock_fd = -1}};
    enum settings_verb verb;
    const char *argument = NULL;
    struct err e = {0};
    int status = 0;

    if (settings_read(argc, argv, &d.settings, &verb, &argument, &e) < 0) {
        fprintf(stderr, "yardd: %s\n", e.msg);
        return 2;
    }
    log_set_level(d.settings.log_level);
    switch (verb) {
    case SETTINGS_HELP:
        settings_print_help(stdout);
        break;
    case SETTINGS_VERSION:
        printf("yardd %s\n", YARD_VERSION);
        break;
    case SETTINGS_SAMPLE:
        settings_print_sample(stdout);
        break;
    case SETTINGS_STAGE_RESTORE:
        if (stage_restore(&d.settings, argument, &e) < 0) {
            fprintf(stderr, "yardd: %s\n", e.msg);
            status = 1;
        }
        break;
    case SETTINGS_RUN:
        status = serve(&d, argv);
        break;
    }
    settings_done(&d.settings);
    return fflush(stdout) == 0 ? status : 1;
}
