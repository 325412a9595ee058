/* err.h - one error value, on the caller's stack, that explains itself.
 *
 * A fallible function returns 0 or -1 (or a pointer or NULL) and takes `struct err *e` last.
 * `e` may be NULL; success leaves it untouched.  err_set, err_sys and err_wrap always return
 * -1, so that "return err_set(e, ...)" is the way to fail.  Nothing is allocated, nothing is to
 * be freed.
 *
 * One table, in err.c, says what each code means to an HTTP client, to a script and to a retry
 * loop; no handler invents a status.  Where a protocol wants a finer word than the table's
 * ("WorkspaceNotFound" rather than "ResourceNotFound"), err_reason() adds it; the status stays
 * the table's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

#define PRINTF_LIKE(at, args) __attribute__((format(printf, at, args)))

enum err_code {
    ERR_NONE = 0,
    ERR_INVALID,      /* the request makes no sense; the same request never will */
    ERR_UNAUTHORIZED, /* who are you? */
    ERR_FORBIDDEN,    /* known, but not allowed */
    ERR_NOT_FOUND,
    ERR_METHOD, /* the thing is there, but cannot do that */
    ERR_CONFLICT,
    ERR_PRECONDITION, /* an If-Match or If-None-Match did not hold */
    ERR_TOO_LARGE,
    ERR_RANGE,     /* beyond the end of the thing */
    ERR_MEDIA,     /* content type not understood */
    ERR_MISDIRECT, /* for another host */
    ERR_TIMEOUT,
    ERR_BUSY,     /* could not now, may work next time */
    ERR_NO_SPACE, /* disk or quota */
    ERR_INTERNAL, /* our fault */
    ERR_CODES,
};

struct err {
    enum err_code code;
    const char *reason; /* finer word for the wire; static storage; NULL = the table's */
    char target[64];    /* the field, option or resource at fault; may be empty */
    char msg[512];      /* one line for a person; always UTF-8 without control characters */
};

struct err_info {
    int http_status;
    const char *reason; /* the wire's word when the error has none of its own */
    int exit_status;    /* of the command line, as az has them: 1 failure, 2 usage, 3 missing */
    bool retry;         /* may the same request work later? */
};

/* What a code means outside.  Never NULL. */
const struct err_info *err_info(enum err_code code);

/* The code whose status this is; others from 500 on are ERR_INTERNAL, the rest ERR_INVALID. */
enum err_code err_code_of_status(int http_status);

/* The wire's word for an error: its own reason, else the table's. */
const char *err_reason_of(const struct err *e);

int err_set(struct err *e, enum err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* As err_set, with errno's text appended and the code taken from errno_value. */
int err_sys(struct err *e, int errno_value, const char *format, ...) PRINTF_LIKE(3, 4);

/* Put "<text>: " before the message that is there.  Keeps code, reason and target. */
int err_wrap(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* Name the finer reason, or the field at fault, of an error just set.  Return -1 like the
 * others, so that they chain: return err_target(e, "location"). */
int err_reason(struct err *e, const char *reason);
int err_target(struct err *e, const char *target);

/* Compilers and the analyzer look at one source at a time: tell them that failing always
 * returns -1, or they see ways on which a failed function left its results unset and its caller
 * went on. */
static inline int err_always_fails(int returned)
{
    (void)returned;
    return -1;
}
#define err_set(...)    err_always_fails(err_set(__VA_ARGS__))
#define err_sys(...)    err_always_fails(err_sys(__VA_ARGS__))
#define err_wrap(...)   err_always_fails(err_wrap(__VA_ARGS__))
#define err_reason(...) err_always_fails(err_reason(__VA_ARGS__))
#define err_target(...) err_always_fails(err_target(__VA_ARGS__))

#endif
