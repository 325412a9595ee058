/* The whole way of a request, in one process: a server with two loop threads, control with its
 * two, and clients that speak raw HTTP.  What handlers answer is the system tests' matter; this
 * is about the way, and what goes from one thread to another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

#include "control/test/desk.h"
#include "http/test/harness.h"

#define OWNER  "owner-token-for-tests"
#define READER "reader-token-for-tests"
#define SCOPED "scoped-token-for-tests"
#define SUB_ID "11111111-1111-1111-1111-111111111111"
#define SUB    "/subscriptions/" SUB_ID
#define GROUP  SUB "/resourceGroups/"

struct house {
    struct desk desk;
    struct api *api;
    struct harness harness;
};

static void nothing(void *context)
{
    (void)context;
}

static void add_principal(struct house *h,
                          const char *name,
                          const char *token,
                          enum access_role role,
                          const char *group)
{
    struct control_principal p = {
        .name = name, .role = role, .token = token, .group_id = group};
    auto_change change = ask("Token");

    control_put_principal(h->desk.control, change, &p);
    expect_ok(change);
}

static void open_house(struct house *h)
{
    static const char *const hosts[] = {"yard.test"};
    static const char *const files[] = {NULL};

    desk_init(&h->desk);
    desk_start(&h->desk);
    have(&h->desk, RESOURCE_GROUP, SUB, "ours");
    have(&h->desk, RESOURCE_GROUP, SUB, "theirs");
    add_principal(h, "owner", OWNER, ACCESS_OWNER, NULL);
    add_principal(h, "reader", READER, ACCESS_READER, NULL);
    add_principal(h, "scoped", SCOPED, ACCESS_CONTRIBUTOR, GROUP "ours");
    h->api = api_new(&(struct api_config){
        .home = h->desk.yard.folder,
        .db_path = h->desk.yard.db_path,
        .subscription_id = SUB_ID,
        .tenant_id = "22222222-2222-2222-2222-222222222222",
        .control = h->desk.control,
        .pool = h->desk.pool,
        .vault = &h->desk.vault,
        .hosts = hosts,
        .host_count = ARRAY_SIZE(hosts),
        .max_body_bytes = 4096,
        .backup_files = files,
        .restart = nothing,
    });
    harness_init(&h->harness, api_on_request);
    h->harness.config.threads = 2;
    h->harness.config.on_done = api_on_done;
    h->harness.config.context = h->api;
    harness_start(&h->harness, NULL);
    api_set_server(h->api, h->harness.server);
}

/* As the daemon does it. */
static void close_house(struct house *h, int64_t deadline_ms)
{
    http_server_drain(h->harness.server, deadline_ms);
    api_wait(h->api);
    control_free(take_ptr(&h->desk.control));
    http_server_free(h->harness.server);
    api_free(h->api);
    desk_done(&h->desk);
}

static void send_to(
    struct client *c, const char *method, const char *path, const char *token, const char *body)
{
    auto_free char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: yard.test:1\r\nAuthorization: Bearer %s\r\n"
                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  method, path, token, strlen(body), body);

    say(c, text);
}

/* Ask and take the reply; the caller ends it. */
static struct reply
get(struct client *c, const char *method, const char *path, const char *token, const char *body)
{
    send_to(c, method, path, token, body);
    return hear(c, str_equal(method, "HEAD"));
}

static int status_of(
    struct client *c, const char *method, const char *path, const char *token, const char *body)
{
    struct reply reply = get(c, method, path, token, body);
    int status = reply.status;

    reply_done(&reply);
    return status;
}

/* --- who is let in --- */

