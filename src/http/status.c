/* status.c - reason phrases, and the body of the errors that the server answers by itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http-internal.h"

#include "base/mem.h"

static const struct {
    int status;
    const char *text;
    const char
        *code; /* of the error envelope; NULL where the server never answers this itself */
} rows[] = {
    {100, "Continue", NULL},
    {101, "Switching Protocols", NULL},
    {200, "OK", NULL},
    {201, "Created", NULL},
    {202, "Accepted", NULL},
    {204, "No Content", NULL},
    {206, "Partial Content", NULL},
    {301, "Moved Permanently", NULL},
    {302, "Found", NULL},
    {303, "See Other", NULL},
    {304, "Not Modified", NULL},
    {307, "Temporary Redirect", NULL},
    {308, "Permanent Redirect", NULL},
    {400, "Bad Request", "BadRequest"},
    {401, "Unauthorized", NULL},
    {403, "Forbidden", NULL},
    {404, "Not Found", NULL},
    {405, "Method Not Allowed", NULL},
    {406, "Not Acceptable", NULL},
    {408, "Request Timeout", "RequestTimeout"},
    {409, "Conflict", NULL},
    {410, "Gone", NULL},
    {411, "Length Required", NULL},
    {412, "Precondition Failed", NULL},
    {413, "Content Too Large", "RequestBodyTooLarge"},
    {414, "URI Too Long", "UriTooLong"},
    {415, "Unsupported Media Type", NULL},
    {416, "Range Not Satisfiable", NULL},
    {417, "Expectation Failed", "ExpectationFailed"},
    {421, "Misdirected Request", NULL},
    {422, "Unprocessable Content", NULL},
    {423, "Locked", NULL},
    {428, "Precondition Required", NULL},
    {429, "Too Many Requests", NULL},
    {431, "Request Header Fields Too Large", "RequestHeadersTooLarge"},
    {500, "Internal Server Error", "InternalServerError"},
    {501, "Not Implemented", NULL},
    {502, "Bad Gateway", NULL},
    {503, "Service Unavailable", "ServerBusy"},
    {504, "Gateway Timeout", NULL},
    {507, "Insufficient Storage", NULL},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Unknown";
}

void http_error_body(struct str *out, int status, const char *why)
{
    const char *code = "Error";

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].status == status && rows[i].code)
            code = rows[i].code;
    str_addf(out, "{\"error\":{\"code\":\"%s\",\"message\":\"", code);
    for (; *why; why++) {
        if (*why == '"' || *why == '\\')
            str_add_char(out, '\\');
        str_add_char(out, *why);
    }
    str_add(out, "\"}}");
}
