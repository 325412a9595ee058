/* operation.h - a long-running operation: something the yard accepted (202) and finishes by
 * itself.
 *
 *     running --done--> succeeded
 *             --fail--> failed
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_OPERATION_H
#define CORE_OPERATION_H

#include "base/err.h"
#include "base/mem.h"

#include <stdint.h>

enum operation_state {
    OPERATION_RUNNING,
    OPERATION_SUCCEEDED,
    OPERATION_FAILED,
    OPERATION_STATES,
};

enum operation_event {
    OPERATION_DONE,
    OPERATION_FAIL,
    OPERATION_EVENTS,
};

/* What has to be done. */
enum operation_kind {
    OPERATION_DELETE_RESOURCE,
    OPERATION_CREATE_RESOURCE, /* done as soon as it is recorded; clients want to poll it */
    OPERATION_TERMINATE_JOB,
    OPERATION_KINDS,
};

struct operation {
    char *id; /* UUID */
    enum operation_kind kind;
    enum operation_state state;
    int64_t resource_id; /* the row it works on */
    char *target;        /* its ARM id */
    int64_t started_ms;
    int64_t ended_ms; /* 0 while running */
    char *error_code; /* NULL unless failed */
    char *error_message;
};

struct operation *operation_new(void);
void operation_free(struct operation *operation);
DEFINE_AUTOPTR(operation)

/* The only writer of operation->state. */
int operation_apply(struct operation *operation,
                    enum operation_event event,
                    int64_t now_ms,
                    struct err *e);

/* As the wire spells it: InProgress, Succeeded, Failed. */
const char *operation_state_name(enum operation_state state);

#endif