static void what_stops_a_request_on_its_way(void **state)
{
    static const struct {
        const char *head;
        int status;
        const char *word; /* in the reply */
    } rows[] = {
        {"GET /healthz HTTP/1.1\r\nHost: yard.test\r\n\r\n", 200, "ok"},
        {"GET /healthz HTTP/1.1\r\nHost: evil.test\r\n\r\n", 421, "host_names"},
        {"GET /nowhere HTTP/1.1\r\nHost: yard.test\r\n\r\n", 404, "there is nothing"},
        {"PUT /healthz HTTP/1.1\r\nHost: yard.test\r\nContent-Length: 0\r\n\r\n", 405,
         "Allow: GET"},
        {"GET /tenants HTTP/1.1\r\nHost: yard.test\r\n\r\n", 401, "WWW-Authenticate: Bearer"},
        {"GET /tenants HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Basic b3duZXI=\r\n\r\n",
         401, "AuthenticationFailed"},
        {"GET /tenants HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Bearer x\r\n\r\n", 401,
         "InvalidAuthenticationToken"},
        {"GET /tenants HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Bearer yt1.a.b\r\n\r\n",
         401, "InvalidAuthenticationToken"},
        {"GET /tenants HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Bearer " OWNER "\r\n\r\n",
         200, "Trainyard"},
        {"GET /subscriptions/mine HTTP/1.1\r\nHost: yard.test\r\n"
         "Authorization: Bearer " OWNER "\r\n\r\n",
         400, "InvalidSubscriptionId"},
        {"PUT " GROUP "g HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Bearer " OWNER "\r\n"
         "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
         415, "expected application/json"},
        {"PUT " GROUP "g HTTP/1.1\r\nHost: yard.test\r\nAuthorization: Bearer " OWNER "\r\n"
         "Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n",
         413, ""},
    };
    struct house h;

    (void)state;
    open_house(&h);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct client c = dial(&h.harness);
        struct reply reply;

        say(&c, rows[i].head);
        reply = hear(&c, false);
        if (reply.status != rows[i].status || (!strstr(reply.head.data, rows[i].word) &&
                                               !strstr(str_text(&reply.body), rows[i].word)))
            fail_msg("%s: %s%s", rows[i].head, reply.head.data, str_text(&reply.body));
        reply_done(&reply);
        hang_up(&c);
    }
    close_house(&h, 2000);
}

static void a_bad_body_is_refused_and_recorded_and_changes_nothing(void **state)
{
    static const struct {
        const char *path, *body, *word;
    } rows[] = {
        {GROUP "new", "{", "malformed at line 1"},
        {GROUP "new", "[]", "must be a JSON object"},
        {GROUP "new", "{}", "LocationRequired"},
        {GROUP "new", "{\"location\": 5}", "expected a string"},
        {GROUP "new", "{\"location\": \"x\", \"tags\": []}", "\"target\":\"tags\""},
        {GROUP "new.", "{\"location\": \"x\"}", "\"target\":\"resourceGroupName\""},
        {GROUP "ne%20w", "{\"location\": \"x\"}", "InvalidResourceName"},
        {GROUP "none/providers/Microsoft.BatchAI/workspaces/w", "{\"location\": \"x\"}",
         "ResourceGroupNotFound"},
    };
    struct house h;
    struct client c;

    (void)state;
    open_house(&h);
    c = dial(&h.harness);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct reply reply = get(&c, "PUT", rows[i].path, OWNER, rows[i].body);

        if (reply.status < 400 || reply.status > 499 ||
            !strstr(str_text(&reply.body), rows[i].word))
            fail_msg("%s %s: %d %s", rows[i].path, rows[i].body, reply.status,
                     str_text(&reply.body));
        reply_done(&reply);
    }
    eventually(&h.desk,
               "SELECT count(*) FROM event WHERE principal = 'owner' AND"
               " outcome <> 'Succeeded' AND detail IS NOT NULL",
               ARRAY_SIZE(rows));
    assert_int_equal(count(&h.desk, "SELECT count(*) FROM resource"), 2);
    hang_up(&c);
    close_house(&h, 2000);
}

/* A path that fits a pattern, in the group. */
static char *path_for(const char *pattern, const char *group)
{
    auto_str out = {0};

    for (const char *p = pattern; *p;) {
        size_t len = strcspn(p, "}") + 1;

        if (*p != '{')
            str_add_char(&out, *p++);
        else {
            str_add(&out, str_starts(p, "{subscriptionId}")
                              ? SUB_ID
                              : (str_starts(p, "{resourceGroupName}") ? group : "x1x"));
            p += len;
        }
    }
    return str_take(&out);
}

