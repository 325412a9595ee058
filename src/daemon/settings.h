/* settings.h - everything about a yard that can be set, from one table.
 *
 * Each setting is a row: its name, its default, what it is for.  The rows make the options of
 * yardd (--https-port), its
 * --help, the keys of the file yardd.conf in the data folder (https_port = 7443) and the
 * commented sample that "yardd --sample-config" prints.  Options beat the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SETTINGS_H
#define DAEMON_SETTINGS_H

#include "base/err.h"
#include "base/log.h"

#include <stddef.h>
#include <stdio.h>

struct settings {
    char *home;
    char *address;    /* where the API listens with TLS */
    char *host_names; /* more names it answers to, comma-separated */
    char *tls_cert, *tls_key;
    char *storage_suffix; /* of host-style storage addresses, comma-separated */
    int https_port, http_port;
    int blob_port, file_port;
    int threads;
    int most_per_commit;
    int max_body_kib;
    int max_connections;
    int drain_seconds;
    int audit_days;
    int idle_seconds;  /* of nodes, before an automatic cluster gives them up */
    int most_attempts; /* of a job whose nodes are lost */
    int most_nodes;
    int node_pids;
    int grace_seconds; /* between TERM and KILL */
    int node_start_seconds;
    char *oversubscribe; /* "yes" or "no" */
    char *nodes;         /* "auto", "namespaces" or "processes" */
    char *node_subnet, *vm_sizes;
    enum log_level log_level;
};

enum settings_verb {
    SETTINGS_RUN,
    SETTINGS_HELP,
    SETTINGS_VERSION,
    SETTINGS_SAMPLE,
    SETTINGS_STAGE_RESTORE, /* *ret_argument is the file */
};

/* Defaults, then the file of the home that the arguments or YARD_HOME name, then the arguments.
 */
int settings_read(int argc,
                  char **argv,
                  struct settings *ret_settings,
                  enum settings_verb *ret_verb,
                  const char **ret_argument,
                  struct err *e);
void settings_done(struct settings *settings);

void settings_print_help(FILE *out);
void settings_print_sample(FILE *out);

#endif
