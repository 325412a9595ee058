/* SPDX-License-Identifier: Apache-2.0 */
#include "http/parser.h"

#include "base/mem.h"

#include <llhttp.h>
#include <string.h>
#include <strings.h>

static int refuse(int status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return status;
}

/* --- finding the end of the head --- */

static int check_length(const struct http_scan *scan,
                        const struct http_limits *limits,
                        const char **ret_why)
{
    if (scan->at - scan->line > limits->line_bytes)
        return scan->lines ? refuse(431, "a header line is too long", ret_why)
                           : refuse(414, "the request line is too long", ret_why);
    if (scan->at - scan->start > limits->head_bytes)
        return refuse(431, "the head is too long", ret_why);
    return 0;
}

static int
end_line(struct http_scan *scan, const struct http_limits *limits, const char **ret_why)
{
    bool is_empty = scan->at == scan->line + 2;
    int status = check_length(scan, limits, ret_why);

    if (status)
        return status;
    scan->line = scan->at;
    if (is_empty && scan->lines == 0) {
        if (scan->start)
            return refuse(400, "empty lines before the request line", ret_why);
        scan->start = scan->at;
        return 0;
    }
    if (is_empty)
        scan->length = scan->at - scan->start;
    else if (++scan->lines > limits->headers + 1)
        return refuse(431, "too many headers", ret_why);
    return 0;
}

/* The first byte from `at` on that a scan must look at: a control character. */
static size_t skip_plain(const char *bytes, size_t at, size_t len)
{
    while (at < len && (unsigned char)bytes[at] >= ' ' && bytes[at] != 0x7f)
        at++;
    return at;
}

int http_scan_head(struct http_scan *scan,
                   const struct http_limits *limits,
                   const char *bytes,
                   size_t len,
                   const char **ret_why)
{
    int status = 0;

    while (scan->at < len && !scan->length && !status) {
        size_t at = scan->at++;
        unsigned char c = (unsigned char)bytes[at];
        bool after_cr = at > scan->line && bytes[at - 1] == '\r';

        if (c == '\n')
            status = after_cr ? end_line(scan, limits, ret_why)
                              : refuse(400, "a line ends in a bare LF", ret_why);
        else if (after_cr)
            status = refuse(400, "CR without LF", ret_why);
        else if ((c < ' ' && c != '\t' && c != '\r') || c == 0x7f)
            status = refuse(400, "control character in the head", ret_why);
        else if (c != '\r')
            scan->at = skip_plain(bytes, scan->at, len);
        if (scan->at - scan->line > limits->line_bytes)
            break;
    }
    return status ? status : check_length(scan, limits, ret_why);
}

/* --- taking it apart --- */

static bool is_token_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* "GET /path HTTP/1.1\r\n": two spaces, no more. */
static int check_request_line(const char *line, size_t len, const char **ret_why)
{
    static const char versions[2][9] = {"HTTP/1.0", "HTTP/1.1"};
    const char *target = memchr(line, ' ', len), *version;

    if (!target || target == line)
        return refuse(400, "malformed request line", ret_why);
    target++;
    version = memchr(target, ' ', len - (size_t)(target - line));
    if (!version || version == target)
        return refuse(400, "malformed request line", ret_why);
    if ((size_t)(line + len - version) != 9 ||
        (memcmp(version + 1, versions[0], 8) != 0 && memcmp(version + 1, versions[1], 8) != 0))
        return refuse(400, "the version is neither HTTP/1.1 nor HTTP/1.0", ret_why);
    if (*target != '/' &&
        !(version - target == 1 && *target == '*' && strncmp(line, "OPTIONS ", 8) == 0))
        return refuse(400, "the target does not start with /", ret_why);
    for (const char *p = target; p < version; p++)
        if (*p <= ' ' || *p >= 0x7f || *p == '#')
            return refuse(400, "forbidden character in the target", ret_why);
    return 0;
}

static int check_header_line(const char *line, size_t len, const char **ret_why)
{
    size_t i = 0;

    if (line[0] == ' ' || line[0] == '\t')
        return refuse(400, "folded header line", ret_why);
    while (i < len && is_token_char((unsigned char)line[i]))
        i++;
    if (i == 0 || i == len || line[i] != ':')
        return refuse(400, "malformed header name", ret_why);
    return 0;
}

static int check_lines(const char *bytes, size_t len, const char **ret_why)
{
    const char *line = bytes, *end;
    int status = 0;

    for (; !status && (end = memchr(line, '\r', (size_t)(bytes + len - line))) && end != line;
         line = end + 2)
        status = line == bytes ? check_request_line(line, (size_t)(end - line), ret_why)
                               : check_header_line(line, (size_t)(end - line), ret_why);
    return status;
}

/* What llhttp's callbacks gather.  The head is one piece of memory, so a span that comes in
 * parts is contiguous and only grows. */
struct gather {
    llhttp_t parser;
    char *url, *url_end;
    struct span {
        char *name, *name_end, *value, *value_end;
    } span; /* of the field at hand */
    struct http_field *fields;
    size_t count, room;
    bool is_complete;
};

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct gather *g = parser->data;

    if (!g->url)
        g->url = (char *)at;
    g->url_end = (char *)at + len;
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
    struct gather *g = parser->data;

    if (!g->span.name)
        g->span.name = (char *)at;
    g->span.name_end = (char *)at + len;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct gather *g = parser->data;

    if (!g->span.value)
        g->span.value = (char *)at;
    g->span.value_end = (char *)at + len;
    return 0;
}

