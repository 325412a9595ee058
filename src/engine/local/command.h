/* command.h - run another program to its end, with its output caught and a limit of time.
 *
 * Blocks: for errands.  The program runs in the namespaces of the calling thread, in a process
 * group of its own, which is killed when the time is over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_COMMAND_H
#define ENGINE_LOCAL_COMMAND_H

#include "base/err.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdint.h>

struct errands;

enum {
    COMMAND_MOST_OUTPUT = 256 << 10, /* what comes after is read and dropped */
};

struct command {
    const char *const *argv; /* NULL-ended; argv[0] is looked up in PATH */
    const char *const *env;  /* NULL-ended; NULL = the daemon's own: not for what users wrote */
    const char *input;       /* NULL = none */
    int64_t timeout_ms;
    struct errands *errands;         /* give up when they stop; NULL = do not ask */
    const atomic_bool *is_cancelled; /* give up when it is set; NULL = do not ask */
};

struct command_outcome {
    int code;     /* exit code; -1 = a signal or the time ended it */
    bool is_late; /* killed for its time */
    struct str out, errors;
};
void command_outcome_done(struct command_outcome *outcome);
#define auto_outcome __attribute__((cleanup(command_outcome_done))) struct command_outcome

/* Fails only when the program cannot be started (ERR_NOT_FOUND: there is none of that name). */
int command_run(const struct command *command,
                struct command_outcome *ret_outcome,
                struct err *e);
/* The same for programs that must succeed: any other end is an error that quotes the last line
 * they wrote to stderr. */
int command_must(const struct command *command, struct err *e);
/* The last line that is not empty, without its newline; appended. */
void command_last_line(const struct str *text, struct str *out);

#endif
