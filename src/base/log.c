/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
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

/* Words that name a secret: the value follows in the way of a query or a connection string
 * (word=value) or of JSON ("word": "value"). */
static const char *const words[] = {"sig",    "AccountKey", "password",
                                    "secret", "token",      "assertion"};

/* Schemes of the Authorization header: the value follows after spaces. */
static const char *const schemes[] = {"Bearer", "Basic", "SharedKey", "SharedKeyLite"};

static size_t skip(const char *p, size_t at, const char *chars)
{
    return at + strspn(p + at, chars);
}

/* The length of "=", "%3D" or '":' between a word and its value; 0 if there is none. */
static size_t separator(const char *p)
{
    if (*p == '=')
        return 1;
    if (str_starts_nocase(p, "%3d"))
        return 3;
    if (*p == '"' || *p == '\'') {
        size_t at = skip(p, 1, " ");

        return p[at] == ':' ? skip(p, at + 1, " ") : 0;
    }
    return 0;
}

/* How many bytes at p announce a secret, up to its first byte; 0 if none is announced. */
static size_t announcement(const char *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t len = strlen(words[i]);
        size_t gap = str_starts_nocase(p, words[i]) ? separator(p + len) : 0;

        if (gap)
            return len + gap;
    }
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        size_t len = strlen(schemes[i]);

        if (str_starts_nocase(p, schemes[i]) && p[len] == ' ')
            return skip(p, len, " ");
    }
    return 0;
}

void log_redact(struct str *out, const char *text)
{
    for (const char *p = text; *p;) {
        size_t len = announcement(p);

        if (!len) {
            str_add_char(out, *p++);
            continue;
        }
        str_add_len(out, p, len);
        str_add(out, "***");
        p += len;
        /* A quoted value ends with its quote, a bare one where its surroundings go on. */
        if (*p == '"' || *p == '\'') {
            const char *end = strchr(p + 1, *p);

            p = end ? end + 1 : p + strlen(p);
        } else {
            p += strcspn(p, "&;, \"'\r\n");
        }
    }
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Control characters (with the C1 ones, which terminals obey too) and what is not UTF-8 as
 * \xNN, so that a line stays one line. */
static void add_printable(struct str *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        size_t len = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
        const char *s = (const char *)p;
        bool whole = strnlen(s, len) == len && text_is_utf8(s, len);
        uint32_t c = len == 2 && whole ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu) : *p;

        if (whole && (len > 2 || !is_control(c))) {
            str_add_len(out, s, len);
            p += len;
        } else {
            str_addf(out, "\\x%02x", *p++);
        }
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
