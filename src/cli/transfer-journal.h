/* transfer-journal.h - what a transfer has done so far, so that a killed one goes on.
 *
 * A job is a folder in the data folder's cli/jobs (or in the person's state folder, when that
 * one cannot be written): job.json   what was asked for, when, how it ended; no secret is in it
 *   log        one line for each thing done; a line that was cut off counts for nothing
 *   lock       held while somebody works on it
 *
 * Lines of the log, names percent-encoded:
 *   D size modified-ns etag target   a file has arrived
 *   P tag index                      a piece of a large file has
 *   F target message                 a file has failed
 *
 * Nothing is synced: after a power cut, pieces in a local file may be lost that the log tells
 * of. So pieces count only while the machine has not been started again.
 *
 * Threads: all of them may write.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRANSFER_JOURNAL_H
#define CLI_TRANSFER_JOURNAL_H

#include "base/err.h"
#include "base/mem.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct facts;
struct journal; /* opaque */

/* Begin a job, or go on with the one that was asked for with the very same words and has not
 * ended well.  home: the data folder.  ERR_BUSY when somebody works on it. */
int journal_begin(const char *home,
                  const json_t *asked,
                  struct journal **ret_journal,
                  struct err *e);
void journal_free(struct journal *journal);
DEFINE_AUTOPTR(journal)

const char *journal_id(const struct journal *journal);
bool journal_is_resumed(const struct journal *journal);
size_t journal_done_count(const struct journal *journal);

/* Has this very file arrived? */
bool journal_is_done(struct journal *journal, const char *target, const struct facts *facts);
/* Forget those that are not there any more, as is_there says. */
void journal_confirm(struct journal *journal,
                     bool (*is_there)(void *context, const char *target, int64_t size_bytes),
                     void *context);
/* Mark the pieces that have arrived. */
void journal_pieces(struct journal *journal,
                    const char *tag,
                    unsigned char *is_done,
                    size_t count);

void journal_note_done(struct journal *journal, const char *target, const struct facts *facts);
void journal_note_piece(struct journal *journal, const char *tag, size_t index);
void journal_note_failed(struct journal *journal, const char *target, const char *message);

/* How it ended: "Completed", "CompletedWithErrors", "Interrupted".  Only the first ends the job
 * for good.  totals are added to job.json. */
int journal_end(struct journal *journal,
                const char *state,
                const json_t *totals,
                struct err *e);

/* All jobs, newest first: an array of what job.json holds. */
int journal_list(const char *home, json_t **ret_jobs, struct err *e);
/* What was asked for; the beginning of an id is enough. */
int journal_find(const char *home, const char *id, json_t **ret_job, struct err *e);

#endif
