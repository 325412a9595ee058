/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct err_info infos[ERR_CODES] = {
    [ERR_NONE] = {200, "OK", 0, false},
    [ERR_INVALID] = {400, "BadRequest", 1, false},
    [ERR_UNAUTHORIZED] = {401, "AuthenticationFailed", 1, false},
    [ERR_FORBIDDEN] = {403, "AuthorizationFailed", 1, false},
    [ERR_NOT_FOUND] = {404, "ResourceNotFound", 3, false},
    [ERR_METHOD] = {405, "MethodNotAllowed", 1, false},
    [ERR_CONFLICT] = {409, "Conflict", 1, false},
    [ERR_PRECONDITION] = {412, "PreconditionFailed", 1, false},
    [ERR_TOO_LARGE] = {413, "RequestBodyTooLarge", 1, false},
    [ERR_RANGE] = {416, "InvalidRange", 1, false},
    [ERR_MEDIA] = {415, "UnsupportedMediaType", 1, false},
    [ERR_MISDIRECT] = {421, "MisdirectedRequest", 1, false},
    [ERR_TIMEOUT] = {408, "RequestTimeout", 1, true},
    [ERR_BUSY] = {503, "ServerBusy", 1, true},
    [ERR_NO_SPACE] = {507, "InsufficientStorage", 1, true},
    [ERR_INTERNAL] = {500, "InternalServerError", 1, true},
};

const struct err_info *err_info(enum err_code code)
{
    assert(code < ERR_CODES);
    return &infos[code];
}

enum err_code err_code_of_status(int http_status)
{
    for (int code = ERR_INVALID; code < ERR_CODES; code++) {
        if (infos[code].http_status == http_status)
            return (enum err_code)code;
    }
    return http_status >= 500 ? ERR_INTERNAL : ERR_INVALID;
}

const char *err_reason_of(const struct err *e)
{
    return e->reason ? e->reason : err_info(e->code)->reason;
}

/* Messages quote foreign text and are cut to fit: what would break the line becomes a space,
 * other control characters and what is no whole UTF-8 character any more '?', so that a message
 * can always be written as JSON. */
static void tidy(char *text)
{
    for (char *p = text; *p;) {
        unsigned char c = (unsigned char)*p;
        size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

        if (c == '\n' || c == '\t') {
            *p = ' ';
        } else if (c < 0x20 || c == 0x7f || strnlen(p, len) < len || !text_is_utf8(p, len)) {
            *p = '?';
            len = 1;
        }
        p += len;
    }
}

static PRINTF_LIKE(3, 0) void fill(struct err *e,
                                   enum err_code code,
                                   const char *format,
                                   va_list args)
{
    e->code = code;
    e->reason = NULL;
    e->target[0] = '\0';
    vsnprintf(e->msg, sizeof(e->msg), format, args);
}

/* Names in parentheses: err.h has macros of the same names. */
int(err_set)(struct err *e, enum err_code code, const char *format, ...)
{
    va_list args;

    if (!e)
        return -1;
    va_start(args, format);
    fill(e, code, format, args);
    va_end(args);
    tidy(e->msg);
    return -1;
}

static enum err_code code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
        return ERR_CONFLICT;
    case EACCES:
    case EPERM:
        return ERR_FORBIDDEN;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV:
        return ERR_INVALID;
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EAGAIN:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return ERR_BUSY;
    default:
        return ERR_INTERNAL;
    }
}

int(err_sys)(struct err *e, int errno_value, const char *format, ...)
{
    va_list args;
    char text[128];
    size_t used;

    if (!e)
        return -1;
    va_start(args, format);
    fill(e, code_of_errno(errno_value), format, args);
    va_end(args);
    used = strlen(e->msg);
    snprintf(e->msg + used, sizeof(e->msg) - used, ": %s",
             strerror_r(errno_value, text, sizeof(text)));
    tidy(e->msg);
    return -1;
}

int(err_wrap)(struct err *e, const char *format, ...)
{
    char inner[sizeof(e->msg)];
    va_list args;
    size_t used;

    if (!e)
        return -1;
    memcpy(inner, e->msg, sizeof(inner));
    va_start(args, format);
    vsnprintf(e->msg, sizeof(e->msg), format, args);
    va_end(args);
    used = strlen(e->msg);
    /* The cut of a too long chain is wanted: the outer words say where to look. */
    if (used < sizeof(e->msg) - 3) {
        memcpy(e->msg + used, ": ", 3);
        used += 2;
        snprintf(e->msg + used, sizeof(e->msg) - used, "%.*s", (int)sizeof(inner) - 1, inner);
    }
    tidy(e->msg);
    return -1;
}

int(err_reason)(struct err *e, const char *reason)
{
    if (e)
        e->reason = reason;
    return -1;
}

int(err_target)(struct err *e, const char *target)
{
    if (!e)
        return -1;
    snprintf(e->target, sizeof(e->target), "%s", target);
    tidy(e->target);
    return -1;
}
