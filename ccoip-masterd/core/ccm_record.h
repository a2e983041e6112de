/* SPDX-License-Identifier: MIT
 *
 * Records of elections of shared state (ccm_record.c), for files of the core only. ccm.h has the
 * functions to look at them (ccm_each_state, ccm_each_stand).
 */
#ifndef CCM_RECORD_H
#define CCM_RECORD_H

#include "ccoip-masterd/core/ccm_elect.h"
#include "ccoip-masterd/core/ccm_internal.h"

/* Records an election of the group in place of the previous one: the input and the result of
 * ccm_elect, and the candidates. Call it before any peer is kicked. */
void ccm_record_election(struct ccm *m, uint32_t group, struct ccm_peer *const *peers,
	const struct ccm_candidate *v, uint32_t n, const struct ccm_standing *s,
	const struct ccm_election *e);
/* Records that the elected synchronization has started as attempt seq. */
void ccm_record_started(struct ccm *m, uint32_t group, uint64_t seq);
/* Records that a peer was kicked or lost before the end of attempt seq, and why. */
void ccm_record_out(
	struct ccm *m, uint32_t group, uint64_t seq, const struct cc_id *peer, const char *text);
/* Records the end of attempt seq. `text`: why it failed, or NULL for success. */
void ccm_record_ended(struct ccm *m, uint32_t group, uint64_t seq, const char *text);
void ccm_records_free(struct ccm *m);

#endif
