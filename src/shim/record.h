/* record.h - how a task ended, as its shim wrote it down; and whether its shim is alive.
 *
 * The record is one line of text with a checksum, so that a torn one is seen:
 *
 *     yard-exit 1 code=<n> signal=<n> oom=<0|1> stopped=<0|1> started=<ms> ended=<ms> pid=<n>
 * crc=<hex>\n
 *
 * crc is the CRC-64 (base/crc64.h) of everything before " crc=", 16 digits.
 *
 * code is -1 when a signal ended it, or (signal is 0 then) when it could not be started at all;
 * then "error" beside the record, a file of one line, says why.  A command that cannot be
 * executed has the code bash would give, 127 or 126, and "error" too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include "base/err.h"
#include "shim/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct str;

struct shim_record {
    int code;                     /* exit code, -1 = none */
    int signal;                   /* 0 = none */
    bool out_of_memory;           /* the kernel killed something of it for want of memory */
    bool was_stopped;             /* the shim was told to end it, while the command was alive */
    int64_t started_ms, ended_ms; /* of the command; wall clock, never negative in length */
    pid_t pid;                    /* of the command */
};

enum shim_state {
    SHIM_ABSENT, /* nothing was ever started here: it may be */
    SHIM_ALIVE,  /* *ret_pid runs it; 0 = a shim has the folder, and has not said who it is */
    SHIM_ENDED,  /* *ret_record tells how; nothing of the task is alive */
    SHIM_LOST,   /* it was started and nobody knows how it ended (shim killed, machine
                    restarted) */
};

/* Look into a run folder; one that is not there is SHIM_ABSENT.  A torn or foreign record is
 * SHIM_LOST, never an exit.  ret_record and ret_pid may be NULL. */
int shim_look(const char *folder,
              enum shim_state *ret_state,
              struct shim_record *ret_record,
              pid_t *ret_pid,
              struct err *e);

int shim_record_parse(const char *text, struct shim_record *ret_record, struct err *e);
void shim_record_format(const struct shim_record *record, struct str *out);

/* Take the room for a record now, so that a disk that fills up later does not prevent it. */
int shim_record_reserve(int folder_fd, struct err *e);
/* On disk when it returns.  When it fails, there is no record, and it may be tried again. */
int shim_record_write(int folder_fd, const struct shim_record *record, struct err *e);

#endif
