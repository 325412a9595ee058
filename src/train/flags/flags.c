/* flags.c - tf_cnn_benchmarks' command line, by its table.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/flags/flags.h"

#include "base/mem.h"
#include "train/flags/flags-internal.h"

int flags_parse(
    struct flags *flags, int count, char *const words[], struct str *notes, struct err *e)
{
    *flags = (struct flags){.arena = arena_new()};
    flag_table_defaults(&flags_table, flags);
    if (flag_table_parse(&flags_table, flags, &flags->given, count, words, notes, e) < 0)
        return -1;
    if (flags->wants_help || flags->wants_helpfull || flags->wants_version)
        return 0;
    return flags_check(flags, notes, e);
}

void flags_done(struct flags *flags)
{
    arena_free(flags->arena);
    flags->arena = NULL;
}

bool flags_given(const struct flags *flags, const char *name)
{
    return flag_table_given(&flags_table, &flags->given, name);
}
