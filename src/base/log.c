/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static atomic_int threshold = LOG_LEVEL_INFO;

static const char *const names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_ERROR] = "error",
};

void log_set_level(enum log_level level)
{
    threshold = (int)level;
}

int log_parse_level(const char *text, enum log_level *ret_level, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (str_equal(text, names[i])) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    }
    return err_set(e, ERR_INVALID,
                   "\"%.64s\" is not a log level; take debug, info, warning or error", text);
}

/* What stands before a secret, and what ends it. */
static const struct marker {
    const char *before;
    const char *ends;
} markers[] = {
    {"sig=", "& \"'"},          {"Bearer ", " \"'"},      {"SharedKey ", " \"'"},
    {"SharedKeyLite ", " \"'"}, {"AccountKey=", "; \"'"}, {"client_secret=", "& \"'"},
    {"password=", "&; \"'"},    {"token=", "&; \"'"},
};

static const struct marker *marker_at(const char *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(markers); i++) {
        if (str_starts_nocase(p, markers[i].before))
            return &markers[i];
    }
    return NULL;
}

void log_redact(struct str *out, const char *text)
{
    for (const char *p = text; *p;) {
        const struct marker *m = marker_at(p);

        if (!m) {
            str_add_char(out, *p++);
            continue;
        }
        str_add_len(out, p, strlen(m->before));
        str_add(out, "***");
        p += strlen(m->before);
        p += strcspn(p, m->ends);
    }
}

/* Control characters and DEL as \xNN, so that a line stays one line. */
static void add_printable(struct str *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7f)
            str_addf(out, "\\x%02x", *p);
        else
            str_add_char(out, (char)*p);
    }
}

void log_line(enum log_level level, const char *format, ...)
{
    auto_str raw = {0}, clean = {0}, line = {0};
    char now[CLOCK_ISO_BYTES];
    va_list args;

    if ((int)level < threshold)
        return;
    va_start(args, format);
    str_vaddf(&raw, format, args);
    va_end(args);
    log_redact(&clean, str_text(&raw));
    str_addf(&line, "time=%s level=%s ", clock_format_iso(clock_wall_ms(), now), names[level]);
    add_printable(&line, str_text(&clean));
    str_add_char(&line, '\n');
    /* One write, so that lines of several threads do not mix.  A full disk must not stop the
     * work. */
    if (write(STDERR_FILENO, line.data, line.len) < 0)
        return;
}
