/* SPDX-License-Identifier: MIT
 *
 * The master's journal (proto/wire_journal.h) in DIR/run.journal, on the disk before anything that
 * depends on it is sent. Without it a master learns of a run from its agents alone. One thread.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "ccoip-masterd/core/ccm.h"

struct journal;

/* Opens or makes it, takes its lock and gives what it holds to m; a damaged tail is cut off. NULL
 * after a line in the log, and *exit_code is EX_UNAVAILABLE (another master uses it), EX_CONFIG
 * (the path or its permissions are wrong, or the file is no journal or of a later version) or
 * EX_OSERR (anything else: a restart may help). */
struct journal *journal_open(const char *dir, struct ccm *m, int *exit_code);
/* Returns when r is on the disk. When it cannot be written that is logged, and the file is emptied:
 * the next master is not to believe what is out of date. It is written anew with the next snapshot
 * of all members that fits. A line in the log tells of the first failure, and another one
 * that the journal has been good for a minute. */
void journal_write(struct journal *j, const struct wj_record *r);
/* To be called often, with the time that it is. NULL is fine. */
void journal_tick(struct journal *j, uint64_t now_ns);
void journal_close(struct journal *j); /* NULL is fine */

#endif
