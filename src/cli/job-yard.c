/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job-yard.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/call.h"
#include "cli/job-stream.h"
#include "cli/place.h"
#include "cli/rest.h"
#include "cli/term.h"

#include <time.h>

enum {
    PAUSE_MS = 100, /* a restart takes some 50 ms: nobody notices the rest */
};

int job_yard_open(struct job_yard *yard, const struct call *call, struct err *e)
{
    struct rest_config config = {
        .trace = args_flag(call->args, "debug") ? term_debug : NULL,
    };

    *yard = (struct job_yard){0};
    if (place_find(call->home, call->config, &yard->place, e) < 0)
        return -1;
    config.place = yard->place;
    if (rest_new(&config, &yard->rest, e) < 0) {
        job_yard_close(yard);
        return -1;
    }
    return 0;
}

void job_yard_close(struct job_yard *yard)
{
    rest_free(yard->rest);
    place_free(yard->place);
    *yard = (struct job_yard){0};
}

void job_yard_pause(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    nanosleep(&pause, NULL);
}

int job_yard_get(const struct call *call, const char *path, json_t **ret_result, struct err *e)
{
    int64_t begun_ms = clock_mono_ms();

    for (;;) {
        struct job_yard yard;
        struct err why = {0};
        int rc = job_yard_open(&yard, call, &why);

        if (rc == 0) {
            rc = rest_call(yard.rest, "GET", path, NULL, ret_result, &why);
            job_yard_close(&yard);
        }
        if (rc == 0)
            return 0;
        if (!err_info(why.code)->retry || clock_mono_ms() - begun_ms > STREAM_PATIENCE_MS) {
            if (e)
                *e = why;
            return -1;
        }
        job_yard_pause();
    }
}
