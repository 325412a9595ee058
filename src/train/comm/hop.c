/* hop.c - see hop.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/hop.h"

static bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static int log2_of(int n)
{
    int log = 0;

    while (n > 1) {
        n /= 2;
        log++;
    }
    return log;
}

int hop_count(int hosts)
{
    return is_power_of_two(hosts) ? 2 * log2_of(hosts) : 2 * (hosts - 1);
}

/* Going down, the range that a host cares for is halved around itself: it keeps the half that
 * holds its own number.  Going up, the same steps backwards, with what is complete. */
static void halve(int hosts, int host, int step, struct hop *hop)
{
    int down = log2_of(hosts), level = step < down ? step : 2 * down - 1 - step;
    int half = hosts >> (level + 1), partner = host ^ half;
    int mine = host / half * half, theirs = partner / half * half;
    bool is_down = step < down;

    hop->to = hop->from = partner;
    hop->send_first = is_down ? theirs : mine;
    hop->receive_first = is_down ? mine : theirs;
    hop->send_count = hop->receive_count = half;
    hop->adds = is_down;
}

static void ring(int hosts, int host, int step, struct hop *hop)
{
    bool is_first = step < hosts - 1;
    int turn = is_first ? step : step - (hosts - 1);
    int begin = is_first ? host : host + 1; /* the block that is sent in turn 0 */

    hop->to = (host + 1) % hosts;
    hop->from = (host + hosts - 1) % hosts;
    hop->send_first = (begin - turn + 2 * hosts) % hosts;
    hop->receive_first = (begin - turn - 1 + 2 * hosts) % hosts;
    hop->send_count = hop->receive_count = 1;
    hop->adds = is_first;
}

void hop_at(int hosts, int host, int step, struct hop *ret_hop)
{
    if (is_power_of_two(hosts))
        halve(hosts, host, step, ret_hop);
    else
        ring(hosts, host, step, ret_hop);
}

size_t hop_block(size_t count, int blocks, int first)
{
    size_t each = count / (size_t)blocks, more = count % (size_t)blocks, n = (size_t)first;

    return n * each + (n < more ? n : more);
}
