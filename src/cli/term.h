/* term.h - the terminal: when there is one, what may be written to it, and colours.
 *
 * Names, messages and logs are foreign text: on a terminal their control characters could move
 * the cursor, set the title or answer questions in the person's name.  They are taken out
 * there, and left alone in files and pipes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include "base/err.h"

#include <stddef.h>
#include <stdio.h>

struct str;

/* Append text without C0 (but \n and \t), DEL and C1 characters, and with bytes that are not
 * UTF-8 replaced by U+FFFD. */
void term_clean(struct str *out, const char *text, size_t len);

/* Write text to the stream, cleaned when that is a terminal. */
void term_write(FILE *stream, const char *text, size_t len);

/* Write a line to stderr, cleaned when that is a terminal. */
void term_say(const char *format, ...) PRINTF_LIKE(1, 2);

/* The same for a line of --debug. */
void term_debug(const char *line);

/* May colours be used?  A terminal, TERM not dumb, NO_COLOR not set. */
bool term_has_colour(FILE *stream);

/* How many columns a text takes. */
size_t term_width(const char *text);

/* Flush stdout and say whether everything got out: a full disk must not look like success.  A
 * reader that has closed the pipe is no failure. */
int term_flush(struct err *e);

#endif
