/* call.h - one run of the program: what was typed, what is remembered, the yard.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CALL_H
#define CLI_CALL_H

#include "base/err.h"

#include <jansson.h>
#include <stdio.h>

struct args;
struct config;
struct place;
struct rest;

struct call {
    struct args *args;
    struct config *config;
    char *home;          /* the data folder */
    struct place *place; /* NULL until call_place */
    struct rest *rest;   /* NULL until call_rest */
    char *subscription;  /* NULL until call_subscription */
    int exit_status; /* of a run that did its work and yet found something wrong, as doctor does
                      */
};

int call_open(struct call *call, struct args *args, struct err *e);
void call_done(struct call *call); /* the args are not freed */

/* Find the yard, connect to it; once per run.  Borrowed. */
int call_place(struct call *call, struct place **ret_place, struct err *e);
int call_rest(struct call *call, struct rest **ret_rest, struct err *e);

/* The id of the subscription to act on: --subscription, `account set`, else the yard's own. */
int call_subscription(struct call *call, const char **ret_id, struct err *e);

/* A line for the person at the terminal, on stderr.  info only with --verbose; neither with
 * --only-show-errors. */
void call_say(const struct call *call, const char *format, ...) PRINTF_LIKE(2, 3);
void call_info(const struct call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Ask "... (y/n)" unless --yes.  Fails when there is no terminal to ask on, or the answer is
 * no. */
int call_confirm(const struct call *call, const char *question, struct err *e);

/* Did the person ask for a format?  If not, the verbs for people write plain text. */
bool call_wants_text(const struct call *call);

#endif
