/* job-stream.h - a file that a job writes, shown as it is written.
 *
 * The yard pushes: one request that goes on while the job does.  When the connection is lost,
 * or the yard restarts, the next request goes on from the byte after the last one shown: none
 * is lost, none comes twice.  The file's text is foreign: on a terminal its control characters
 * are taken out, and a carriage return begins a new line.
 *
 * Threads: one stream belongs to one thread; several may run at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JOB_STREAM_H
#define CLI_JOB_STREAM_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct call;
struct str;

enum {
    STREAM_PATIENCE_MS = 2 * 60 * 1000, /* how long a yard that is away is waited for */
};

struct job_stream {
    const struct call *call; /* where the yard is; nobody changes it meanwhile */
    const char *job_id;
    const char *file;      /* "stdout.txt" */
    const char *directory; /* outputdirectoryid; NULL = stdouterr */
    const char *path;      /* folder within it; NULL = itself */
    bool follows;          /* until the job has ended; else what is there now */
    FILE *out;
};

/* Show it.  Returns when all was shown, also when nobody reads out any more.  ERR_NOT_FOUND
 * when the job has ended and there is no such file. */
int job_stream(const struct job_stream *stream, struct err *e);

/* Append the path of the request: "<job id>/log?...&offset=N". */
void job_stream_path(struct str *out, const struct job_stream *stream, int64_t offset);

/* Text for a terminal, piece by piece: what a piece leaves of a character waits for the rest.
 */
struct job_screen {
    char rest[4]; /* of a character that is not whole yet */
    size_t rest_len;
    bool was_return; /* the last character was a carriage return */
};
void job_screen_add(struct job_screen *screen, const char *bytes, size_t len, struct str *out);
/* The bytes that no more will come to. */
void job_screen_end(struct job_screen *screen, struct str *out);

/* From now on Ctrl-C shows this line and ends the program: the job goes on by itself.  NULL
 * takes it back. */
void job_leave_on_interrupt(const char *line);

#endif
