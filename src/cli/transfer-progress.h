/* transfer-progress.h - how far a transfer is, in one line that is drawn over and over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_PROGRESS_H
#define CLI_TRANSFER_PROGRESS_H

#include <stdint.h>

struct str;
struct transfer_totals;

enum {
    PROGRESS_SAMPLES = 32, /* of PROGRESS_STEP_MS: the rate is that of the last seconds */
    PROGRESS_STEP_MS = 200,
};

struct progress {
    struct {
        int64_t at_ms, bytes, files;
    } samples[PROGRESS_SAMPLES];
    int count; /* all taken so far */
};

/* Take a sample and write the line, without end: bar, files, bytes, rate, time left; at most
 * `columns` wide. */
void progress_line(struct progress *progress,
                   const struct transfer_totals *totals,
                   int64_t now_ms,
                   int columns,
                   struct str *out);

/* 1.5 GiB, 20.0 KiB, 17 B. */
void progress_bytes(struct str *out, double bytes);
/* 0:07, 12:34, 1:02:03. */
void progress_time(struct str *out, int64_t seconds);

/* "Copied 20000 files, 4.0 GiB in 32.1 s (127.6 MiB/s), 3 skipped, 1 failed." */
void progress_summary(struct str *out,
                      const struct transfer_totals *totals,
                      int64_t elapsed_ms);
/* "Removed 20 files in 0.1 s." */
void progress_removed(struct str *out,
                      const struct transfer_totals *totals,
                      int64_t elapsed_ms);

#endif
