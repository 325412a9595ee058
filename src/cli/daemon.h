/* daemon.h - start, stop and ask the yard on the data folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include "base/err.h"

#include <jansson.h>
#include <stdint.h>

/* The daemon's program: yardd beside this one.  The caller frees. */
int daemon_program(char **ret_path, struct err *e);

/* Start it in the background with its log in <home>/log/yardd.log, and wait until it answers.
 * Fails with the end of the log when it does not. */
int daemon_start(const char *home, struct err *e);

/* Ask it to stop and wait until it is gone.  *ret_was tells whether there was one. */
int daemon_stop(const char *home, bool *ret_was, struct err *e);

/* Does the yard at this address answer /healthz with 200? */
bool daemon_is_healthy(const char *url, const char *ca_file);

/* Wait until the yard on the folder answers /healthz, and was not started at not_started (the
 * startedAt of its card before a restart; NULL = any). */
int daemon_wait(const char *home, const char *not_started, int64_t timeout_ms, struct err *e);

/* Its card (run/yardd.json) with "running", "home" and "uptime" (seconds) added; a card of its
 * own when none runs. */
json_t *daemon_status(const char *home);

#endif
