/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exchange.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/sharedkey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void outgoing_done(struct outgoing *out)
{
    str_done(&out->url);
    for (size_t i = 0; i < out->count; i++)
        free(out->headers[i]);
    out->count = 0;
}

void outgoing_add(struct outgoing *out, const char *format, ...)
{
    va_list args;

    if (out->count == EXCHANGE_MOST_HEADERS)
        abort();
    va_start(args, format);
    out->headers[out->count++] = xvasprintf(format, args);
    va_end(args);
}

void url_add_query(struct str *url, const char *query)
{
    if (!query || !*query)
        return;
    str_add_char(url, strchr(str_text(url), '?') ? '&' : '?');
    str_add(url, query);
}

/* --- letting it in --- */

/* Authorization: SharedKey, over what the request will carry. */
static void
sign(struct outgoing *out, const struct entry_pass *pass, const char *method, size_t body_len)
{
    struct sharedkey_header headers[EXCHANGE_MOST_HEADERS + 1];
    auto_free char *length = xasprintf("%zu", body_len);
    const char *path = strchr(strstr(str_text(&out->url), "://") + 3, '/');
    auto_free char *raw_path = xstrndup(path, strcspn(path, "?"));
    const char *query = strchr(path, '?');
    struct sharedkey_request request = {
        .verb = method,
        .headers = headers,
        .header_count = out->count + (body_len > 0),
        .raw_path = raw_path,
        .raw_query = query ? query + 1 : "",
        .account = pass->account,
    };
    auto_str text = {0};

    for (size_t i = 0; i < out->count; i++) {
        size_t len = strcspn(out->headers[i], ":");
        const char *value = out->headers[i] + len + 1;

        headers[i] = (struct sharedkey_header){xstrndup(out->headers[i], len),
                                               value + strspn(value, " ")};
    }
    headers[out->count] = (struct sharedkey_header){"Content-Length", length};
    sharedkey_sign(&request, str_text(pass->key), pass->key->len, &text);
    for (size_t i = 0; i < out->count; i++)
        free((char *)headers[i].name);
    outgoing_add(out, "Authorization: %s", str_text(&text));
}

void outgoing_seal(struct outgoing *out,
                   const struct entry_pass *pass,
                   const char *method,
                   size_t body_len,
                   int64_t now_ms)
{
    char date[CLOCK_HTTP_BYTES];

    outgoing_add(out, "x-ms-version: " EXCHANGE_VERSION);
    outgoing_add(out, "x-ms-date: %s", clock_format_http(now_ms, date));
    if (pass->key)
        sign(out, pass, method, body_len);
    if (pass->token)
        outgoing_add(out, "Authorization: Bearer %s", pass->token);
    url_add_query(&out->url, pass->sas);
}

/* --- refusals --- */

static void cut_element(const char *body, const char *name, char *buf, size_t room)
{
    auto_free char *open = xasprintf("<%s>", name);
    const char *start = strstr(body, open);

    buf[0] = '\0';
    if (start) {
        start += strlen(open);
        snprintf(buf, room, "%.*s", (int)strcspn(start, "<\r\n"), start);
    }
}

int refusal_read(int status,
                 const char *header,
                 const char *body,
                 struct refusal *ret_refusal,
                 struct err *e)
{
    enum err_code code = err_code_of_status(status);

    if (header)
        snprintf(ret_refusal->code, sizeof(ret_refusal->code), "%s", header);
    else
        cut_element(body, "Code", ret_refusal->code, sizeof(ret_refusal->code));
    cut_element(body, "Message", ret_refusal->message, sizeof(ret_refusal->message));
    return err_set(
        e, code, "(%s) %s", ret_refusal->code[0] ? ret_refusal->code : err_info(code)->reason,
        ret_refusal->message[0] ? ret_refusal->message : "the storage service refused it");
}

bool refusal_may_pass(int status, const char *code)
{
    if (str_equal(code, "FeatureNotSupported")) /* an emulator's 500: it never will */
        return false;
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}
