/* SPDX-License-Identifier: MIT
 *
 * Messages about shared state from simulated agents.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/master/fake.h"

struct wm_sync_vote fk_candidate(uint64_t revision, uint64_t content)
{
	return (struct wm_sync_vote){.revision = revision,
		.hash_type = WM_HASH_SIMPLE,
		.keys = {1, 2},
		.content = {3, content},
		.n_tensors = 2,
		.bytes = 100};
}

/* Sends a vote of n peers. msg: the vote without its peers. */
static void send_sync(const struct fk_peer *p, size_t n, struct wm_msg *msg)
{
	struct cc_id *ids = malloc(n * sizeof *ids);
	size_t i;

	ck_assert_ptr_nonnull(ids);
	for (i = 0; i < n; i++)
		ids[i] = p[i].id;
	msg->type = WM_OP_VOTE;
	msg->u.op_vote.group = p->group;
	msg->u.op_vote.is_sync = true;
	msg->u.op_vote.peers = ids;
	msg->u.op_vote.n_peers = (uint32_t)n;
	msg->u.op_vote.generation = fk_generation(p->host, p->group);
	msg->u.op_vote.waits_for = p->host->fk->waits_for;
	fk_send(p->host, msg);
	free(ids);
}

void fk_sync_many(const struct fk_peer *p, size_t n, struct wm_sync_vote candidate)
{
	struct wm_msg msg = {0};

	msg.u.op_vote.sync = candidate;
	send_sync(p, n, &msg);
}

void fk_sync(const struct fk_peer *p, struct wm_sync_vote candidate)
{
	fk_sync_many(p, 1, candidate);
}

void fk_sync_again(const struct fk_peer *p, struct wm_sync_vote candidate, uint64_t seq,
	uint64_t revision, uint64_t content)
{
	struct wm_msg msg = {0};

	msg.u.op_vote.sync = candidate;
	msg.u.op_vote.seq = seq;
	msg.u.op_vote.elected = (struct wm_sync_elected){revision, {3, content}};
	send_sync(p, 1, &msg);
}

void fk_report_failed(const struct fk_peer *p, uint64_t seq, bool ok)
{
	struct wm_sync_failure failed = {.peer = p->id, .code = WIRE_INVALID_USAGE};
	struct wm_msg msg = {.type = WM_OP_REPORT};

	(void)snprintf(failed.text, sizeof failed.text, "%s", "a leaf is wrong");
	msg.u.op_report.seq = seq;
	msg.u.op_report.ok = ok;
	msg.u.op_report.n_failed = 1;
	msg.u.op_report.failed = &failed;
	fk_send(p->host, &msg);
}
