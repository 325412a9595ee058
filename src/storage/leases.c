/* The lease machine, one for containers, blobs and files: what each action does in each state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage-internal.h"

#include "base/clock.h"
#include "base/crypt.h"
#include "base/str.h"
#include "store/blob.h"

#include <stdio.h>
#include <string.h>

enum state { AVAILABLE, LEASED, EXPIRED, BREAKING, BROKEN };

static enum state state_of(const struct lease *lease, int64_t now_ms)
{
    if (!lease->held)
        return AVAILABLE;
    if (lease->breaks_ms != 0)
        return now_ms < lease->breaks_ms ? BREAKING : BROKEN;
    if (lease->expires_ms != 0 && now_ms >= lease->expires_ms)
        return EXPIRED;
    return LEASED;
}

const char *lease_state_name(const struct lease *lease, int64_t now_ms)
{
    static const char *const names[] = {
        [AVAILABLE] = "available", [LEASED] = "leased", [EXPIRED] = "expired",
        [BREAKING] = "breaking",   [BROKEN] = "broken",
    };

    return names[state_of(lease, now_ms)];
}

bool lease_is_locked(const struct lease *lease, int64_t now_ms)
{
    enum state state = state_of(lease, now_ms);

    return state == LEASED || state == BREAKING;
}

struct lease lease_from_row(const struct lease_row *row)
{
    struct lease lease = {
        .expires_ms = row->expires_ms,
        .breaks_ms = row->breaks_ms,
        .duration_s = (int)row->duration_s,
        .held = row->id[0] != '\0',
    };

    memcpy(lease.id, row->id, sizeof(lease.id));
    return lease;
}

void lease_to_row(const struct lease *lease, struct lease_row *row)
{
    *row = (struct lease_row){0};
    if (!lease->held)
        return;
    memcpy(row->id, lease->id, sizeof(row->id));
    row->expires_ms = lease->expires_ms;
    row->breaks_ms = lease->breaks_ms;
    row->duration_s = lease->duration_s;
}

void lease_after_write(struct lease_row *row, int64_t now_ms)
{
    const struct lease lease = lease_from_row(row);

    if (state_of(&lease, now_ms) == EXPIRED)
        *row = (struct lease_row){0};
}

static int refuse(struct err *e, const char *reason, const char *message)
{
    err_set(e, ERR_CONFLICT, "%s", message);
    return err_reason(e, reason);
}

static int precondition(struct err *e, const char *reason, const char *message)
{
    err_set(e, ERR_PRECONDITION, "%s", message);
    return err_reason(e, reason);
}

int lease_check_write(const struct lease *lease,
                      const char *lease_id,
                      const struct lease_words *words,
                      struct err *e)
{
    enum state state = state_of(lease, clock_wall_ms());
    bool has_id = lease_id && *lease_id;

    switch (state) {
    case LEASED:
    case BREAKING:
        if (!has_id)
            return precondition(e, "LeaseIdMissing",
                                "there is an active lease, and its id is not in the request");
        if (!str_equal_nocase(lease_id, lease->id))
            return precondition(e, words->mismatch,
                                "the lease id of the request is not that of the lease");
        return 0;
    case EXPIRED:
    case BROKEN:
        return has_id ? precondition(e, "LeaseLost", "the lease of that id has ended") : 0;
    case AVAILABLE:
        break;
    }
    return has_id ? precondition(e, words->not_present, "there is no active lease") : 0;
}

static int invalid(struct err *e, const char *message)
{
    err_set(e, ERR_INVALID, "%s", message);
    return err_reason(e, "InvalidHeaderValue");
}

static int mismatch(struct err *e)
{
    return refuse(e, "LeaseIdMismatchWithLeaseOperation",
                  "the lease id of the request is not that of the lease");
}

static int not_present(struct err *e)
{
    return refuse(e, "LeaseNotPresentWithLeaseOperation", "there is no active lease");
}

static void start(struct lease *lease, int64_t now_ms)
{
    lease->held = true;
    lease->breaks_ms = 0;
    lease->expires_ms = lease->duration_s < 0 ? 0 : now_ms + (int64_t)lease->duration_s * 1000;
}

static int
acquire(struct lease *lease, const struct lease_request *request, int64_t now_ms, struct err *e)
{
    bool is_same = request->id && str_equal_nocase(request->id, lease->id);
    char uuid[CRYPT_UUID_BYTES];

    if (request->duration_s != -1 && (request->duration_s < 15 || request->duration_s > 60))
        return invalid(e, "a lease lasts 15 to 60 seconds, or -1 for ever");
    if (request->id && *request->id && !crypt_is_uuid(request->id))
        return invalid(e, "a lease id is a GUID");
    switch (state_of(lease, now_ms)) {
    case LEASED:
        if (!is_same)
            return refuse(e, "LeaseAlreadyPresent", "there is already a lease");
        break;
    case BREAKING:
        if (!is_same)
            return refuse(e, "LeaseAlreadyPresent", "there is already a lease");
        return refuse(e, "LeaseIsBreakingAndCannotBeAcquired",
                      "the lease is breaking and cannot be acquired until it is broken");
    case AVAILABLE:
    case EXPIRED:
    case BROKEN:
        break;
    }
    snprintf(lease->id, sizeof(lease->id), "%s",
             request->id && *request->id ? request->id : crypt_uuid(uuid));
    lease->duration_s = request->duration_s;
    start(lease, now_ms);
    return 0;
}

static int renew(struct lease *lease, const char *id, int64_t now_ms, struct err *e)
{
    enum state state = state_of(lease, now_ms);

    if (state == AVAILABLE || !id || !str_equal_nocase(id, lease->id))
        return mismatch(e);
    if (state == BREAKING || state == BROKEN)
        return refuse(e, "LeaseIsBrokenAndCannotBeRenewed",
                      "the lease was broken and cannot be renewed");
    start(lease, now_ms);
    return 0;
}

static int
change(struct lease *lease, const struct lease_request *request, int64_t now_ms, struct err *e)
{
    enum state state = state_of(lease, now_ms);

    if (!request->proposed || !crypt_is_uuid(request->proposed))
        return invalid(e, "a proposed lease id is a GUID");
    if (state == AVAILABLE || state == EXPIRED || state == BROKEN)
        return not_present(e);
    if (!request->id || (!str_equal_nocase(request->id, lease->id) &&
                         !str_equal_nocase(request->proposed, lease->id)))
        return mismatch(e);
    if (state == BREAKING)
        return refuse(e, "LeaseIsBreakingAndCannotBeChanged",
                      "the lease is breaking and cannot be changed");
    snprintf(lease->id, sizeof(lease->id), "%s", request->proposed);
    return 0;
}

static int release(struct lease *lease, const char *id, int64_t now_ms, struct err *e)
{
    if (state_of(lease, now_ms) == AVAILABLE || !id || !str_equal_nocase(id, lease->id))
        return mismatch(e);
    *lease = (struct lease){0};
    return 0;
}

/* Milliseconds until a lease that is being broken is broken. */
static int64_t break_period(const struct lease *lease,
                            const struct lease_request *request,
                            enum state state,
                            int64_t now_ms)
{
    int64_t wanted = request->break_s < 0 ? INT64_MAX : (int64_t)request->break_s * 1000;
    int64_t left = INT64_MAX;

    if (state == BREAKING)
        left = lease->breaks_ms - now_ms;
    else if (lease->expires_ms != 0)
        left = lease->expires_ms - now_ms;
    if (wanted > left)
        wanted = left;
    return wanted == INT64_MAX ? 0 : wanted; /* infinite, and no period given: at once */
}

