/* local.c - see local.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/local.h"

#include "base/str.h"
#include "train/comm/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int local_prepare(char ret_name[SHARE_NAME_BYTES], struct err *e)
{
    return share_create_named(group_bytes(), ret_name, e);
}

void local_forget(const char *name)
{
    share_unlink(name);
}

const char *local_format(const struct local_seat *seat, char buf[LOCAL_TEXT_BYTES])
{
    snprintf(buf, LOCAL_TEXT_BYTES, "%d:%d:%s", seat->rank, seat->ranks, seat->name);
    return buf;
}

/* A number of at most three digits and the colon behind it. */
static const char *number(const char *text, int *ret_value)
{
    size_t digits = strspn(text, "0123456789");

    if (digits < 1 || digits > 3 || text[digits] != ':')
        return NULL;
    *ret_value = atoi(text);
    return text + digits + 1;
}

int local_parse(const char *text, struct local_seat *ret_seat, struct err *e)
{
    struct local_seat seat = {0};
    const char *at = number(text, &seat.rank);

    if (at)
        at = number(at, &seat.ranks);
    if (!at || seat.ranks < 1 || seat.ranks > GROUP_MOST || seat.rank >= seat.ranks ||
        at[0] != '/' || !at[1] || strchr(at + 1, '/') || strlen(at) >= sizeof seat.name)
        return err_set(e, ERR_INVALID, "%s is \"%.80s\", not <rank>:<ranks>:</name>",
                       LOCAL_VARIABLE, text);
    memcpy(seat.name, at, strlen(at) + 1);
    *ret_seat = seat;
    return 0;
}