static bool is_in_group(const struct api_route *r)
{
    return strstr(r->route.pattern, "{resourceGroupName}") != NULL;
}

/* Every route with tokens that must not get through. */
static void every_route_asks_for_the_right_token(void **state)
{
    struct house h;

    (void)state;
    open_house(&h);
    for (size_t i = 0; i < api_route_count; i++) {
        const struct api_route *r = &api_routes[i];
        auto_free char *path = path_for(r->route.pattern, "theirs");
        struct client c = dial(&h.harness);
        int bad, reader, scoped;

        if (r->permission == ACCESS_PUBLIC) {
            hang_up(&c);
            continue;
        }
        bad = status_of(&c, r->route.method, path, "wrong", "");
        reader = r->permission > ACCESS_READ
                     ? status_of(&c, r->route.method, path, READER, "{}")
                     : 403;
        scoped = is_in_group(r) ? status_of(&c, r->route.method, path, SCOPED, "{}") : 404;
        if (bad != 401 || reader != 403 || scoped != 404)
            fail_msg("%s %s: %d %d %d", r->route.method, path, bad, reader, scoped);
        hang_up(&c);
    }
    assert_int_equal(count(&h.desk, "SELECT count(*) FROM resource"), 2);
    close_house(&h, 2000);
}

/* --- what was acknowledged is seen --- */

static void a_get_after_a_put_sees_it_whatever_was_kept(void **state)
{
    struct house h;
    struct client c;

    (void)state;
    open_house(&h);
    c = dial(&h.harness);
    for (int i = 0; i < 20; i++) {
        auto_free char *body =
            xasprintf("{\"location\": \"eastus\", \"tags\": {\"n\": \"%d\"}}", i);
        auto_free char *wanted = xasprintf("\"n\":\"%d\"", i), *etag = NULL, *again = NULL;
        struct reply put_reply = get(&c, "PUT", GROUP "ours", OWNER, body), first, second;

        assert_int_equal(put_reply.status, 200);
        first = get(&c, "GET", GROUP "ours", OWNER, "");
        second = get(&c, "GET", GROUP "OURS", READER, "");
        assert_non_null(strstr(str_text(&first.body), wanted));
        assert_string_equal(str_text(&first.body), str_text(&second.body));
        etag = reply_header(&put_reply, "ETag");
        again = reply_header(&second, "ETag");
        assert_string_equal(etag, again);
        reply_done(&put_reply);
        reply_done(&first);
        reply_done(&second);
    }
    assert_int_equal(status_of(&c, "DELETE", GROUP "ours", OWNER, ""), 202);
    eventually(&h.desk, "SELECT count(*) FROM resource WHERE name = 'ours'", 0);
    assert_int_equal(status_of(&c, "GET", GROUP "ours", OWNER, ""), 404);
    hang_up(&c);
    close_house(&h, 2000);
}

/* --- many at once --- */

struct visitor {
    struct house *house;
    int number;
    const char *problem;
};

static void visit(struct visitor *v, struct client *c)
{
    auto_free char *group = xasprintf(GROUP "g%d", v->number);
    auto_free char *work = xasprintf("%s/providers/Microsoft.BatchAI/workspaces/w", group);
    auto_free char *token = xasprintf("/yard/tokens/t%d", v->number);
    const struct {
        const char *method, *path, *body;
        int status;
    } steps[] = {
        {"PUT", group, "{\"location\": \"eastus\"}", 201},
        {"PUT", work, "{\"location\": \"eastus\"}", 200},
        {"GET", work, "", 200},
        {"PUT", token, "{\"role\": \"reader\"}", 200},
        {"PUT", group, "{\"location\": 5}", 400},
        {"GET", GROUP "ours", "", 200},
        {"GET", SUB "/resources", "", 200},
        {"GET", "/metrics", "", 200},
        {"GET", "/yard/doctor", "", 200},
        {"GET", "/yard/audit", "", 200},
        {"DELETE", token, "", 200},
        {"DELETE", group, "", 202},
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps) && !v->problem; i++)
        if (status_of(c, steps[i].method, steps[i].path, OWNER, steps[i].body) !=
            steps[i].status)
            v->problem = steps[i].path;
}