static int break_it(struct lease *lease,
                    const struct lease_request *request,
                    int64_t now_ms,
                    int *ret_left_s,
                    struct err *e)
{
    enum state state = state_of(lease, now_ms);
    int64_t period = 0;

    if (request->break_s > 60)
        return invalid(e, "a lease breaks in 0 to 60 seconds");
    if (state == AVAILABLE)
        return not_present(e);
    if (state == LEASED || state == BREAKING)
        period = break_period(lease, request, state, now_ms);
    if (state != BROKEN)
        lease->breaks_ms = now_ms + period;
    *ret_left_s = (int)((period + 999) / 1000);
    return 0;
}

int lease_apply(struct lease *lease,
                const struct lease_request *request,
                int64_t now_ms,
                int *ret_left_s,
                struct err *e)
{
    int left_s = 0, rc = -1;

    switch (request->action) {
    case LEASE_ACQUIRE:
        rc = acquire(lease, request, now_ms, e);
        break;
    case LEASE_RENEW:
        rc = renew(lease, request->id, now_ms, e);
        break;
    case LEASE_CHANGE:
        rc = change(lease, request, now_ms, e);
        break;
    case LEASE_RELEASE:
        rc = release(lease, request->id, now_ms, e);
        break;
    case LEASE_BREAK:
        rc = break_it(lease, request, now_ms, &left_s, e);
        break;
    }
    if (rc == 0 && ret_left_s)
        *ret_left_s = left_s;
    return rc;
}
