/* errand.h - work that blocks, on threads of the engine, with its report on the loop.
 *
 * An errand is embedded first in a struct of its caller's, made by xcalloc.  errand_submit
 * takes it over: work runs on a thread, then done on the loop, which frees it.  errands_free
 * waits for what runs and drops the reports: the structs are freed by free alone, so they hold
 * nothing that needs more.
 *
 * Threads: everything on the loop thread, but for work and errands_are_stopping.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOCAL_ERRAND_H
#define ENGINE_LOCAL_ERRAND_H

#include "base/err.h"

struct errands; /* opaque */
struct loop;

struct errand {
    void (*work)(struct errand *errand);
    void (*done)(struct errand *errand);
    struct errands *errands; /* private */
    struct errand *next;     /* private */
};

int errands_new(struct loop *loop, int threads, struct errands **ret_errands, struct err *e);
/* NULL is fine. */
void errands_free(struct errands *errands);
void errand_submit(struct errands *errands, struct errand *errand);
/* Long work asks now and then, and gives up. */
bool errands_are_stopping(struct errands *errands);

#endif
