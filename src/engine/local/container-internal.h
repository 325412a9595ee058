/* container-internal.h - what image.c and container.c share: calls of the runtime.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_CONTAINER_INTERNAL_H
#define ENGINE_LOCAL_CONTAINER_INTERNAL_H

#include "engine/local/command.h"
#include "engine/local/container.h"

#include <pthread.h>

enum {
    BOX_MOST_ARGS = 512, /* a job may mount many volumes */
    BOX_ASK_MS = 60 * 1000,
};

struct box {
    pthread_mutex_t lock;
    bool is_known;       /* guarded; the rest never changes after it is set */
    const char *program; /* NULL = there is none */
    bool is_podman;
    const char *flags[6]; /* of podman itself */
    size_t flag_count;
};

/* A growing argv; strings are the arena's or constants. */
struct args {
    const char *list[BOX_MOST_ARGS + 1];
    size_t count;
    const char *input; /* NULL */
};

void args_add(struct args *args, const char *word);
void args_add_pair(struct args *args, const char *option, const char *value);
/* The program, its own flags, a verb. */
void args_begin(const struct box *box, struct args *args, const char *verb);
/* One call of the runtime, in the node or, when keeper_fd is negative, here.  wish may be NULL:
 * it says when to give up. */
int box_run(int keeper_fd,
            const struct args *args,
            int64_t timeout_ms,
            const struct container_wish *wish,
            struct command_outcome *ret_outcome,
            struct err *e);
/* Always -1. */
int box_fail(struct container_failure *failure,
             const char *code,
             const char *message,
             const char *info);

/* --- image.c --- */

/* Have the image on this machine, for a job with these credentials. */
int image_fetch(struct box *box,
                const struct container_wish *wish,
                struct arena *arena,
                struct container_failure *failure);

#endif
