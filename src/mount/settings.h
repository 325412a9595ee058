/* settings.h - what yardfs is told: options on its command line, secrets elsewhere.
 *
 * Where the data is and what opens it comes as one JSON object from a file or standard input,
 * since everybody can read a command line:
 *     {"service": "blob" or "file", "endpoint": "http://127.0.0.1:10000/account",
 *      "account": "account", "container": "data", "path": "below/it", "caFile": "/...",
 *      "isYard": true, and one of "key", "sas" or "token"}
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MOUNT_SETTINGS_H
#define MOUNT_SETTINGS_H

#include "base/err.h"
#include "mount/remote.h"

#include <stdint.h>
#include <stdio.h>

struct settings {
    char *folder;      /* to mount on; absolute */
    char *source_file; /* NULL = standard input */
    char *log_file;    /* NULL = none when in the background */
    bool is_writable;  /* of a container; a share always is, unless read-only is asked for */
    bool is_read_only;
    bool is_immutable; /* nobody changes the data while it is mounted */
    bool in_foreground;
    bool allow_other;
    bool is_debug;
    bool wants_help, wants_version;
    int64_t cache_mib;
    int64_t fresh_seconds;    /* how old what is known of names may be */
    int64_t patience_seconds; /* how long a server that is away is waited for */
    int64_t threads;

    /* From the source. */
    bool is_share;
    bool is_yard; /* the server is a yard's, which can some things that others cannot */
    char *endpoint, *account, *container, *path, *ca_file, *secret;
    enum remote_auth auth;
};

/* Understand the command line.  Without --help and --version there is a folder. */
int settings_parse(struct settings *settings, int count, char *const words[], struct err *e);
/* Understand the JSON object of the source. */
int settings_parse_source(struct settings *settings,
                          const char *text,
                          size_t len,
                          struct err *e);
void settings_done(struct settings *settings);
#define auto_settings __attribute__((cleanup(settings_done))) struct settings

void settings_print_help(FILE *out);

#endif
