/* writer.h - the one thread that writes, and the one fsync that many requests share.
 *
 * Everybody hands in a struct db_write.  The writer takes what has gathered since its last
 * commit, opens one transaction, runs each write (a refused one leaves nothing behind and harms
 * no other), takes in some that came meanwhile, commits once, and then tells each its outcome.
 * While the disk syncs, the next group gathers: the more clients, the larger the groups.
 *
 * Invariants:
 *  1. done() with ERR_NONE is called only after the commit that holds the write is on disk.
 *  2. Writes take effect in the order of submission.
 *  3. After an I/O error nothing more is acknowledged: `broken` is called once and every later
 * write fails.  (fsync must not be tried again: the kernel may have dropped the pages.)
 *  4. A full disk is no such error: the group that found no room fails, the next may fit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DB_WRITER_H
#define DB_WRITER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct db_writer; /* opaque */

struct db_write {
    /* On the writer thread, inside the transaction.  A failure undoes what it changed. */
    int (*apply)(struct db_write *write, struct db *db, struct err *e);
    /* May be NULL.  On the writer thread, still inside the transaction, only when apply failed
     * and was undone: a place to record the refusal. */
    int (*refused)(struct db_write *write, struct db *db, const struct err *why);
    /* On the writer thread, after the commit (why->code is ERR_NONE) or the failure.  Owns the
     * write from then on.  Must not block. */
    void (*done)(struct db_write *write, const struct err *why);
    struct db_write *next; /* private */
    struct err outcome;    /* private */
    /* apply may be called again after what it changed was undone, and does the same then.  Such
     * writes are cheaper: see writer.c. */
    bool is_repeatable;
};

struct db_writer_config {
    size_t most_per_commit;  /* 0 = 256; 1 = no grouping */
    int64_t quick_commit_us; /* 0 = 400, negative = never; commits in less than that: groups
                                go in turns */
    void (*broken)(const struct err *why,
                   void *context); /* on the writer thread; may be NULL */
    void *context;
};

/* Takes over an open writing connection. */
int db_writer_new(struct db *db,
                  const struct db_writer_config *config,
                  struct db_writer **ret_writer,
                  struct err *e);
/* From any thread.  done() is always called, also when the writer is stopping. */
void db_writer_submit(struct db_writer *writer, struct db_write *write);
/* Finish what was submitted, stop the thread, close the connection. */
void db_writer_free(struct db_writer *writer);

struct db_writer_counts {
    uint64_t commits, writes, refused;
};
void db_writer_counts(struct db_writer *writer, struct db_writer_counts *ret_counts);

/* Changes with every commit; odd while one is under way.  What a reader saw after it asked and
 * was told an even number still holds as long as it is told the same number.  From any thread.
 */
uint64_t db_writer_generation(struct db_writer *writer);

#endif
