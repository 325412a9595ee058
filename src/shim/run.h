/* run.h - yard-shim RUNFOLDER: hold one task.
 *
 * Signals: SIGTERM asks the task to end (TERM to its whole tree, KILL after the grace time);
 * saying it again changes nothing, since a daemon that was restarted says again what it had
 * said.  SIGUSR1 ends the grace time now.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIM_RUN_H
#define SHIM_RUN_H

enum shim_exit {
    SHIM_EXIT_DONE = 0, /* the end is recorded */
    SHIM_EXIT_USAGE = 2,
    SHIM_EXIT_HELD = 3,    /* another shim holds the folder, or it was started before: nothing
                              was done */
    SHIM_EXIT_NOTHING = 4, /* it could not be started; "error" tells why, if it could be
                              written */
};

/* Returns an enum shim_exit. */
int shim_run(const char *folder);

#endif
