/* local.h - ranks of one host that a launcher of ours starts, without mpirun.
 *
 * The launcher calls local_prepare(), starts each rank with YARDBENCH_LOCAL set to what
 * local_format() gives, and calls local_forget() at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_LOCAL_H
#define TRAIN_COMM_LOCAL_H

#include "base/err.h"
#include "train/comm/share.h"

#define LOCAL_VARIABLE "YARDBENCH_LOCAL"

struct local_seat {
    int rank, ranks;
    char name[SHARE_NAME_BYTES];
};

enum {
    LOCAL_TEXT_BYTES = SHARE_NAME_BYTES + 32,
};

int local_prepare(char ret_name[SHARE_NAME_BYTES], struct err *e);
void local_forget(const char *name);

const char *local_format(const struct local_seat *seat, char buf[LOCAL_TEXT_BYTES]);
/* <rank>:<ranks>:<name> */
int local_parse(const char *text, struct local_seat *ret_seat, struct err *e);

#endif
