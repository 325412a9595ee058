/* log.h - structured log lines on stderr, with secrets taken out.
 *
 * A line is logfmt: "time=... level=... " and then what the caller wrote, by custom "event=name
 * key=value" pairs.  Control characters are escaped, so that foreign text cannot forge a line
 * or a terminal sequence.
 *
 * Redaction: what follows "sig=", "password=", "secret=", "token=", "AccountKey=" (or the same
 * names as JSON fields) and "Bearer", "Basic", "SharedKey" is "***" before a line is written.
 *
 * Libraries never log above debug; the edge (request handler, event callback, main) logs once.
 * The level is the one mutable global of the project.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"

struct str;

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR,
};

void log_set_level(enum log_level level);
int log_parse_level(const char *text, enum log_level *ret_level, struct err *e);

void log_line(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_debug(...)   log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)    log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...)   log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

/* Append text with every known secret form replaced by "***". */
void log_redact(struct str *out, const char *text);

#endif
