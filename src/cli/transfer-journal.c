/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer-journal.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/table.h"
#include "cli/transfer-side.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    MOST_JOB_BYTES = 1024 * 1024,
    MOST_ENDED = 50,     /* ended jobs that are remembered */
    MOST_DAYS = 30,      /* that one is remembered which was never gone on with */
    MOST_PIECES = 50000, /* of one file */
};

struct journal {
    pthread_mutex_t lock;
    char *folder;
    json_t *job;
    int log_fd, lock_fd;
    bool is_resumed, trusts_pieces;
    struct table *done;   /* target: struct done */
    struct table *pieces; /* tag: unsigned char[MOST_PIECES] */
};

struct done {
    int64_t size_bytes, modified_ns;
    char etag[FACTS_ETAG_BYTES];
};

static const char *text_of(const json_t *job, const char *key)
{
    const char *text = json_string_value(json_object_get(job, key));

    return text ? text : "";
}

/* --- folders --- */

/* Where jobs are kept; is_made: make it. */
static int jobs_folder(const char *home, bool is_made, char **ret_folder, struct err *e)
{
    auto_free char *folder = xasprintf("%s/cli/jobs", home);
    const char *state = getenv("XDG_STATE_HOME"), *user = getenv("HOME");
    bool is_there = access(folder, W_OK) == 0;

    if (!is_there && !(is_made && fs_make_folders(folder, 0700, e) == 0)) {
        auto_free char *other =
            state && *state ? xasprintf("%s/trainyard/jobs", state)
                            : xasprintf("%s/.local/state/trainyard/jobs", user ? user : "");

        if ((is_made && fs_make_folders(other, 0700, e) == 0) || access(other, W_OK) == 0) {
            *ret_folder = take_ptr(&other);
            return 0;
        }
        if (is_made)
            return -1;
    }
    *ret_folder = take_ptr(&folder);
    return 0;
}

static int read_job(const char *folder, json_t **ret_job, struct err *e)
{
    auto_free char *path = xasprintf("%s/job.json", folder);
    auto_str text = {0};

    if (fs_read(path, MOST_JOB_BYTES, &text, e) < 0)
        return -1;
    return json_parse(str_text(&text), text.len, ret_job, e);
}

static int write_job(const struct journal *j, struct err *e)
{
    auto_free char *path = xasprintf("%s/job.json", j->folder);
    auto_str text = {0};

    json_write(&text, j->job);
    return fs_write_durably(path, str_text(&text), text.len, 0600, e);
}

static void remove_job(const char *folder)
{
    static const char *const files[] = {"job.json", "log", "lock"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        auto_free char *path = xasprintf("%s/%s", folder, files[i]);

        unlink(path);
    }
    rmdir(folder);
}

static int compare_jobs(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;

    return strcmp(text_of(y, "startedAt"), text_of(x, "startedAt"));
}

static json_t *sorted_jobs(json_t *jobs)
{
    size_t count = json_array_size(jobs);
    auto_free json_t **rows = xcalloc(count + 1, sizeof(json_t *));
    json_t *sorted = json_array();

    for (size_t i = 0; i < count; i++)
        rows[i] = json_array_get(jobs, i);
    qsort(rows, count, sizeof(json_t *), compare_jobs);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, rows[i]);
    return sorted;
}

/* Left behind by one that was killed: nobody holds the lock. */
static bool is_orphan(const char *folder, const json_t *job)
{
    auto_free char *path = xasprintf("%s/lock", folder);
    auto_close int fd = -1;

    if (!str_equal(text_of(job, "state"), "InProgress"))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
}

int journal_list(const char *home, json_t **ret_jobs, struct err *e)
{
    auto_free char *folder = NULL;
    auto_json json_t *jobs = json_array();
    struct dirent *entry;
    DIR *dir;

    if (jobs_folder(home, false, &folder, e) < 0)
        return -1;
    dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        auto_free char *one = xasprintf("%s/%s", folder, entry->d_name);
        auto_json json_t *job = NULL;

        if (entry->d_name[0] == '.' || read_job(one, &job, NULL) < 0)
            continue;
        if (is_orphan(one, job))
            json_object_set_new(job, "state", json_string("Interrupted"));
        json_array_append(jobs, job);
    }
    if (dir)
        closedir(dir);
    *ret_jobs = sorted_jobs(jobs);
    return 0;
}

int journal_find(const char *home, const char *id, json_t **ret_job, struct err *e)
{
    auto_json json_t *jobs = NULL;
    json_t *job, *found = NULL;
    size_t i;

    if (journal_list(home, &jobs, e) < 0)
        return -1;
    json_array_foreach(jobs, i, job)
    {
        if (!str_starts(text_of(job, "id"), id))
            continue;
        if (found)
            return err_set(e, ERR_INVALID, "more than one job begins with \"%.64s\"", id);
        found = job;
    }
    if (!found)
        return err_set(e, ERR_NOT_FOUND,
                       "there is no job \"%.64s\"; see them with: yard copy list", id);
    *ret_job = json_incref(found);
    return 0;
}

