/* SPDX-License-Identifier: MIT
 *
 * The last synchronization of each communicator, for operators: its candidate and its result. These
 * records do not influence any decision of the core.
 */
#include "pcclagentd/core/agt_record.h"

#include <stdlib.h>
#include <string.h>

struct agt_record {
	uint32_t group;
	struct wm_sync_vote candidate;
	enum agt_sync_end end;
	bool holder;       /* valid once it has started */
	uint64_t revision; /* RUNNING: the elected revision; DONE: the revision that the peer has */
	uint64_t seq, since_ns, ended_ns;
	uint64_t tx_bytes, rx_bytes;
	char text[SHM_TEXT]; /* FAILED: why */
};

void agt_record_voted(struct agt *a, struct agt_comm *c, const struct wm_sync_vote *v)
{
	if (!c->record)
		c->record = cc_must_zalloc(1, sizeof *c->record);
	*c->record = (struct agt_record){
		.group = c->group, .candidate = *v, .end = AGT_SYNC_VOTED, .since_ns = a->now};
}

void agt_record_started(struct agt_comm *c, uint64_t seq, uint64_t revision, bool holder)
{
	struct agt_record *r = c->record;

	if (!r || r->end != AGT_SYNC_VOTED)
		return;
	r->end = AGT_SYNC_RUNNING;
	r->seq = seq;
	r->revision = revision;
	r->holder = holder;
}

void agt_record_ended(struct agt *a, struct agt_comm *c, const struct agt_done *done)
{
	struct agt_record *r = c->record;

	if (!r || r->end > AGT_SYNC_RUNNING)
		return;
	r->end = done->code == WIRE_SUCCESS ? AGT_SYNC_DONE : AGT_SYNC_FAILED;
	r->ended_ns = a->now;
	r->tx_bytes = done->tx_bytes;
	r->rx_bytes = done->rx_bytes;
	if (r->end == AGT_SYNC_DONE)
		r->revision = done->revision;
	else
		agt_copy_text(r->text, sizeof r->text, done->text);
}

void agt_record_free(struct agt_comm *c)
{
	free(c->record);
	c->record = NULL;
}

/* ---- the tables ---- */

void agt_each_synced(const struct agt *a, uint64_t now_ns,
	void (*fn)(void *arg, const struct agt_synced_info *s), void *arg)
{
	const struct agt_comm *c;

	for (c = a->comms; c; c = c->hh.next) {
		const struct agt_record *r = c->record;
		uint64_t until = r && r->ended_ns ? r->ended_ns : now_ns;

		if (r)
			fn(arg, &(struct agt_synced_info){
					.comm = c->id,
					.pid = c->session->pid,
					.run = c->run ? c->run->id : 0,
					.name = c->session->name,
					.peer = c->peer,
					.master = c->master,
					.group = r->group,
					.candidate = r->candidate,
					.end = r->end,
					.started = r->seq != 0,
					.holder = r->holder,
					.seq = r->seq,
					.revision = r->revision,
					.took_ns = until - r->since_ns,
					.age_ns = r->ended_ns ? now_ns - r->ended_ns : 0,
					.tx_bytes = r->tx_bytes,
					.rx_bytes = r->rx_bytes,
					.text = r->text,
				});
	}
}

const char *agt_sync_end_name(enum agt_sync_end e)
{
	static const char *const names[] = {"voted", "running", "done", "failed"};

	return names[e];
}

void agt_each_group(
	const struct agt *a, void (*fn)(void *arg, const struct agt_group_info *g), void *arg)
{
	const struct agt_group *g;
	const struct agt_run *r;

	for (r = a->runs; r; r = r->hh.next)
		for (g = r->groups; g; g = g->hh.next)
			fn(arg, &(struct agt_group_info){
					.run = r->id,
					.master = r->addr,
					.group = g->group,
					.local = g->accepted,
					.world_size = g->world_size,
					.expected = g->revision,
				});
}
