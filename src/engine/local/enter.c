/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/enter.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

struct visit {
    int keeper_fd;
    int (*fn)(void *arg, struct err *e);
    void *arg;
    struct err *e;
    int rc;
};

static int enter(int keeper_fd, struct err *e)
{
    /* A mount namespace can be entered only with a root and working folder of one's own. */
    if (unshare(CLONE_FS) < 0)
        return err_sys(e, errno, "could not part from the other threads");
    if (setns(keeper_fd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS) == 0)
        return 0;
    if (errno == ESRCH)
        return err_set(e, ERR_NOT_FOUND, "the node is gone");
    return err_sys(e, errno, "could not enter the node");
}

static void *visit_main(void *arg)
{
    struct visit *visit = arg;

    visit->rc = enter(visit->keeper_fd, visit->e);
    if (visit->rc == 0)
        visit->rc = visit->fn(visit->arg, visit->e);
    return NULL;
}

int enter_run(int keeper_fd, int (*fn)(void *arg, struct err *e), void *arg, struct err *e)
{
    struct visit visit = {keeper_fd, fn, arg, e, -1};
    pthread_t thread;
    int rc;

    if (keeper_fd < 0)
        return fn(arg, e);
    rc = pthread_create(&thread, NULL, visit_main, &visit);
    if (rc != 0)
        return err_sys(e, rc, "could not start a thread");
    pthread_join(thread, NULL);
    return visit.rc;
}