/* --- reading the log --- */

static void read_done(struct journal *j, const char *line)
{
    struct done *done = xcalloc(1, sizeof(*done));
    long long size, modified;
    int used = 0;
    auto_str target = {0};

    if (sscanf(line, "D %lld %lld %71s %n", &size, &modified, done->etag, &used) != 3 ||
        !used ||
        text_percent_decode(&target, line + used, strlen(line + used), false, NULL) < 0) {
        free(done);
        return;
    }
    done->size_bytes = size;
    done->modified_ns = modified;
    if (str_equal(done->etag, "-"))
        done->etag[0] = '\0';
    table_set(j->done, str_text(&target), done);
}

static void read_piece(struct journal *j, const char *line)
{
    unsigned char *pieces;
    size_t index;
    char tag[17];

    if (sscanf(line, "P %16s %zu", tag, &index) != 2 || index >= MOST_PIECES)
        return;
    pieces = table_get(j->pieces, tag);
    if (!pieces) {
        pieces = xcalloc(MOST_PIECES, 1);
        table_set(j->pieces, tag, pieces);
    }
    pieces[index] = 1;
}

static int read_log(struct journal *j, const char *path, struct err *e)
{
    FILE *stream = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t len;

    if (!stream)
        return errno == ENOENT ? 0 : err_sys(e, errno, "could not read \"%s\"", path);
    while ((len = getline(&line, &room, stream)) > 0) {
        if (line[len - 1] != '\n') /* cut off */
            break;
        line[len - 1] = '\0';
        if (line[0] == 'D')
            read_done(j, line);
        else if (line[0] == 'P' && j->trusts_pieces)
            read_piece(j, line);
    }
    free(line);
    fclose(stream);
    return 0;
}

/* --- beginning --- */

/* Another one after each start of the machine. */
static char *boot_id(void)
{
    auto_str text = {0};

    if (fs_read("/proc/sys/kernel/random/boot_id", 64, &text, NULL) < 0)
        return xstrdup("");
    str_truncate(&text, strcspn(str_text(&text), "\n"));
    return str_take(&text);
}

static bool has_ended(const json_t *job)
{
    return str_equal(text_of(job, "state"), "Completed");
}

static bool is_old(const json_t *job)
{
    int64_t ms;

    return clock_parse_iso(text_of(job, "startedAt"), &ms, NULL) == 0 &&
           clock_wall_ms() - ms > (int64_t)MOST_DAYS * 24 * 3600 * 1000;
}

/* Forget the oldest of those that are over, and those that nobody went on with. */
static void forget_old(const char *folder, json_t *jobs)
{
    size_t ended = 0, i;
    json_t *job;

    json_array_foreach(jobs, i, job)
    {
        auto_free char *one = xasprintf("%s/%s", folder, text_of(job, "id"));
        bool is_running = str_equal(text_of(job, "state"), "InProgress");

        if ((has_ended(job) && ++ended > MOST_ENDED) || (!is_running && is_old(job)))
            remove_job(one);
    }
}

static json_t *find_same(json_t *jobs, const json_t *asked)
{
    json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job)
    {
        if (!has_ended(job) && json_equal(json_object_get(job, "asked"), asked))
            return job;
    }
    return NULL;
}

static json_t *new_job(const json_t *asked)
{
    char uuid[CRYPT_UUID_BYTES], time[CLOCK_ISO_BYTES];

    return json_pack("{s:s, s:s, s:O}", "id", crypt_uuid(uuid), "startedAt",
                     clock_format_iso(clock_wall_ms(), time), "asked", (json_t *)asked);
}

