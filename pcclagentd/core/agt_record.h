/* SPDX-License-Identifier: MIT
 *
 * The records of synchronizations of shared state, kept in agt_record.c. For the core's own files;
 * agt.h (agt_each_synced) has the view of other files.
 */
#ifndef AGT_RECORD_H
#define AGT_RECORD_H

#include "pcclagentd/core/agt_internal.h"

/* Records the candidate that c votes with. */
void agt_record_voted(struct agt *a, struct agt_comm *c, const struct wm_sync_vote *v);
/* Records the start: the attempt, the elected revision, and whether c is a holder. */
void agt_record_started(struct agt_comm *c, uint64_t seq, uint64_t revision, bool holder);
/* Records the result that c gets. Does nothing if there is no record of a candidate. */
void agt_record_ended(struct agt *a, struct agt_comm *c, const struct agt_done *done);
void agt_record_free(struct agt_comm *c);

#endif
