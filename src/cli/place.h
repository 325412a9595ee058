/* place.h - where the yard is: its addresses, its token, its subscription.
 *
 * Looked for in this order:
 *  1. the environment: YARD_URL, YARD_TOKEN, YARD_CA_FILE;
 *  2. the remote yard of `yard login`;
 *  3. the daemon on the data folder (YARD_HOME, default ~/.trainyard), told by run/yardd.json.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <sys/types.h>

struct config;

struct place {
    char *api_url;         /* without a slash at the end */
    char *token;           /* NULL = none is known */
    char *ca_file;         /* NULL = the system's */
    char *subscription_id; /* NULL = to be asked for */
    char *tenant_id;
    bool is_local; /* the daemon on the data folder */
};

/* The data folder: YARD_HOME, else ~/.trainyard.  The caller frees. */
int place_home(char **ret_home, struct err *e);

/* ERR_BUSY with the remedy when no yard runs. */
int place_find(const char *home,
               const struct config *config,
               struct place **ret_place,
               struct err *e);
void place_free(struct place *place);
DEFINE_AUTOPTR(place)

/* The daemon's own card, run/yardd.json; ERR_NOT_FOUND when there is none. */
int place_card(const char *home, json_t **ret_card, struct err *e);

/* The pid of the daemon that holds the lock of the data folder, or 0 when none does. */
pid_t place_holder(const char *home);

/* Check a URL for a yard: http or https, no path, and plain http on loopback only.  The caller
 * frees *ret_url, which has no slash at the end. */
int place_check_url(const char *url, char **ret_url, struct err *e);

/* Read a token file: one line. */
int place_read_token(const char *path, char **ret_token, struct err *e);

#endif