/* llhttp is past the line's end here: NULs may be written. */
static int on_field_complete(llhttp_t *parser)
{
    struct gather *g = parser->data;
    struct span *s = &g->span;

    if (g->count == g->room || !s->name)
        return HPE_USER;
    *s->name_end = '\0';
    while (s->value_end > s->value && (s->value_end[-1] == ' ' || s->value_end[-1] == '\t'))
        s->value_end--;
    /* llhttp's place for an empty value is not on its line any more: no NUL there. */
    if (s->value_end > s->value)
        *s->value_end = '\0';
    g->fields[g->count++] =
        (struct http_field){s->name, s->value_end > s->value ? s->value : ""};
    *s = (struct span){0};
    return 0;
}

static int on_head_complete(llhttp_t *parser)
{
    struct gather *g = parser->data;

    g->is_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_field_complete,
    .on_headers_complete = on_head_complete,
};

/* reg-name or IPv4 or [IPv6], each with an optional port; the characters that names really
 * have. */
static bool is_host(const char *host)
{
    const char *p = host;
    size_t digits = 0;

    if (*p == '[') {
        p += 1 + strspn(p + 1, "0123456789abcdefABCDEF:.");
        if (p == host + 1 || *p++ != ']')
            return false;
    } else {
        while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
               (*p >= '0' && *p <= '9') || *p == '-' || *p == '.' || *p == '_')
            p++;
        if (p == host)
            return false;
    }
    if (*p == ':')
        digits = strspn(p + 1, "0123456789"), p += 1 + digits;
    return *p == '\0' && digits <= 5 && p[-1] != ':';
}

/* Digits alone, and no more than a signed 64-bit number holds: 18 digits always fit. */
static bool parse_length(const char *text, int64_t *ret_length)
{
    size_t len = strlen(text);
    int64_t n = 0;

    if (len == 0 || len > 18 || strspn(text, "0123456789") != len)
        return false;
    for (; *text; text++)
        n = n * 10 + (*text - '0');
    *ret_length = n;
    return true;
}

bool http_list_has(const char *list, const char *token)
{
    size_t len = strlen(token);

    while (*list) {
        size_t n;

        list += strspn(list, ", \t");
        n = strcspn(list, ",");
        if (n >= len && strncasecmp(list, token, len) == 0 &&
            strspn(list + len, " \t") == n - len)
            return true;
        list += n;
    }
    return false;
}

struct seen {
    int host, length, coding;
    bool is_close, is_keep_alive;
};

/* One header: 0, or the status to refuse with. */
static int judge_field(struct http_head *head,
                       struct seen *seen,
                       const struct http_field *field,
                       const char **ret_why)
{
    const char *value = field->value;

    if (strcasecmp(field->name, "Host") == 0) {
        if (seen->host++ || !is_host(value))
            return refuse(400, "more than one Host, or not a valid one", ret_why);
        head->host = value;
    } else if (strcasecmp(field->name, "Content-Length") == 0) {
        if (seen->length++ || !parse_length(value, &head->content_length))
            return refuse(400, "more than one Content-Length, or not a number", ret_why);
    } else if (strcasecmp(field->name, "Transfer-Encoding") == 0) {
        if (seen->coding++ || strcasecmp(value, "chunked") != 0)
            return refuse(400, "Transfer-Encoding is not exactly \"chunked\"", ret_why);
    } else if (strcasecmp(field->name, "Expect") == 0) {
        if (strcasecmp(value, "100-continue") != 0)
            return refuse(417, "only 100-continue can be expected", ret_why);
        head->expects_continue = head->minor == 1;
    } else if (strcasecmp(field->name, "Connection") == 0) {
        seen->is_close |= http_list_has(value, "close");
        seen->is_keep_alive |= http_list_has(value, "keep-alive");
    }
    return 0;
}

static int judge_fields(struct http_head *head, const char **ret_why)
{
    struct seen seen = {0};
    int status = 0;

    for (size_t i = 0; i < head->count && !status; i++)
        status = judge_field(head, &seen, &head->fields[i], ret_why);
    if (status)
        return status;
    if (!seen.host && head->minor == 1)
        return refuse(400, "Host is missing", ret_why);
    if (seen.coding && seen.length)
        return refuse(400, "both Content-Length and Transfer-Encoding", ret_why);
    if (seen.coding && head->minor == 0)
        return refuse(400, "Transfer-Encoding in HTTP/1.0", ret_why);
    if (seen.coding)
        head->content_length = -1;
    if (!head->content_length)
        head->expects_continue = false;
    head->is_keep_alive = !seen.is_close && (head->minor == 1 || seen.is_keep_alive);
    return 0;
}

int http_parse_head(char *bytes,
                    size_t len,
                    struct http_field *fields,
                    size_t room,
                    struct http_head *ret_head,
                    const char **ret_why)
{
    struct gather g = {.fields = fields, .room = room};
    struct http_head head = {.fields = fields, .query = ""};
    int status = check_lines(bytes, len, ret_why);
    char *question;

    if (status)
        return status;
    llhttp_init(&g.parser, HTTP_REQUEST, &settings);
    g.parser.data = &g;
    llhttp_execute(&g.parser, bytes, len);
    if (!g.is_complete || !g.url)
        return refuse(400, "malformed head", ret_why);

    *g.url_end = '\0';
    question = strchr(g.url, '?');
    if (question) {
        *question = '\0';
        head.query = question + 1;
    }
    head.method = llhttp_method_name((llhttp_method_t)g.parser.method);
    head.path = g.url;
    head.minor = g.parser.http_minor;
    head.count = g.count;
    status = judge_fields(&head, ret_why);
    if (!status)
        *ret_head = head;
    return status;
}
