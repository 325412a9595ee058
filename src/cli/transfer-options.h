/* transfer-options.h - how a transfer is to be done.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_OPTIONS_H
#define CLI_TRANSFER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum transfer_overwrite {
    OVERWRITE_TRUE,
    OVERWRITE_FALSE,
    OVERWRITE_NEWER, /* the source is newer than what is there */
    OVERWRITE_PROMPT,
};

enum transfer_md5 {
    MD5_IGNORE,
    MD5_MUST_FIT,   /* when there is one */
    MD5_MUST_EXIST, /* and there must be one */
};

struct transfer_options {
    int parallel;        /* threads, and so files in flight; 16 */
    int64_t piece_bytes; /* 8 MiB */
    enum transfer_overwrite overwrite;
    enum transfer_md5 check_md5;
    bool put_md5;        /* keep the MD5 of the whole with it */
    bool check_length;   /* ask for the length again after a large file */
    bool keeps_time;     /* a downloaded file gets the time of its source */
    bool streams;        /* never let the destination fetch by itself */
    double cap_mbps;     /* megabits per second; 0 = none */
    int64_t patience_ms; /* how long a request is tried again */
    const char *tag; /* for the names of unfinished files: of the job, hex; NULL = ours alone */
    const char *content_type;   /* NULL = by the name */
    const char *const *headers; /* metadata and the like, "x-ms-meta-a: b"; NULL = none */
};

/* The defaults stated above: overwrite, a present MD5 must fit, lengths are checked. */
void transfer_options_init(struct transfer_options *options);

#endif
