/* Work of one request that waits for the disk: on a thread of its own, answered on the
 * request's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api-internal.h"

void errand_answer(struct errand *errand)
{
    if (errand->e.code != ERR_NONE && errand->is_change)
        call_record_refusal(errand->call, &errand->e);
    if (errand->e.code != ERR_NONE)
        reply_error(errand->call, &errand->e);
    else
        errand->answer(errand);
    errand->done(errand);
}

static void back(struct http_req *req, void *arg)
{
    (void)req;
    errand_answer(arg);
}

static void count_errands(struct api *api, int by)
{
    pthread_mutex_lock(&api->errands_lock);
    api->errands += (size_t)by;
    pthread_cond_broadcast(&api->errands_over);
    pthread_mutex_unlock(&api->errands_lock);
}

void api_wait(struct api *api)
{
    if (api->config.control)
        control_watch_jobs(api->config.control, NULL, NULL);
    pthread_mutex_lock(&api->errands_lock);
    while (api->errands > 0)
        pthread_cond_wait(&api->errands_over, &api->errands_lock);
    pthread_mutex_unlock(&api->errands_lock);
}

static void *errand_main(void *arg)
{
    struct errand *errand = arg;
    struct api *api = errand->call->api;

    errand->work(errand);
    http_req_post(errand->call->req, back, errand); /* which frees it */
    count_errands(api, -1);
    return NULL;
}

void errand_start(struct errand *errand)
{
    struct api *api = errand->call->api;
    pthread_t thread;
    int rc;

    count_errands(api, 1);
    rc = pthread_create(&thread, NULL, errand_main, errand);
    if (rc != 0) {
        count_errands(api, -1);
        err_sys(&errand->e, rc, "could not start a thread");
        errand_answer(errand);
        return;
    }
    pthread_detach(thread);
}
