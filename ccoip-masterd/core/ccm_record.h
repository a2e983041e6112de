/* SPDX-License-Identifier: MIT
 *
 * What ccm_record.c keeps of elections of shared state. For the core's own files; what others see
 * is in ccm.h (ccm_each_state, ccm_each_stand).
 */
#ifndef CCM_RECORD_H
#define CCM_RECORD_H

#include "ccoip-masterd/core/ccm_elect.h"
#include "ccoip-masterd/core/ccm_internal.h"

/* An election of the group took place: what ccm_elect was given and has made of it, and the
 * candidates, before anybody is kicked. In place of the group's last one. */
void ccm_record_election(struct ccm *m, uint32_t group, struct ccm_peer *const *peers,
	const struct ccm_candidate *v, uint32_t n, const struct ccm_standing *s,
	const struct ccm_election *e);
/* It is attempt seq. */
void ccm_record_started(struct ccm *m, uint32_t group, uint64_t seq);
/* A peer does not get to the end of attempt seq: kicked or lost, and why. */
void ccm_record_out(
	struct ccm *m, uint32_t group, uint64_t seq, const struct cc_id *peer, const char *text);
/* text: why it failed, or NULL. */
void ccm_record_ended(struct ccm *m, uint32_t group, uint64_t seq, const char *text);
void ccm_records_free(struct ccm *m);

#endif
