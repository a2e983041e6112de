/* SPDX-License-Identifier: MIT
 *
 * What agt_record.c keeps of synchronizations of shared state. For the core's own files; what
 * others see is in agt.h (agt_each_synced).
 */
#ifndef AGT_RECORD_H
#define AGT_RECORD_H

#include "pcclagentd/core/agt_internal.h"

/* c offers this. */
void agt_record_voted(struct agt *a, struct agt_comm *c, const struct wm_sync_vote *v);
/* That is attempt seq; what was elected, and whether c has it. */
void agt_record_started(struct agt_comm *c, uint64_t seq, uint64_t revision, bool holder);
/* What c is told. Nothing, unless it has offered something. */
void agt_record_ended(struct agt *a, struct agt_comm *c, const struct agt_done *done);
void agt_record_free(struct agt_comm *c);

#endif
