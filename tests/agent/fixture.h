/* SPDX-License-Identifier: MIT
 *
 * An agent core that gets one event at a time. The test sees the actions of the last step and plays
 * the master. The invariants are checked after each step.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "pcclagentd/core/agt.h"
#include "proto/wire_codes.h"
#include "tests/agent/suites.h"

#define MS UINT64_C(1000000)

/* A request for a vote of this kind, as an argument of fx_request. */
#define FX_VOTE(kind) (100u + (kind))

struct fx {
	struct agt *a;
	struct agt_actions acts; /* actions of the last step */
	uint64_t now;
	uint32_t req_id; /* id of the last request */
	/* The generation that applications know and send with each submission. */
	uint64_t generation;
	uint64_t topo_ballot, epoch;       /* in the last commit */
	uint64_t view_id;                  /* id of the last view */
	uint32_t heartbeat_ms, timeout_ms; /* bounds of the next master; default 1000 and 3000 */
};

struct fx *fx_new(void);
struct fx *fx_new_addr(uint32_t master_addr_timeout_ms);
void fx_free(struct fx *f);
void fx_step(struct fx *f, const struct agt_event *ev);

/* Returns the number of actions of this type in the last step (fx_count), or the n-th action of
 * this type (fx_get). */
uint32_t fx_count(const struct fx *f, enum agt_action_type type);
const struct agt_action *fx_get(const struct fx *f, enum agt_action_type type, uint32_t n);
/* Do the same as fx_count and fx_get, for messages to the master. */
uint32_t fx_sent(const struct fx *f, enum wm_type type);
const struct wm_msg *fx_msg(const struct fx *f, enum wm_type type, uint32_t n);
/* Do the same for votes of this kind. */
uint32_t fx_votes(const struct fx *f, enum wire_ballot kind);
const struct wm_ballot_vote *fx_vote(const struct fx *f, enum wire_ballot kind, uint32_t n);
/* Returns the index of the n-th action of this type among all actions of the step. */
size_t fx_index(const struct fx *f, enum agt_action_type type, uint32_t n);
/* Check that the only reply of the last step, or the n-th completion of the step, has this code and
 * contains this text. */
void fx_expect_reply(const struct fx *f, uint32_t code, const char *text);
void fx_expect_done(const struct fx *f, uint32_t n, uint32_t comm, uint32_t code, const char *text);

struct cc_id fx_id(unsigned n);
struct cc_id fx_token(unsigned peer);
static inline bool fx_is(const struct cc_id *x, struct cc_id id)
{
	return cc_id_eq(x, &id);
}
struct cc_addr fx_addr(unsigned n); /* 10.0.0.n:48148 */

void fx_session(struct fx *f, uint32_t session, uint32_t uid); /* pid: 1000 + session */
void fx_session_closed(struct fx *f, uint32_t session);
void fx_request(struct fx *f, uint32_t session, uint32_t comm, unsigned type);
/* Destroys the communicator as the library does when the application has not called
 * pcclDestroyCommunicator. fx_request destroys it as that call does. */
void fx_destroy(struct fx *f, uint32_t session, uint32_t comm, const char *why);
/* Calls pcclCreateCommunicator with a master at fx_addr(master). Returns the communicator. */
uint32_t fx_create(struct fx *f, uint32_t session, uint32_t group, unsigned master);
/* Calls pcclConnect. The peer's id is fx_id(peer), its token fx_token(peer). */
void fx_connect(struct fx *f, uint32_t session, uint32_t comm, unsigned peer);

void fx_event(struct fx *f, enum agt_event_type type, uint32_t run, const char *text);
void fx_from_master(struct fx *f, uint32_t run, const struct wm_msg *m);
/* Sends MASTER_UP and HELLO_ACK with heartbeat 1 s, timeout 3 s and the run id fx_id(200 + run). */
void fx_master_up(struct fx *f, uint32_t run);

/* Lets the master confirm that the peer has left. */
void fx_left(struct fx *f, uint32_t run, unsigned peer);

/* The ring of one group. It has `hosts` hosts, and this one is at position `pos`. The next host is
 * agent fx_id(100). The previous one is fx_id(101), or also fx_id(100) if there are two hosts. With
 * a mesh, the hosts between them are fx_id(102), fx_id(103), ... */
struct fx_ring {
	uint32_t group, hosts, pos, world_size;
	uint64_t generation;
	const char *loss; /* the last loss; NULL if the master does not know it */
	unsigned n;
	unsigned members[8];
	bool reopen; /* both links are reopened */
	bool mesh;   /* links to all other hosts are wanted */
	/* With a mesh: the rings of the plan, one after the other. NULL: none. */
	const uint16_t *plan;
	uint32_t n_plan; /* rings */
	bool await_plan;
};
void fx_round(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n);
void fx_commit(struct fx *f, uint32_t run, uint64_t round, bool accept, const struct fx_ring *v,
	unsigned n);
void fx_view(struct fx *f, uint32_t run, const struct fx_ring *v, unsigned n);
void fx_link(struct fx *f, enum agt_event_type type, uint32_t run, unsigned peer, bool inbound);
/* Runs a round: ROUND, LINK_UP if a link was opened, COMMIT. */
void fx_accept(struct fx *f, uint32_t run, uint64_t round, const struct fx_ring *v, unsigned n);

void fx_submit(struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint64_t count);
/* Submits a refusal, because the call has failed in the process. */
void fx_refuse(
	struct fx *f, uint32_t comm, uint32_t slot, uint64_t tag, uint32_t code, const char *text);
/* Submits eight elements from each of n communicators, in the slot that belongs to the tag. */
void fx_submit_all(struct fx *f, const uint32_t *comms, unsigned n, uint64_t tag);
void fx_op_start(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq);
void fx_op_abort(struct fx *f, uint32_t run, uint32_t group, uint64_t tag, uint64_t seq);
void fx_op_done(struct fx *f, uint32_t run, uint64_t seq);
void fx_xfer(struct fx *f, enum agt_event_type type, uint32_t run, uint64_t seq, uint32_t code);

/* Opens sessions 1 to n. Each gets a communicator in group 7 of master 1, and all are accepted as
 * peers fx_id(s) in run 1. The ring has `hosts` hosts. comms[s - 1] gets the communicator of
 * session s. */
void fx_group(struct fx *f, unsigned n, uint32_t hosts, uint32_t *comms);

/* Advances the time and sends a tick. */
void fx_tick(struct fx *f, uint64_t ms);

/* Lets the master of run 1 die. Checks that no process is notified and that the agent connects to
 * another master. */
void fx_orphan(struct fx *f);
struct wm_msg fx_ack(uint64_t term); /* returns the HELLO_ACK of a master that takes run 1 over */
/* Sends MASTER_UP and checks that the HELLO has the run's id and key. */
void fx_greet(struct fx *f);
/* Lets a master of term 2 take run 1 over from the master of term 1. */
void fx_resume(struct fx *f);

#endif
