/* Following files: a server with two loop threads whose handler only follows, and a thread that
 * writes.  Run it in the tsan build too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/follow.h"

#include "base/str.h"
#include "http/test/harness.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static struct follows *follows;
static char folder[] = "/tmp/yard-follow-XXXXXX";
static atomic_int tellings;

/* Follows the file "f" and answers with how much of it there is, line by line: one for each
 * telling, until the job has ended. */
struct tail {
    struct follower follower;
    int fd;
    bool is_over, is_cut;
};

static void finish(struct tail *tail, bool is_cut)
{
    struct http_req *req = tail->follower.req;

    tail->is_over = true;
    tail->is_cut |= is_cut;
    if (!follow_remove(&tail->follower))
        return;
    if (tail->is_cut)
        http_reply_abort(req);
    else
        http_reply_end(req);
}

static void told(struct follower *follower)
{
    struct tail *tail = container_of(follower, struct tail, follower);
    bool is_ended, is_cut;
    struct stat st;

    atomic_fetch_add(&tellings, 1);
    if (tail->is_over) {
        finish(tail, false);
        return;
    }
    follow_state(follower, &is_ended, &is_cut);
    if (fstat(tail->fd, &st) == 0) {
        char line[32];
        int len = snprintf(line, sizeof(line), "%lld\n", (long long)st.st_size);

        http_reply_write(follower->req, line, (size_t)len);
    }
    if (is_ended || is_cut)
        finish(tail, is_cut);
}

static void drop(void *arg)
{
    struct tail *tail = arg;

    follow_drop(&tail->follower);
    mem_close_fd(&tail->fd);
}

static void on_request(struct http_req *req, void *context)
{
    struct tail *tail = arena_alloc(http_req_arena(req), sizeof(*tail));
    auto_free char *path = xasprintf("%s/f", folder);
    struct err e = {0};

    (void)context;
    tail->fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(tail->fd >= 0);
    tail->follower.req = req;
    tail->follower.told = told;
    tail->follower.job_id = 7;
    arena_defer(http_req_arena(req), drop, tail);
    if (follow_add(follows, &tail->follower, &e) < 0) {
        http_reply(req, 503, NULL, 0);
        return;
    }
    if (follow_watch(&tail->follower, tail->fd, FOLLOW_FILE, &e) < 0)
        fail_msg("%s", e.msg);
    http_reply_start(req, 200, -1);
    http_reply_write(req, "on\n", 3);
}

static int file_fd;

static void begin(struct harness *h)
{
    auto_free char *path = xasprintf("%s/f", folder);

    follows = follows_new();
    file_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file_fd >= 0);
    atomic_store(&tellings, 0);
    harness_init(h, on_request);
    h->config.threads = 2;
    harness_start(h, NULL);
}

static void end(struct harness *h)
{
    http_server_drain(h->server, 100);
    http_server_free(h->server);
    follows_free(follows);
    close(file_fd);
}

static void write_some(void)
{
    assert_int_equal(write(file_fd, "x", 1), 1);
}

/* All up to the words is taken. */
static void hear_until(struct client *c, const char *words)
{
    const char *at;

    while (!(at = strstr(str_text(&c->in), words))) {
        if (!hear_more(c))
            fail_msg("no \"%s\", but \"%s\"", words, str_text(&c->in));
    }
    drop_front(&c->in, (size_t)(at - c->in.data) + strlen(words));
}

/* The head of the reply and "on". */
static void expect_on(struct client *c)
{
    say(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear_until(c, "on\n");
}

static void every_follower_hears_of_more_and_of_the_end(void **state)
{
    enum { MANY = 40 };
    struct client clients[MANY];
    struct harness h;

    (void)state;
    begin(&h);
    for (size_t i = 0; i < MANY; i++) {
        clients[i] = dial(&h);
        expect_on(&clients[i]);
    }
    write_some();
    for (size_t i = 0; i < MANY; i++)
        hear_until(&clients[i], "1\n");
    follows_job_ended(follows, 8); /* another job */
    write_some();
    for (size_t i = 0; i < MANY; i++)
        hear_until(&clients[i], "2\n");
    follows_job_ended(follows, 7);
    for (size_t i = 0; i < MANY; i++) {
        hear_until(&clients[i], "\r\n0\r\n\r\n"); /* it ended well */
        hang_up(&clients[i]);
    }
    end(&h);
}

/* However often it is written to, one post at a time is on its way. */
static void many_writes_are_few_tellings(void **state)
{
    enum { WRITES = 20000 };
    struct client c;
    struct harness h;

    (void)state;
    begin(&h);
    c = dial(&h);
    expect_on(&c);
    for (int i = 0; i < WRITES; i++)
        write_some();
    hear_until(&c, "20000\n");
    assert_true(atomic_load(&tellings) < WRITES / 10);
    hang_up(&c);
    end(&h);
}

static void the_closing_cuts_all_off_and_lets_nobody_in(void **state)
{
    struct client c, late;
    struct harness h;

    (void)state;
    begin(&h);
    c = dial(&h);
    expect_on(&c);
    follows_cut(follows);
    hear_all(&c);
    assert_null(strstr(str_text(&c.in), "\r\n0\r\n\r\n")); /* half a reply is no whole one */
    late = dial(&h);
    say(&late, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear_until(&late, "503");
    hang_up(&late);
    hang_up(&c);
    end(&h);
}

/* Clients come and go while the file is written to and jobs end. */
static void followers_come_and_go(void **state)
{
    struct harness h;

    (void)state;
    begin(&h);
    for (int round = 0; round < 50; round++) {
        struct client a = dial(&h), b = dial(&h);

        expect_on(&a);
        expect_on(&b);
        write_some();
        hang_up(&a);
        write_some();
        if (round % 2)
            follows_job_ended(follows, 7);
        hang_up(&b);
    }
    end(&h);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    auto_free char *path = xasprintf("%s/f", folder);

    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_follower_hears_of_more_and_of_the_end),
        cmocka_unit_test(many_writes_are_few_tellings),
        cmocka_unit_test(the_closing_cuts_all_off_and_lets_nobody_in),
        cmocka_unit_test(followers_come_and_go),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
