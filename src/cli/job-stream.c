/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-stream.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/arm.h"
#include "cli/call.h"
#include "cli/job-yard.h"
#include "cli/rest.h"
#include "cli/term.h"
#include "http/client.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_INTERRUPTED = 130, /* 128 + SIGINT, as shells have it */
};

/* --- Ctrl-C --- */

static char farewell[512];
static size_t farewell_len;

static void on_interrupt(int number)
{
    (void)number;
    /* Nothing more can be done about a terminal that takes no text. */
    if (write(STDERR_FILENO, farewell, farewell_len) < 0)
        _exit(EXIT_INTERRUPTED);
    _exit(EXIT_INTERRUPTED);
}

void job_leave_on_interrupt(const char *line)
{
    struct sigaction action = {.sa_handler = line ? on_interrupt : SIG_DFL};

    if (line) {
        auto_str clean = {0};

        str_add_char(&clean, '\n');
        term_clean(&clean, line, strlen(line));
        str_add_char(&clean, '\n');
        farewell_len = clean.len < sizeof(farewell) ? clean.len : sizeof(farewell);
        memcpy(farewell, str_text(&clean), farewell_len);
    }
    sigaction(SIGINT, &action, NULL);
}

/* --- on a terminal --- */

/* How long the character is that begins with this byte; 1 for what begins none. */
static size_t char_len(unsigned char first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

/* How many bytes at the end are a character that is not whole. */
static size_t cut_len(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char byte = (unsigned char)bytes[len - back];

        if ((byte & 0xc0) == 0x80)
            continue;
        return char_len(byte) > back ? back : 0;
    }
    return 0;
}

void job_screen_add(struct job_screen *screen, const char *bytes, size_t len, struct str *out)
{
    auto_str text = {0};
    size_t cut;

    str_add_len(&text, screen->rest, screen->rest_len);
    for (size_t i = 0; i < len; i++) {
        /* "\r\n" is one end of a line, "\r" alone another: a progress bar's next state. */
        if (bytes[i] == '\r')
            str_add_char(&text, '\n');
        else if (bytes[i] != '\n' || !screen->was_return)
            str_add_char(&text, bytes[i]);
        screen->was_return = bytes[i] == '\r';
    }
    cut = text.len ? cut_len(text.data, text.len) : 0;
    screen->rest_len = cut;
    if (cut)
        memcpy(screen->rest, text.data + text.len - cut, cut);
    term_clean(out, str_text(&text), text.len - cut);
}

void job_screen_end(struct job_screen *screen, struct str *out)
{
    term_clean(out, screen->rest, screen->rest_len);
    screen->rest_len = 0;
}

/* --- the stream --- */

struct state {
    const struct job_stream *stream;
    struct job_screen screen;
    bool is_screen;   /* out is a terminal */
    int64_t offset;   /* of the next byte */
    int64_t heard_ms; /* when the yard last gave a sign of life */
    bool is_closed;   /* nobody reads any more */
    struct err e;     /* why out does not take it */
};

static int show(struct state *state, const char *bytes, size_t len)
{
    FILE *out = state->stream->out;

    if ((len && fwrite(bytes, 1, len, out) != len) || fflush(out) != 0) {
        state->is_closed = errno == EPIPE;
        if (state->is_closed)
            clearerr(out); /* no failure: see term_flush */
        else
            err_sys(&state->e, errno, "could not write the output");
        return -1;
    }
    return 0;
}

static int take(void *context, const void *bytes, size_t len)
{
    struct state *state = context;
    auto_str text = {0};
    int rc;

    state->heard_ms = clock_mono_ms();
    if (state->is_screen) {
        job_screen_add(&state->screen, bytes, len, &text);
        rc = show(state, str_text(&text), text.len);
    } else {
        rc = show(state, bytes, len);
    }
    if (rc == 0)
        state->offset += (int64_t)len;
    return rc;
}

void job_stream_path(struct str *out, const struct job_stream *stream, int64_t offset)
{
    str_addf(out, "%s/log?api-version=" ARM_BATCHAI "&file=", stream->job_id);
    text_percent(out, stream->file);
    str_add(out, "&outputdirectoryid=");
    text_percent(out, stream->directory ? stream->directory : "stdouterr");
    if (stream->path) {
        str_add(out, "&directory=");
        text_percent(out, stream->path);
    }
    str_addf(out, "&follow=%s&offset=%lld", stream->follows ? "true" : "false",
             (long long)offset);
}

/* The yard has answered: 1 when that was all, 0 to ask again, -1 when it will never work. */
static int judge(const struct http_answer *answer, struct err *e)
{
    if (answer->status == 200)
        return 1;
    rest_failure(answer, e);
    return answer->status == 429 || answer->status >= 500 ? 0 : -1;
}

/* One request, from where we are. */
static int ask_once(struct state *state, struct err *e)
{
    auto_answer answer = {0};
    auto_str path = {0};
    struct http_call call = {.method = "GET", .sink = take, .sink_context = state};
    struct job_yard yard = {0};
    int rc;

    if (job_yard_open(&yard, state->stream->call, e) < 0)
        return e->code == ERR_BUSY ? 0 : -1;
    job_stream_path(&path, state->stream, state->offset);
    rc = rest_raw(yard.rest, str_text(&path), &call, &answer, e);
    if (answer.status) /* a job may say nothing for long: the yard is there nevertheless */
        state->heard_ms = clock_mono_ms();
    if (rc == 0)
        rc = judge(&answer, e);
    else if (state->is_closed)
        rc = 1;
    else if (state->e.code != ERR_NONE)
        *e = state->e;
    else
        rc = e->code == ERR_BUSY || e->code == ERR_TIMEOUT ? 0 : -1;
    job_yard_close(&yard);
    return rc;
}

int job_stream(const struct job_stream *stream, struct err *e)
{
    struct state state = {
        .stream = stream,
        .is_screen = isatty(fileno(stream->out)),
        .heard_ms = clock_mono_ms(),
    };
    auto_str rest = {0};
    struct err why = {0};
    int rc;

    while ((rc = ask_once(&state, &why)) == 0) {
        if (clock_mono_ms() - state.heard_ms > STREAM_PATIENCE_MS)
            break;
        job_yard_pause();
    }
    if (rc <= 0) {
        *e = why;
        return -1;
    }
    job_screen_end(&state.screen, &rest);
    if (rest.len && !state.is_closed)
        show(&state, str_text(&rest), rest.len);
    return 0;
}
