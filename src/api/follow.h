/* follow.h - who follows a file that grows is told when there is more of it.
 *
 * One thread and one inotify descriptor serve all followers: an idle one costs a watch of the
 * kernel's and nothing else.  A follower is told by a post to the thread of its request, at
 * most one at a time, however often its file is written to.
 *
 * Calling sequence: follow_add, follow_watch as often as the thing to watch changes,
 * follow_remove before the reply is ended.  All three on the request's own thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef API_FOLLOW_H
#define API_FOLLOW_H

#include "base/err.h"

#include <stdint.h>

struct follows; /* opaque: all followers */
struct http_req;

/* Embedded in what the follower needs.  Members are the watcher's, but for the first three. */
struct follower {
    struct http_req *req;
    void (*told)(struct follower *follower); /* on the request's thread */
    int64_t job_id;                          /* also told when that job has ended */

    struct follows *follows; /* NULL = not added */
    struct follower *next, **at;
    int watch;       /* of the kernel's, -1 = none */
    bool is_told;    /* a post is on its way */
    bool is_quiet;   /* it wants to hear nothing for now */
    bool is_ended;   /* the job has */
    bool is_cut;     /* the yard is closing */
    bool is_leaving; /* it wants to hear nothing any more */
};

struct follows *follows_new(void);
/* No follower is left. */
void follows_free(struct follows *follows);
/* Cut all of them off, and every one to come. */
void follows_cut(struct follows *follows);
/* The job has ended: tell its followers.  From any thread. */
void follows_job_ended(struct follows *follows, int64_t job_id);

enum follow_what {
    FOLLOW_FILE,   /* tell when it is written to */
    FOLLOW_FOLDER, /* tell when something appears in it, or it goes */
};

/* ERR_BUSY when the yard is closing. */
int follow_add(struct follows *follows, struct follower *follower, struct err *e);
/* Watch what the descriptor is, instead of what was watched before.  What happens to it after
 * this call is told. */
int follow_watch(struct follower *follower, int fd, enum follow_what what, struct err *e);
/* Tell it nothing until this is taken back. */
void follow_set_quiet(struct follower *follower, bool is_quiet);
/* What has been told so far: has the job ended, is it cut off? */
void follow_state(struct follower *follower, bool *ret_is_ended, bool *ret_is_cut);
/* It is to hear no more.  False: a post is still on its way; the request must live until then,
 * and `told` says so one last time.  Removing it again is fine. */
bool follow_remove(struct follower *follower);
/* The same, whatever is on its way: for a request whose thread has ended. */
void follow_drop(struct follower *follower);

#endif
