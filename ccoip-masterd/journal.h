/* SPDX-License-Identifier: MIT
 *
 * The master's journal (proto/wire_journal.h) in DIR/run.journal. A record is on the disk before
 * anything that depends on it is sent. Without a journal a master learns of a run only from its
 * agents. The rates of links are in DIR/rates.journal, which is another file of the same form with
 * one record. One thread.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "ccoip-masterd/core/ccm.h"

struct journal;

/* Opens or makes the journal in dir, takes its lock and gives its records to m. A damaged tail is
 * cut off. On failure logs the reason and returns NULL. *exit_code is then EX_UNAVAILABLE (another
 * master uses it), EX_CONFIG (the path or its permissions are wrong, or the file is not a journal,
 * or another version has written it) or EX_OSERR (anything else: a restart may help). Rates that
 * cannot be read are only logged. */
struct journal *journal_open(const char *dir, struct ccm *m, int *exit_code);
/* Writes r, and returns when it is on the disk. If the record cannot be written, logs the failure
 * and empties the file, because the next master must not believe outdated records. The next
 * snapshot of all members that fits on the disk starts the journal again. The log reports the first
 * failure, and later that the journal has been good for a minute. Rates are written without waiting
 * for the disk, and after a failure the older rates stay. */
void journal_write(struct journal *j, const struct wj_record *r);
/* Writes a line to the log once the journal has been good again for a minute. Call it often, with
 * the current time. NULL is fine. */
void journal_tick(struct journal *j, uint64_t now_ns);
void journal_close(struct journal *j); /* NULL is fine */

#endif
