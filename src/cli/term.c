/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/* One character at p: its code point, and its length in *ret_len.  -1 for a byte that is not
 * UTF-8. */
static int32_t decode(const unsigned char *p, size_t left, size_t *ret_len)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    int32_t point;

    *ret_len = 1;
    if (len == 1)
        return p[0];
    if (!len || p[0] > 0xf4 || len > left)
        return -1;
    point = p[0] & (0xff >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        point = point << 6 | (p[i] & 0x3f);
    }
    if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return -1;
    *ret_len = len;
    return point;
}

static bool is_control(int32_t point)
{
    return (point < 0x20 && point != '\n' && point != '\t') || (point >= 0x7f && point < 0xa0);
}

void term_clean(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0, step; i < len; i += step) {
        int32_t point = decode((const unsigned char *)text + i, len - i, &step);

        if (point < 0)
            str_add(out, "\xef\xbf\xbd");
        else if (!is_control(point))
            str_add_len(out, text + i, step);
    }
}

void term_write(FILE *stream, const char *text, size_t len)
{
    auto_str clean = {0};

    if (isatty(fileno(stream))) {
        term_clean(&clean, text, len);
        text = str_text(&clean);
        len = clean.len;
    }
    fwrite(text, 1, len, stream);
}

void term_say(const char *format, ...)
{
    auto_str line = {0};
    va_list args;

    va_start(args, format);
    str_vaddf(&line, format, args);
    va_end(args);
    str_add_char(&line, '\n');
    term_write(stderr, str_text(&line), line.len);
}

void term_debug(const char *line)
{
    term_say("DEBUG: %s", line);
}

bool term_has_colour(FILE *stream)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (no_colour && *no_colour)
        return false;
    return isatty(fileno(stream)) && term && *term && !str_equal(term, "dumb");
}

size_t term_width(const char *text)
{
    size_t len = strlen(text), width = 0;

    for (size_t i = 0, step; i < len; i += step) {
        int32_t point = decode((const unsigned char *)text + i, len - i, &step);
        int columns = point < 0 ? 1 : wcwidth((wchar_t)point);

        width += columns < 0 ? 1 : (size_t)columns;
    }
    return width;
}

int term_flush(struct err *e)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (errno == EPIPE)
        return 0;
    return err_sys(e, errno ? errno : EIO, "could not write the output");
}