static void *visit_often(void *arg)
{
    struct visitor *v = arg;
    struct client c = dial(&v->house->harness);

    for (int i = 0; i < 3 && !v->problem; i++) {
        v->number += 100;
        visit(v, &c);
    }
    hang_up(&c);
    return NULL;
}

static void many_clients_share_the_house(void **state)
{
    struct visitor visitors[8];
    pthread_t threads[8];
    struct house h;

    (void)state;
    open_house(&h);
    for (int i = 0; i < 8; i++) {
        visitors[i] = (struct visitor){&h, i, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, visit_often, &visitors[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        if (visitors[i].problem)
            fail_msg("visitor %d: %s", i, visitors[i].problem);
    }
    eventually(&h.desk, "SELECT count(*) FROM resource", 2);
    close_house(&h, 2000);
}

/* --- clients that do not wait --- */

static void a_client_that_goes_away_harms_nobody(void **state)
{
    struct house h;
    struct client stays;

    (void)state;
    open_house(&h);
    for (int i = 0; i < 40; i++) {
        auto_free char *path = xasprintf(GROUP "g%d", i);
        struct client c = dial(&h.harness);

        if (i % 4 == 0)
            send_to(&c, "POST", "/yard/backup", OWNER, "");
        else if (i % 4 == 1)
            send_to(&c, "GET", "/yard/doctor", OWNER, "");
        else
            send_to(&c, "PUT", path, OWNER, "{\"location\": \"eastus\"}");
        hang_up(&c);
    }
    stays = dial(&h.harness);
    assert_int_equal(status_of(&stays, "GET", GROUP "ours", OWNER, ""), 200);
    hang_up(&stays);
    close_house(&h, 2000);
}

static void a_house_that_closes_waits_for_what_it_began(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct house h;
        struct client c[3];

        open_house(&h);
        for (int k = 0; k < 3; k++) {
            c[k] = dial(&h.harness);
            send_to(&c[k], "GET", "/yard/doctor", OWNER, "");
        }
        close_house(&h, 2000);
        for (int k = 0; k < 3; k++)
            hang_up(&c[k]);
    }
}

/* --- backup and restore --- */

static void a_backup_comes_as_a_database_and_goes_back_in(void **state)
{
    auto_free char *waiting = NULL, *head = NULL;
    struct reply copy, reply;
    struct house h;
    struct client c;

    (void)state;
    open_house(&h);
    waiting = yard_path(&h.desk.yard, "restore.waiting");
    c = dial(&h.harness);
    copy = get(&c, "POST", "/yard/backup", OWNER, "");
    assert_int_equal(copy.status, 200);
    assert_memory_equal(copy.body.data, "SQLite format 3", 16);
    assert_int_equal(status_of(&c, "POST", "/yard/restore", OWNER, "no database"), 400);
    assert_int_equal(access(waiting, F_OK), -1);
    head = xasprintf("POST /yard/restore HTTP/1.1\r\nHost: yard.test\r\n"
                     "Authorization: Bearer " OWNER "\r\nContent-Length: %zu\r\n\r\n",
                     copy.body.len);
    say(&c, head);
    say_bytes(&c, copy.body.data, copy.body.len);
    reply = hear(&c, false);
    assert_int_equal(reply.status, 202);
    assert_int_equal(access(waiting, F_OK), 0);
    reply_done(&copy);
    reply_done(&reply);
    hang_up(&c);
    close_house(&h, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stops_a_request_on_its_way),
        cmocka_unit_test(a_bad_body_is_refused_and_recorded_and_changes_nothing),
        cmocka_unit_test(every_route_asks_for_the_right_token),
        cmocka_unit_test(a_get_after_a_put_sees_it_whatever_was_kept),
        cmocka_unit_test(many_clients_share_the_house),
        cmocka_unit_test(a_client_that_goes_away_harms_nobody),
        cmocka_unit_test(a_house_that_closes_waits_for_what_it_began),
        cmocka_unit_test(a_backup_comes_as_a_database_and_goes_back_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
