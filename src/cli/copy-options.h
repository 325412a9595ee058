/* copy-options.h - the options that copy and sync share, and what they mean.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COPY_OPTIONS_H
#define CLI_COPY_OPTIONS_H

#include "base/err.h"
#include "cli/command.h"

#include <jansson.h>

struct call;
struct ends;
struct filter;
struct journal;
struct side;
struct transfer_options;

extern const struct option_row copy_source, copy_destination, copy_include_pattern,
    copy_exclude_pattern, copy_include_path, copy_exclude_path, copy_from_to, copy_put_md5,
    copy_check_md5, copy_check_length, copy_cap_mbps, copy_dry_run, copy_follow_symlinks,
    copy_preserve_time, copy_block_size, copy_parallel, copy_content_type, copy_source_sas,
    copy_destination_sas;
#define COPY_OPTIONS                                                                           \
    &copy_source, &copy_destination, &copy_include_pattern, &copy_exclude_pattern,             \
        &copy_include_path, &copy_exclude_path, &copy_from_to, &copy_put_md5, &copy_check_md5, \
        &copy_check_length, &copy_cap_mbps, &copy_dry_run, &copy_follow_symlinks,              \
        &copy_preserve_time, &copy_block_size, &copy_parallel, &copy_content_type,             \
        &copy_source_sas, &copy_destination_sas

int copy_read_options(struct call *call, struct transfer_options *ret_options, struct err *e);
void copy_read_filter(struct call *call, struct filter *ret_filter);

/* What was asked for, as a journal keeps it: no secret in it, and the same words give the same.
 */
json_t *copy_asked(struct call *call, const struct ends *ends);
/* The words of a command line that asks for it again: an array of strings. */
json_t *copy_words(const json_t *asked);

/* Go on with an earlier run: take out of the journal what is not at the destination any more.
 * sub: the part of it that was written to. */
int copy_confirm(struct call *call,
                 struct journal *journal,
                 const struct side *destination,
                 const char *sub,
                 struct err *e);

#endif