static int open_files(struct journal *j, struct err *e)
{
    auto_free char *log = xasprintf("%s/log", j->folder),
                   *lock = xasprintf("%s/lock", j->folder);

    j->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->lock_fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", lock);
    if (flock(j->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_BUSY, "the same copy is going on already, as job %s",
                       journal_id(j));
    if (read_log(j, log, e) < 0)
        return -1;
    j->log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (j->log_fd < 0)
        return err_sys(e, errno, "could not open \"%s\"", log);
    /* A line that was cut off must not swallow the next one. */
    if (j->is_resumed && fs_write_all(j->log_fd, "\n", 1, e) < 0)
        return -1;
    return 0;
}

int journal_begin(const char *home,
                  const json_t *asked,
                  struct journal **ret_journal,
                  struct err *e)
{
    autoptr(journal) j = xcalloc(1, sizeof(*j));
    auto_free char *folder = NULL, *boot = boot_id();
    auto_json json_t *jobs = NULL;
    json_t *same;

    pthread_mutex_init(&j->lock, NULL);
    j->log_fd = j->lock_fd = -1;
    j->done = table_new(free);
    j->pieces = table_new(free);
    if (jobs_folder(home, true, &folder, e) < 0 || journal_list(home, &jobs, e) < 0)
        return -1;
    forget_old(folder, jobs);
    same = find_same(jobs, asked);
    j->is_resumed = same != NULL;
    j->job = same ? json_incref(same) : new_job(asked);
    j->trusts_pieces = same && str_equal(text_of(same, "bootId"), boot);
    j->folder = xasprintf("%s/%s", folder, journal_id(j));
    if (fs_make_folders(j->folder, 0700, e) < 0 || open_files(j, e) < 0)
        return -1;
    json_object_set_new(j->job, "bootId", json_string(boot));
    json_object_set_new(j->job, "state", json_string("InProgress"));
    if (write_job(j, e) < 0)
        return -1;
    *ret_journal = take_ptr(&j);
    return 0;
}

void journal_free(struct journal *j)
{
    if (!j)
        return;
    mem_close_fd(&j->log_fd);
    mem_close_fd(&j->lock_fd);
    json_decref(j->job);
    table_free(j->done);
    table_free(j->pieces);
    pthread_mutex_destroy(&j->lock);
    free(j->folder);
    free(j);
}

const char *journal_id(const struct journal *j)
{
    return text_of(j->job, "id");
}

bool journal_is_resumed(const struct journal *j)
{
    return j->is_resumed;
}

size_t journal_done_count(const struct journal *j)
{
    return table_count(j->done);
}

/* --- asking --- */

bool journal_is_done(struct journal *j, const char *target, const struct facts *facts)
{
    const struct done *done;
    bool is_done;

    pthread_mutex_lock(&j->lock);
    done = table_get(j->done, target);
    is_done = done && done->size_bytes == facts->size_bytes &&
              done->modified_ns == facts->modified_ns && str_equal(done->etag, facts->etag);
    pthread_mutex_unlock(&j->lock);
    return is_done;
}

void journal_confirm(struct journal *j,
                     bool (*is_there)(void *context, const char *target, int64_t size_bytes),
                     void *context)
{
    struct table *kept = table_new(free);
    const char *target;
    size_t at = 0;
    void *value;

    while (table_next(j->done, &at, &target, &value)) {
        const struct done *done = value;

        if (is_there(context, target, done->size_bytes)) {
            struct done *copy = xmalloc(sizeof(*copy));

            *copy = *done;
            table_set(kept, target, copy);
        }
    }
    table_free(j->done);
    j->done = kept;
}

void journal_pieces(struct journal *j, const char *tag, unsigned char *is_done, size_t count)
{
    const unsigned char *pieces;

    pthread_mutex_lock(&j->lock);
    pieces = table_get(j->pieces, tag);
    if (pieces)
        memcpy(is_done, pieces, count < MOST_PIECES ? count : MOST_PIECES);
    pthread_mutex_unlock(&j->lock);
}

/* --- noting --- */

static void append(struct journal *j, const struct str *line)
{
    /* One write each, so that lines do not mix.  A full disk costs the journal, not the copy.
     */
    pthread_mutex_lock(&j->lock);
    (void)fs_write_all(j->log_fd, str_text(line), line->len, NULL);
    pthread_mutex_unlock(&j->lock);
}

void journal_note_done(struct journal *j, const char *target, const struct facts *facts)
{
    auto_str line = {0};

    str_addf(&line, "D %lld %lld %s ", (long long)facts->size_bytes,
             (long long)facts->modified_ns, *facts->etag ? facts->etag : "-");
    text_percent(&line, target);
    str_add_char(&line, '\n');
    append(j, &line);
}

void journal_note_piece(struct journal *j, const char *tag, size_t index)
{
    auto_str line = {0};

    str_addf(&line, "P %s %zu\n", tag, index);
    append(j, &line);
}

void journal_note_failed(struct journal *j, const char *target, const char *message)
{
    auto_str line = {0};

    str_add(&line, "F ");
    text_percent(&line, target);
    str_addf(&line, " %s\n", message);
    append(j, &line);
}

int journal_end(struct journal *j, const char *state, const json_t *totals, struct err *e)
{
    auto_free char *log = xasprintf("%s/log", j->folder);
    char time[CLOCK_ISO_BYTES];

    json_object_update(j->job, (json_t *)totals);
    json_object_set_new(j->job, "state", json_string(state));
    json_object_set_new(j->job, "endedAt",
                        json_string(clock_format_iso(clock_wall_ms(), time)));
    if (write_job(j, e) < 0)
        return -1;
    if (str_equal(state, "Completed"))
        unlink(log);
    return 0;
}
