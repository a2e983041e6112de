/* SPDX-License-Identifier: MIT
 *
 * Ballots: the votes of local peers, and their answers. At most one vote of a communicator waits.
 */
#include <stdio.h>

#include "pcclagentd/core/agt_internal.h"

bool agt_ballot_waits(const struct agt_comm *c, enum wire_ballot kind)
{
	return c->wait == WL_VOTE && c->vote == kind;
}

static void send_vote(struct agt *a, const struct agt_comm *c)
{
	struct wm_ballot_vote *m = &agt_send(a, c->run, WM_BALLOT_VOTE)->u.ballot_vote;

	m->peer = c->peer;
	m->kind = c->vote;
	m->number = c->ballots[c->vote];
}

/* Checks whether c may vote. If not, answers the request and returns false. */
static bool check_voter(struct agt *a, struct agt_comm *c, const struct wl_request *q)
{
	const struct wire_ballot_kind *kind = &wire_ballot_kinds[q->ballot];
	char text[WL_TEXT_MAX];

	if (c->state == AGT_COMM_LOST) {
		agt_reply(a, c, q->req_id, c->lost.code, c->lost.text);
		return false;
	}
	if (c->state != AGT_COMM_ACCEPTED) {
		agt_reply(a, c, q->req_id, WIRE_INVALID_USAGE,
			"the communicator is not connected: call pcclConnect first");
		return false;
	}
	if (kind->is_exclusive && c->n_ops > 0) {
		(void)snprintf(text, sizeof text,
			"%u operation%s of this communicator in flight: await all of them before "
			"%s",
			c->n_ops, c->n_ops == 1 ? " is" : "s are", kind->call);
		agt_reply(a, c, q->req_id, WIRE_PENDING_ASYNC_OPS, text);
		return false;
	}
	return true;
}

void agt_ballot_vote(struct agt *a, struct agt_comm *c, const struct wl_request *q)
{
	if (!check_voter(a, c, q))
		return;
	agt_comm_wait(a, c, q);
	c->vote = q->ballot;
	send_vote(a, c);
	agt_stuck_look(a, c);
}

void agt_ballot_tell(struct agt *a, struct agt_run *r)
{
	const struct agt_comm *c;

	DL_FOREACH2 (r->comms, c, next_r)
		if (c->wait == WL_VOTE)
			send_vote(a, c);
}

void agt_ballot_answer(struct agt *a, struct agt_comm *c, bool answer)
{
	struct wl_reply *r;

	c->wait = 0;
	agt_comm_publish(a, c);
	r = agt_reply(a, c, c->wait_req, WIRE_SUCCESS,
		!answer && c->vote == WIRE_OPTIMIZE ? c->run->not_optimized : "");
	agt_comm_view(c, &r->view);
	memcpy(r->ballots, c->ballots, sizeof r->ballots);
	r->flag = answer;
	/* Other calls of the peer's threads may wait for operations of an older generation. */
	if (wire_ballot_kinds[c->vote].is_exclusive)
		r->generation = c->grp->generation;
}

void agt_ballot_ended(struct agt *a, struct agt_comm *c, enum wire_ballot kind, uint64_t number)
{
	if (!agt_ballot_waits(c, kind) || c->ballots[kind] >= number)
		return;
	c->ballots[kind] = number;
	agt_ballot_answer(a, c, wire_ballot_answer(number));
}

void agt_ballot_end(struct agt *a, struct agt_run *r, const struct wm_ballot_end *m)
{
	struct agt_comm *c;

	if (m->kind == WIRE_OPTIMIZE)
		agt_copy_text(r->not_optimized, sizeof r->not_optimized, m->text);
	if (m->number > r->ballots[m->kind]) {
		agt_waits_over(a, r, m->kind);
		r->ballots[m->kind] = m->number;
	}
	DL_FOREACH2 (r->comms, c, next_r)
		agt_ballot_ended(a, c, m->kind, m->number);
}
