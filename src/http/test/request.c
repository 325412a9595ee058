/* SPDX-License-Identifier: Apache-2.0 */
#include "http/test/harness.h"

#include "base/crypt.h"

/* The handler answers what the test asks about: the query's "ask" says which accessor, "name"
 * its argument. */
static void add(struct str *out, const char *value)
{
    str_add(out, value ? value : "(null)");
}

static void on_request(struct http_req *req, void *context)
{
    const char *ask = http_req_query(req, "ask"), *name = http_req_query(req, "name");
    const char *key, *value;
    auto_str out = {0};

    (void)context;
    if (str_equal(ask, "header"))
        add(&out, http_req_header(req, name));
    else if (str_equal(ask, "query"))
        add(&out, http_req_query(req, name));
    else if (str_equal(ask, "headers"))
        for (size_t i = 0; http_req_header_at(req, i, &key, &value); i++)
            str_addf(&out, "%s=%s;", key, value);
    else
        str_addf(&out, "%s %s %s %s %s %d %lld %d", http_req_method(req),
                 http_req_raw_path(req), http_req_raw_query(req), http_req_host(req),
                 http_req_peer(req), http_req_is_tls(req),
                 (long long)http_req_content_length(req), crypt_is_uuid(http_req_id(req)));
    http_reply(req, 200, str_text(&out), out.len);
}

static void accessors_tell_what_came_in(void **state)
{
    static const struct {
        const char *target, *headers, *answer;
    } rows[] = {
        {"/a%20b", "", "GET /a%20b  h:1 127.0.0.1 0 0 1"},
        {"/?x=%41", "Content-Length: 0\r\n", "GET / x=%41 h:1 127.0.0.1 0 0 1"},
        {"/?ask=header&name=x-one", "X-One: 1\r\n", "1"},
        {"/?ask=header&name=X-MANY", "X-Many: 1\r\nY: z\r\nx-many: 2\r\nX-MANY: 3\r\n",
         "1, 2, 3"},
        {"/?ask=header&name=none", "X-One: 1\r\n", "(null)"},
        {"/?ask=headers", "B: 2\r\nA: 1\r\nB: 3\r\n", "Host=h:1;B=2;A=1;B=3;"},
        {"/?ask=query&name=x&x=1&x=2", "", "1"},
        {"/?ask=query&name=API-Version&api-version=2018-05-01", "", "2018-05-01"},
        {"/?ask=query&name=x&x=a%20b+c%2B", "", "a b c+"},
        {"/?ask=query&name=x%3D&x%3D=y=z", "", "y=z"},
        {"/?ask=query&name=x&&x", "", ""},
        {"/?ask=query&name=x&x=", "", ""},
        {"/?ask=query&name=x&xy=1", "", "(null)"},
        {"/?ask=query&name=x&x=%zz", "", "%zz"},
        {"/?ask=query&name=x&x=%00", "", "%00"},
        {"/?ask=query&name=$filter&%24filter=a", "", "a"},
    };
    struct harness h;
    struct client c;

    (void)state;
    harness_init(&h, on_request);
    harness_start(&h, NULL);
    c = dial(&h);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        auto_free char *text = xasprintf("GET %s HTTP/1.1\r\nHost: h:1\r\n%s\r\n",
                                         rows[i].target, rows[i].headers);

        say(&c, text);
        expect(&c, 200, rows[i].answer);
    }
    hang_up(&c);
    harness_done(&h);
}

static void ranges_are_cut_to_the_size(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        int rc;
        uint64_t first, len;
    } rows[] = {
        {NULL, 10, 0, 0, 0},
        {"", 10, 0, 0, 0},
        {"bytes=0-4", 10, 1, 0, 5},
        {"Bytes=0-0", 10, 1, 0, 1},
        {"bytes=3-", 10, 1, 3, 7},
        {"bytes=9-", 10, 1, 9, 1},
        {"bytes=5-100", 10, 1, 5, 5},
        {"bytes=0-18446744073709551615", 10, 1, 0, 10},
        {"bytes=-3", 10, 1, 7, 3},
        {"bytes=-30", 10, 1, 0, 10},
        {"bytes=10-", 10, -1, 0, 0},
        {"bytes=10-20", 10, -1, 0, 0},
        {"bytes=-0", 10, -1, 0, 0},
        {"bytes=0-", 0, -1, 0, 0},
        {"bytes=-1", 0, -1, 0, 0},
        {"bytes=4-3", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=a-b", 10, 0, 0, 0},
        {"bytes=1", 10, 0, 0, 0},
        {"bytes=0-1,3-4", 10, 0, 0, 0},
        {"bytes=0-1 ", 10, 0, 0, 0},
        {"bytes=+1-2", 10, 0, 0, 0},
        {"bytes= 1-2", 10, 0, 0, 0},
        {"items=0-1", 10, 0, 0, 0},
        {"bytes=0-99999999999999999999", 10, 0, 0, 0},
        {"bytes=99999999999999999999-", 10, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t first = 0, len = 0;
        struct err e = {0};
        int rc = http_range_parse(rows[i].value, rows[i].size, &first, &len, &e);

        if (rc != rows[i].rc || first != rows[i].first || len != rows[i].len)
            fail_msg("%s of %d: %d, %d+%d", rows[i].value, (int)rows[i].size, rc, (int)first,
                     (int)len);
        assert_true(rc != -1 || e.code == ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accessors_tell_what_came_in),
        cmocka_unit_test(ranges_are_cut_to_the_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
